// Connections that wait for a request end when there is no room for new ones.

#include "http/server/handler_test.hpp"
#include "support/descriptor_limit.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/http/server.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using ::testing::AnyOf;
using testing::get;
using testing::plain_answer;
using testing::raw_peer;
using ::testing::StartsWith;

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
    /// Serves `count` files, which stay open, and hello. Returns a client that has asked for all.
    raw_peer serve_open_files(const testing::temporary_directory& directory, std::size_t count) {
        for (std::size_t each = 0; each < count; ++each)
            std::ofstream{directory / ("file" + std::to_string(each))} << "hello";
        http::router routes;
        routes.get("/", [](http::request&, http::response& answer) -> task<result<>> {
            co_return co_await answer.send("text/plain", "hello");
        });
        routes.files("/", directory / "", {.small_file = 0});
        serve(std::move(routes));
        raw_peer client = connect();
        for (std::size_t each = 0; each < count; ++each) {
            client.send("GET /file" + std::to_string(each) + " HTTP/1.1\r\nHost: h\r\n\r\n");
            static_cast<void>(receive_until(client, "hello"));
        }
        EXPECT_EQ(open_files(), count);
        return client;
    }
    [[nodiscard]] static std::size_t open_files() {
        std::size_t count = 0;
        for (const auto& each : std::filesystem::directory_iterator{"/proc/self/fd"}) {
            std::error_code gone;
            const auto path = std::filesystem::read_symlink(each, gone);
            count += path.filename().string().starts_with("file");
        }
        return count;
    }

    const std::string hello_ = plain_answer("hello");
    const std::string last_hello_ = plain_answer("hello", "Connection: close\r\n");
};

// They used to wait for the time limit of idle connections, and with them everybody else.
TEST_P(http_room_test, scarce_descriptors_end_those_that_have_waited_longest) {
    constexpr int descriptors = 320;
    serve_hello();
    const testing::descriptor_limit limit{descriptors};
    std::vector<raw_peer> open;
    std::string answer = hello_;

    // A connection has two here. A sixteenth is not for connections.
    while (answer == hello_ && open.size() < descriptors / 2 - 4) {
        open.push_back(connect());
        answer = answer_to(open.back());
    }

    EXPECT_EQ(answer, last_hello_);
    ASSERT_GT(open.size(), 2U);
    EXPECT_EQ(open[0].receive_to_the_end(), errc::end_of_stream);
    EXPECT_EQ(open[1].receive_to_the_end(), errc::end_of_stream);
    EXPECT_EQ(answer_to(open[2]), hello_);
}

// Its request may be on its way.
TEST_P(http_room_test, a_connection_has_half_a_second_for_its_request) {
    serve_hello(1);
    raw_peer first = connect();
    ASSERT_EQ(answer_to(first), hello_);
    const auto begin = std::chrono::steady_clock::now();
    raw_peer young = connect();
    raw_peer behind = connect();

    EXPECT_EQ(first.receive_to_the_end(), errc::end_of_stream);
    EXPECT_EQ(young.receive_to_the_end(), errc::end_of_stream);

    EXPECT_GE(std::chrono::steady_clock::now() - begin, 500ms);
    EXPECT_EQ(answer_to(behind), hello_);
}

// Nobody could be spared when the client connected.
TEST_P(http_room_test, connections_end_behind_their_answers_when_no_descriptor_is_left) {
    std::atomic<int> begun = 0;
    serve_late(begun);
    raw_peer client{unique_fd{testing::checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))}};
    constexpr int most = 4;
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
    const testing::descriptor_limit none_left;
    testing::checked(::connect(client.fd(), reinterpret_cast<const sockaddr*>(&at),
                               sizeof at)); // in the backlog

    released = true;

    for (raw_peer& each : busy) {
        EXPECT_THAT(received_by(each), AnyOf(hello_, last_hello_)); // it may have been earlier
    }
    EXPECT_THAT(answer_to(client), AnyOf(hello_, last_hello_));
}

// Files got 503, and so did backends, until an idle connection came to its time limit.
TEST_P(http_room_test, a_file_that_finds_no_descriptor_ends_those_that_wait) {
    const testing::temporary_directory directory;
    std::ofstream{directory / "file"} << "hello";
    http::router routes;
    routes.files("/", directory / "");
    serve(std::move(routes));
    raw_peer waiting = connect();
    waiting.send("GET /none HTTP/1.1\r\nHost: h\r\n\r\n"); // the threads that look have begun
    EXPECT_TRUE(receive_head(waiting).starts_with("HTTP/1.1 404"));
    raw_peer client = connect();
    const testing::descriptor_limit none_left;

    client.send("GET /file HTTP/1.1\r\nHost: h\r\n\r\n");

    EXPECT_TRUE(receive_head(client).starts_with("HTTP/1.1 503"));
    EXPECT_EQ(waiting.receive_to_the_end(), errc::end_of_stream);
}

