// Connections that wait for a request end when there is no room for new ones.

#include "http/server/handler_test.hpp"
#include "support/descriptor_limit.hpp"

#include <simplenet/http/server.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::get;
using testing::plain_answer;
using testing::raw_peer;

class http_room_test : public testing::handler_test {
protected:
    void serve_hello(std::size_t max_connections = 0) {
        const auto hello = [](http::request&, http::response& answer) -> task<result<>> {
            co_return co_await answer.send("text/plain", "hello");
        };
        serve_handler(hello, {.server = {.max_connections = max_connections}});
    }
    /// The same once they are released; counts requests.
    void serve_late(std::atomic<int>& begun, std::size_t max_connections = 0) {
        const auto hello = [&](http::request&, http::response& answer) -> task<result<>> {
            ++begun;
            co_await testing::until_set(released);
            co_return co_await answer.send("text/plain", "hello");
        };
        serve_handler(hello, {.server = {.max_connections = max_connections}});
    }
    static std::string answer_to(raw_peer& client) {
        client.send(get);
        return received_by(client);
    }
    static std::string received_by(raw_peer& client) {
        return without_date(receive_until(client, "hello"));
    }
    [[nodiscard]] static bool has_ended(raw_peer& client) { return client.peek() == 0; }

    const std::string hello_ = plain_answer("hello");
};

// They used to wait for the time limit of idle connections, and with them everybody else.
TEST_P(http_room_test, scarce_descriptors_end_those_that_have_waited_longest) {
    constexpr std::size_t connections = 400;
    // A connection has two here. A sixteenth is not for connections.
    constexpr int descriptors = 320;
    constexpr std::size_t most_open = descriptors / 2 - 6;
    serve_hello();
    const testing::descriptor_limit limit{descriptors};
    std::deque<raw_peer> open; // without those that have ended
    std::size_t ended = 0;

    for (std::size_t each = 0; each < connections; ++each) {
        open.push_back(connect());
        ASSERT_EQ(answer_to(open.back()), hello_);
        ASSERT_TRUE(eventually([&] {
            for (; has_ended(open.front()); ++ended)
                open.pop_front();
            return open.size() < most_open;
        })) << "of those that have waited longest, none has ended";
    }

    EXPECT_GT(ended, connections - most_open - 1);
    for (raw_peer& each : open)
        EXPECT_EQ(answer_to(each), hello_);
}

// Nobody could be spared when the client connected.
TEST_P(http_room_test, those_that_begin_to_wait_end_when_no_descriptor_is_left) {
    std::atomic<int> begun = 0;
    serve_late(begun);
    raw_peer client{unique_fd{testing::checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))}};
    constexpr int most = 4;
    const testing::descriptor_limit limit{2 * most};
    std::vector<raw_peer> busy;
    for (int each = 1; each <= most; ++each) {
        busy.push_back(connect());
        busy.back().send(get);
        ASSERT_TRUE(eventually([&] { return begun == each; }));
    }
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(server().local_endpoint().port());
    testing::checked(::connect(client.fd(), reinterpret_cast<const sockaddr*>(&at),
                               sizeof at)); // in the backlog

    released = true;

    for (raw_peer& each : busy)
        EXPECT_EQ(received_by(each), hello_);
    EXPECT_EQ(answer_to(client), hello_);
}

TEST_P(http_room_test, a_full_server_ends_the_one_that_has_waited_longest) {
    serve_hello(3);
    std::vector<raw_peer> waiting;
    for (int each = 0; each < 3; ++each) {
        waiting.push_back(connect());
        ASSERT_EQ(answer_to(waiting.back()), hello_);
    }
    raw_peer client = connect();

    EXPECT_EQ(answer_to(client), hello_);

    EXPECT_EQ(waiting[0].receive_to_the_end(), errc::end_of_stream);
    EXPECT_EQ(answer_to(waiting[1]), hello_);
    EXPECT_EQ(answer_to(waiting[2]), hello_);
}

TEST_P(http_room_test, a_full_server_ends_the_one_that_begins_to_wait) {
    std::atomic<int> begun = 0;
    serve_late(begun, 1);
    raw_peer busy = connect();
    busy.send(get);
    ASSERT_TRUE(eventually([&] { return begun == 1; }));
    raw_peer client = connect();
    client.send(get);

    released = true;

    EXPECT_EQ(received_by(busy), hello_);
    EXPECT_EQ(received_by(client), hello_);
}

TEST_P(http_room_test, a_request_in_progress_is_not_ended) {
    std::atomic<int> begun = 0;
    serve_late(begun, 2);
    raw_peer busy = connect();
    busy.send(get);
    ASSERT_TRUE(eventually([&] { return begun == 1; }));
    raw_peer waiting = connect();
    raw_peer client = connect();
    client.send(get);
    EXPECT_EQ(waiting.receive_to_the_end(), errc::end_of_stream);
    ASSERT_TRUE(eventually([&] { return begun == 2; }));

    released = true;

    EXPECT_EQ(received_by(busy), hello_);
    EXPECT_EQ(received_by(client), hello_);
}

INSTANTIATE_TEST_SUITE_P(backends, http_room_test, testing::all_backends, testing::backend_name);

} // namespace
} // namespace simplenet::v0
