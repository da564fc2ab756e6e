// Time limits, each of which must end a server that does nothing more. Other limits are far away.

#include "scripted_server.hpp"

#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <chrono>
#include <string>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

constexpr auto soon = 20ms;

class client_time_limit_test : public client_test {
protected:
    /// All limits off.
    static http::client_options patient() {
        return {.headers_within = 0s, .body_idle = 0s, .total = 0s};
    }
    /// Expects that a GET whose answer ends with `bytes`, and then with silence, runs out of time.
    void expect_deadline(const std::string& bytes, http::client_options options) {
        talk(
            {{bytes}},
            [&](scripted_server& server, http::client& web) -> task<> {
                EXPECT_EQ(co_await error_of_get(web, server.url()), errc::deadline_exceeded);
                EXPECT_EQ(web.connections(), 0U);
            },
            options, true);
    }
};

TEST_P(client_time_limit_test, a_head_has_to_come) {
    auto options = patient();
    options.headers_within = soon;
    expect_deadline("", options);
    expect_deadline("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n", options);
}

TEST_P(client_time_limit_test, a_body_has_to_go_on) {
    auto options = patient();
    options.body_idle = soon;
    expect_deadline("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", options);
    expect_deadline("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", options);
    expect_deadline("HTTP/1.1 200 OK\r\n\r\nhalf", options);
}

TEST_P(client_time_limit_test, everything_has_to_end) {
    auto options = patient();
    options.total = soon;
    expect_deadline("", options);
    expect_deadline("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", options);
}

TEST_P(client_time_limit_test, everything_has_to_end_even_if_bytes_keep_coming) {
    run([]() -> task<> {
        scripted_server server;
        http::client web{{.total = soon}};
        auto dripping = spawn([](scripted_server& from) -> task<> {
            tcp_stream stream = co_await from.accept();
            co_await from.take_request(stream);
            std::string next = "HTTP/1.1 200 OK\r\n\r\n";
            for (;;) {
                if (!co_await async_write_all(stream, next)) co_return;
                if (!co_await async_sleep(1ms)) co_return;
                next = "x";
            }
        }(server));
        EXPECT_EQ(co_await error_of_get(web, server.url()), errc::deadline_exceeded);
        co_await dripping;
    });
}

TEST_P(client_time_limit_test, a_turn_has_to_come) {
    auto options = patient();
    options.per_origin = 1;
    options.total = soon;
    talk(
        {{answer_with("held")}},
        [](scripted_server& server, http::client& web) -> task<> {
            auto holds = or_throw(co_await web.get(server.url()));
            EXPECT_EQ(co_await error_of_get(web, server.url()), errc::deadline_exceeded);
        },
        options, true);
}

TEST_P(client_time_limit_test, a_body_has_to_be_taken) {
    auto options = patient();
    options.body_idle = soon;
    run([&]() -> task<> {
        scripted_server server;
        http::client web{options};
        auto ignoring = spawn([](scripted_server& from) -> task<tcp_stream> {
            co_return co_await from.accept(); // reads nothing
        }(server));
        const std::string body(64'000'000, 'x');
        const std::string url = server.url();
        const auto answer = co_await web.send({.method = "PUT", .url = url, .body = body});
        EXPECT_EQ(error_of(answer), errc::deadline_exceeded);
        co_await ignoring;
    });
}

TEST_P(client_time_limit_test, the_callers_own_stream_may_take_its_time) {
    struct slow_source {
        int left = 3;
        task<result<std::size_t>> read_some(mutable_buffer into) {
            if (left == 0) co_return fail(errc::end_of_stream);
            const auto slept = co_await async_sleep(2 * soon);
            if (!slept) co_return fail(slept);
            --left;
            into.data()[0] = std::byte{'x'};
            co_return std::size_t{1};
        }
    };
    auto options = patient();
    options.body_idle = 3 * soon; // longer than a read, shorter than all of them
    talk(
        {{answer_with("got")}},
        [](scripted_server& server, http::client& web) -> task<> {
            slow_source source;
            const std::string url = server.url();
            EXPECT_TRUE(co_await web.send(
                {.method = "PUT", .url = url, .stream = source, .content_length = 3}));
        },
        options);
}

TEST_P(client_time_limit_test, a_limit_of_the_caller_loses_nothing_of_a_body) {
    run([]() -> task<> {
        scripted_server server;
        http::client web;
        auto halting = spawn([](scripted_server& from) -> task<tcp_stream> {
            tcp_stream stream = co_await from.accept();
            co_await from.take_request(stream);
            const std::string half = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab";
            EXPECT_TRUE(co_await async_write_all(stream, half));
            co_return stream;
        }(server));
        auto answer = or_throw(co_await web.get(server.url()));
        tcp_stream stream = co_await halting;
        std::array<std::byte, 2> half;
        EXPECT_EQ(or_throw(co_await answer.read_some(half)), 2U);
        auto reading = answer.read_some(half);

        const auto stopped = co_await with_timeout(std::move(reading), 1ms);

        EXPECT_EQ(error_of(stopped), errc::deadline_exceeded);
        EXPECT_TRUE(co_await async_write_all(stream, "cd"));
        EXPECT_EQ(or_throw(co_await answer.read_all(10)), "cd");
        EXPECT_EQ(web.idle_connections(), 1U);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, client_time_limit_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
