#include <simplenet/http/response.hpp>

#include "http/server/handler_test.hpp"
#include "support/coroutines.hpp"
#include "sys/seam.hpp"

#include <array>
#include <atomic>
#include <simplenet/coro/combinators.hpp>
#include <simplenet/http/now_or_task.hpp>
#include <utility>

#include <gmock/gmock.h>
#include <stdexcept>
#include <string>
#include <thread>

#include <poll.h>
#include <sys/socket.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using testing::get;
using testing::get_closing;
using ::testing::HasSubstr;
using testing::head_of;
using testing::plain_answer;
using testing::raw_peer;
using ::testing::StartsWith;

class http_response_test : public testing::handler_test {};

TEST_P(http_response_test, a_handler_that_says_nothing_answers_200_without_a_body) {
    serve_handler([](http::request&, http::response&) -> task<> { co_return; });

    EXPECT_EQ(ask(get), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

TEST_P(http_response_test, status_and_fields_are_sent) {
    serve_handler([](http::request&, http::response& answer) -> task<result<>> {
        answer.status(201).set("A", "1").set("a", "2").add("A", "3").set("Content-Type", "x/y");
        co_return co_await answer.send("text/plain", "b");
    });

    EXPECT_EQ(ask(get), "HTTP/1.1 201 Created\r\na: 2\r\nA: 3\r\nContent-Type: x/y\r\n"
                        "Content-Length: 1\r\n\r\nb");
}

TEST_P(http_response_test, many_fields_are_sent) {
    serve_handler([](http::request&, http::response& answer) -> task<result<>> {
        for (int each = 0; each < 1000; ++each)
            answer.add("Field", std::string(60, 'f'));
        co_return co_await answer.send("text/plain", "b");
    });

    const std::string all = ask(get);

    EXPECT_GT(all.size(), 67'000U);
    EXPECT_THAT(all, EndsWith("Content-Length: 1\r\n\r\nb"));
}

TEST_P(http_response_test, what_would_split_the_answer_is_refused) {
    serve_handler([](http::request&, http::response& answer) -> task<result<>> {
        answer.set("A", "1\r\nB: 2");
        const auto sent = co_await answer.send("text/plain", "b");
        EXPECT_EQ(sent.error(), std::errc::invalid_argument);
        co_return sent;
    });

    EXPECT_THAT(ask(get), StartsWith("HTTP/1.1 500"));
}

TEST_P(http_response_test, bad_names_statuses_and_framing_are_refused) {
    using break_it = void (*)(http::response&);
    const std::array<break_it, 7> ways{
        [](http::response& answer) { answer.set("", "1"); },
        [](http::response& answer) { answer.set("a b", "1"); },
        [](http::response& answer) { answer.set("Transfer-Encoding", "chunked"); },
        [](http::response& answer) { answer.set("Connection", "x"); },
        [](http::response& answer) { answer.set("Content-Length", "-1"); },
        [](http::response& answer) { answer.status(100); },
        [](http::response& answer) { answer.status(600); },
    };
    http::router routes;
    for (std::size_t each = 0; each < ways.size(); ++each) {
        const break_it way = ways[each];
        routes.get("/" + std::to_string(each),
                   [way](http::request&, http::response& answer) -> task<> {
                       way(answer);
                       const auto sent = co_await answer.send("text/plain", "b");
                       EXPECT_EQ(sent.error(), std::errc::invalid_argument);
                   });
    }
    serve(std::move(routes));
    for (std::size_t each = 0; each < ways.size(); ++each) {
        const std::string request = "GET /" + std::to_string(each) + " HTTP/1.1\r\nHost: h\r\n\r\n";
        EXPECT_THAT(ask(request), StartsWith("HTTP/1.1 500")) << each;
    }
}

TEST_P(http_response_test, a_second_answer_is_refused) {
    serve_handler([](http::request&, http::response& answer) -> task<> {
        EXPECT_TRUE(co_await answer.send("text/plain", "a"));
        EXPECT_TRUE(answer.head_sent());
        const auto again = co_await answer.send("text/plain", "b");
        EXPECT_EQ(again.error(), std::errc::operation_not_permitted);
        const auto more = co_await answer.write_some("c");
        EXPECT_EQ(more.error(), std::errc::operation_not_permitted);
    });

    EXPECT_EQ(ask(get), plain_answer("a"));
}

TEST_P(http_response_test, a_large_answer_is_sent_whole) {
    serve_handler([](http::request&, http::response& answer) -> task<result<>> {
        const std::string large(5'000'000, 'x');
        co_return co_await answer.send("text/plain", large);
    });

    EXPECT_EQ(ask(std::string{get} + std::string{get_closing}),
              plain_answer(std::string(5'000'000, 'x')) +
                  plain_answer(std::string(5'000'000, 'x'), "Connection: close\r\n"));
}

TEST_P(http_response_test, a_function_may_answer_without_a_coroutine) {
    const std::string large(300'000, 'x'); // waits for the client
    http::router routes;
    using answered = http::now_or_task<result<>>;
    routes.get("/", [](http::request&, http::response& answer) -> answered {
        return answer.send("text/plain", "hello");
    });
    routes.get("/large", [&](http::request&, http::response& answer) -> answered {
        return answer.send("text/plain", large);
    });
    routes.get("/error", [](http::request&, http::response&) -> answered {
        return fail(std::errc::io_error);
    });
    routes.get("/throws", [](http::request&, http::response&) -> answered {
        throw std::runtime_error{"a bug"};
    });
    serve(std::move(routes));

    EXPECT_EQ(ask("GET / HTTP/1.1\r\nHost: h\r\n\r\nGET /large HTTP/1.1\r\nHost: h\r\n\r\n"
                  "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"),
              plain_answer("hello") + plain_answer(large) +
                  plain_answer("hello", "Connection: close\r\n"));
    for (const std::string path : {"/error", "/throws"}) {
        const std::string answer = ask("GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n");
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 500 ")) << answer;
    }
}

// What send() borrows may be gone by the time it is awaited.
constexpr auto forgets_to_wait = [](http::request&, http::response& answer) {
    const std::string text = "gone";
    return answer.send("text/plain", text);
};
template <class Result>
using handler_returning = Result (*)(http::request&, http::response&);
using http::detail::handles_requests;
static_assert(!handles_requests<decltype(forgets_to_wait)>);
static_assert(handles_requests<handler_returning<task<>>>);
static_assert(handles_requests<handler_returning<task<result<>>>>);
static_assert(handles_requests<handler_returning<http::now_or_task<result<>>>>);

TEST_P(http_response_test, head_has_the_length_and_no_body) {
    serve_handler([](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", "abc");
    });

    EXPECT_EQ(ask(head_of),
              "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\n");
}

TEST_P(http_response_test, a_streamed_body_is_chunked) {
    serve_handler([](http::request&, http::response& answer) -> task<> {
        EXPECT_EQ(co_await answer.write_some("abc"), 3U);
        const std::array<const_buffer, 2> parts{const_buffer{"de"}, const_buffer{"f"}};
        EXPECT_EQ(co_await answer.write_some(parts), 3U);
    });
    const std::string one = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                            "3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n";

    EXPECT_EQ(ask(std::string{get} + std::string{get}), one + one);
    EXPECT_EQ(ask("GET / HTTP/1.0\r\n\r\n"), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabcdef");
}

TEST_P(http_response_test, each_write_leaves_at_once) {
    serve_handler([&](http::request&, http::response& answer) -> task<> {
        EXPECT_TRUE(co_await answer.write_some("abc"));
        co_await testing::until_set(released);
    });
    testing::raw_peer client = connect();
    client.send(get);

    EXPECT_THAT(receive_until(client, "abc\r\n"), EndsWith("\r\n\r\n3\r\nabc\r\n"));
    released = true;
}

TEST_P(http_response_test, a_stream_that_never_waits_leaves_others_their_turn) {
    std::atomic<bool> others_ran = false;
    std::atomic<bool> had_turn = false;
    serve_handler([&](http::request&, http::response& answer) -> task<> {
        event_loop::current()->post([&] { others_ran = true; });
        for (int count = 0; count < 2000; ++count) {
            const auto sent = co_await async_write_all(answer, "x");
            if (!sent) co_return;
        }
        had_turn = others_ran.load();
    });

    EXPECT_THAT(ask(get), EndsWith("1\r\nx\r\n0\r\n\r\n"));
    EXPECT_TRUE(had_turn);
}

TEST_P(http_response_test, a_streamed_body_may_have_a_length) {
    serve_handler([](http::request&, http::response& answer) -> task<> {
        answer.set("Content-Length", "4");
        EXPECT_EQ(co_await answer.write_some("abc"), 3U);
        EXPECT_EQ((co_await answer.write_some("de")).error(), std::errc::message_size);
        EXPECT_EQ(co_await answer.write_some("d"), 1U);
    });

    EXPECT_EQ(ask(get), "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd");
}

TEST_P(http_response_test, a_streamed_body_that_is_too_short_is_reset) {
    serve_handler([](http::request&, http::response& answer) -> task<> {
        answer.set("Content-Length", "4");
        EXPECT_EQ(co_await answer.write_some("abc"), 3U);
    });
    testing::raw_peer client = connect();
    client.send(get);

    EXPECT_TRUE(is_reset(client));
}

TEST_P(http_response_test, an_exception_before_the_head_is_answered_with_500) {
    static std::atomic<int> reported = 0;
    const auto handler = [](http::request&, http::response& answer) -> task<> {
        answer.set("A", "1");
        throw std::runtime_error{"bad"};
        co_return;
    };
    serve_handler(handler, {.server = {.on_handler_exception = [](std::exception_ptr, void*) {
                                ++reported;
                            }}});
    const int before = reported;

    const std::string all = ask(std::string{get} + std::string{get});

    EXPECT_THAT(all, StartsWith("HTTP/1.1 500"));
    EXPECT_THAT(all, HasSubstr("Connection: close\r\n"));
    EXPECT_EQ(all.find("A: 1"), std::string::npos);
    EXPECT_EQ(all.find("HTTP/1.1", 1), std::string::npos);
    EXPECT_TRUE(eventually([&] { return reported == before + 1; }));
}

TEST_P(http_response_test, an_error_before_the_head_is_answered_with_500) {
    serve_handler([](http::request&, http::response&) -> task<result<>> {
        co_return fail(std::errc::permission_denied);
    });

    EXPECT_THAT(ask(get), StartsWith("HTTP/1.1 500"));
    EXPECT_TRUE(eventually([&] { return server().statistics().failed == 1; }));
}

TEST_P(http_response_test, an_error_after_the_head_resets) {
    serve_handler([](http::request&, http::response& answer) -> task<result<>> {
        EXPECT_TRUE(co_await answer.write_some("abc"));
        co_return fail(std::errc::permission_denied);
    });
    testing::raw_peer client = connect();
    client.send(get);

    EXPECT_TRUE(is_reset(client));
}

TEST_P(http_response_test, a_handler_that_waits_does_not_hold_up_earlier_answers) {
    http::router routes;
    routes.get("/", [](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", "first");
    });
    routes.get("/slow", [&](http::request&, http::response&) -> task<> {
        co_await testing::until_set(released);
    });
    serve(std::move(routes));
    testing::raw_peer client = connect();
    client.send(std::string{get} + "GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");

    EXPECT_THAT(receive_until(client, "first"), EndsWith("first"));
    released = true;
}

TEST_P(http_response_test, an_answer_leaves_although_its_handler_goes_on) {
    serve_handler([&](http::request&, http::response& answer) -> task<> {
        EXPECT_TRUE(co_await answer.send("text/plain", "early"));
        co_await testing::until_set(released);
    });
    testing::raw_peer client = connect();
    client.send(get);

    EXPECT_THAT(receive_until(client, "early"), EndsWith("early"));
    released = true;
}

TEST_P(http_response_test, a_handler_may_read_and_write_at_once) {
    const std::string content(30'000'000, 'x'); // more than the kernel buffers
    std::atomic<int> reads = 0;
    http::router routes;
    routes.any("/", [&](http::request& asked, http::response& answer) -> task<> {
        const auto read = [&]() -> task<> {
            std::array<char, 10> piece;
            while (co_await asked.read_some(std::span{piece}))
                ++reads;
        };
        const auto write = [&]() -> task<> {
            for (std::string_view rest = content; !rest.empty();) {
                const auto count = co_await answer.write_some(rest);
                if (!count) break;
                rest.remove_prefix(*count);
            }
        };
        task<> reading = read();
        task<> writing = write();
        co_await when_all(std::move(reading), std::move(writing));
    });
    serve(std::move(routes));
    testing::raw_peer client = connect();
    client.send("POST / HTTP/1.0\r\nContent-Length: 5000\r\n\r\n");
    for (int each = 1; each <= 500; ++each) { // meanwhile the writer comes to wait
        client.send("0123456789");
        ASSERT_TRUE(eventually([&] { return reads >= each; }));
    }

    EXPECT_TRUE(rest_of(client).ends_with(content));
}

// The reset drops what the client's kernel has not acknowledged.
TEST_P(http_response_test, a_broken_answer_leaves_earlier_ones_to_be_read) {
    // The client's kernel takes the first 64 KiB at most, the server's all of it.
    const std::string large(150'000, 'x');
    http::router routes;
    routes
        .get("/",
             [&](http::request&, http::response& answer) -> task<result<>> {
                 co_return co_await answer.send("text/plain", large);
             })
        .get("/broken", [](http::request&, http::response& answer) -> task<result<>> {
            EXPECT_EQ(co_await answer.write_some("ab"), 2U);
            co_return fail(std::errc::permission_denied);
        });
    serve(std::move(routes));
    testing::raw_peer client = connect();
    client.send(std::string{get} + "GET /broken HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_TRUE(eventually([&] { return client.peek() > 0; }));
    EXPECT_TRUE(eventually([&] { return server().statistics().requests == 2; }));

    const std::string all = rest_of(client);

    EXPECT_THAT(all, HasSubstr(plain_answer(large)));
    EXPECT_THAT(all, EndsWith("\r\n2\r\nab\r\n"));
}

TEST_P(http_response_test, a_client_that_does_not_read_is_reset) {
    std::atomic<bool> failed = false;
    serve_handler(
        [&](http::request&, http::response& answer) -> task<result<>> {
            const std::string large(50'000'000, 'x');
            const auto sent = co_await answer.send("text/plain", large);
            failed = sent.error() == errc::deadline_exceeded;
            co_return sent;
        },
        {.limits = {.send_idle = 50ms}});
    testing::raw_peer client = connect();
    client.send(get);

    EXPECT_TRUE(eventually([&] { return failed.load(); }));
    EXPECT_TRUE(is_reset(client));
}

// The end of the wait let our kernel take the rest of an answer, and with the next one the time
// began anew.
TEST_P(http_response_test, a_client_that_reads_none_of_many_answers_is_reset_within_the_limit) {
    constexpr auto limit = 1s * testing::patience;
    std::chrono::steady_clock::time_point last{};
    std::atomic<bool> went_on = false; // once the limit had passed
    serve_handler(
        [&](http::request&, http::response& answer) -> task<result<>> {
            const auto now = std::chrono::steady_clock::now();
            if (last.time_since_epoch().count() != 0 && now - last >= limit) went_on = true;
            last = now;
            const std::string body(10'000, 'x');
            co_return co_await answer.send("text/plain", body);
        },
        {.limits = {.send_idle = limit}});
    testing::raw_peer client = ask_and_read_nothing();
    ::pollfd ended{.fd = client.fd(), .events = POLLHUP, .revents = 0};

    EXPECT_EQ(::poll(&ended, 1, testing::test_limit / 1ms), 1);
    EXPECT_TRUE(is_reset(client));
    EXPECT_FALSE(went_on);
}

// It takes longer than the limit in all.
TEST_P(http_response_test, a_client_that_reads_now_and_then_gets_everything) {
    constexpr std::size_t large = 20'000'000; // more than the kernels hold
    constexpr auto limit = 2s * testing::patience;
    serve_handler(
        [](http::request&, http::response& answer) -> task<result<>> {
            const std::string body(large, 'x');
            co_return co_await answer.send("text/plain", body);
        },
        {.limits = {.send_idle = limit}});
    testing::raw_peer client = connect();
    testing::set_buffers(client.fd(), 65'536);
    client.send(get);
    static_cast<void>(receive_head(client));
    std::size_t got = 0;
    for (const auto end = std::chrono::steady_clock::now() + limit * 3 / 2;
         std::chrono::steady_clock::now() < end;) {
        got += client.receive(100'000).size();
        std::this_thread::sleep_for(50ms); // the case is a slow client
    }

    EXPECT_EQ(got + client.receive(large - got).size(), large);
}

TEST_P(http_response_test, requests_per_connection_are_limited) {
    serve_handler([](http::request&, http::response&) -> task<> { co_return; },
                  {.limits = {.requests_per_connection = 2}});
    const std::string three = std::string{get} + std::string{get} + std::string{get};

    EXPECT_EQ(ask(three), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
                          "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

TEST_P(http_response_test, an_upgrade_hands_the_connection_over) {
    serve_handler([](http::request&, http::response& answer) -> task<result<>> {
        auto stream = co_await answer.upgrade("shout");
        if (!stream) co_return fail(stream);
        std::array<char, 3> text;
        const auto got = co_await async_read_exact(*stream, text);
        if (!got) co_return fail(got.error().code);
        const auto sent = co_await async_write_all(*stream, text);
        if (!sent) co_return fail(sent.error().code);
        co_return result<>{};
    });

    EXPECT_EQ(
        ask("GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: shout\r\n\r\nabc"),
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\nabc");
    EXPECT_THAT(ask(get), StartsWith("HTTP/1.1 500"));
}

// What a stopped write had left used to stay until the handler wrote again or ended.
TEST_P(http_response_test, the_rest_of_a_stopped_write_leaves_while_the_handler_waits) {
    std::atomic<std::size_t> written = 0;
    serve_handler([&](http::request&, http::response& answer) -> task<> {
        written = co_await testing::write_until_full(answer);
        co_await testing::until_set(released);
    });
    testing::raw_peer client = connect();
    testing::set_buffers(client.fd(), 65'536);
    client.send("GET / HTTP/1.0\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return written != 0; }));

    static_cast<void>(receive_head(client));
    EXPECT_EQ(client.receive(written).size(), written);
    released = true;
}

TEST_P(http_response_test, a_client_that_does_not_read_while_the_handler_waits_is_reset) {
    std::atomic<std::size_t> written = 0;
    serve_handler(
        [&](http::request&, http::response& answer) -> task<> {
            written = co_await testing::write_until_full(answer);
            co_await testing::until_set(released);
        },
        {.limits = {.send_idle = 200ms}});
    testing::raw_peer client = connect();
    testing::set_buffers(client.fd(), 65'536);
    client.send(get);
    ASSERT_TRUE(eventually([&] { return written != 0; }));

    released = true;

    EXPECT_TRUE(eventually([&] { return server().statistics().open == 0; }));
    EXPECT_TRUE(is_reset(client));
}

TEST_P(http_response_test, a_client_that_pipelines_slow_requests_does_not_keep_others_waiting) {
    constexpr unsigned pipelined = 40;
    std::atomic<unsigned> slow = 0;
    std::atomic<unsigned> slow_before = 0;
    http::router routes;
    routes.get("/slow", [&](http::request&, http::response&) -> task<> {
        if (++slow == 1) released.wait(false);
        testing::pass(std::chrono::steady_clock::now() + 12ms);
        co_return;
    });
    routes.get("/", [&](http::request&, http::response& answer) -> task<result<>> {
        slow_before = slow.load();
        co_return co_await answer.send("text/plain", "abc");
    });
    serve(std::move(routes));
    testing::raw_peer greedy = connect();
    std::string requests;
    for (unsigned each = 0; each < pipelined; ++each)
        requests += "GET /slow HTTP/1.1\r\nHost: h\r\n\r\n";
    greedy.send(requests);
    ASSERT_TRUE(eventually([&] { return slow == 1; }));
    testing::raw_peer modest = connect();
    modest.send(get);
    released = true;
    released.notify_one();

    EXPECT_THAT(receive_until(modest, "abc"), EndsWith("abc"));
    EXPECT_LT(slow_before, 10U);
    end_loops(); // before the counters
}

TEST_P(http_response_test, an_answer_that_was_not_taken_does_not_become_an_empty_one) {
    std::atomic<bool> failed = false;
    http::router routes;
    routes.get("/fill", [](http::request&, http::response& answer) -> task<> {
        static_cast<void>(co_await testing::write_until_full(answer));
    });
    routes.get("/", [&](http::request&, http::response& answer) -> task<> {
        answer.set("Large", std::string(32'768, 'l')); // more than the output holds
        const auto send = [&]() -> task<result<>> {
            co_return co_await answer.send("text/plain", "abc");
        };
        task<result<>> sending = send();
        const auto sent = co_await with_timeout(std::move(sending), 50ms);
        failed = error_of(sent) == errc::deadline_exceeded;
    });
    serve(std::move(routes));
    testing::raw_peer client = connect();
    testing::set_buffers(client.fd(), 65'536);
    client.send("GET /fill HTTP/1.1\r\nHost: h\r\n\r\n" + std::string{get});
    ASSERT_TRUE(eventually([&] { return failed.load(); }));

    const std::string all = rest_of(client);
    EXPECT_THAT(all.substr(all.find("0\r\n\r\n") + 5), StartsWith("HTTP/1.1 500"));
}

#if SIMPLENET_SEAMS

/// Watches what follows the bytes that a socket keeps for more of them (MSG_MORE).
class cork_watch final : public detail::sys::interceptor {
public:
    std::atomic<int> kept = 0;
    std::atomic<int> ended = 0;    // by the next call for that socket
    std::atomic<int> was_late = 0; // another call came first
    std::atomic<int> ended_when_told = 0;

private:
    long on_call(detail::sys::pending_call& call) noexcept override {
        using enum detail::sys::call;
        if (call.size() != 0 && call.descriptor() == corked_) {
            corked_ = -1;
            const bool ends = call.which() == shutdown && call.argument<int>(1) == SHUT_WR;
            ++(ends ? ended : was_late);
        }
        const int flags = call.which() == send      ? call.argument<int>(3)
                          : call.which() == sendmsg ? call.argument<int>(2)
                                                    : 0;
        if ((flags & MSG_MORE) != 0) {
            ++kept;
            corked_ = call.descriptor();
        }
        return call.make();
    }

    std::atomic<int> corked_ = -1;
};

TEST_P(http_response_test, the_end_of_a_connection_leaves_with_its_last_answer) {
    cork_watch watch;
    const auto note = [](const http::answered_request&, void* context) noexcept {
        auto& known = *static_cast<cork_watch*>(context);
        known.ended_when_told = known.ended.load();
    };
    serve_handler(
        [](http::request&, http::response& answer) -> task<result<>> {
            co_return co_await answer.send("text/plain", "b");
        },
        {.on_answered = note, .context = &watch});
    const detail::sys::intercepting installed{watch};
    raw_peer client = connect();

    client.send(get);
    static_cast<void>(receive_until(client, "\r\n\r\nb"));
    EXPECT_EQ(watch.kept, 0); // another request may follow
    client.send(get_closing);

    EXPECT_EQ(rest_of(client), plain_answer("b", "Connection: close\r\n"));
    EXPECT_EQ(watch.kept, 1);
    EXPECT_EQ(watch.ended, 1);
    EXPECT_EQ(watch.was_late, 0);
    EXPECT_TRUE(eventually([&] { return watch.ended_when_told == 1; })); // the second time
}

#endif

INSTANTIATE_TEST_SUITE_P(backends, http_response_test, testing::all_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
