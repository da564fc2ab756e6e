// A websocket: any bytes of a peer, however they are divided and whatever stops the reads, mean
// what a simple parser says, messages are echoed in order, and the peer is told the right code.

#include "fuzz/fuzz.hpp"
#include "fuzz/on_loop.hpp"
#include "http/codec/utf8.hpp"
#include "http/codec/websocket_frame.hpp"
#include "http/websocket/websocket_access.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/http/errc.hpp>
#include <simplenet/stream/any_stream.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/testing/faulty_stream.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simplenet::v0::fuzz {
namespace {

using namespace std::chrono_literals;
using namespace http::detail;
using http::websocket;
using stream = testing::faulty_stream<duplex_stream>;

struct plan {
    bool is_server = false;
    bool echoes = false;
    std::size_t limit = 0;
    std::size_t capacity = 1;
    std::vector<std::size_t> reads; // the sizes of the reads
    std::vector<bool> hurried;      // calls without time to wait
    std::string content;            // all bytes that arrive
};

/// A frame, perhaps a wrong one.
std::string frame_of(input& from, bool masked) {
    const unsigned first = from.byte();
    const std::size_t size = from.up_to(300);
    std::string payload{from.text(size)};
    if (from.coin()) payload = pattern(0, size);
    std::array<std::byte, frame_head_limit> bytes{};
    frame_head head{.opcode = static_cast<websocket_opcode>(first & 0x0fU),
                    .is_final = (first & 0x80U) != 0,
                    .size = payload.size()};
    constexpr websocket_mask mask{std::byte{1}, std::byte{0x92}, std::byte{0xfe}, std::byte{7}};
    if (masked) head.mask = mask;
    const std::size_t used = write_frame_head(head, bytes);
    bytes[0] = static_cast<std::byte>(first);
    if (masked) apply_mask(mask, 0, payload, reinterpret_cast<std::byte*>(payload.data()));
    return std::string{reinterpret_cast<const char*>(bytes.data()), used} + payload;
}

plan decode(input from) {
    plan decoded;
    decoded.is_server = from.coin();
    decoded.echoes = from.coin();
    decoded.limit = from.up_to(600);
    decoded.capacity = 1 + from.up_to(300);
    for (std::size_t count = from.up_to(8); count-- > 0;)
        decoded.reads.push_back(1 + from.up_to(40));
    for (std::size_t count = from.up_to(8); count-- > 0;)
        decoded.hurried.push_back(from.coin());
    for (std::size_t count = from.up_to(10); count-- > 0;)
        decoded.content += frame_of(from, decoded.is_server);
    decoded.content += from.rest();
    return decoded;
}

/// What the bytes mean.
struct meaning {
    std::vector<std::string> messages; // each after its kind
    std::vector<std::string> pongs;
    std::error_code end = make_error_code(http::errc::incomplete_message);
    unsigned told = 0; // the code in our close frame; 0: none is sent
};

/// The longest prefix of `text` with which UTF-8 can begin, byte by byte.
bool can_be_utf8(std::string_view text) {
    utf8_validator check;
    for (const char& each : text) {
        if (!check.feed(const_buffer{&each, 1})) return false;
    }
    return true;
}

class model {
public:
    explicit model(const plan& of)
        : plan_{of}
        , left_{of.content} {
        while (frame()) {
        }
    }
    [[nodiscard]] const meaning& result() const { return meaning_; }

private:
    bool wrong(unsigned code) {
        meaning_.told = code;
        meaning_.end = code == 1009 ? make_error_code(errc::limit_exceeded)
                                    : make_error_code(http::errc::websocket_protocol);
        return false;
    }
    [[nodiscard]] unsigned byte(std::size_t at) const {
        return static_cast<unsigned char>(left_[at]);
    }
    /// False at the end of what can be understood.
    bool frame() {
        if (left_.empty()) return false;
        const unsigned code = byte(0) & 0x0fU;
        const bool is_final = byte(0) >= 0x80;
        const bool is_control = code >= 8;
        if ((byte(0) & 0x70U) != 0 || (code > 2 && code < 8) || code > 10) return wrong(1002);
        if (is_control ? !is_final : (code == 0) != in_message_) return wrong(1002);
        if (left_.size() < 2) return note_begin(code, is_final, false);
        if ((byte(1) >= 0x80) != plan_.is_server) return wrong(1002);
        std::uint64_t size = byte(1) & 0x7fU;
        std::size_t head = 2;
        if (size > 125) {
            if (is_control) return wrong(1002);
            const std::size_t bytes = size == 126 ? 2 : 8;
            size = 0;
            for (std::size_t at = 0; at < bytes; ++at) {
                if (head + at >= left_.size()) return false;
                if (bytes == 8 && at == 0 && byte(head) >= 0x80) return wrong(1002);
                size = size * 256 + byte(head + at);
            }
            if (size < (bytes == 2 ? 126U : 65536U)) return wrong(1002);
            head += bytes;
        }
        std::array<char, 4> mask{};
        if (plan_.is_server) {
            if (left_.size() < head + 4) return false;
            for (std::size_t at = 0; at < 4; ++at)
                mask[at] = left_[head + at];
            head += 4;
        }
        left_.remove_prefix(head);
        note_begin(code, is_final, true);
        if (!is_control && size > plan_.limit - std::min(plan_.limit, message_.size())) {
            return wrong(1009);
        }
        const auto here = static_cast<std::size_t>(std::min<std::uint64_t>(size, left_.size()));
        std::string payload{left_.substr(0, here)};
        for (std::size_t at = 0; at < here; ++at)
            payload[at] = static_cast<char>(payload[at] ^ mask[at % 4]);
        left_.remove_prefix(here);
        return is_control ? control(code, payload, here == size)
                          : data(payload, here == size, is_final);
    }
    bool note_begin(unsigned code, bool is_final, bool is_whole) {
        if (!is_whole || code >= 8) return false;
        if (code != 0) {
            message_.clear();
            is_text_ = code == 1;
        }
        in_message_ = !is_final;
        return true;
    }
    bool data(const std::string& payload, bool is_whole, bool is_final) {
        message_ += payload;
        if (is_text_ && !can_be_utf8(message_)) return wrong(1007);
        if (!is_whole) return false;
        if (!is_final) return true;
        if (is_text_ && !is_utf8(message_)) return wrong(1007);
        meaning_.messages.push_back((is_text_ ? "t" : "b") + message_);
        return true;
    }
    bool control(unsigned code, const std::string& payload, bool is_whole) {
        if (!is_whole) return false;
        if (code == 9) meaning_.pongs.push_back(payload);
        if (code != 8) return true;
        unsigned close = 1005;
        if (payload.size() == 1) return wrong(1002);
        if (payload.size() > 1) {
            close = static_cast<unsigned char>(payload[0]) * 256U +
                    static_cast<unsigned char>(payload[1]);
            const bool good = (close >= 1000 && close <= 1003) ||
                              (close >= 1007 && close <= 1014) || (close >= 3000 && close <= 4999);
            if (!good) return wrong(1002);
            if (!is_utf8(std::string_view{payload}.substr(2))) return wrong(1007);
        }
        meaning_.told = close;
        meaning_.end = make_error_code(errc::end_of_stream);
        return false;
    }

