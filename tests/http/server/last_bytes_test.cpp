// What a client has not taken when its connection ends.

#include "http/server/handler_test.hpp"

#include <chrono>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <sys/socket.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using testing::get;
using testing::get_closing;
using ::testing::HasSubstr;
using testing::plain_answer;
using testing::raw_peer;

class http_last_bytes_test : public testing::handler_test {
protected:
    /// The client's kernel takes the first 64 KiB at most, the server's all of it.
    const std::string large_ = std::string(150'000, 'x');

    void serve_large(const http::limits& with = {}, std::size_t connections = 100) {
        http::router routes;
        routes
            .get("/",
                 [&](http::request&, http::response& answer) -> task<result<>> {
                     co_return co_await answer.send("text/plain", large_);
                 })
            .post("/",
                  [&](http::request&, http::response& answer) -> task<result<>> {
                      co_return co_await answer.send("text/plain", large_);
                  })
            .get("/broken", [](http::request&, http::response& answer) -> task<result<>> {
                EXPECT_EQ(co_await answer.write_some("ab"), 2U);
                co_return fail(std::errc::permission_denied);
            });
        serve(std::move(routes), {.server = {.max_connections = connections}, .limits = with});
    }
    [[nodiscard]] bool is_at_an_end() { return server().statistics().open == 0; }
    /// Whether the kernel still has the server's end of the connection.
    [[nodiscard]] bool is_kept(const raw_peer& client) {
        sockaddr_in own{};
        socklen_t size = sizeof own;
        testing::checked(::getsockname(client.fd(), reinterpret_cast<sockaddr*>(&own), &size));
        std::ostringstream ports; // as in /proc/net/tcp: local, remote
        ports << std::hex << std::uppercase << ':' << server().local_endpoint().port();
        std::ostringstream remote;
        remote << std::hex << std::uppercase << ':' << ntohs(own.sin_port) << ' ';
        std::ifstream all{"/proc/net/tcp"};
        for (std::string line; std::getline(all, line);) {
            if (line.contains(ports.str() + ' ') && line.contains(remote.str())) {
                if (line.find(ports.str() + ' ') < line.find(remote.str())) return true;
            }
        }
        return false;
    }
};

// It met a closed socket, and the reset dropped what had not been received (RFC 9112, section 9.6).
TEST_P(http_last_bytes_test, a_client_may_send_something_behind_its_last_request) {
    serve_large({.keep_alive = 20ms});
    for (const std::string_view last :
         {get, get_closing, std::string_view{"GET / HTTP/1.0\r\n\r\n"}}) {
        raw_peer client = connect();
        client.send(last);
        static_cast<void>(receive_head(client));
        std::this_thread::sleep_for(60ms); // longer than keep_alive
        std::size_t got = 0;
        for (std::size_t part = 1; part != 0; got += part) {
            static_cast<void>(::send(client.fd(), "\r\n", 2, MSG_NOSIGNAL));
            part = client.receive(1000).size();
        }
        EXPECT_EQ(got, large_.size());
    }
}

// It was given a second.
TEST_P(http_last_bytes_test, answers_before_a_broken_one_are_read_however_slowly) {
    serve_large();
    raw_peer client = connect();
    client.send(std::string{get} + "GET /broken HTTP/1.1\r\nHost: h\r\n\r\n");
    std::string all = receive_head(client);
    for (int each = 0; each < 20; ++each) {
        all += client.receive(2000);
        std::this_thread::sleep_for(60ms); // a slow client
    }

    all += rest_of(client);

    EXPECT_THAT(all, HasSubstr(plain_answer(large_)));
    EXPECT_THAT(all, EndsWith("\r\n2\r\nab\r\n"));
}

TEST_P(http_last_bytes_test, a_client_that_does_not_read_its_last_answer_is_reset) {
    serve_large({.send_idle = 200ms});
    raw_peer client = connect();
    client.send(get_closing);

    EXPECT_TRUE(eventually([&] { return server().statistics().requests == 1 && is_at_an_end(); }));
    EXPECT_TRUE(is_reset(client));
}

TEST_P(http_last_bytes_test, clients_that_do_not_read_their_last_answers_keep_nobody_out) {
    serve_large({}, 1);
    raw_peer client = connect();
    client.send(get_closing);
    ASSERT_TRUE(eventually([&] { return server().statistics().requests == 1; }));

    raw_peer other = connect();
    other.send(get_closing);

    EXPECT_EQ(rest_of(other), plain_answer(large_, "Connection: close\r\n"));
}

// It had linger_idle, which went by while it read.
TEST_P(http_last_bytes_test, a_client_whose_body_nobody_reads_gets_its_whole_answer) {
    serve_large({.linger_idle = 50ms});
    raw_peer client = connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nabc");
    std::string all = receive_head(client);
    for (int each = 0; each < 20; ++each) {
        all += client.receive(2000);
        static_cast<void>(::send(client.fd(), "x", 1, MSG_NOSIGNAL));
        std::this_thread::sleep_for(each == 10 ? 200ms : 5ms); // a slow client
    }

    all += rest_of(client);

    EXPECT_EQ(all, plain_answer(large_, "Connection: close\r\n"));
}

// It was left to the kernel, where no limit counts it.
TEST_P(http_last_bytes_test, a_client_that_has_ended_its_side_is_waited_for) {
    serve_large();
    raw_peer client = connect();
    client.send(get_closing);
    client.shutdown_write();
    ASSERT_TRUE(eventually([&] { return server().statistics().requests == 1; }));

    raw_peer other = connect();
    other.send(get);
    static_cast<void>(receive_head(other));

    EXPECT_EQ(server().statistics().open, 2U);
    EXPECT_EQ(rest_of(client), plain_answer(large_, "Connection: close\r\n"));
}

// It would have had send_idle.
TEST_P(http_last_bytes_test, a_client_that_does_not_read_holds_up_no_end_of_the_server) {
    serve_large();
    raw_peer client = connect();
    client.send(get_closing);
    ASSERT_TRUE(eventually([&] { return server().statistics().requests == 1; }));

    EXPECT_EQ(shut_down(20s).cut, 0U);
}

// Descriptors were free at once, so no limit of the server counted what the kernel kept.
TEST_P(http_last_bytes_test, the_kernel_does_not_keep_what_nobody_reads) {
    serve_large({.send_idle = 200ms}, 1);
    raw_peer client = connect();
    client.send(get);
    EXPECT_TRUE(eventually([&] { return server().statistics().requests == 1; }));
    EXPECT_TRUE(is_kept(client));

    raw_peer other = connect(); // needs its place
    other.send(get_closing);
    EXPECT_EQ(rest_of(other), plain_answer(large_, "Connection: close\r\n"));

    EXPECT_TRUE(eventually([&] { return !is_kept(client); }));
}

INSTANTIATE_TEST_SUITE_P(backends, http_last_bytes_test, testing::all_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
