// What a client has not taken when its connection ends.

#include "http/server/handler_test.hpp"
#include "support/descriptor_limit.hpp"
#include "support/temporary_directory.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <netinet/in.h>
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
    /// More than the kernel of a client of ask() takes, less than that of the server does.
    const std::string large_ = std::string(150'000, 'x');
    static constexpr listen_options all_of_it{.send_buffer = 400'000};
    static constexpr int small = 8192; // buffer of a client's kernel

    void serve_large(const http::limits& with = {}, std::size_t connections = 100,
                     std::chrono::nanoseconds idle_timeout = {}) {
        const auto answer_large = [&](http::request&, http::response& answer) -> task<result<>> {
            co_return co_await answer.send("text/plain", large_);
        };
        http::router routes;
        routes.get("/", answer_large).post("/", answer_large);
        routes.get("/broken", [](http::request&, http::response& answer) -> task<result<>> {
            EXPECT_EQ(co_await answer.write_some("ab"), 2U);
            co_return fail(std::errc::permission_denied);
        });
        serve(std::move(routes), {.server = {.max_connections = connections,
                                             .idle_timeout = idle_timeout,
                                             .listen = all_of_it},
                                  .limits = with});
    }
    /// A client whose kernel takes little, and which has sent `text`; the last answer is written.
    raw_peer ask(std::string_view text) {
        raw_peer client = connect_from("127.0.0.1", small);
        client.send(text);
        const auto is_answered = [&] { return unread_by(client) > 100'000; };
        EXPECT_TRUE(eventually(is_answered)) << "nothing is left for this client to take";
        return client;
    }
    /// How many bytes the server's kernel keeps for a client that has not acknowledged them.
    [[nodiscard]] std::size_t unread_by(const raw_peer& client) {
        sockaddr_in own{};
        socklen_t size = sizeof own;
        testing::checked(::getsockname(client.fd(), reinterpret_cast<sockaddr*>(&own), &size));
        std::array<char, 32> ports{}; // of the server and the client, as in the file
        std::snprintf(ports.data(), ports.size(), "%04X 0100007F:%04X",
                      unsigned{server().local_endpoint().port()}, unsigned{ntohs(own.sin_port)});
        std::ifstream all{"/proc/net/tcp"};
        for (std::string line; std::getline(all, line);) {
            const std::size_t at = line.find(ports.data());
            if (at == std::string::npos) continue;
            std::istringstream rest{line.substr(at + std::strlen(ports.data()))};
            std::string state;
            std::size_t unread = 0;
            rest >> state >> std::hex >> unread; // ends before the colon
            return unread;
        }
        return 0;
    }
    [[nodiscard]] bool is_at_an_end() { return server().statistics().open == 0; }
};

// The reset for it dropped what had not been received (RFC 9112, section 9.6).
TEST_P(http_last_bytes_test, a_client_may_send_something_behind_its_last_request) {
    serve_large({.keep_alive = 20ms});
    for (const std::string_view last :
         {get, get_closing, std::string_view{"GET / HTTP/1.0\r\n\r\n"}}) {
        raw_peer client = ask(last);
        std::this_thread::sleep_for(60ms); // longer than keep_alive
        static_cast<void>(receive_head(client));
        std::size_t got = 0;
        for (std::size_t part = 1; part != 0; got += part) {
            static_cast<void>(::send(client.fd(), "\r\n", 2, MSG_NOSIGNAL));
            part = client.receive(10'000).size();
        }
        EXPECT_EQ(got, large_.size());
    }
}

// Earlier answers had a second.
TEST_P(http_last_bytes_test, answers_before_a_broken_one_are_read_however_slowly) {
    serve_large();
    raw_peer client = ask(std::string{get} + "GET /broken HTTP/1.1\r\nHost: h\r\n\r\n");
    std::string all = receive_head(client);
    for (int each = 0; each < 20; ++each) {
        all += client.receive(2000);
        std::this_thread::sleep_for(60ms); // a client that is slow for longer than a second
    }

    all += rest_of(client);

    EXPECT_THAT(all, HasSubstr(plain_answer(large_)));
    EXPECT_THAT(all, EndsWith("\r\n2\r\nab\r\n"));
}

TEST_P(http_last_bytes_test, a_client_that_does_not_read_its_last_answer_is_reset) {
    serve_large({.send_idle = 200ms});
    raw_peer client = connect_from("127.0.0.1", small);
    client.send(get_closing);

    EXPECT_TRUE(eventually([&] { return server().statistics().requests == 1 && is_at_an_end(); }));
    EXPECT_TRUE(is_reset(client));
}

TEST_P(http_last_bytes_test, clients_that_do_not_read_their_last_answers_keep_nobody_out) {
    serve_large({}, 1);
    const raw_peer client = ask(get_closing);

    raw_peer other = connect();
    other.send(get_closing);

    EXPECT_EQ(rest_of(other), plain_answer(large_, "Connection: close\r\n"));
}

// The time linger_idle went by while the client read.
TEST_P(http_last_bytes_test, a_client_whose_body_nobody_reads_gets_its_whole_answer) {
    serve_large({.linger_idle = 50ms});
    raw_peer client = ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nabc");
    std::string all = receive_head(client);
    for (int each = 0; each < 20; ++each) {
        all += client.receive(2000);
        static_cast<void>(::send(client.fd(), "x", 1, MSG_NOSIGNAL));
        std::this_thread::sleep_for(each == 10 ? 200ms : 5ms); // once longer than linger_idle
    }

    all += rest_of(client);

    EXPECT_EQ(all, plain_answer(large_, "Connection: close\r\n"));
}

// A limit ends the second head, and the reset must not drop the answer to the first.
TEST_P(http_last_bytes_test, an_answer_before_a_head_that_is_not_complete_is_not_lost) {
    serve_large({}, 100, 1s);
    raw_peer client = ask(std::string{get} + "GET / HTTP/1.1\r\n");

    std::this_thread::sleep_for(1500ms); // longer than idle_timeout

    static_cast<void>(receive_head(client));
    EXPECT_EQ(client.receive(large_.size()), large_);
}

// It has the time linger_idle.
TEST_P(http_last_bytes_test, an_idle_timeout_of_the_server_does_not_end_an_upload) {
    serve_large({}, 100, 1s);
    raw_peer client = connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nabc");
    static_cast<void>(receive_head(client));
    ASSERT_EQ(client.receive(large_.size()), large_);

    std::this_thread::sleep_for(1500ms); // longer than idle_timeout

    EXPECT_EQ(server().statistics().open, 1U);
    client.shutdown_write();
    EXPECT_TRUE(eventually([&] { return is_at_an_end(); }));
}

// The rest was left to the kernel, where no limit counts it.
TEST_P(http_last_bytes_test, a_client_that_has_ended_its_side_is_waited_for) {
    serve_large();
    raw_peer client = ask(get_closing);
    client.shutdown_write();

    raw_peer other = connect();
    other.send(get);
    static_cast<void>(receive_head(other));

    EXPECT_EQ(server().statistics().open, 2U);
    EXPECT_EQ(rest_of(client), plain_answer(large_, "Connection: close\r\n"));
}

// The server would wait for it until send_idle is over.
TEST_P(http_last_bytes_test, clients_that_do_not_read_hold_up_no_end_of_the_server) {
    serve_large({.linger_idle = 500ms});
    const raw_peer silent = ask(get_closing);
    const raw_peer uploads = ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nabc");
    const raw_peer kept = ask(get);

    EXPECT_EQ(shut_down(20s).cut, 0U);
}

// Such clients had one second.
TEST_P(http_last_bytes_test, clients_that_read_have_the_time_of_a_shutdown) {
    serve_large({.linger_idle = 2s});
    raw_peer client = ask(get_closing);
    raw_peer kept = ask(get);
    std::jthread ending{[&] { EXPECT_EQ(shut_down(20s).cut, 0U); }};
    std::string of_client;
    std::string of_kept;
    const auto read_from = [](raw_peer& peer, std::string& all) {
        static_cast<void>(::send(peer.fd(), "\r\n", 2, MSG_NOSIGNAL));
        const std::string part = peer.receive(3000);
        all += part;
        return !part.empty();
    };
    bool goes_on = true;
    while (goes_on) {
        goes_on = read_from(client, of_client);
        goes_on = read_from(kept, of_kept) || goes_on;
        std::this_thread::sleep_for(70ms); // the case is slow clients
    }

    EXPECT_EQ(without_date(of_client), plain_answer(large_, "Connection: close\r\n"));
    EXPECT_EQ(without_date(of_kept), plain_answer(large_));
}

// What the client takes counts, although its window is closed for most of the time.
TEST_P(http_last_bytes_test, a_client_that_reads_steadily_is_not_idle) {
    serve_large({.send_idle = 1s});
    raw_peer client = ask(get_closing);
    std::string all;
    for (std::string part = "x"; !part.empty(); all += part) {
        part = client.receive(1000);
        std::this_thread::sleep_for(20ms); // the case is a slow client
    }

    EXPECT_EQ(without_date(std::move(all)), plain_answer(large_, "Connection: close\r\n"));
}

// The reset that follows whatever they send would drop it; an idle connection has nothing to lose.
TEST_P(http_last_bytes_test, clients_that_have_more_to_take_make_room_last) {
    serve_large({}, 4);
    std::vector<raw_peer> slow;
    slow.push_back(ask(get));
    slow.push_back(ask(get_closing));
    slow.push_back(ask(std::string{get} + "GET / HTTP/1.1\r\n"));
    raw_peer idle = connect();
    idle.send(get);
    static_cast<void>(receive_head(idle));
    EXPECT_EQ(idle.receive(large_.size()), large_);

    raw_peer other = connect();
    other.send(get_closing);

    EXPECT_EQ(rest_of(other), plain_answer(large_, "Connection: close\r\n"));
    EXPECT_EQ(idle.receive_to_the_end(), errc::end_of_stream);
    for (raw_peer& each : slow) {
        each.send("\r\n");
        static_cast<void>(receive_head(each));
        EXPECT_EQ(each.receive(large_.size()), large_);
    }
}

// They are old enough a little later.
TEST_P(http_last_bytes_test, clients_that_have_more_to_take_outlast_young_connections) {
    serve_large({}, 3);
    raw_peer slow = ask(get);
    std::vector<raw_peer> idle;
    for (int each = 0; each < 5; ++each) { // two fill the server, and each other one ends one
        idle.push_back(connect());
        idle.back().send(get);
        static_cast<void>(receive_head(idle.back()));
        EXPECT_EQ(idle.back().receive(large_.size()), large_);
    }

    slow.send("\r\n");

    static_cast<void>(receive_head(slow));
    EXPECT_EQ(slow.receive(large_.size()), large_);
}

// All servers of a loop share the descriptors.
TEST_P(http_last_bytes_test, clients_that_have_more_to_take_give_descriptors_last) {
    constexpr int wanted = 32; // by one who finds none
    serve_large();
    const testing::temporary_directory directory;
    std::ofstream{directory / "file"} << "hello";
    http::router routes;
    routes.files("/", directory / "");
    const http::server files = serve_beside(std::move(routes));
    std::vector<raw_peer> slow;
    while (slow.size() != wanted)
        slow.push_back(ask(get));
    const auto connect_to_files = [&] { return served_test::connect(files.local_endpoint()); };
    raw_peer idle = connect_to_files();
    idle.send("GET /none HTTP/1.1\r\nHost: h\r\n\r\n"); // the threads that look have begun
    EXPECT_TRUE(receive_head(idle).starts_with("HTTP/1.1 404"));
    raw_peer client = connect_to_files();
    {
        const testing::descriptor_limit none_left;
        client.send("GET /file HTTP/1.1\r\nHost: h\r\n\r\n");

        EXPECT_EQ(idle.receive_to_the_end(), errc::end_of_stream);
    }
    EXPECT_GE(server().statistics().open, 1U);
}

// It was kept for minutes. Descriptors were free at once, so no limit of the server counted it.
TEST_P(http_last_bytes_test, the_kernel_does_not_keep_what_nobody_reads) {
    serve_large({.send_idle = 200ms}, 1);
    const raw_peer client = ask(get);

    raw_peer other = connect(); // needs its place
    other.send(get_closing);
    EXPECT_EQ(rest_of(other), plain_answer(large_, "Connection: close\r\n"));

    EXPECT_TRUE(eventually([&] { return unread_by(client) == 0; }));
}

INSTANTIATE_TEST_SUITE_P(backends, http_last_bytes_test, testing::all_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
