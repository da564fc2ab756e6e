#pragma once
// http_routes: the server of http_chaos_test, whose handlers answer in every way. Each answer tells
// the number of its request, and the version of the routes.

#include "stress/http_plan.hpp"

#include "support/placed_bytes.hpp"
#include "support/placed_file.hpp"
#include "support/random_stop.hpp"

#include <simplenet/http.hpp>
#include <simplenet/simplenet.hpp>

#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {

/// What the handlers of all loops share.
struct served_content {
    served_content() { file.grow_to(served_file_size); }

    placed_file file{placed_bytes{served_file_seed}};
    bool is_strict = false; // see round_of_http; set while there is no server
    stopping_thread stopping;
};

/// What one handler call knows.
struct answering {
    answering(http::request& request, http::response& response, served_content& served,
              std::uint64_t version)
        : asked{request}
        , answer{response}
        , content{served}
        , number{number_in("number")}
        , size{static_cast<std::size_t>(number_in("size"))}
        , stops{number_in("seed"), served.stopping} {
        answer.set("Number", std::to_string(number)).set("Routes", std::to_string(version));
        // What is streamed is compressed by this.
        if (number % 3 == 0) answer.set("Content-Type", "text/plain");
    }
    [[nodiscard]] std::uint64_t number_in(std::string_view name) const {
        const std::string_view text = asked.parameter(name);
        std::uint64_t value = 0;
        std::from_chars(text.data(), text.data() + text.size(), value);
        return value;
    }
    [[nodiscard]] std::string body() const { return placed_text(number, size); }

    http::request& asked;
    http::response& answer;
    served_content& content;
    std::uint64_t number;
    std::size_t size;
    random_stops stops;
};

/// Whether an operation was stopped by the handler itself, and can be tried again.
template <class Outcome>
task<bool> may_go_on(const answering& in, const Outcome& outcome) {
    const bool from_outside = co_await this_task::stop_requested();
    const bool may_be_over =
        in.content.is_strict && !outcome && outcome.error() == errc::deadline_exceeded;
    co_return !from_outside && !may_be_over && was_stopped(outcome);
}

inline task<result<>> answer_whole(answering& in) {
    const std::string body = in.body();
    co_return co_await in.answer.send("text/plain", body);
}

/// Streams `body`, and loses nothing although it is stopped again and again.
inline task<result<>> stream_text(answering& in, std::string_view body) {
    while (!body.empty()) {
        const const_buffer piece{body.substr(0, in.stops.random.size(body.size()))};
        const std::array pieces{piece.first(piece.size() / 2), piece.subspan(piece.size() / 2)};
        auto writing = in.stops.random.percent(30) ? in.answer.write_some(std::span{pieces})
                                                   : in.answer.write_some(piece);
        const auto count = co_await in.stops.perhaps_stopped(std::move(writing), 40);
        if (count) {
            body.remove_prefix(*count);
        } else {
            const bool again = co_await may_go_on(in, count);
            if (!again) co_return fail(count);
        }
        if (in.stops.random.percent(15)) {
            static_cast<void>(co_await in.stops.perhaps_stopped(in.answer.flush(), 50));
        }
        if (in.stops.random.percent(10)) co_await turns(2);
    }
    co_return result<>{};
}

inline task<result<>> answer_in_chunks(answering& in) {
    const std::string body = in.body();
    co_return co_await stream_text(in, body);
}
inline task<result<>> answer_with_length(answering& in) {
    in.answer.set("Content-Length", std::to_string(in.size));
    const std::string body = in.body();
    co_return co_await stream_text(in, body);
}

