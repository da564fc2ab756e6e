// Connections of an HTTP server, and what their handlers wait for, are stopped at each suspension.
// Nothing is lost where that is promised; elsewhere an answer that is not complete is followed by a
// reset, and never by an end.

#include "http/codec/chunked.hpp"
#include "http/server/connection.hpp"
#include "http/server/router_access.hpp"
#include "http/server/service.hpp"
#include "stress/unpacked.hpp"
#include "support/coroutines.hpp"
#include "support/fault_parts.hpp"
#include "support/raw_peer.hpp"
#include "support/stop_everywhere.hpp"

#include <simplenet/http.hpp>
#include <simplenet/simplenet.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace simplenet::v0 {
namespace {

using testing::all_backends;
using testing::backend_name;
using testing::connected_pair;
using testing::noise;
using testing::scenario;
using testing::small_buffers;

class http_stop_test : public testing::stop_everywhere_test {};

/// A connection to a server on this loop, and its client.
class served_connection : public scenario {
protected:
    explicit served_connection(http::router routes, const http::server_options& options = {})
        : loop_{std::make_shared<http::detail::server_state>(
              options, http::detail::served{
                           .what = std::make_shared<const http::detail::serving>(
                               http::detail::router_access::take(std::move(routes)), options)})} {}

    task<> serve() {
        try {
            co_await http::detail::serve_connection(std::move(ends_.ours),
                                                    http::detail::connection_state{info_, loop_});
        } catch (const detail::handler_failed&) { // NOLINT(bugprone-empty-catch): some shall fail
        }
    }
    /// Sends `text` in pieces.
    task<> ask(std::string_view text, bool ends_side) {
        const auto sent = co_await send_slowly(text);
        if (sent && ends_side) static_cast<void>(ends_.theirs.shutdown_write());
    }
    /// Receives to the end; whether that is no reset.
    task<> receive() {
        std::string buffer(3000, '\0');
        while (!end_) {
            const auto count = co_await ends_.theirs.read_some(buffer);
            if (count) {
                got_.append(buffer, 0, *count);
            } else if (count.error() != std::errc::operation_canceled) {
                end_ = count.error();
            } else {
                co_return;
            }
            co_await testing::turns(1);
        }
    }
    [[nodiscard]] std::string_view body() const {
        const std::size_t at = got_.find("\r\n\r\n");
        return at == std::string::npos ? std::string_view{} : std::string_view{got_}.substr(at + 4);
    }
    /// An answer with a Content-Length is `whole`, or begins like it and was reset.
    void expect_whole_or_reset(std::string_view whole) const {
        if (body() == whole || got_.empty()) return;
        EXPECT_TRUE(whole.starts_with(body()));
        EXPECT_NE(end_, errc::end_of_stream) << body().size() << " of " << whole.size();
    }

    testing::stream_pair ends_ = connected_pair(small_buffers);
    std::string got_;
    std::optional<std::error_code> end_;

private:
    task<transfer_result> send_slowly(std::string_view text) {
        constexpr std::size_t piece = 5000;
        for (std::size_t at = 0; at < text.size(); at += piece) {
            co_await testing::turns(2);
            const auto sent =
                co_await async_write_all(ends_.theirs, const_buffer{text.substr(at, piece)});
            if (!sent) co_return sent;
        }
        co_return text.size();
    }

