// HTTP servers with TLS.

#include <simplenet/http/server.hpp>

#include "http/server/http_test.hpp"
#include "support/coroutines.hpp"
#include "support/temporary_directory.hpp"
#include "tls/tls_pair.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/tls/connect.hpp>

#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <fstream>
#include <gmock/gmock.h>
#include <string>

#if SIMPLENET_SEAMS
#include "http/server/unknown_peers.hpp"
#endif

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using testing::plain_answer;

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
constexpr std::string_view get_closing = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

class http_tls_test : public testing::http_test {
protected:
    void serve_securely(http::router routes, http::limits limits = {}) {
        const tls::context with = testing::server_with();
        serve(std::move(routes), {.limits = limits, .tls = &with});
    }
    /// All that follows `request`, up to `end` or the end of the connection, without Date.
    std::string ask_securely(std::string_view request, std::string_view end = {}) {
        const auto asking = [&]() -> task<std::string> {
            auto stream = co_await tls::async_connect("localhost", server().local_endpoint().port(),
                                                      testing::client(), {.timeout = 10s});
            if (!stream) co_return stream.error().message();
            const auto sent = co_await async_write_all(*stream, request);
            if (!sent) co_return sent.error().code.message();
            std::string all;
            while (end.empty() || !all.ends_with(end)) {
                auto bytes = co_await stream->receive();
                if (!bytes) break;
                all += bytes->text();
            }
            co_return without_date(std::move(all));
        };
        return simplenet::run(asking(), {.backend = GetParam()});
    }
};

TEST_P(http_tls_test, requests_are_answered) {
    http::router routes;
    routes.get("/", [](http::request& asked, http::response& answer) -> task<result<>> {
        EXPECT_TRUE(asked.secure());
        co_return co_await answer.send("text/plain", "secret");
    });
    serve_securely(std::move(routes));

    EXPECT_EQ(ask_securely(std::string{get} + std::string{get_closing}),
              plain_answer("secret") + plain_answer("secret", "Connection: close\r\n"));
}

TEST_P(http_tls_test, a_large_answer_arrives_whole) {
    const std::string large(3'000'000, 'x');
    http::router routes;
    routes.get("/", [&](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", large);
    });
    serve_securely(std::move(routes));

    EXPECT_EQ(ask_securely(get_closing), plain_answer(large, "Connection: close\r\n"));
}

