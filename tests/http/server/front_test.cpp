// Handlers that stand in front of others, and who is told about requests.

#include <simplenet/http/server.hpp>

#include "http/server/handler_test.hpp"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <poll.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using testing::get;
using testing::get_closing;
using ::testing::HasSubstr;
using testing::plain_answer;

constexpr std::string_view post_five =
    "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
constexpr std::string_view post_chunks =
    "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
    "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";

/// The request, but for its `Connection: close`.
std::string kept(std::string_view request) {
    std::string all{request};
    constexpr std::string_view close = "Connection: close\r\n";
    return all.erase(all.find(close), close.size());
}

class http_front_test : public testing::handler_test {
protected:
    void serve_front(auto handler) {
        http::router routes;
        routes.fallback(std::move(handler), {.body = 0});
        serve(std::move(routes));
    }
};

// --- what a handler changes ----------------------------------------------------------------------

TEST_P(http_front_test, a_path_can_be_rewritten) {
    serve_front([](http::request& asked, http::response& answer) -> task<result<>> {
        asked.rewrite(std::string{"/index.php"}); // a temporary: it is copied
        const std::string seen = std::string{asked.path()} + ' ' + std::string{asked.target()} +
                                 ' ' + std::string{asked.query()};
        co_return co_await answer.send("text/plain", seen);
    });

    EXPECT_THAT(ask("GET /a/b?c=d HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"),
                EndsWith("\r\n\r\n/index.php /a/b?c=d c=d"));
}

TEST_P(http_front_test, what_was_told_of_the_client_ends_with_its_request) {
    serve_front([](http::request& asked, http::response& answer) -> task<result<>> {
        std::string seen = asked.peer().address().to_string() + (asked.secure() ? " s " : " p ") +
                           std::string{asked.user()} + ';';
        asked.set_peer(endpoint{or_throw(ip_address::parse("192.0.2.7")), 9});
        asked.set_secure(true);
        asked.set_user(std::string{"ann"});
        EXPECT_EQ(asked.connection_peer().address(), ip_address::loopback_v4());
        EXPECT_EQ(asked.connection_local().address(), ip_address::loopback_v4());
        seen +=
            asked.peer().to_string() + (asked.secure() ? " s " : " p ") + std::string{asked.user()};
        co_return co_await answer.send("text/plain", seen);
    });
    const std::string expected = "127.0.0.1 p ;192.0.2.7:9 s ann";

    EXPECT_EQ(ask(std::string{get} + std::string{get_closing}),
              plain_answer(expected) + plain_answer(expected, "Connection: close\r\n"));
}

TEST_P(http_front_test, a_limit_on_the_body_holds_whatever_its_framing) {
    serve_front([](http::request& asked, http::response& answer) -> task<result<>> {
        asked.limit_body(4);
        const auto body = co_await asked.read_all(1000);
        EXPECT_EQ(error_of(body), http::errc::body_too_large);
        if (!body) co_return fail(body);
        co_return co_await answer.send("text/plain", *body);
    });

    EXPECT_THAT(ask(post_five), HasSubstr(" 413 "));
    EXPECT_THAT(ask(post_chunks), HasSubstr(" 413 "));
}

// Such an answer used to promise another one, and the connection ended.
TEST_P(http_front_test, the_answer_to_a_body_that_is_not_read_on_says_so) {
    serve_front([](http::request& asked, http::response& answer) -> task<result<>> {
        asked.limit_body(4);
        const auto body = co_await asked.read_all(1000);
        EXPECT_EQ(error_of(body), http::errc::body_too_large);
        co_return co_await answer.status(413).send("text/plain", "own");
    });

    for (const std::string& each : {kept(post_five), kept(post_chunks)}) {
        const std::string all = ask(each + std::string{get_closing});
        EXPECT_THAT(all, HasSubstr("\r\nConnection: close\r\n"));
        EXPECT_THAT(all, EndsWith("\r\n\r\nown"));
    }
}

TEST_P(http_front_test, a_body_beyond_the_limit_is_dropped_for_the_next_request) {
    serve_front([](http::request& asked, http::response& answer) -> task<result<>> {
        asked.limit_body(4);
        co_return co_await answer.send("text/plain", "hello");
    });

    for (const std::string& each : {kept(post_five), kept(post_chunks)}) {
        EXPECT_EQ(ask(each + std::string{get_closing}),
                  plain_answer("hello") + plain_answer("hello", "Connection: close\r\n"));
    }
}

TEST_P(http_front_test, a_client_is_not_told_to_send_a_body_beyond_the_limit) {
    serve_front([](http::request& asked, http::response&) -> task<result<>> {
        asked.limit_body(4);
        std::array<std::byte, 16> into;
        const auto count = co_await asked.read_some(into);
        co_return fail(count);
    });
    testing::raw_peer client = connect();

    client.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");

    EXPECT_THAT(receive_head(client), ::testing::StartsWith("HTTP/1.1 413 "));
}