    const connection_info info_;
    http::detail::loop_state loop_;
};

const std::string& large_text() {
    static const std::string text = noise(60'000);
    return text;
}

// --- the connection is stopped -------------------------------------------------------------------

/// The coroutine of the connection is stopped: its server gives up waiting for it.
class stopped_connection : public served_connection {
protected:
    stopped_connection(http::router routes, std::string requests)
        : served_connection{std::move(routes)}
        , requests_{std::move(requests)} {}

    void expect_answers(std::string_view all) const {
        EXPECT_TRUE(all.starts_with(without_dates()))
            << without_dates().size() << " of " << all.size();
    }
    [[nodiscard]] std::string without_dates() const {
        std::string text = got_;
        for (std::size_t at = 0; (at = text.find("Date: ", at)) != std::string::npos;)
            text.erase(at, text.find("\r\n", at) + 2 - at);
        return text;
    }

private:
    task<> subject() final { co_await serve(); }
    task<> partner() final {
        auto asking = ask(requests_, true);
        auto receiving = receive();
        co_await when_all(std::move(asking), std::move(receiving));
    }
    const std::string requests_;
};

http::router echo_routes() {
    http::router routes;
    routes.post("/", [](http::request& asked, http::response& answer) -> task<result<>> {
        const auto body = co_await asked.read_all(std::size_t{1} << 20U);
        if (!body) co_return fail(body);
        co_return co_await answer.send("text/plain", *body);
    });
    return routes;
}
/// Several requests, whose answers have a length.
class stopped_echo : public stopped_connection {
public:
    stopped_echo()
        : stopped_connection{echo_routes(), text()} {}

private:
    static std::string text() {
        std::string all;
        for (const std::size_t size : {10U, 30'000U, 2000U}) {
            all += "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(size) +
                   "\r\n\r\n" + large_text().substr(0, size);
        }
        return all;
    }
    task<> verify() override {
        co_await receive();
        std::string expected;
        for (const std::size_t size : {10U, 30'000U, 2000U}) {
            expected += "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " +
                        std::to_string(size) + "\r\n\r\n" + large_text().substr(0, size);
        }
        expect_answers(expected);
        if (!stopped()) {
            EXPECT_EQ(without_dates().size(), expected.size());
        }
    }
};
TEST_P(http_stop_test, a_connection_that_echoes) {
    stop_everywhere<stopped_echo>();
}

http::router stream_routes() {
    http::router routes;
    routes.get("/", [](http::request&, http::response& answer) -> task<result<>> {
        for (std::string_view rest = large_text(); !rest.empty();) {
            const auto count = co_await answer.write_some(rest.substr(0, 7000));
            if (!count) co_return fail(count);
            rest.remove_prefix(*count);
        }
        co_return result<>{};
    });
    return routes;
}
/// The end of the connection is the end of the answer.
class stopped_until_close : public stopped_connection {
public:
    stopped_until_close()
        : stopped_connection{stream_routes(), "GET / HTTP/1.0\r\n\r\n"} {}

private:
    task<> verify() override {
        co_await receive();
        expect_whole_or_reset(large_text());
        if (!stopped()) {
            EXPECT_EQ(end_, errc::end_of_stream);
        }
    }
};
TEST_P(http_stop_test, an_answer_until_the_end_of_the_connection) {
    stop_everywhere<stopped_until_close>();
}

/// The same, chunked.
class stopped_chunks : public stopped_connection {
public:
    stopped_chunks()
        : stopped_connection{stream_routes(), "GET / HTTP/1.1\r\nHost: h\r\n\r\n"} {}

private:
    task<> verify() override {
        co_await receive();
        const bool ends = got_.ends_with("\r\n0\r\n\r\n");
        if (!stopped()) {
            EXPECT_TRUE(ends);
        }
        if (!ends && !got_.empty()) {
            EXPECT_NE(end_, errc::end_of_stream);
        }
        if (!ends) co_return;
        EXPECT_GT(body().size(), large_text().size());
    }
};
TEST_P(http_stop_test, an_answer_in_chunks) {
    stop_everywhere<stopped_chunks>();
}

// --- a handler's operation is stopped ------------------------------------------------------------

/// A handler lends its request and response to the subject, and goes on behind it with finish().
class stopped_handler : public served_connection {
protected:
    stopped_handler(std::string request, bool ends_side, const http::server_options& options = {})
        : served_connection{routes(), options}
        , request_text_{std::move(request)}
        , ends_side_{ends_side} {}

    /// Is stopped.
    virtual task<result<>> operate(http::request& asked, http::response& answer) = 0;
    /// What the handler does behind it, not stopped, with the outcome.
    virtual task<result<>> finish(http::request& asked, http::response& answer,
                                  result<> outcome) = 0;

    /// The client has ended in the middle of the body, as it does at the end of the loop. This is
    /// no error of a stop; the handler meets it again.
    template <class Outcome>
    static bool met_its_end(const Outcome& outcome) {
        return !outcome && outcome.error() == http::errc::incomplete_message;
    }

private:
    http::router routes() {
        http::router made;
        made.any("/", [this](http::request& asked, http::response& answer) -> task<result<>> {
            asked_ = &asked;
            answer_ = &answer;
            co_await testing::until([this] { return is_done_; });
            auto finishing = finish(asked, answer, outcome_);
            co_return co_await std::move(finishing);
        });
        return made;
    }
    task<> subject() final {
        const done_guard done{*this};
        while (answer_ == nullptr && !is_over_) {
            const result<> waited = co_await async_sleep(std::chrono::nanoseconds{0});
            if (!waited) {
                outcome_ = waited;
                co_return;
            }
        }
        if (answer_ == nullptr) co_return;
        auto operating = operate(*asked_, *answer_);
        outcome_ = co_await std::move(operating);
        expect_success_or_stop(outcome_);
    }
    task<> partner() final { co_await shield(converse()); }
    task<> converse() {
        auto serving = serve();
        auto asking = ask(request_text_, ends_side_);
        auto receiving = receive();
        co_await when_all(std::move(serving), std::move(asking), std::move(receiving));
        is_over_ = true;
    }
    struct done_guard {
        stopped_handler& of;
        ~done_guard() { of.is_done_ = true; }
    };

    const std::string request_text_;
    const bool ends_side_;
    http::request* asked_ = nullptr;
    http::response* answer_ = nullptr;
    result<> outcome_;
    bool is_done_ = false;
    bool is_over_ = false;
};

std::string post_text(bool chunked) {
    std::string text = "POST / HTTP/1.1\r\nHost: h\r\n";
    if (!chunked) {
        return text + "Content-Length: " + std::to_string(large_text().size()) + "\r\n\r\n" +
               large_text();
    }
    text += "Transfer-Encoding: chunked\r\n\r\n";
    for (std::size_t at = 0; at < large_text().size(); at += 0xfff) {
        const std::string piece = large_text().substr(at, 0xfff);
        std::array<char, 8> size{};
        std::snprintf(size.data(), size.size(), "%zx", piece.size());
        text.append(size.data()).append("\r\n").append(piece).append("\r\n");
    }
    return text + "0\r\n\r\n";
}

/// Reads in the subject, and the rest behind it: nothing is lost.
template <bool Chunked, std::size_t Cut>
class stopped_reading : public stopped_handler {
public:
    stopped_reading()
        : stopped_handler{cut(post_text(Chunked)), true} {}

private:
    static std::string cut(std::string text) {
        text.resize(text.size() - Cut);
        return text;
    }
    task<result<>> read_on(http::request& asked) {
        std::string buffer(9000, '\0');
        for (;;) {
            const auto count = co_await asked.read_some(std::as_writable_bytes(std::span{buffer}));
            if (!count && count.error() == errc::end_of_stream) break;
            if (!count) co_return fail(count);
            read_.append(buffer, 0, *count);
        }
        EXPECT_EQ(Cut, 0U) << "a body that was cut has an end";
        co_return result<>{};
    }
    task<result<>> operate(http::request& asked, http::response&) override {
        const result<> read = co_await read_on(asked);
        co_return met_its_end(read) ? result<>{} : read;
    }
    task<result<>> finish(http::request& asked, http::response& answer, result<>) override {
        const result<> read = co_await read_on(asked);
        if (!read) {
            const bool loop_ends = stopped() && read.error() == std::errc::operation_canceled;
            EXPECT_TRUE(loop_ends || read.error() == http::errc::incomplete_message)
                << read.error().message();
            co_return read;
        }
        co_return co_await answer.send("text/plain", read_);
    }
    task<> verify() override {
        if (Cut != 0) {
            EXPECT_EQ(got_, "");
            co_return;
        }
        EXPECT_EQ(body(), large_text());
        EXPECT_EQ(end_, errc::end_of_stream);
    }

    std::string read_;
};
TEST_P(http_stop_test, reading_a_body) {
    stop_everywhere<stopped_reading<false, 0>>();
}
TEST_P(http_stop_test, reading_a_chunked_body) {
    stop_everywhere<stopped_reading<true, 0>>();
}
// The end of the connection used to be taken for the end of the body if a stop came with it.
TEST_P(http_stop_test, reading_a_body_that_is_cut) {
    stop_everywhere<stopped_reading<false, 100>>();
}
TEST_P(http_stop_test, reading_a_chunked_body_that_is_cut) {
    stop_everywhere<stopped_reading<true, 100>>();
}

class stopped_read_all : public stopped_handler {
public:
    stopped_read_all()
        : stopped_handler{post_text(true), true} {}

private:
    task<result<>> operate(http::request& asked, http::response&) override {
        auto all = co_await asked.read_all(std::size_t{1} << 20U);
        if (met_its_end(all)) co_return result<>{};
        if (!all) co_return fail(all);
        read_ = *std::move(all);
        co_return result<>{};
    }
    task<result<>> finish(http::request&, http::response& answer, result<> outcome) override {
        if (!outcome) co_return outcome;
        if (read_.empty()) co_return fail(http::errc::incomplete_message);
        co_return co_await answer.send("text/plain", read_);
    }
    task<> verify() override {
        if (got_.starts_with("HTTP/1.1 500 ")) co_return;
        EXPECT_EQ(body(), large_text());
    }

    std::string read_;
};
TEST_P(http_stop_test, reading_a_whole_body) {
    stop_everywhere<stopped_read_all>();
}

const std::string get_text = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

/// Writes in the subject, and the rest behind it: nothing is lost, and nothing comes twice.
class stopped_streaming : public stopped_handler {
public:
    explicit stopped_streaming(std::string request = "GET / HTTP/1.0\r\n\r\n",
                               std::size_t piece = 9000, const http::server_options& options = {})
        : stopped_handler{std::move(request), false, options}
        , piece_{piece} {}

protected:
    task<result<>> operate(http::request&, http::response& answer) override {
        co_return co_await write_on(answer);
    }
    task<result<>> finish(http::request&, http::response& answer, result<>) override {
        co_return co_await write_on(answer);
    }

private:
    task<result<>> write_on(http::response& answer) {
        while (written_ < large_text().size()) {
            const auto count = co_await answer.write_some(
                const_buffer{std::string_view{large_text()}.substr(written_, piece_)});
            if (!count) co_return fail(count);
            written_ += *count;
            const result<> flushed = co_await answer.flush();
            if (!flushed) co_return flushed;
        }
        co_return result<>{};
    }
    task<> verify() override {
        EXPECT_EQ(body(), large_text());
        EXPECT_EQ(end_, errc::end_of_stream);
        co_return;
    }
    const std::size_t piece_;
    std::size_t written_ = 0;
};
TEST_P(http_stop_test, streaming) {
    stop_everywhere<stopped_streaming>();
}

http::server_options compressing() {
    static constexpr std::string_view types[]{"text/plain"};
    return {.compression = {.types = types, .level = 1}};
}
/// What was compressed counts as written.
class stopped_compressing : public stopped_streaming {
public:
    stopped_compressing()
        : stopped_streaming{"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
                            "Accept-Encoding: gzip\r\n\r\n",
                            40'000, compressing()} {}

private:
    task<result<>> operate(http::request& asked, http::response& answer) override {
        answer.set("Content-Type", "text/plain");
        co_return co_await stopped_streaming::operate(asked, answer);
    }
    task<result<>> finish(http::request& asked, http::response& answer, result<> outcome) override {
        answer.set("Content-Type", "text/plain"); // it may have been stopped before it was set
        co_return co_await stopped_streaming::finish(asked, answer, outcome);
    }
    task<> verify() override {
        const std::string chunks{body()};
        http::detail::chunked_decoder decoder{{}};
        std::string packed;
        for (std::string_view rest = chunks;;) {
            const auto step = decoder.next(rest);
            packed.append(step.data);
            rest.remove_prefix(step.consumed);
            if (step.kind == http::detail::chunked_decoder::step::kind::data) continue;
            EXPECT_EQ(step.kind, http::detail::chunked_decoder::step::kind::end);
            break;
        }
        bool whole = false;
        EXPECT_EQ(testing::unpacked(packed, large_text().size() + 1, whole), large_text());
        EXPECT_TRUE(whole);
        co_return;
    }
};
TEST_P(http_stop_test, streaming_what_is_compressed) {
    stop_everywhere<stopped_compressing>();
}

/// Sends the whole answer. If it was stopped before the head, the handler can send again.
class stopped_sending : public stopped_handler {
public:
    stopped_sending()
        : stopped_handler{get_text, false} {}

protected:
    virtual task<result<>> send(http::response& answer) {
        co_return co_await answer.send("text/plain", large_text());
    }

private:
    task<result<>> operate(http::request&, http::response& answer) override {
        auto sending = send(answer);
        co_return co_await std::move(sending);
    }
    task<result<>> finish(http::request&, http::response& answer, result<> outcome) override {
        if (outcome && answer.head_sent()) co_return outcome;
        if (answer.head_sent()) co_return outcome;
        auto sending = send(answer);
        co_return co_await std::move(sending);
    }
    task<> verify() override {
        expect_whole_or_reset(large_text());
        co_return;
    }
};
TEST_P(http_stop_test, sending) {
    stop_everywhere<stopped_sending>();
}

class stopped_file : public stopped_sending {
    task<result<>> send(http::response& answer) override {
        co_return co_await answer.send_file(::fileno(file_.get()), large_text().size());
    }
    testing::owned_file file_ = testing::temporary_file(large_text());
};
TEST_P(http_stop_test, sending_a_file) {
    stop_everywhere<stopped_file>();
}

/// The subject upgrades behind answers that fill the socket. If that was stopped, the connection is
/// over, whatever the handler makes of it.
class stopped_upgrade : public stopped_handler {
public:
    stopped_upgrade()
        : stopped_handler{"GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n" +
                              get_text,
                          false} {}

private:
    task<result<>> operate(http::request&, http::response& answer) override {
        for (int each = 0; each < 40; ++each)
            answer.add("Padding", std::string(1000, 'x'));
        auto stream = co_await answer.upgrade("x");
        if (!stream) co_return fail(stream);
        stream_.emplace(*std::move(stream));
        const auto sent = co_await async_write_all(*stream_, "upgraded");
        if (!sent) co_return fail(sent.error().code);
        co_return result<>{};
    }
    task<result<>> finish(http::request&, http::response& answer, result<> outcome) override {
        const bool was_begun = answer.head_sent();
        if (outcome || was_begun) {
            stream_.reset();
            co_return result<>{};
        }
        co_return co_await answer.send("text/plain", "no upgrade");
    }
    task<> verify() override {
        if (got_.starts_with("HTTP/1.1 200 ")) co_return;
        EXPECT_EQ(got_.find("HTTP/1.1 ", 1), std::string::npos) << "an answer behind the upgrade";
        if (!stopped()) {
            EXPECT_TRUE(got_.ends_with("upgraded"));
        }
        co_return;
    }
    std::optional<any_stream> stream_;
};
TEST_P(http_stop_test, upgrade) {
    stop_everywhere<stopped_upgrade>();
}

INSTANTIATE_TEST_SUITE_P(backends, http_stop_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
