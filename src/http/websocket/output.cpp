#include "http/websocket/connection.hpp"
#include "http/websocket/masking_keys.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <algorithm>
#include <cstring>

namespace simplenet::v0::http::detail {

namespace {

// As much as a client masks at a time: more would leave the first cache of the processor.
constexpr std::size_t piece_limit = std::size_t{16} * 1024;

void append_bytes(std::string& to, const_buffer bytes) {
    to.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

} // namespace

const_buffer output_queue::next() noexcept {
    if (!rest_.empty()) return const_buffer{rest_}.subspan(rest_begin_);
    if (begin_ == end_ && owes_pong_) {
        owes_pong_ = false;
        add(websocket_opcode::pong, const_buffer{pong_}.first(pong_size_));
    } else if (begin_ == end_ && owes_ping_) {
        owes_ping_ = false;
        add(websocket_opcode::ping, {});
    } else if (begin_ == end_ && owed_close_ != 0) {
        std::array<std::byte, control_limit> payload; // NOLINT(*-member-init): written at once
        const std::size_t size = write_close_payload(owed_close_, {}, payload);
        owed_close_ = 0;
        add(websocket_opcode::close, const_buffer{payload}.first(size));
    }
    return const_buffer{frame_}.first(end_).subspan(begin_);
}

void output_queue::sent(std::size_t count) noexcept {
    if (!rest_.empty()) {
        rest_begin_ += count;
        if (rest_begin_ < rest_.size()) return;
        rest_begin_ = 0;
        rest_ = {}; // also its memory
        return;
    }
    begin_ = static_cast<std::uint8_t>(begin_ + count);
    if (begin_ == end_) begin_ = end_ = 0;
}

void output_queue::owe_pong(std::string_view payload) noexcept {
    std::ranges::copy(std::as_bytes(std::span{payload}), pong_.begin());
    pong_size_ = static_cast<std::uint8_t>(payload.size());
    owes_pong_ = true;
}

void output_queue::add(websocket_opcode code, const_buffer payload) noexcept {
    SIMPLENET_EXPECTS(begin_ == end_ && payload.size() <= control_limit,
                      "a control frame was added to another one");
    frame_head head{.opcode = code, .is_final = true, .size = payload.size()};
    if (masks_) head.mask = next_mask();
    const std::size_t used = write_frame_head(head, std::span{frame_}.first<frame_head_limit>());
    if (head.mask) {
        apply_mask(*head.mask, 0, payload, frame_.data() + used);
    } else if (!payload.empty()) {
        std::memcpy(frame_.data() + used, payload.data(), payload.size());
    }
    begin_ = 0;
    end_ = static_cast<std::uint8_t>(used + payload.size());
}

bool output_queue::take_back() noexcept {
    if (begin_ != 0) return false;
    end_ = 0;
    return true;
}

outgoing_message::outgoing_message(websocket_role role, enum websocket::message::kind kind,
                                   const_buffer payload)
    : payload_{payload} {
    const bool is_text = kind == websocket::message::kind::text;
    head_ = {.opcode = is_text ? websocket_opcode::text : websocket_opcode::binary,
             .is_final = true,
             .size = payload.size()};
    if (role == websocket_role::client) {
        head_.mask = next_mask();
        piece_ = scratch::borrow(std::min(piece_limit, frame_head_limit + payload.size()));
        const auto room = std::span<std::byte, frame_head_limit>{piece_.data(), frame_head_limit};
        fill_piece(write_frame_head(head_, room));
    } else {
        parts_ = {const_buffer{head_bytes_}.first(write_frame_head(head_, head_bytes_)), payload};
        payload_ = {};
    }
}

/// Appends masked payload to the first `used` bytes of the piece.
void outgoing_message::fill_piece(std::size_t used) noexcept {
    const std::size_t count = std::min(piece_.size() - used, payload_.size());
    apply_mask(*head_.mask, masked_, payload_.first(count), piece_.data() + used);
    payload_ = payload_.subspan(count);
    masked_ += count;
    parts_ = {const_buffer{piece_.data(), used + count}, const_buffer{}};
}

std::span<const const_buffer> outgoing_message::next() noexcept {
    if (parts_[0].empty() && parts_[1].empty() && !payload_.empty()) fill_piece(0);
    if (!parts_[1].empty()) {
        return parts_[0].empty() ? std::span{parts_}.subspan(1) : std::span{parts_};
    }
    return std::span{parts_}.first(parts_[0].empty() ? 0 : 1);
}

void outgoing_message::sent(std::size_t count) noexcept {
    begun_ = begun_ || count != 0;
    for (const_buffer& each : parts_) {
        const std::size_t here = std::min(count, each.size());
        each = each.subspan(here);
        count -= here;
    }
}

void outgoing_message::copy_rest(std::string& to) {
    for (const const_buffer& each : parts_)
        append_bytes(to, each);
    if (payload_.empty()) return;
    const std::size_t from = to.size();
    append_bytes(to, payload_);
    apply_mask(*head_.mask, masked_, payload_, reinterpret_cast<std::byte*>(to.data() + from));
}

} // namespace simplenet::v0::http::detail