TEST_P(http_front_test, a_limit_above_that_of_the_server_is_possible) {
    serve_front([](http::request& asked, http::response& answer) -> task<result<>> {
        asked.limit_body(0);
        const auto body = co_await asked.read_all(1000);
        if (!body) co_return fail(body);
        co_return co_await answer.send("text/plain", *body);
    });

    EXPECT_THAT(ask(post_chunks), EndsWith("hello"));
}

TEST_P(http_front_test, what_was_set_can_be_looked_at_and_forgotten) {
    serve_handler([](http::request&, http::response& answer) -> task<result<>> {
        answer.status(404).set("X-A", "1").set("Content-Length", "7");
        EXPECT_EQ(answer.status(), 404U);
        EXPECT_EQ(answer.find("x-a"), "1");
        answer.reset();
        EXPECT_EQ(answer.status(), 200U);
        EXPECT_EQ(answer.find("x-a"), std::nullopt);
        co_return co_await answer.send("text/plain", "ok");
    });

    EXPECT_EQ(ask(get_closing), plain_answer("ok", "Connection: close\r\n"));
}

// --- who is told ---------------------------------------------------------------------------------

class http_observer_test : public http_front_test {
protected:
    /// Serves with an observer that notes a line for each request.
    void serve_observed(http::router routes, http::limits limits = {}) {
        serve(std::move(routes),
              {.limits = limits,
               .on_answered =
                   [](const http::answered_request& what, void* context) noexcept {
                       static_cast<http_observer_test*>(context)->note(what);
                   },
               .context = this});
    }
    void serve_observed(auto handler) {
        http::router routes;
        routes.any("/", std::move(handler));
        serve_observed(std::move(routes));
    }
    /// The lines, once there are so many.
    std::vector<std::string> told(std::size_t count) {
        EXPECT_TRUE(eventually([&] {
            const std::lock_guard locked{mutex_};
            return lines_.size() >= count;
        }));
        const std::lock_guard locked{mutex_};
        return lines_;
    }

private:
    void note(const http::answered_request& what) {
        const std::lock_guard locked{mutex_};
        EXPECT_EQ(what.asked.peer().address(), ip_address::loopback_v4());
        EXPECT_GE(what.duration, 0ns);
        lines_.push_back(std::string{what.asked.method()} + ' ' + std::string{what.asked.path()} +
                         ' ' + std::to_string(what.status) + ' ' + std::to_string(what.body_bytes) +
                         (what.complete ? "" : " cut"));
    }
    std::mutex mutex_;
    std::vector<std::string> lines_;
};

