#include <simplenet/http/server.hpp>

#include "http/server/handler_test.hpp"
#include "support/coroutines.hpp"

#include <atomic>
#include <simplenet/coro/spawn.hpp>
#include <utility>

#include <gmock/gmock.h>
#include <string>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using testing::get;
using testing::get_closing;
using testing::plain_answer;

class http_server_end_test : public testing::handler_test {};

TEST_P(http_server_end_test, a_shutdown_closes_idle_connections_and_ends_requests) {
    std::atomic<bool> begun = false;
    serve_handler([&](http::request&, http::response& answer) -> task<result<>> {
        begun = true;
        co_await testing::until_set(released);
        co_return co_await answer.send("text/plain", "done");
    });
    testing::raw_peer idle = connect();
    testing::raw_peer busy = connect();
    busy.send(get);
    ASSERT_TRUE(eventually([&] { return begun.load(); }));
    std::jthread ending{[&] { EXPECT_EQ(shut_down(10s).cut, 0U); }};

    EXPECT_EQ(idle.receive_to_the_end(), errc::end_of_stream);
    released = true;
    EXPECT_EQ(rest_of(busy), plain_answer("done", "Connection: close\r\n"));
}

// The reset for a request that came too late used to drop what the client had not received.
TEST_P(http_server_end_test, a_shutdown_loses_no_answer_that_is_on_its_way) {
    const std::string content(150'000, 'x');
    std::atomic<bool> taken = false; // by the kernel, which has room for it
    const auto answer_all = [&](http::request&, http::response& answer) -> task<result<>> {
        const auto sent = co_await answer.send("text/plain", content);
        taken = true;
        co_return sent;
    };
    serve_handler(answer_all, {.server = {.listen = {.send_buffer = 200'000}}});
    testing::raw_peer before = connect();
    testing::raw_peer client = connect();
    testing::raw_peer behind = connect();
    testing::set_buffers(client.fd(), 32'768);
    client.send(get);
    ASSERT_TRUE(eventually([&] { return taken.load(); }));
    std::jthread ending{[&] { EXPECT_EQ(shut_down(10s).cut, 0U); }};
    EXPECT_EQ(before.receive_to_the_end(), errc::end_of_stream);
    EXPECT_EQ(behind.receive_to_the_end(), errc::end_of_stream);

    client.send(get); // crosses the end of the server, whose socket a reset would empty

    EXPECT_TRUE(rest_of(client).starts_with(plain_answer(content)));
    client.shutdown_write(); // the server waits a second for it
}

// The end of the connection is that of the body: it used to look complete.
TEST_P(http_server_end_test, loops_that_end_reset_answers_in_progress) {
    serve_handler([](http::request&, http::response& answer) -> task<> {
        EXPECT_TRUE(co_await answer.write_some("abc"));
        co_await async_sleep(1h);
    });
    testing::raw_peer client = connect();
    client.send("GET / HTTP/1.0\r\n\r\n");
    EXPECT_THAT(receive_until(client, "abc"), EndsWith("abc"));

    end_loops();

    EXPECT_TRUE(is_reset(client));
}

TEST_P(http_server_end_test, a_handler_that_is_cut_and_tells_nothing_gives_no_complete_answer) {
    http::router routes;
    routes.get("/", [](http::request&, http::response& answer) -> task<> {
        EXPECT_TRUE(co_await answer.write_some("abc"));
        static_cast<void>(co_await async_sleep(1h));
    });
    routes.get("/open", [](http::request&, http::response&) -> task<> {
        static_cast<void>(co_await async_sleep(1h));
    });
    serve(std::move(routes));
    testing::raw_peer chunked = connect();
    testing::raw_peer closing = connect();
    testing::raw_peer open = connect();
    chunked.send(get);
    closing.send("GET / HTTP/1.0\r\n\r\n");
    open.send("GET /open HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_THAT(receive_until(chunked, "abc\r\n"), EndsWith("abc\r\n"));
    EXPECT_THAT(receive_until(closing, "abc"), EndsWith("abc"));
    ASSERT_TRUE(eventually([&] { return server().statistics().requests == 3; }));

    EXPECT_EQ(shut_down(0s).cut, 3U);

    EXPECT_TRUE(is_reset(chunked));
    EXPECT_TRUE(is_reset(closing));
    EXPECT_EQ(rest_of(open), "");
}

TEST_P(http_server_end_test, a_shutdown_answers_requests_that_wait_in_the_backlog) {
    std::atomic<bool> begun = false;
    http::router routes;
    routes.get("/", [](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", "done");
    });
    routes.get("/block", [&](http::request&, http::response&) -> task<> {
        begun = true;
        released.wait(false); // and nothing is accepted meanwhile
        co_return;
    });
    serve(std::move(routes));
    testing::raw_peer blocking = connect();
    blocking.send("GET /block HTTP/1.1\r\nHost: h\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return begun.load(); }));
    testing::raw_peer waiting = connect();
    waiting.send(get);

    const auto end_server = [&]() -> task<> {
        auto ending = spawn(server().shutdown(10s));
        co_await testing::turns(3);
        released = true;
        released.notify_one();
        co_await ending;
    };
    simplenet::run(end_server(), {.backend = GetParam()});

    EXPECT_EQ(rest_of(waiting), plain_answer("done", "Connection: close\r\n"));
}

TEST_P(http_server_end_test, a_whole_answer_stays_when_its_handler_is_cut) {
    http::router routes;
    routes.get("/", [](http::request&, http::response& answer) -> task<> {
        EXPECT_TRUE(co_await answer.send("text/plain", "abc"));
        static_cast<void>(co_await async_sleep(1h));
    });
    routes.get("/tells", [](http::request&, http::response& answer) -> task<result<>> {
        EXPECT_TRUE(co_await answer.send("text/plain", "abc"));
        const result<> slept = co_await async_sleep(1h);
        co_return slept;
    });
    serve(std::move(routes));
    testing::raw_peer silent = connect();
    testing::raw_peer telling = connect();
    silent.send(get);
    telling.send("GET /tells HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_THAT(receive_until(silent, "abc"), EndsWith("abc"));
    EXPECT_THAT(receive_until(telling, "abc"), EndsWith("abc"));

    EXPECT_EQ(shut_down(0s).cut, 2U);

    EXPECT_FALSE(is_reset(silent));
    EXPECT_FALSE(is_reset(telling));
    EXPECT_EQ(server().statistics().failed, 0U);
}

TEST_P(http_server_end_test, routes_are_replaced_from_the_next_request_on) {
    const auto answer_with = [](std::string text) {
        http::router routes;
        routes.get("/", [text](http::request&, http::response& answer) -> task<result<>> {
            co_return co_await answer.send("text/plain", text);
        });
        return routes;
    };
    serve(answer_with("old"));
    testing::raw_peer client = connect();
    client.send(get);
    EXPECT_THAT(receive_until(client, "old"), EndsWith("old"));

    EXPECT_TRUE(server().replace(answer_with("new")));

    client.send(get_closing);
    EXPECT_EQ(rest_of(client), plain_answer("new", "Connection: close\r\n"));
}

TEST_P(http_server_end_test, statistics_count_requests) {
    serve_handler([](http::request&, http::response&) -> task<> { co_return; });

    static_cast<void>(ask(std::string{get} + std::string{get}));

    EXPECT_EQ(server().statistics().requests, 2U);
}

INSTANTIATE_TEST_SUITE_P(backends, http_server_end_test, testing::all_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
