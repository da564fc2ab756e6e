#pragma once
// A websocket and a raw peer that speaks by bytes: each test writes the peer's frames by hand.

#include "http/codec/websocket_frame.hpp"
#include "http/websocket/websocket_access.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/http/errc.hpp>
#include <simplenet/http/websocket.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/stream/any_stream.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/stream/transfer.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {

using http::websocket;
using http::websocket_options;
using http::detail::frame_head;
using http::detail::frame_parser;
using http::detail::websocket_mask;
using http::detail::websocket_opcode;
using http::detail::websocket_role;

inline constexpr websocket_mask peers_mask{std::byte{0x12}, std::byte{0xf4}, std::byte{0x7c},
                                           std::byte{0x80}};

/// A frame as a peer sends it. `first` is its first byte.
inline std::string frame(unsigned first, std::string_view payload, bool masked = true) {
    frame_head head{.opcode = static_cast<websocket_opcode>(first & 0x0fU),
                    .is_final = (first & 0x80U) != 0,
                    .size = payload.size()};
    if (masked) head.mask = peers_mask;
    std::array<std::byte, http::detail::frame_head_limit> bytes{};
    const std::size_t size = write_frame_head(head, bytes);
    std::string text{reinterpret_cast<const char*>(bytes.data()), size};
    std::string body{payload};
    if (masked) {
        http::detail::apply_mask(peers_mask, 0, payload, reinterpret_cast<std::byte*>(body.data()));
    }
    return text + body;
}
inline std::string text_frame(std::string_view payload, bool masked = true) {
    return frame(0x81, payload, masked);
}
inline std::string ping_frame(std::string_view payload, bool masked = true) {
    return frame(0x89, payload, masked);
}
inline std::string close_payload(unsigned code, std::string_view reason = {}) {
    const std::string bytes{static_cast<char>(code >> 8U), static_cast<char>(code & 0xffU)};
    return bytes + std::string{reason};
}
inline std::string close_frame(unsigned code, std::string_view reason = {}, bool masked = true) {
    return frame(0x88, close_payload(code, reason), masked);
}

/// What a raw peer has read: the first byte of a frame, and its payload unmasked.
// No aggregate: g++ 12 destroys temporaries of those twice in a co_await expression.
struct seen_frame {
    seen_frame(unsigned first_byte, std::string_view content)
        : first{first_byte}
        , payload{content} {}

    unsigned first;
    std::string payload;

    friend bool operator==(const seen_frame& left, const seen_frame& right) {
        return left.first == right.first && left.payload == right.payload;
    }
    friend void PrintTo(const seen_frame& of, std::ostream* to) {
        *to << std::hex << of.first << " '" << of.payload.substr(0, 200) << '\'';
    }
};
inline const seen_frame no_frame{0, {}};

/// The code of a close frame; 0 if `of` is none.
inline unsigned code_of(const seen_frame& of) {
    if (of.first != 0x88 || of.payload.size() < 2) return 0;
    return static_cast<unsigned char>(of.payload[0]) * 256U +
           static_cast<unsigned char>(of.payload[1]);
}

/// Reads a frame from a stream; no_frame at its end.
template <class Stream>
task<seen_frame> next_frame(Stream& stream, bool masked) {
    frame_parser parser{masked};
    seen_frame seen = no_frame;
    std::array<char, 1> byte{};
    for (auto progress = frame_parser::progress::incomplete;
         progress != frame_parser::progress::complete;) {
        const auto count = co_await stream.read_some(std::span{byte});
        if (!count) co_return no_frame;
        if (seen.first == 0) seen.first = static_cast<unsigned char>(byte[0]);
        const_buffer piece{byte.data(), 1};
        progress = parser.parse(piece);
        EXPECT_NE(progress, frame_parser::progress::wrong);
        if (progress == frame_parser::progress::wrong) co_return no_frame;
    }
    seen.payload.resize(static_cast<std::size_t>(parser.head().size));
    const auto rest = co_await async_read_exact(stream, seen.payload);
    if (!rest) co_return no_frame;
    if (parser.head().mask) {
        http::detail::apply_mask(*parser.head().mask, 0, seen.payload,
                                 reinterpret_cast<std::byte*>(seen.payload.data()));
    }
    co_return seen;
}

template <class Stream>
struct websocket_ends {
    websocket ours;
    Stream theirs;
    bool peer_is_client;

    /// Sends bytes as the peer.
    task<> send(std::string bytes) {
        const auto sent = co_await async_write_all(theirs, bytes);
        EXPECT_TRUE(sent);
    }
    task<seen_frame> next() { return next_frame(theirs, !peer_is_client); }
};

inline websocket make_websocket(auto stream, websocket_role role, websocket_options options = {}) {
    return http::detail::websocket_access::make(any_stream{std::move(stream)}, role, options);
}

/// In memory.
inline websocket_ends<duplex_stream> memory_ends(websocket_options options = {},
                                                 websocket_role role = websocket_role::server,
                                                 std::size_t capacity = std::size_t{64} * 1024) {
    auto [ours, theirs] = duplex(capacity);
    return {make_websocket(std::move(ours), role, options), std::move(theirs),
            role == websocket_role::server};
}
/// Over TCP.
inline websocket_ends<tcp_stream> tcp_websocket_ends(websocket_options options = {},
                                                     websocket_role role = websocket_role::server,
                                                     buffer_sizes sizes = {}) {
    auto [ours, theirs] = connected_pair(sizes);
    return {make_websocket(std::move(ours), role, options), std::move(theirs),
            role == websocket_role::server};
}

/// A stream that can only read and write.
class plain_stream_of {
public:
    explicit plain_stream_of(duplex_stream over)
        : over_{std::move(over)} {}

    auto read_some(mutable_buffer into) { return over_.read_some(into); }
    auto write_some(const_buffer from) { return over_.write_some(from); }

private:
    duplex_stream over_;
};

/// A peer that always has more to say, and takes everything.
class endless_stream {
public:
    endless_stream(std::string first, std::string again)
        : next_{std::move(first)}
        , again_{std::move(again)} {}

    task<result<std::size_t>> read_some(mutable_buffer into) {
        const result<received> some = try_receive();
        const std::size_t count = std::min(some->size(), into.size());
        std::memcpy(into.data(), some->data(), count);
        co_return count;
    }
    task<result<>> readable() { co_return result<>{}; }
    result<received> try_receive() {
        const std::string bytes = std::exchange(next_, again_);
        std::byte* const memory = simplenet::detail::allocate_lease(bytes.size());
        if (memory == nullptr) return fail(std::errc::not_enough_memory);
        std::memcpy(memory, bytes.data(), bytes.size());
        return received{memory, bytes.size()};
    }
    task<result<std::size_t>> write_some(const_buffer from) { co_return from.size(); }
    result<std::size_t> try_write_some(const_buffer from) { return from.size(); }
    void close() {}

private:
    std::string next_;
    std::string again_;
};

/// Sends messages back until the peer closes.
inline task<> echo_messages(websocket& peer) {
    while (auto message = co_await peer.read_message()) {
        const auto sent = co_await peer.write_message(message->kind, message->data);
        if (!sent) break;
    }
}

/// "text:..." or "binary:..." of a message, or the message of the error.
inline std::string told(const result<websocket::message>& outcome) {
    if (!outcome) return outcome.error().message();
    const bool is_text = outcome->kind == websocket::message::kind::text;
    return (is_text ? "text:" : "binary:") + outcome->data;
}

} // namespace simplenet::v0::testing