/// Reads a part of the body, and tries again where it was stopped; empty: the end.
inline task<result<std::string>> read_part(answering& in) {
    std::string part(in.stops.random.size(30'000), '\0');
    for (;;) {
        const auto count = co_await in.stops.perhaps_stopped(in.asked.read_some(part), 40);
        if (count) {
            part.resize(*count);
            co_return part;
        }
        if (count.error() == errc::end_of_stream) co_return std::string{};
        const bool again = co_await may_go_on(in, count);
        if (!again) co_return fail(count);
    }
}
inline task<result<>> echo_whole(answering& in) {
    std::string body;
    if (in.stops.random.percent(50)) {
        auto all = co_await in.asked.read_all(std::size_t{1} << 20U);
        if (!all) co_return fail(all);
        body = *std::move(all);
    } else {
        for (;;) {
            const auto part = co_await read_part(in);
            if (!part) co_return fail(part);
            if (part->empty()) break;
            body += *part;
        }
    }
    co_return co_await in.answer.send("text/plain", body);
}
/// The answer begins before the request ends.
inline task<result<>> pass_through(answering& in) {
    for (;;) {
        const auto part = co_await read_part(in);
        if (!part) co_return fail(part);
        if (part->empty()) break;
        const result<> sent = co_await stream_text(in, *part);
        if (!sent) co_return sent;
    }
    co_return result<>{};
}

/// Answers behind a part of the body.
inline task<result<>> sip(answering& in) {
    const auto part = co_await read_part(in);
    if (!part) co_return fail(part);
    const std::string body = in.body();
    co_return co_await in.answer.send("text/plain", body);
}
/// Reads the body to its end, and judges it.
inline task<result<>> check_body(answering& in) {
    const placed_bytes expected{in.number + body_seed};
    for (std::uint64_t at = 0;;) {
        const auto part = co_await read_part(in);
        if (!part) co_return fail(part);
        if (part->empty()) co_return result<>{};
        const auto mistake = expected.mistake(at, std::as_bytes(std::span{*part}));
        EXPECT_FALSE(mistake) << *mistake << ": in the body of request " << in.number;
        at += part->size();
    }
}
/// The answer is complete, and the handler goes on reading.
inline task<result<>> answer_then_read(answering& in) {
    const std::string body = in.body();
    const result<> sent = co_await in.answer.send("text/plain", body);
    if (!sent) co_return sent;
    co_return co_await check_body(in);
}
/// Both ways at once.
inline task<result<>> answer_while_reading(answering& in) {
    const std::string body = in.body();
    auto reading = check_body(in);
    auto writing = stream_text(in, body);
    const auto [read, written] = co_await when_all(std::move(reading), std::move(writing));
    co_return read ? written : read;
}
inline task<result<>> answer_without_body(answering& in) {
    in.answer.status(in.number % 2 == 0 ? 204 : 304);
    co_return result<>{};
}

inline task<result<>> answer_after_sleep(answering& in) {
    static_cast<void>(co_await async_sleep(in.stops.random.moment()));
    const std::string body = in.body();
    co_return co_await in.answer.send("text/plain", body);
}
inline task<result<>> answer_after_blocking(answering& in) {
    auto work = [](std::uint64_t number, std::size_t size) -> result<std::string> {
        return placed_text(number, size);
    };
    const auto body = co_await run_blocking(work, in.number, in.size);
    if (!body) co_return fail(body);
    co_return co_await in.answer.send("text/plain", *body);
}
inline task<result<>> answer_with_file(answering& in) {
    co_return co_await in.answer.send_file(in.content.file.fd(), in.size);
}

inline task<result<>> fail_before_head(answering& in) {
    if (in.stops.random.percent(50)) throw std::runtime_error{"before the head"};
    co_await turns(1);
    co_return fail(std::errc::no_such_process);
}
/// Everything was written when it fails.
inline task<result<>> fail_behind_head(answering& in) {
    const std::string body = in.body();
    const result<> sent = co_await stream_text(in, body);
    if (!sent) co_return sent;
    if (in.stops.random.percent(50)) throw std::runtime_error{"behind the head"};
    co_return fail(std::errc::no_such_process);
}

inline task<result<>> send_text(http::response& answer, std::string_view body) {
    co_return co_await answer.send("text/plain", body);
}
/// What is stopped before it began is tried again; behind the head the connection has to break.
inline task<result<>> answer_whole_stopped(answering& in) {
    const std::string body = in.body();
    for (;;) {
        const result<> sent = co_await in.stops.perhaps_stopped(send_text(in.answer, body));
        if (sent || in.answer.head_sent()) co_return sent;
        const bool again = co_await may_go_on(in, sent);
        if (!again) co_return sent;
    }
}
inline task<result<>> answer_with_file_stopped(answering& in) {
    for (;;) {
        const result<> sent =
            co_await in.stops.perhaps_stopped(in.answer.send_file(in.content.file.fd(), in.size));
        if (sent || in.answer.head_sent()) co_return sent;
        const bool again = co_await may_go_on(in, sent);
        if (!again) co_return sent;
    }
}
inline task<result<>> upgrade_to_echo(answering& in) {
    auto stream = co_await in.answer.upgrade("echo");
    if (!stream) co_return fail(stream);
    std::string part(5000, '\0');
    for (std::size_t left = in.size; left != 0;) {
        const auto count = co_await stream->read_some(
            std::as_writable_bytes(std::span{part}.first(std::min(left, part.size()))));
        if (!count) co_return fail(count);
        const auto sent = co_await async_write_all(*stream, const_buffer{part.data(), *count});
        if (!sent) co_return fail(sent);
        left -= *count;
    }
    co_return co_await async_shutdown_write(*stream);
}

/// Routes that answer alike, but for the version that they tell.
inline http::router chaos_routes(const std::shared_ptr<served_content>& content,
                                 std::uint64_t version) {
    http::router routes;
    using way = task<result<>> (*)(answering&);
    const auto add = [&](std::string_view kind, way answers, bool posts = false) {
        auto handler = [content, version, answers](http::request& asked,
                                                   http::response& answer) -> task<result<>> {
            answering in{asked, answer, *content, version};
            co_return co_await answers(in);
        };
        const std::string pattern = "/" + std::string{kind} + "/{number}/{size}/{seed}";
        if (!posts || kind == "whole") routes.get(pattern, handler);
        if (posts) routes.post(pattern, handler);
    };
    add("whole", answer_whole, true);
    add("chunks", answer_in_chunks);
    add("length", answer_with_length);
    add("echo", echo_whole, true);
    add("pass", pass_through, true);
    add("sip", sip, true);
    add("late", answer_then_read, true);
    add("duplex", answer_while_reading, true);
    add("empty", answer_without_body);
    add("sleep", answer_after_sleep);
    add("block", answer_after_blocking);
    add("file", answer_with_file);
    add("throws", fail_before_head);
    add("cut", fail_behind_head);
    add("stopped_whole", answer_whole_stopped);
    add("stopped_file", answer_with_file_stopped);
    add("upgrade", upgrade_to_echo);
    return routes;
}

} // namespace simplenet::v0::testing
