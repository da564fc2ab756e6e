#pragma once
// http_asking: a client of http_chaos_test. It sends planned requests in pieces, misbehaves as it
// was told, and judges every byte of the answers.

#include "stress/http_plan.hpp"
#include "stress/unpacked.hpp"

#include "support/coroutines.hpp"
#include "support/placed_bytes.hpp"
#include "support/random_stop.hpp"

#include <simplenet/simplenet.hpp>
#if SIMPLENET_HAS_TLS
#include <simplenet/tls.hpp>
#endif

#include <algorithm>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {

/// What happens around the clients of a round.
struct round_of_http {
    bool is_stopping = false; // the server was told to shut down
    bool is_cut = false;      // and its grace may end before an answer does
    bool is_strict = false;   // the server gives little time, and may end a connection for that
    bool is_tired = false;    // it ends a connection behind any answer
    bool compresses = false;

    std::uint64_t answers = 0;
    std::uint64_t refused = 0; // requests that are malformed
    std::uint64_t broken = 0;  // answers that were cut
    std::uint64_t resets = 0;  // by clients
};

/// How a client misbehaves, after so many bytes.
struct misbehaviour {
    enum class kind : std::uint8_t { none, resets, closes, stops_reading, ends_early };
    kind is = kind::none;
    std::size_t after_sent = SIZE_MAX;
    std::size_t after_received = SIZE_MAX;
};

/// The head of an answer.
struct answer_head {
    unsigned status = 0;
    std::map<std::string, std::string, std::less<>> fields;

    [[nodiscard]] std::string_view field(std::string_view name) const {
        const auto found = fields.find(name);
        return found == fields.end() ? std::string_view{} : found->second;
    }
};

/// Strict: exactly what our server writes, and nothing that a lenient client would accept.
inline bool parse_answer_head(std::string_view text, answer_head& into) {
    constexpr std::string_view version = "HTTP/1.1 ";
    if (!text.starts_with(version)) return false;
    const char* const code = text.data() + version.size();
    if (std::from_chars(code, code + 3, into.status).ptr != code + 3 || code[3] != ' ') {
        return false;
    }
    text.remove_prefix(text.find("\r\n") + 2);
    while (text != "\r\n") {
        const std::size_t end = text.find("\r\n");
        const std::string_view line = text.substr(0, end);
        const std::size_t colon = line.find(": ");
        if (colon == std::string_view::npos || line.find_first_of("\r\n") != line.npos)
            return false;
        const bool added =
            into.fields.emplace(line.substr(0, colon), line.substr(colon + 2)).second;
        if (!added) return false; // none of the fields here may come twice
        text.remove_prefix(end + 2);
    }
    return true;
}

template <class Stream>
class asking_client {
public:
    asking_client(round_of_http& in, Stream stream, std::uint64_t seed,
                  std::vector<planned_request> plan, misbehaviour misbehaves)
        : round_{in}
        , stream_{std::move(stream)}
        , random_{seed}
        , plan_{std::move(plan)}
        , misbehaves_{misbehaves} {
        window_ = random_.one_of<std::size_t>({1, 2, 8, plan_.size()});
        slow_ = random_.percent(20);
        ends_at_once_ = random_.percent(10);
        dawdles_ = random_.percent(15);
        is_calm_ = misbehaves_.is == misbehaviour::kind::none && !round_.is_strict;
        for (const planned_request& each : plan_)
            is_calm_ = is_calm_ && !each.may_break;
    }
    asking_client(const asking_client&) = delete;
    asking_client& operator=(const asking_client&) = delete;

    task<> run() {
        auto writing = write_everything();
        auto reading = read_everything();
        co_await when_all(std::move(writing), std::move(reading));
        stream_.close();
    }

private:
    using ends = planned_request::ends;
    /// What was found where an answer should be.
    enum class finding : std::uint8_t { whole, nothing, part };

    // --- asking ---