// They used to be closed once no descriptor was left for another file.
TEST_P(http_room_test, files_that_are_kept_open_are_closed_for_another_file) {
    const testing::temporary_directory directory;
    raw_peer waiting = serve_open_files(directory, 8);
    raw_peer client = connect();
    testing::descriptor_limit none_left;
    client.send("GET /none HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_TRUE(receive_head(client).starts_with("HTTP/1.1 404")); // by those of the files

    none_left.lift();
    EXPECT_EQ(open_files(), 0U);
    // The listener may have found no descriptor, too.
    EXPECT_THAT(answer_to(waiting), AnyOf(hello_, last_hello_));
}

TEST_P(http_room_test, files_that_are_kept_open_are_closed_before_connections) {
    constexpr int descriptors = 320;
    constexpr std::size_t files = 40;
    const testing::temporary_directory directory;
    const testing::descriptor_limit limit{descriptors};
    std::vector<raw_peer> open;
    open.push_back(serve_open_files(directory, files));

    // A connection has two here. A few more would do without the files.
    while (open.size() < (descriptors - files) / 2) {
        open.push_back(connect());
        ASSERT_EQ(answer_to(open.back()), hello_) << open.size();
    }

    EXPECT_EQ(open_files(), 0U);
    EXPECT_EQ(answer_to(open.front()), hello_);
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

TEST_P(http_room_test, connections_end_behind_their_answers_when_a_server_is_full) {
    std::atomic<int> begun = 0;
    serve_late(begun, 1);
    raw_peer busy = connect();
    busy.send(get);
    ASSERT_TRUE(eventually([&] { return begun == 1; }));
    raw_peer client = connect();
    client.send(get);

    released = true;

    EXPECT_THAT(received_by(busy), AnyOf(hello_, last_hello_));
    busy.shutdown_write();
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

// A crowd of them kept everybody else out until `headers_within`, and again after that.
TEST_P(http_room_test, heads_that_are_not_complete_make_room) {
    serve_hello(2);
    std::vector<raw_peer> halves;
    for (int each = 0; each < 2; ++each) {
        halves.push_back(connect());
        halves.back().send("GET / HTTP/1.1\r\n");
    }
    raw_peer client = connect();

    EXPECT_EQ(answer_to(client), hello_);

    const bool is_first = halves[0].peek() == 1;
    EXPECT_THAT(rest_of(halves[is_first ? 0 : 1]), StartsWith("HTTP/1.1 408"));
    raw_peer& other = halves[is_first ? 1 : 0];
    other.send("Host: h\r\n\r\n");
    EXPECT_EQ(received_by(other), hello_);
}

// Nor by sending a byte now and then.
TEST_P(http_room_test, a_head_that_grows_does_not_become_younger) {
    const auto hello = [](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", "hello");
    };
    serve_handler(hello, {.server = {.max_connections = 1}, .limits = {.headers_within = 0s}});
    raw_peer growing = connect();
    growing.send("GET / HTTP/1.1\r\nX: ");
    raw_peer client = connect();
    client.send(get);

    EXPECT_TRUE(eventually([&] {
        const bool is_waited_for = growing.peek() == -EAGAIN;
        if (is_waited_for) growing.send("x");
        return !is_waited_for;
    }));

    EXPECT_THAT(received_by(client), AnyOf(hello_, last_hello_));
}

// It was taken for a head, which gets a 408.
TEST_P(http_room_test, an_empty_line_in_two_pieces_is_no_head) {
    serve_hello(1);
    raw_peer waiting = connect();
    waiting.send("\r");
    EXPECT_TRUE(eventually([&] { return server().statistics().open == 1; }));
    waiting.send("\n");
    raw_peer client = connect();

    EXPECT_EQ(answer_to(client), hello_);

    EXPECT_EQ(rest_of(waiting), "");
}

INSTANTIATE_TEST_SUITE_P(backends, http_room_test, testing::all_backends, testing::backend_name);

} // namespace
} // namespace simplenet::v0
