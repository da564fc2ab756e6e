#include "http/codec/websocket_frame.hpp"

#include "http/codec/utf8.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <cstring>
#include <limits>

namespace simplenet::v0::http::detail {

namespace {

constexpr unsigned final_bit = 0x80;
constexpr unsigned reserved_bits = 0x70;
constexpr unsigned opcode_bits = 0x0f;
constexpr unsigned mask_bit = 0x80;
constexpr unsigned size_bits = 0x7f;
constexpr unsigned size_in_two_bytes = 126;
constexpr unsigned size_in_eight_bytes = 127;

constexpr bool is_defined(unsigned opcode) noexcept {
    return opcode <= 0x2 || (opcode >= 0x8 && opcode <= 0xa);
}

} // namespace

bool frame_parser::accept_first_byte(unsigned byte) noexcept {
    // Without extensions the reserved bits have no meaning (RFC 6455, 5.2).
    if ((byte & reserved_bits) != 0 || !is_defined(byte & opcode_bits)) return false;
    head_ = {};
    head_.opcode = static_cast<websocket_opcode>(byte & opcode_bits);
    head_.is_final = (byte & final_bit) != 0;
    if (is_control(head_.opcode)) return head_.is_final;
    const bool continues = head_.opcode == websocket_opcode::continuation;
    return continues == in_message_;
}

bool frame_parser::accept_second_byte(unsigned byte) noexcept {
    if (((byte & mask_bit) != 0) != masked_) return false;
    const unsigned size = byte & size_bits;
    size_bytes_ = 0;
    if (size == size_in_two_bytes) {
        size_bytes_ = 2;
    } else if (size == size_in_eight_bytes) {
        size_bytes_ = 8;
    } else {
        head_.size = size;
    }
    return size_bytes_ == 0 || !is_control(head_.opcode);
}

bool frame_parser::accept_size_byte(unsigned byte) noexcept {
    const unsigned at = have_ - 2U; // in the size
    if (size_bytes_ == 8 && at == 0 && byte >= 0x80) return false;
    head_.size = head_.size << 8U | byte;
    if (at + 1 < size_bytes_) return true;
    const std::uint64_t least = size_bytes_ == 2 ? size_in_two_bytes : 0x1'0000;
    return head_.size >= least;
}

frame_parser::progress frame_parser::parse(const_buffer& piece) noexcept {
    while (!piece.empty()) {
        const auto byte = std::to_integer<unsigned>(*piece.data());
        piece = piece.subspan(1);
        const std::size_t size_end = 2U + size_bytes_; // once the second byte is there
        bool accepted = true;
        if (have_ == 0) {
            accepted = accept_first_byte(byte);
        } else if (have_ == 1) {
            accepted = accept_second_byte(byte);
        } else if (have_ < size_end) {
            accepted = accept_size_byte(byte);
        } else {
            mask_[have_ - size_end] = static_cast<std::byte>(byte);
        }
        if (!accepted) return progress::wrong;
        ++have_;
        if (have_ < 2 || have_ < 2U + size_bytes_ + (masked_ ? mask_.size() : 0)) continue;

        have_ = 0;
        if (masked_) head_.mask = mask_;
        if (!is_control(head_.opcode)) in_message_ = !head_.is_final;
        return progress::complete;
    }
    return progress::incomplete;
}

std::size_t write_frame_head(const frame_head& head,
                             std::span<std::byte, frame_head_limit> to) noexcept {
    unsigned size_bytes = 0;
    auto size = static_cast<unsigned>(head.size);
    if (head.size > 0xffff) {
        size_bytes = 8;
        size = size_in_eight_bytes;
    } else if (head.size >= size_in_two_bytes) {
        size_bytes = 2;
        size = size_in_two_bytes;
    }
    to[0] = static_cast<std::byte>(static_cast<unsigned>(head.opcode) |
                                   (head.is_final ? final_bit : 0U));
    to[1] = static_cast<std::byte>(size | (head.mask ? mask_bit : 0U));
    std::size_t used = 2;
    for (unsigned left = size_bytes; left-- > 0;)
        to[used++] = static_cast<std::byte>(head.size >> (8 * left) & 0xffU);
    if (head.mask) {
        for (const std::byte each : *head.mask)
            to[used++] = each;
    }
    return used;
}

void apply_mask(const websocket_mask& mask, std::uint64_t offset, const_buffer from,
                std::byte* to) noexcept {
    // The mask, as often as 16 bytes need it, turned so that it begins with the byte for `from`.
    // Words are copied in and out, so neither alignment nor the order of bytes matters.
    std::array<std::byte, 8> turned; // NOLINT(*-member-init): filled below
    for (std::size_t at = 0; at < turned.size(); ++at)
        turned[at] = mask[(offset + at) % mask.size()];
    std::uint64_t word = 0;
    std::memcpy(&word, turned.data(), sizeof word);

    const std::byte* at = from.data();
    std::size_t left = from.size();
    for (; left >= 16; left -= 16, at += 16, to += 16) {
        std::array<std::uint64_t, 2> words; // NOLINT(*-member-init): filled at once
        std::memcpy(words.data(), at, sizeof words);
        words[0] ^= word;
        words[1] ^= word;
        std::memcpy(to, words.data(), sizeof words);
    }
    for (std::size_t byte = 0; byte < left; ++byte)
        to[byte] = at[byte] ^ turned[byte % turned.size()];
}

bool is_close_code(std::uint16_t code) noexcept {
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

std::expected<close_payload, std::uint16_t> parse_close_payload(std::string_view payload) noexcept {
    if (payload.empty()) return close_payload{};
    if (payload.size() == 1) return std::unexpected{close_codes::protocol_error};
    const auto high = static_cast<unsigned char>(payload[0]);
    const auto low = static_cast<unsigned char>(payload[1]);
    const auto code = static_cast<std::uint16_t>(high << 8U | low);
    if (!is_close_code(code)) return std::unexpected{close_codes::protocol_error};
    if (!is_utf8(payload.substr(2))) return std::unexpected{close_codes::bad_text};
    return close_payload{code, payload.substr(2)};
}

std::size_t write_close_payload(std::uint16_t code, std::string_view reason,
                                std::span<std::byte, control_limit> to) noexcept {
    SIMPLENET_EXPECTS(reason.size() <= close_reason_limit, "the reason of a close is too long");
    if (code == close_codes::none_received) return 0;
    to[0] = static_cast<std::byte>(code >> 8U);
    to[1] = static_cast<std::byte>(code & 0xffU);
    if (!reason.empty()) std::memcpy(to.data() + 2, reason.data(), reason.size());
    return 2 + reason.size();
}

} // namespace simplenet::v0::http::detail