    const plan& plan_;
    std::string_view left_;
    std::string message_;
    bool in_message_ = false;
    bool is_text_ = false;
    meaning meaning_;
};

task<> send_content(duplex_stream& to, const plan& of) {
    // It may be closed before it has taken everything.
    static_cast<void>(co_await async_write_all(to, of.content));
    static_cast<void>(to.shutdown_write());
}

/// What the peer has received, which has to be frames.
struct sent_frames {
    std::vector<std::string> messages;
    std::vector<std::string> pongs;
    unsigned told = 0;
};

task<> receive(duplex_stream& from, bool masked, sent_frames& into) {
    std::string bytes;
    for (;;) {
        std::string some(500, '\0');
        const auto count = co_await from.read_some(some);
        if (!count) break;
        bytes.append(some, 0, *count);
    }
    frame_parser parser{masked};
    const_buffer left{bytes};
    while (!left.empty()) {
        FUZZ_CHECK(into.told == 0); // nothing follows a close frame
        const auto progress = parser.parse(left);
        FUZZ_CHECK(progress != frame_parser::progress::wrong);
        const frame_head& head = parser.head();
        if (progress != frame_parser::progress::complete || left.size() < head.size) break;
        std::string payload(static_cast<std::size_t>(head.size), '\0');
        apply_mask(head.mask.value_or(websocket_mask{}), 0, left.first(payload.size()),
                   reinterpret_cast<std::byte*>(payload.data()));
        left = left.subspan(payload.size());
        if (head.opcode == websocket_opcode::pong) into.pongs.push_back(payload);
        if (head.opcode == websocket_opcode::text) into.messages.push_back("t" + payload);
        if (head.opcode == websocket_opcode::binary) into.messages.push_back("b" + payload);
        if (head.opcode != websocket_opcode::close) continue;
        const auto close = parse_close_payload(payload);
        FUZZ_CHECK(close.has_value());
        into.told = close->code;
    }
}

template <class List>
bool is_subsequence(const List& part, const List& whole) {
    auto at = whole.begin();
    for (const auto& each : part) {
        at = std::find(at, whole.end(), each);
        if (at == whole.end()) return false;
        ++at;
    }
    return true;
}

task<> converse(websocket ours, const plan& of, const meaning& expected) {
    std::vector<std::string> messages;
    std::size_t call = 0;
    for (;;) {
        const bool is_hurried = call < of.hurried.size() && of.hurried[call];
        ++call;
        auto limited = with_timeout(ours.read_message(of.limit),
                                    is_hurried ? 0ns : std::chrono::nanoseconds{20s});
        auto message = co_await std::move(limited);
        if (!message && message.error() == errc::deadline_exceeded) continue;
        if (!message) {
            FUZZ_CHECK(message.error() == expected.end);
            break;
        }
        const bool is_text = message->kind == websocket::message::kind::text;
        messages.push_back((is_text ? "t" : "b") + message->data);
        if (!of.echoes) continue;
        // The peer may have closed meanwhile; it takes everything otherwise.
        static_cast<void>(co_await ours.write_message(message->kind, message->data));
    }
    FUZZ_CHECK(messages == expected.messages);
    static_cast<void>(co_await ours.close());
}

task<> both(const plan& of) {
    const model expects{of};
    const meaning& expected = expects.result();
    auto [ours, theirs] = duplex(of.capacity);
    stream cut{std::move(ours)};
    cut.reads().pieces(of.reads);
    sent_frames received;
    const auto role = of.is_server ? websocket_role::server : websocket_role::client;
    const http::websocket_options options{.ping_interval = 0s, .write_idle = 0s};
    auto sender = spawn(send_content(theirs, of));
    auto receiver = spawn(receive(theirs, !of.is_server, received));
    co_await converse(websocket_access::make(any_stream{std::move(cut)}, role, options), of,
                      expected);
    co_await sender;
    co_await receiver;
    FUZZ_CHECK(received.told == expected.told);
    FUZZ_CHECK(is_subsequence(received.pongs, expected.pongs));
    FUZZ_CHECK(is_subsequence(received.messages, expected.messages));
    if (!of.echoes) FUZZ_CHECK(received.messages.empty());
}

} // namespace
} // namespace simplenet::v0::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace simplenet::fuzz;
    const plan decoded = decode({data, size});
    run_on(shared_loop(simplenet::backend::epoll), both(decoded));
    return 0;
}