// Its head was not slow: the answers before it were not read.
TEST_P(http_observer_test, a_client_that_reads_nothing_gets_no_408) {
    std::atomic<std::size_t> calls = 0;
    http::router routes;
    routes.get("/", [&](http::request&, http::response& answer) -> task<result<>> {
        ++calls;
        const std::string body(10'000, 'x'); // leaves when the next head is waited for
        co_return co_await answer.send("text/plain", body);
    });
    serve_observed(std::move(routes), {.send_idle = 200ms});
    testing::raw_peer client = connect();
    testing::set_buffers(client.fd(), 4096);
    const auto has_ended = [&] {
        ::pollfd ended{.fd = client.fd(), .events = 0, .revents = 0};
        return ::poll(&ended, 1, 0) == 1;
    };
    std::string piece = std::string{get} + "GET";
    for (std::size_t sent = 1; !has_ended(); ++sent) {
        client.send(piece);
        piece = std::string{get}.substr(3) + "GET";
        ASSERT_TRUE(eventually([&] { return calls >= sent || has_ended(); }));
    }

    for (const std::string& line : told(calls))
        EXPECT_THAT(line, HasSubstr(" 200 "));
}

TEST_P(http_observer_test, each_request_is_told_once_in_order) {
    serve_observed([](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", "abc");
    });

    static_cast<void>(ask(std::string{get} +
                          "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n"
                          "GET /none HTTP/1.1\r\nHost: h\r\n\r\n" +
                          std::string{get_closing}));

    EXPECT_THAT(told(4),
                ElementsAre("GET / 200 3", "HEAD / 200 0", "GET /none 404 14", "GET / 200 3"));
}

TEST_P(http_observer_test, refusals_are_told) {
    serve_observed([](http::request&, http::response&) -> task<> { co_return; });

    static_cast<void>(ask("GET / HTTP/1.1\r\n\r\n"));
    static_cast<void>(ask("nonsense\r\n\r\n"));
    static_cast<void>(ask("CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n"));

    EXPECT_THAT(told(3), ElementsAre("GET  400 16", "  400 16", "CONNECT  501 20"));
}

TEST_P(http_observer_test, streamed_bytes_are_counted_without_their_framing) {
    serve_observed([](http::request&, http::response& answer) -> task<> {
        EXPECT_TRUE(co_await answer.write_some("abc"));
        EXPECT_TRUE(co_await answer.write_some("de"));
    });

    static_cast<void>(ask(get_closing));

    EXPECT_THAT(told(1), ElementsAre("GET / 200 5"));
}

TEST_P(http_observer_test, a_cut_answer_is_told_as_one) {
    serve_observed([](http::request&, http::response& answer) -> task<result<>> {
        EXPECT_TRUE(co_await answer.write_some("abc"));
        co_return fail(std::errc::io_error);
    });

    static_cast<void>(ask(get_closing));

    EXPECT_THAT(told(1), ElementsAre("GET / 200 3 cut"));
}

TEST_P(http_observer_test, a_handler_that_fails_is_told_with_its_status) {
    serve_observed([](http::request&, http::response&) -> task<result<>> {
        co_return fail(std::errc::io_error);
    });

    static_cast<void>(ask(get_closing));

    EXPECT_THAT(told(1), ElementsAre("GET / 500 26"));
}

TEST_P(http_observer_test, an_upgrade_is_told_when_its_handler_ends) {
    serve_observed([](http::request&, http::response& answer) -> task<> {
        const auto stream = co_await answer.upgrade("echo");
        EXPECT_TRUE(stream);
    });

    static_cast<void>(
        ask("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"));

    EXPECT_THAT(told(1), ElementsAre("GET / 101 0"));
}

// --- the end of a server -------------------------------------------------------------------------

TEST_P(http_front_test, a_server_that_ends_waits_for_a_last_request) {
    http::router routes;
    routes.get("/", [](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", "done");
    });
    serve(std::move(routes), {.limits = {.last_request = 30s}});
    testing::raw_peer used = connect();
    testing::raw_peer fresh = connect();
    used.send(get);
    EXPECT_THAT(receive_until(used, "done"), EndsWith("done"));
    ASSERT_TRUE(eventually([&] { return server().statistics().open == 2; }));
    std::jthread ending{[&] { EXPECT_EQ(shut_down(30s).cut, 0U); }};
    // Once the listener is closed, the loop knows that the server ends.
    ASSERT_TRUE(eventually(
        [&] { return !blocking::tcp_stream::connect(server().local_endpoint()).has_value(); }));

    used.send(get);
    fresh.send(get);

    const std::string last = plain_answer("done", "Connection: close\r\n");
    EXPECT_EQ(rest_of(used), last);
    EXPECT_EQ(rest_of(fresh), last);
}

TEST_P(http_front_test, a_server_that_ends_waits_no_longer_than_last_request) {
    serve_handler([](http::request&, http::response&) -> task<> { co_return; },
                  {.limits = {.last_request = 20ms}});
    testing::raw_peer idle = connect();
    ASSERT_TRUE(eventually([&] { return server().statistics().open == 1; }));

    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(shut_down(60s).drained, 1U);

    EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
    EXPECT_EQ(idle.receive_to_the_end(), errc::end_of_stream);
}

TEST_P(http_front_test, limits_are_replaced_with_the_routes) {
    const auto routes = [] {
        http::router made;
        made.post("/", testing::echo_body);
        return made;
    };
    serve(routes());
    testing::raw_peer client = connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
    EXPECT_THAT(receive_until(client, "hello"), EndsWith("hello"));

    EXPECT_FALSE(server().replace(routes(), {.limits = {.header_count = 0}}));
    EXPECT_TRUE(server().replace(routes(), {.limits = {.body = 4}}));

    client.send(post_five);
    EXPECT_THAT(rest_of(client), ::testing::StartsWith("HTTP/1.1 413 "));
}

// The limits of a head that was not complete used to be those of a server that was gone.
TEST_P(http_front_test, limits_live_as_long_as_a_head_that_is_read_by_them) {
    const auto routes = [] {
        http::router made;
        made.get("/", [](http::request&, http::response& answer) -> task<result<>> {
            co_return co_await answer.send("text/plain", "done");
        });
        return made;
    };
    serve(routes());
    testing::raw_peer client = connect();
    client.send(get);
    EXPECT_THAT(receive_until(client, "done"), EndsWith("done"));

    EXPECT_TRUE(server().replace(routes(), {.limits = {.headers_within = 10s}}));
    client.send("GET / HT");
    client.send("TP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");

    EXPECT_EQ(rest_of(client), plain_answer("done", "Connection: close\r\n"));
}

INSTANTIATE_TEST_SUITE_P(backends, http_front_test, testing::all_backends, testing::backend_name);
INSTANTIATE_TEST_SUITE_P(backends, http_observer_test, testing::all_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