// Its close_notify, left unread, would turn the end of the connection into a reset, which deletes
// what the client has not read.
TEST_P(http_tls_test, a_client_that_ends_its_side_early_gets_the_whole_answer) {
    const std::string body(200'000, 'x');
    std::atomic<bool> ended = false;
    http::router routes;
    routes.get("/", [&](http::request&, http::response& answer) -> task<result<>> {
        while (!ended)
            static_cast<void>(co_await async_sleep(1ms));
        co_return co_await answer.send("text/plain", body);
    });
    serve_securely(std::move(routes), {.linger_idle = 20ms});
    const auto ask = [&]() -> task<std::string> {
        auto stream = co_await tls::async_connect("localhost", server().local_endpoint().port(),
                                                  testing::client(), {.timeout = 10s});
        if (!stream) co_return stream.error().message();
        const auto sent = co_await async_write_all(*stream, get_closing);
        const result<> told = co_await async_shutdown_write(*stream);
        EXPECT_TRUE(sent && told);
        ended = true;
        static_cast<void>(co_await async_sleep(100ms)); // much longer than linger_idle
        std::string all;
        while (auto bytes = co_await stream->receive())
            all += bytes->text();
        co_return without_date(std::move(all));
    };

    EXPECT_EQ(simplenet::run(ask(), {.backend = GetParam()}),
              plain_answer(body, "Connection: close\r\n"));
}

TEST_P(http_tls_test, an_answer_leaves_although_its_handler_goes_on) {
    std::atomic<bool> released = false;
    http::router routes;
    routes.get("/", [&](http::request&, http::response& answer) -> task<> {
        EXPECT_TRUE(co_await answer.send("text/plain", "early"));
        while (!released) {
            const auto slept = co_await async_sleep(1ms);
            if (!slept) break;
        }
    });
    serve_securely(std::move(routes));

    EXPECT_THAT(ask_securely(get, "early"), EndsWith("early"));
    released = true;
    end_loops(); // the handler looks at `released`
}

TEST_P(http_tls_test, a_client_that_does_not_read_is_cut_off) {
    std::atomic<bool> failed = false;
    http::router routes;
    routes.get("/", [&](http::request&, http::response& answer) -> task<result<>> {
        const std::string large(50'000'000, 'x');
        const auto sent = co_await answer.send("text/plain", large);
        failed = sent.error() == errc::deadline_exceeded;
        co_return sent;
    });
    serve_securely(std::move(routes), {.send_idle = 50ms});
    const auto ask = [&]() -> task<> {
        auto stream = co_await tls::async_connect("localhost", server().local_endpoint().port(),
                                                  testing::client(), {.timeout = 10s});
        EXPECT_TRUE(stream);
        const auto sent = co_await async_write_all(*stream, get);
        EXPECT_TRUE(sent);
        while (!failed) {
            const auto slept = co_await async_sleep(1ms);
            if (!slept) break;
        }
    };
    simplenet::run(ask(), {.backend = GetParam()});

    EXPECT_TRUE(failed);
}

// It used to be closed without a word, which says nothing to the user of a browser.
TEST_P(http_tls_test, a_request_without_tls_is_answered) {
    serve_securely({});
    testing::raw_peer client = connect();

    client.send(get);

    const std::string all = rest_of(client);
    EXPECT_TRUE(all.starts_with("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n")) << all;
    EXPECT_THAT(all, EndsWith("https://\n"));
    EXPECT_EQ(server().statistics().requests, 0U);
}

TEST_P(http_tls_test, a_connection_that_waits_ends_when_the_server_is_full) {
    http::router routes;
    routes.get("/", [](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", "secret");
    });
    const tls::context with = testing::server_with();
    serve(std::move(routes), {.server = {.max_connections = 1}, .tls = &with});
    const auto ask = [&]() -> task<std::string> {
        std::string all;
        std::vector<tls::stream<tcp_stream>> open;
        for (const std::string_view request : {get, get_closing}) {
            auto stream = co_await tls::async_connect("localhost", server().local_endpoint().port(),
                                                      testing::client(), {.timeout = 10s});
            if (!stream) co_return stream.error().message();
            const auto sent = co_await async_write_all(*stream, request);
            auto bytes = co_await stream->receive();
            if (!sent || !bytes) co_return "no answer";
            all += bytes->text();
            open.push_back(*std::move(stream));
        }
        auto end = co_await open.front().receive();
        EXPECT_FALSE(end);
        co_return without_date(std::move(all));
    };

    EXPECT_EQ(simplenet::run(ask(), {.backend = GetParam()}),
              plain_answer("secret") + plain_answer("secret", "Connection: close\r\n"));
}

#if SIMPLENET_SEAMS

// It could evade rules about addresses.
TEST_P(http_tls_test, a_client_of_unknown_address_is_not_served) {
    http::router routes;
    routes.get("/", testing::tell_request);
    serve_securely(std::move(routes));
    testing::unknown_peers kernel;
    const detail::sys::intercepting installed{kernel};

    EXPECT_THAT(ask_securely(get_closing), ::testing::Not(::testing::HasSubstr("HTTP/1.1")));

    EXPECT_EQ(server().statistics().requests, 0U);
}

#endif

TEST_P(http_tls_test, a_client_context_is_refused) {
    auto group = make_group(1);
    const tls::context with = testing::client();

    const auto made = http::server::listen(group, endpoint::loopback(0), {}, {.tls = &with});

    EXPECT_EQ(made.error(), tls::errc::bad_configuration);
}

// The read that had not begun used to be stopped, and the request in the socket was never read.
TEST_P(http_tls_test, a_shutdown_answers_requests_that_wait_in_the_backlog) {
    std::atomic<bool> begun = false;
    std::atomic<bool> released = false;
    http::router routes;
    routes.get("/", [](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", "done");
    });
    routes.get("/block", [&](http::request&, http::response&) -> task<> {
        begun = true;
        released.wait(false); // and nothing is accepted meanwhile
        co_return;
    });
    serve_securely(std::move(routes), {.last_request = 2s});
    std::jthread blocking{
        [&] { static_cast<void>(ask_securely("GET /block HTTP/1.1\r\nHost: h\r\n\r\n")); }};
    ASSERT_TRUE(eventually([&] { return begun.load(); }));

    std::string answered;
    const auto ask_while_it_ends = [&]() -> task<> {
        auto waiting = co_await async_connect(server().local_endpoint()); // to the backlog
        tls::stream<tcp_stream> stream{
            or_throw(std::move(waiting)), testing::client(), {.server_name = "localhost"}};
        auto sending = spawn(async_write_all(stream, get)); // its first message is there
        co_await testing::turns(3);
        auto ending = spawn(server().shutdown(10s));
        co_await testing::turns(3);
        released = true;
        released.notify_one();
        EXPECT_TRUE(co_await sending);
        for (bool more = true; more;) {
            auto bytes = co_await stream.receive();
            if (bytes) answered += bytes->text();
            more = bytes.has_value();
        }
        co_await ending;
    };
    simplenet::run(ask_while_it_ends(), {.backend = GetParam()});

    EXPECT_EQ(without_date(answered), plain_answer("done", "Connection: close\r\n"));
}

TEST_P(http_tls_test, the_context_is_replaced_from_the_next_handshake_on) {
    http::router routes;
    routes.get("/", [](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", "x");
    });
    serve_securely(routes);
    const tls::context other = testing::server_with();

    EXPECT_TRUE(server().replace(routes, &other));
    const tls::context of_client = testing::client();
    EXPECT_FALSE(server().replace(routes, &of_client));

    EXPECT_EQ(ask_securely(get_closing), plain_answer("x", "Connection: close\r\n"));
}

TEST_P(http_tls_test, the_time_for_a_last_hello_is_replaced_with_the_limits) {
    serve_securely(http::router{}, {.last_request = 1h});
    EXPECT_TRUE(server().replace(http::router{}, {.limits = {.last_request = 20ms}}));
    testing::raw_peer silent = connect();
    ASSERT_TRUE(eventually([&] { return server().statistics().open == 1; }));

    EXPECT_EQ(shut_down(5s).drained, 1U);
}

class http_tls_file_test : public http_tls_test {
protected:
    /// Sends a file, which may wait only for a moment.
    void serve_the_file(bool waits_behind_it = false) {
        std::ofstream{directory_ / "file"} << content;
        file_ = unique_fd{::open((directory_ / "file").c_str(), O_RDONLY | O_CLOEXEC)};
        http::router routes;
        routes.get("/", [=, this](http::request&, http::response& answer) -> task<result<>> {
            const auto begin = std::chrono::steady_clock::now();
            auto sending = answer.send_file(file_.get(), content.size());
            const auto sent = co_await with_timeout(std::move(sending), 250ms);
            EXPECT_TRUE(sent);
            was_stopped_ = std::chrono::steady_clock::now() - begin >= 250ms;
            ++answered_;
            if (was_stopped_ && waits_behind_it) static_cast<void>(co_await async_sleep(1h));
            co_return sent;
        });
        serve_securely(std::move(routes));
    }
    /// Asks, without reading, until an answer was stopped. Then reads; the bytes of all files.
    task<std::size_t> ask_until_stopped() {
        auto stream = co_await tls::async_connect("localhost", server().local_endpoint().port(),
                                                  testing::client(), {.timeout = 10s});
        for (std::size_t asked = 1; !was_stopped_; ++asked) {
            const auto sent = co_await async_write_all(*stream, get);
            if (!sent) co_return std::size_t{0};
            while (answered_ < asked) {
                const auto slept = co_await async_sleep(1ms);
                if (!slept) co_return std::size_t{0};
            }
        }
        std::size_t bytes = 0;
        while (bytes < answered_ * content.size()) {
            auto receiving = stream->receive();
            const auto part = co_await with_timeout(std::move(receiving), 10s);
            if (!part) break;
            bytes += static_cast<std::size_t>(std::ranges::count(part->text(), 'f'));
        }
        co_return bytes;
    }
    const std::string content = std::string(20'000, 'f');
    std::atomic<std::size_t> answered_ = 0;

private:
    const testing::temporary_directory directory_;
    unique_fd file_;
    std::atomic<bool> was_stopped_ = false;
};

// A record that is sealed cannot be taken back, so a stopped send_file() may succeed although the
// tail has not left. It used to stay until the connection wrote again.
TEST_P(http_tls_file_test, the_tail_of_a_stopped_file_leaves_when_its_handler_ends) {
    serve_the_file();

    const std::size_t bytes = simplenet::run(ask_until_stopped(), {.backend = GetParam()});

    EXPECT_EQ(bytes, answered_ * content.size());
}

TEST_P(http_tls_file_test, the_tail_of_a_stopped_file_leaves_while_its_handler_waits) {
    serve_the_file(true);

    const std::size_t bytes = simplenet::run(ask_until_stopped(), {.backend = GetParam()});

    EXPECT_EQ(bytes, answered_ * content.size());
}

INSTANTIATE_TEST_SUITE_P(backends, http_tls_file_test, testing::all_backends,
                         testing::backend_name);
INSTANTIATE_TEST_SUITE_P(backends, http_tls_test, testing::all_backends, testing::backend_name);

} // namespace
} // namespace simplenet::v0
