// Bodies that leave: whole, streamed, expected, refused, and while the answer arrives.

#include "scripted_server.hpp"
#include "support/fault_parts.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

/// A body of `left` bytes of a pattern.
class counted_source {
public:
    explicit counted_source(std::size_t size, std::size_t piece = 50'000)
        : left_{size}
        , piece_{piece} {}

    task<result<std::size_t>> read_some(mutable_buffer into) {
        if (left_ == 0) co_return fail(errc::end_of_stream);
        const std::size_t count = std::min({into.size(), left_, piece_});
        std::memset(into.data(), 'x', count);
        left_ -= count;
        co_return count;
    }
    [[nodiscard]] std::size_t left() const { return left_; }

private:
    std::size_t left_;
    std::size_t piece_;
};

/// Fails.
struct failing_source {
    task<result<std::size_t>> read_some(mutable_buffer) {
        co_return fail(std::errc::state_not_recoverable);
    }
};

/// Never gives anything.
struct silent_source {
    task<result<std::size_t>> read_some(mutable_buffer) {
        const auto slept = co_await async_sleep(1h);
        co_return fail(slept);
    }
};

/// Reads to the end of what `from` sends until it contains `end`.
task<std::string> receive_until(tcp_stream& from, std::string_view end) {
    std::string text;
    std::array<char, 65536> buffer;
    while (!text.ends_with(end)) {
        const auto count = co_await from.read_some(mutable_buffer{buffer});
        if (!count) co_return text + "(" + count.error().message() + ")";
        text.append(buffer.data(), *count);
    }
    co_return text;
}

/// Reads a head, and nothing behind it.
task<std::string> receive_head(tcp_stream& from) {
    std::string text;
    std::array<char, 1> byte;
    while (!text.ends_with("\r\n\r\n")) {
        const auto count = co_await from.read_some(mutable_buffer{byte});
        if (!count) break;
        text += byte[0];
    }
    co_return text;
}

task<> send_text(tcp_stream& to, std::string text) {
    const auto sent = co_await async_write_all(to, text);
    EXPECT_TRUE(sent);
}

class client_upload_test : public backend_test {
protected:
    /// Runs `body(url, client)` beside `serving(stream)`, for one connection.
    template <class Serving, class Body>
    void talk(Serving serving, Body body, http::client_options options = {}) {
        run([&]() -> task<> {
            scripted_server server;
            http::client web{options};
            auto other = spawn(serve_one(server, serving));
            co_await body(server.url(), web);
            other.request_stop();
            co_await other;
        });
    }

private:
    template <class Serving>
    static task<> serve_one(scripted_server& server, Serving& serving) {
        tcp_stream stream = co_await server.accept();
        co_await serving(stream);
    }
};

TEST_P(client_upload_test, a_stream_of_unknown_size_leaves_in_chunks) {
    std::string received;
    talk(
        [&](tcp_stream& stream) -> task<> {
            received = co_await receive_until(stream, "0\r\n\r\n");
            co_await send_text(stream, answer_with("got"));
        },
        [](std::string url, http::client& web) -> task<> {
            counted_source source{5, 3};
            auto answer =
                or_throw(co_await web.send({.method = "PUT", .url = url, .stream = source}));
            EXPECT_EQ(or_throw(co_await answer.read_all(10)), "got");
            EXPECT_EQ(web.idle_connections(), 1U);
        });
    EXPECT_TRUE(has_line(received, "Transfer-Encoding: chunked"));
    EXPECT_TRUE(received.ends_with("\r\n\r\n3\r\nxxx\r\n2\r\nxx\r\n0\r\n\r\n"));
}

TEST_P(client_upload_test, no_more_of_a_stream_is_read_than_its_length) {
    std::string received;
    counted_source source{10};
    talk(
        [&](tcp_stream& stream) -> task<> {
            received = co_await receive_until(stream, "xxxx");
            co_await send_text(stream, answer_with("got"));
        },
        [&](std::string url, http::client& web) -> task<> {
            EXPECT_TRUE(co_await web.send(
                {.method = "PUT", .url = url, .stream = source, .content_length = 4}));
        });
    EXPECT_TRUE(has_line(received, "Content-Length: 4"));
    EXPECT_EQ(source.left(), 6U);
}

TEST_P(client_upload_test, a_stream_that_is_shorter_than_its_length_is_an_error) {
    talk([](tcp_stream& stream) -> task<> { co_await receive_until(stream, "never"); },
         [](std::string url, http::client& web) -> task<> {
             counted_source source{3};
             const auto answer = co_await web.send(
                 {.method = "PUT", .url = url, .stream = source, .content_length = 4});
             EXPECT_EQ(error_of(answer), std::errc::message_size);
             EXPECT_EQ(web.connections(), 0U);
         });
}

TEST_P(client_upload_test, the_error_of_a_stream_is_that_of_the_call) {
    std::string received;
    talk([&](tcp_stream& stream) -> task<> { received = co_await receive_until(stream, "never"); },
         [](std::string url, http::client& web) -> task<> {
             failing_source source;
             const auto answer = co_await web.send({.method = "PUT", .url = url, .stream = source});
             EXPECT_EQ(error_of(answer), std::errc::state_not_recoverable);
         });
    EXPECT_EQ(received.find("0\r\n\r\n"), std::string::npos); // it must not look complete
}

// --- Expect --------------------------------------------------------------------------------------

TEST_P(client_upload_test, an_expected_body_waits_for_the_server) {
    std::string head;
    std::string body;
    talk(
        [&](tcp_stream& stream) -> task<> {
            head = co_await receive_head(stream);
            co_await send_text(stream, "HTTP/1.1 100 Continue\r\n\r\n");
            body = co_await receive_until(stream, "body");
            co_await send_text(stream, answer_with("got"));
        },
        [](std::string url, http::client& web) -> task<> {
            EXPECT_TRUE(co_await web.send(
                {.method = "PUT", .url = url, .body = "body", .expect_continue = true}));
        },
        {.continue_within = 1h});
    EXPECT_TRUE(has_line(head, "Expect: 100-continue"));
    EXPECT_TRUE(head.ends_with("\r\n\r\n"));
    EXPECT_EQ(body, "body");
}

TEST_P(client_upload_test, an_expected_body_leaves_anyway_after_a_while) {
    std::string text;
    talk(
        [&](tcp_stream& stream) -> task<> {
            text = co_await receive_until(stream, "body");
            co_await send_text(stream, answer_with("got"));
        },
        [](std::string url, http::client& web) -> task<> {
            EXPECT_TRUE(co_await web.send(
                {.method = "PUT", .url = url, .body = "body", .expect_continue = true}));
        },
        {.continue_within = 1ms});
    EXPECT_TRUE(text.ends_with("\r\n\r\nbody"));
}

TEST_P(client_upload_test, a_body_that_the_server_does_not_want_stays) {
    std::string text;
    talk(
        [&](tcp_stream& stream) -> task<> {
            text = co_await receive_head(stream);
            co_await send_text(stream, "HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n");
            text += co_await receive_until(stream, "never");
        },
        [](std::string url, http::client& web) -> task<> {
            auto answer = or_throw(co_await web.send(
                {.method = "PUT", .url = url, .body = "body", .expect_continue = true}));
            EXPECT_EQ(answer.status(), 417U);
            EXPECT_EQ(web.connections(), 0U); // its state is unknown
        },
        {.continue_within = 1h});
    EXPECT_EQ(text.find("body"), std::string::npos);
}

// --- answers that come early ---------------------------------------------------------------------

TEST_P(client_upload_test, an_answer_before_the_end_of_the_body_is_read) {
    talk(
        [](tcp_stream& stream) -> task<> {
            co_await receive_head(stream);
            co_await send_text(stream, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n"
                                       "Connection: close\r\n\r\nno");
            co_await receive_until(stream, "never"); // lingers, as a server should
        },
        [](std::string url, http::client& web) -> task<> {
            silent_source source;
            auto answer =
                or_throw(co_await web.send({.method = "PUT", .url = url, .stream = source}));
            EXPECT_EQ(answer.status(), 413U);
            EXPECT_EQ(or_throw(co_await answer.read_all(10)), "no");
            EXPECT_EQ(web.connections(), 0U);
        });
}

TEST_P(client_upload_test, a_server_may_answer_and_read_at_the_same_time) {
    constexpr std::size_t size = 4'000'000;
    talk(
        [](tcp_stream& stream) -> task<> {
            co_await receive_head(stream);
            co_await send_text(stream, "HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n");
            std::array<std::byte, 4096> buffer;
            while (const auto count = co_await stream.read_some(buffer)) {
                const auto sent =
                    co_await async_write_all(stream, const_buffer{buffer.data(), *count});
                if (!sent) co_return;
            }
        },
        [](std::string url, http::client& web) -> task<> {
            const std::string body(size, 'y');
            auto answer = or_throw(co_await web.send({.method = "PUT", .url = url, .body = body}));
            const auto back = co_await answer.read_all(size);
            EXPECT_TRUE(back == body);
            EXPECT_EQ(web.idle_connections(), 1U);
        });
}

TEST_P(client_upload_test, an_answer_that_is_dropped_leaves_the_rest_of_the_body) {
    counted_source source{std::size_t{1} << 40U};
    talk(
        [](tcp_stream& stream) -> task<> {
            co_await receive_until(stream, "xxxx");
            co_await send_text(stream, answer_with("early"));
            co_await receive_until(stream, "never");
        },
        [&](std::string url, http::client& web) -> task<> {
            {
                auto answer =
                    or_throw(co_await web.send({.method = "PUT", .url = url, .stream = source}));
            }
            const std::size_t left = source.left();
            co_await yield();
            EXPECT_EQ(source.left(), left);
            EXPECT_EQ(web.connections(), 0U);
        });
}

TEST_P(client_upload_test, the_answer_of_a_server_that_stops_reading_is_found) {
    talk(
        [](tcp_stream& stream) -> task<> {
            co_await receive_head(stream);
            co_await send_text(stream, answer_with("enough"));
            static_cast<void>(stream.shutdown_write());
            co_await receive_until(stream, "never");
        },
        [](std::string url, http::client& web) -> task<> {
            silent_source source;
            auto answer =
                or_throw(co_await web.send({.method = "PUT", .url = url, .stream = source}));
            EXPECT_EQ(or_throw(co_await answer.read_all(10)), "enough");
            EXPECT_EQ(web.connections(), 0U);
        });
}

TEST_P(client_upload_test, a_response_may_be_the_body_of_another_request) {
    run([]() -> task<> {
        scripted_server from;
        scripted_server to;
        http::client web;
        auto giving = spawn(from.serve({{answer_with("passed on")}}));
        auto taking = spawn(to.serve({{answer_with("taken")}}));
        auto source = or_throw(co_await web.get(from.url()));
        const std::string url = to.url();
        const auto length = source.content_length();
        auto answer = or_throw(co_await web.send(
            {.method = "PUT", .url = url, .stream = source, .content_length = length}));
        EXPECT_EQ(or_throw(co_await answer.read_all(10)), "taken");
        EXPECT_TRUE(to.requests.at(0).ends_with("\r\n\r\npassed on"));
        co_await giving;
        co_await taking;
    });
}

INSTANTIATE_TEST_SUITE_P(backends, client_upload_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
