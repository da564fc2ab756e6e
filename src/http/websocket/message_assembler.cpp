#include "http/websocket/connection.hpp"

#include <algorithm>
#include <cstring>

namespace simplenet::v0::http::detail {

namespace {

// Less is copied from the buffers of the loop, which costs less than another read.
constexpr std::size_t least_direct = std::size_t{16} * 1024;
// A string cannot grow without being cleared; so much at a time stays in the processor's cache
// until the kernel writes over it.
constexpr std::size_t most_direct = std::size_t{64} * 1024;

std::byte* bytes_of(std::string& text, std::size_t from) noexcept {
    return reinterpret_cast<std::byte*>(text.data() + from);
}

} // namespace

void message_assembler::begin_payload() noexcept {
    const frame_head& head = parser_.head();
    in_payload_ = true;
    at_ = 0;
    left_ = head.size;
    if (is_control(head.opcode)) {
        control_size_ = 0;
    } else if (head.opcode != websocket_opcode::continuation) {
        const bool is_text = head.opcode == websocket_opcode::text;
        kind_ = is_text ? websocket::message::kind::text : websocket::message::kind::binary;
        utf8_ = {};
        text_.clear();
    }
}

auto message_assembler::end_payload() noexcept -> event {
    in_payload_ = false;
    const frame_head& head = parser_.head();
    switch (head.opcode) {
    case websocket_opcode::ping:
        return event::ping;
    case websocket_opcode::pong:
        return event::pong;
    case websocket_opcode::close:
        return event::close;
    case websocket_opcode::continuation:
    case websocket_opcode::text:
    case websocket_opcode::binary:
        break;
    }
    if (!head.is_final || discards_) return event::needs_bytes;
    if (kind_ == websocket::message::kind::text && !utf8_.is_complete()) {
        return wrong(close_codes::bad_text);
    }
    return event::message;
}

auto message_assembler::advance(const_buffer& bytes, std::size_t limit) -> event {
    // What an earlier call has gathered, perhaps with a higher limit.
    if (parser_.in_message() && text_.size() > limit) return wrong(close_codes::too_large);
    for (;;) {
        if (!in_payload_) {
            switch (parser_.parse(bytes)) {
            case frame_parser::progress::incomplete:
                return event::needs_bytes;
            case frame_parser::progress::wrong:
                return wrong(close_codes::protocol_error);
            case frame_parser::progress::complete:
                begin_payload();
                break;
            }
        }
        const bool is_data = !is_control(parser_.head().opcode);
        if (is_data && !discards_ && is_too_large(limit)) return wrong(close_codes::too_large);

        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
        const const_buffer piece = bytes.first(count);
        bool accepted = true;
        if (!is_data) {
            take_control(piece);
        } else if (!discards_) {
            accepted = take_data(piece);
        }
        bytes = bytes.subspan(count);
        at_ += count;
        left_ -= count;
        if (!accepted) return wrong(close_codes::bad_text);
        if (left_ != 0) return event::needs_bytes;
        const event ended = end_payload();
        if (ended != event::needs_bytes) return ended;
    }
}

void message_assembler::take_control(const_buffer bytes) noexcept {
    std::byte* const to = control_.data() + control_size_;
    if (const auto& mask = parser_.head().mask) {
        apply_mask(*mask, at_, bytes, to);
    } else if (!bytes.empty()) {
        std::memcpy(to, bytes.data(), bytes.size());
    }
    control_size_ = static_cast<std::uint8_t>(control_size_ + bytes.size());
}

bool message_assembler::take_data(const_buffer bytes) {
    const std::size_t from = text_.size();
    text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return accept_data(from);
}

/// Unmasks and checks the text behind `from`, which is at `at_` in the payload.
bool message_assembler::accept_data(std::size_t from) noexcept {
    const const_buffer added = const_buffer{text_}.subspan(from);
    if (const auto& mask = parser_.head().mask) {
        apply_mask(*mask, at_, added, bytes_of(text_, from));
    }
    return kind_ == websocket::message::kind::binary || utf8_.feed(added);
}

mutable_buffer message_assembler::direct_room() {
    if (!in_payload_ || discards_ || is_control(parser_.head().opcode)) return {};
    // No more than has arrived: a peer that only announces a large message costs no memory.
    const std::size_t room = std::min(most_direct, text_.size());
    if (std::min<std::uint64_t>(left_, room) < least_direct) return {};
    direct_at_ = text_.size();
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, room));
    text_.resize(direct_at_ + count);
    return mutable_buffer{text_}.subspan(direct_at_);
}

bool message_assembler::filled(std::size_t count) noexcept {
    text_.resize(direct_at_ + count);
    const bool accepted = accept_data(direct_at_);
    at_ += count;
    left_ -= count;
    return accepted || (static_cast<void>(wrong(close_codes::bad_text)), false);
}

} // namespace simplenet::v0::http::detail