    task<> write_everything() {
        for (std::size_t at = 0; at < plan_.size() && !over_;) {
            std::string some;
            std::string_view rest; // of a request whose server has to ask for it
            // Several requests leave together.
            for (std::size_t most = 1 + random_.up_to(window_ - 1);
                 most != 0 && at < plan_.size() && at < answered_ + window_ && rest.empty();
                 --most, ++at) {
                const planned_request& next = plan_[at];
                const std::size_t now =
                    next.waits_behind != 0 ? next.waits_behind : next.text.size();
                some.append(next.text, 0, now);
                rest = std::string_view{next.text}.substr(now);
            }
            if (some.empty()) {
                static_cast<void>(co_await async_sleep(std::chrono::microseconds{100}));
                continue;
            }
            const bool sent = co_await send_in_random_pieces(some);
            if (!sent) co_return;
            if (!rest.empty()) {
                const bool continues = co_await is_asked_for_the_rest(at);
                if (!continues) co_return;
                const bool all_sent = co_await send_in_random_pieces(rest);
                if (!all_sent) co_return;
            }
            if (dawdles_ && random_.percent(10)) {
                static_cast<void>(co_await async_sleep(4 * random_.moment()));
            }
        }
        if (ends_at_once_ && !over_) co_return co_await end_our_side();
        // Some clients keep their side open until the server has ended.
        while (!over_ && answered_ < plan_.size())
            static_cast<void>(co_await async_sleep(std::chrono::microseconds{200}));
        if (!over_) co_await end_our_side();
    }
    task<bool> send_in_random_pieces(std::string_view text) {
        while (!text.empty() && !over_) {
            std::size_t size = std::min(random_.size(60'000), text.size());
            size = std::min(size, misbehaves_.after_sent - sent_);
            const auto sent = co_await async_write_all(stream_, const_buffer{text.data(), size});
            if (!sent) co_return false; // why, reading tells
            sent_ += size;
            text.remove_prefix(size);
            if (sent_ == misbehaves_.after_sent) {
                co_await misbehave();
                co_return false;
            }
            if (random_.percent(20)) co_await turns(1 + static_cast<int>(random_.up_to(3)));
        }
        co_return text.empty();
    }
    /// The server answers request `count` with 100, or at last.
    task<bool> is_asked_for_the_rest(std::size_t count) {
        while (!over_ && continued_ < count && answered_ < count)
            static_cast<void>(co_await async_sleep(std::chrono::microseconds{100}));
        co_return !over_ && continued_ >= count;
    }
    task<> end_our_side() {
        const result<> ended = co_await async_shutdown_write(stream_);
        if (!ended && is_calm_ && !round_.is_stopping) {
            EXPECT_TRUE(over_ || ended_while_we_sent(ended.error()))
                << ended.error().message() << (round_.is_tired ? ", of a tired server" : "");
        }
    }

    task<> misbehave() {
        if (over_) co_return;
        using kind = misbehaviour::kind;
        switch (misbehaves_.is) {
        case kind::none:
            break;
        case kind::stops_reading:
            stops_reading_ = true;
            static_cast<void>(co_await async_sleep(std::chrono::milliseconds{random_.up_to(10)}));
            reset();
            break;
        case kind::resets:
            reset();
            break;
        case kind::closes:
            over_ = true;
            stream_.close();
            break;
        case kind::ends_early:
            co_await end_our_side();
            break;
        }
    }
    void reset() {
        if (std::exchange(over_, true)) return;
        ++round_.resets;
        static_cast<void>(socket().set_linger(std::chrono::seconds{0}));
        socket().close();
    }
    tcp_stream& socket() {
        if constexpr (std::same_as<Stream, tcp_stream>) {
            return stream_;
        } else {
            return stream_.transport();
        }
    }

    // --- judging ---

    task<> read_everything() {
        bool must_end = false;
        bool may_end = false; // behind a body that the server may not have read to its end
        for (const planned_request& each : plan_) {
            if (must_end) break;
            const finding found = co_await read_answer(each, must_end);
            if (found == finding::whole) {
                count(each);
                may_end = each.closes == ends::maybe;
                continue;
            }
            if (found == finding::part) ++round_.broken;
            over_ = true;
            if (found == finding::part && is_calm_) {
                // The reset deletes what has not been read.
                EXPECT_TRUE(round_.is_cut || ended_while_we_sent(end_))
                    << "an answer was cut: " << where(each);
            }
            if (found == finding::nothing && is_calm_) {
                const bool ends = (may_end || round_.is_tired) && end_ == errc::end_of_stream;
                EXPECT_TRUE(round_.is_stopping || ends || ended_while_we_sent(end_))
                    << "no answer: " << where(each);
            }
            co_return;
        }
        co_await read_the_end();
        over_ = true;
    }
    void count(const planned_request& each) {
        ++answered_;
        ++round_.answers;
        if (each.names_number || each.status == 404 || each.status == 405) return;
        ++round_.refused;
    }
    /// Nothing comes behind the last answer.
    task<> read_the_end() {
        if (take_all().empty()) static_cast<void>(co_await fill());
        EXPECT_TRUE(in_.empty()) << "more than was asked for: " << in_.substr(0, 200);
        // A server that ends closes connections that wait, whatever the client sends meanwhile.
        if (is_calm_ && !round_.is_stopping && !round_.is_tired) {
            EXPECT_TRUE(end_ == errc::end_of_stream || is_end_without_notice())
                << "behind the last answer: " << end_.message();
        }
    }

    /// A request that crosses the end of a connection meets a closed socket.
    [[nodiscard]] bool ended_while_we_sent(std::error_code why) const {
        return round_.is_tired &&
               (why == std::errc::connection_reset || why == std::errc::broken_pipe ||
                why == std::errc::not_connected || is_end_without_notice());
    }
    /// A connection that closes sends its close_notify only if the socket takes it at once.
    [[nodiscard]] bool is_end_without_notice() const {
#if SIMPLENET_HAS_TLS
        return !std::same_as<Stream, tcp_stream> && end_ == tls::errc::truncated;
#else
        return false;
#endif
    }

    task<finding> read_answer(const planned_request& to, bool& must_end) {
        answer_head head;
        finding found = co_await read_head(to, head);
        if (found == finding::whole && head.status == 100) {
            EXPECT_TRUE(to.may_continue) << "an unexpected 100: " << where(to);
            continued_ = answered_ + 1;
            head = {};
            found = co_await read_head(to, head);
        }
        if (found != finding::whole) co_return found;
        const bool is_late = round_.is_strict && (head.status == 408 || head.status == 500);
        if (is_late) ++round_.refused;
        // It was stopped before the head.
        const bool failed = is_late || (to.may_break && head.status == 500);
        if (!failed) check_head(to, head);
        must_end = head.field("Connection") == "close" || to.upgrades;
        if (to.closes == ends::yes) {
            EXPECT_TRUE(must_end) << "it does not close: " << where(to);
        } else if (to.closes == ends::no && !to.upgrades) {
            EXPECT_TRUE(!must_end || round_.is_stopping || round_.is_tired || failed)
                << "it closes: " << where(to);
        }
        std::string body;
        const bool complete = co_await read_body(to, head, body);
        if (head.field("Content-Encoding") == "gzip") {
            EXPECT_TRUE(to.takes_gzip && round_.compresses) << where(to);
            if (!to.head_only) unpack(to, body, complete);
        }
        if (failed) co_return complete ? finding::whole : finding::part;
        check_body(to, body, complete);
        if (complete) {
            EXPECT_FALSE(to.must_break) << "it looks complete: " << where(to);
        }
        co_return complete ? finding::whole : finding::part;
    }

    task<finding> read_head(const planned_request& to, answer_head& head) {
        std::size_t end = 0;
        while ((end = in_.find("\r\n\r\n")) == std::string::npos) {
            const bool more = co_await fill();
            if (!more) co_return in_.empty() ? finding::nothing : finding::part;
        }
        const std::string text = in_.substr(0, end + 4);
        in_.erase(0, end + 4);
        EXPECT_TRUE(parse_answer_head(text, head)) << text << where(to);
        co_return finding::whole;
    }
    void check_head(const planned_request& to, const answer_head& head) {
        EXPECT_EQ(head.status, to.status) << where(to);
        EXPECT_EQ(head.field("Number"), to.names_number ? std::to_string(to.number) : "")
            << "the answer to another request: " << where(to);
        if (!to.names_number) return;
        std::uint64_t version = 0;
        const std::string_view routes = head.field("Routes");
        std::from_chars(routes.data(), routes.data() + routes.size(), version);
        EXPECT_GE(version, routes_) << "older routes than before: " << where(to);
        routes_ = version;
    }
    void check_body(const planned_request& to, const std::string& body, bool complete) {
        if (!to.simple.empty()) {
            EXPECT_TRUE(body.starts_with(to.simple) || (!complete && to.simple.starts_with(body)))
                << body << where(to);
            return;
        }
        const std::size_t size = to.head_only ? 0 : static_cast<std::size_t>(to.size);
        EXPECT_LE(body.size(), size) << where(to);
        const auto mistake =
            placed_bytes{to.seed}.mistake(to.offset, std::as_bytes(std::span{body}));
        EXPECT_FALSE(mistake) << *mistake << ": " << where(to);
        if (complete) {
            EXPECT_EQ(body.size(), size) << "it is not complete, but looks so: " << where(to);
        }
    }

    /// Decompresses as much of `body` as there is.
    void unpack(const planned_request& to, std::string& body, bool complete) {
        bool whole = false;
        body = unpacked(body, 2 * to.size + 100, whole);
        if (complete) {
            EXPECT_TRUE(whole) << "it is not complete, but looks so: " << where(to);
        }
    }

    /// False: the connection has ended before the body.
    task<bool> read_body(const planned_request& to, const answer_head& head, std::string& body) {
        if (to.upgrades && head.status == 101) co_return co_await read_size(to.size, body);
        const std::string_view length = head.field("Content-Length");
        const std::string_view coding = head.field("Transfer-Encoding");
        EXPECT_TRUE(length.empty() || coding.empty()) << where(to);
        if (to.head_only) co_return true;
        if (!length.empty()) {
            std::uint64_t size = 0;
            std::from_chars(length.data(), length.data() + length.size(), size);
            co_return co_await read_size(size, body);
        }
        if (!coding.empty()) {
            EXPECT_EQ(coding, "chunked");
            co_return co_await read_chunks(to, body);
        }
        EXPECT_TRUE(to.until_close) << "a body without an end: " << where(to);
        do {
            body += take_all();
        } while (co_await fill());
        co_return end_ == errc::end_of_stream;
    }
    task<bool> read_size(std::uint64_t size, std::string& body) {
        while (in_.size() < size) {
            const bool more = co_await fill();
            if (!more) {
                body += take_all();
                co_return false;
            }
        }
        body.append(in_, 0, static_cast<std::size_t>(size));
        in_.erase(0, static_cast<std::size_t>(size));
        co_return true;
    }
    task<bool> read_chunks(const planned_request& to, std::string& body) {
        for (;;) {
            std::size_t end = 0;
            while ((end = in_.find("\r\n")) == std::string::npos) {
                const bool more = co_await fill();
                if (!more) co_return false;
            }
            std::size_t size = 0;
            const auto parsed = std::from_chars(in_.data(), in_.data() + end, size, 16);
            const bool well_formed = parsed.ptr == in_.data() + end && end != 0;
            EXPECT_TRUE(well_formed) << "a chunk begins with " << in_.substr(0, 40) << where(to);
            if (!well_formed) co_return false;
            in_.erase(0, end + 2);
            std::string chunk;
            const bool whole = co_await read_size(size + 2, chunk);
            const std::string_view closing =
                std::string_view{chunk}.substr(std::min(size, chunk.size()));
            EXPECT_TRUE(std::string_view{"\r\n"}.starts_with(closing)) << where(to);
            body.append(chunk, 0, size);
            if (!whole || size == 0) co_return whole;
        }
    }

    std::string take_all() { return std::exchange(in_, {}); }
    /// Receives more; false at the end, of which `end_` tells.
    task<bool> fill() {
        for (;;) {
            if (stops_reading_) {
                // Until we reset the connection.
                while (!over_)
                    static_cast<void>(co_await async_sleep(std::chrono::microseconds{200}));
            }
            if (slow_ && random_.percent(10)) {
                static_cast<void>(co_await async_sleep(random_.moment()));
            }
            const std::size_t before = in_.size();
            const std::size_t size = slow_ ? 300 + random_.size(20'000) : 65'536;
            in_.resize(before + size);
            const auto into = std::as_writable_bytes(std::span{in_}.subspan(before));
            const auto count = co_await stream_.read_some(into);
            in_.resize(before + count.value_or(0));
            if (!count) {
                end_ = count.error();
                co_return false;
            }
            const bool now = received_ < misbehaves_.after_received &&
                             received_ + *count >= misbehaves_.after_received;
            received_ += *count;
            if (now) co_await misbehave();
            co_return true;
        }
    }
    [[nodiscard]] std::string where(const planned_request& at) const {
        return " request " + std::to_string(at.number) + ", answer " + std::to_string(answered_) +
               " of " + std::to_string(plan_.size()) + ", " + at.text.substr(0, 100) +
               ", the end: " + end_.message() + (round_.is_stopping ? ", in a shutdown" : "") +
               (round_.is_tired ? ", of a tired server" : "");
    }

    round_of_http& round_;
    Stream stream_;
    decisions random_;
    const std::vector<planned_request> plan_;
    const misbehaviour misbehaves_;
    std::size_t window_; // requests without an answer
    bool slow_;
    bool ends_at_once_; // when everything was sent, before it was answered
    bool dawdles_;      // between requests
    bool is_calm_;
    bool stops_reading_ = false;
    bool over_ = false;
    std::size_t answered_ = 0;
    std::size_t continued_ = 0; // the request that was answered with 100 last, from 1
    std::size_t sent_ = 0;
    std::size_t received_ = 0;
    std::uint64_t routes_ = 0;
    std::string in_;
    std::error_code end_;
};

} // namespace simplenet::v0::testing
