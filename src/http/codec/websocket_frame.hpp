#pragma once
// The syntax of WebSocket's frames: heads, masks, and the payload of a close frame (RFC 6455, 5).
// Layer http/codec.

#include <simplenet/core/buffer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>

namespace simplenet::v0::http::detail {

/// RFC 6455, 5.2. Values between these are reserved.
enum class websocket_opcode : std::uint8_t {
    continuation = 0x0,
    text = 0x1,
    binary = 0x2,
    close = 0x8,
    ping = 0x9,
    pong = 0xa,
};

[[nodiscard]] constexpr bool is_control(websocket_opcode code) noexcept {
    return (static_cast<unsigned>(code) & 0x8U) != 0;
}

/// Codes of close frames that the protocol itself uses (RFC 6455, 7.4.1).
namespace close_codes {
inline constexpr std::uint16_t normal = 1000;
inline constexpr std::uint16_t going_away = 1001;
inline constexpr std::uint16_t protocol_error = 1002;
inline constexpr std::uint16_t none_received = 1005; // never in a frame
inline constexpr std::uint16_t abnormal = 1006;      // never in a frame
inline constexpr std::uint16_t bad_text = 1007;
inline constexpr std::uint16_t too_large = 1009;
} // namespace close_codes

/// The four bytes with which a client masks a frame, in the order in which they are sent.
using websocket_mask = std::array<std::byte, 4>;

/// Bytes of the payload of a control frame, and of the reason in a close frame, at most.
inline constexpr std::size_t control_limit = 125;
inline constexpr std::size_t close_reason_limit = control_limit - 2;
/// Bytes of a head, at most.
inline constexpr std::size_t frame_head_limit = 14;

/// What the head of a frame says.
struct frame_head {
    websocket_opcode opcode = websocket_opcode::continuation;
    bool is_final = false;
    std::optional<websocket_mask> mask;
    std::uint64_t size = 0; // bytes of the payload, at most 2^63 - 1
};

/// Reads heads of frames that arrive in pieces of any size, and refuses a head at its first wrong
/// byte.
///
/// Refused are reserved bits and opcodes; a mask where there must be none, and the reverse; a size
/// in more bytes than it needs or above 2^63 - 1; control frames that are larger than 125 bytes or
/// fragmented; a continuation of nothing; a new message before the last one has ended.
class frame_parser {
public:
    /// `masked`: the frames of a client are expected, otherwise those of a server.
    explicit frame_parser(bool masked) noexcept
        : masked_{masked} {}

    enum class progress : std::uint8_t { incomplete, complete, wrong };

    /// Continues with `piece`, and removes the bytes of the head from it. `complete`: head() is the
    /// head until the next call, which begins the next frame. `wrong`: no more calls may follow.
    ///
    /// @pre The payload of the last frame has been skipped.
    [[nodiscard]] progress parse(const_buffer& piece) noexcept;

    [[nodiscard]] const frame_head& head() const noexcept { return head_; }
    /// A message has begun, and its last frame has not.
    [[nodiscard]] bool in_message() const noexcept { return in_message_; }
    /// In the middle of a head.
    [[nodiscard]] bool in_head() const noexcept { return have_ != 0; }

private:
    [[nodiscard]] bool accept_first_byte(unsigned byte) noexcept;
    [[nodiscard]] bool accept_second_byte(unsigned byte) noexcept;
    [[nodiscard]] bool accept_size_byte(unsigned byte) noexcept;

    bool masked_;
    bool in_message_ = false;
    std::uint8_t have_ = 0;       // bytes of the head
    std::uint8_t size_bytes_ = 0; // of a size behind the second byte: 0, 2 or 8
    websocket_mask mask_{};       // of which some may be missing
    frame_head head_;
};

/// Writes the head of a frame, in as few bytes as possible, to the beginning of `to`. Returns the
/// number of bytes.
///
/// @pre `head` is one that a frame_parser accepts.
[[nodiscard]] std::size_t write_frame_head(const frame_head& head,
                                           std::span<std::byte, frame_head_limit> to) noexcept;

/// Masks or unmasks `from` into `to` (RFC 6455, 5.3). 16 bytes at a time, at any `offset`.
///
/// @pre `to` is `from.data()`, or does not overlap it.
/// @param offset  Where `from` begins in the payload of its frame.
void apply_mask(const websocket_mask& mask, std::uint64_t offset, const_buffer from,
                std::byte* to) noexcept;

/// Whether `code` may be in a close frame: one that RFC 6455, 7.4.1 or IANA's registry defines for
/// that (1000 to 1003, 1007 to 1014), or one for libraries and applications (3000 to 4999).
[[nodiscard]] bool is_close_code(std::uint16_t code) noexcept;

/// The payload of a close frame.
struct close_payload {
    std::uint16_t code = close_codes::none_received;
    std::string_view reason; // of the payload that was parsed
};

/// Reads the whole payload of a close frame. The error is the code that the peer is to be told.
[[nodiscard]] std::expected<close_payload, std::uint16_t>
parse_close_payload(std::string_view payload) noexcept;

/// Writes `code` and `reason` to the beginning of `to`; nothing if `code` is none_received. Returns
/// the number of bytes.
///
/// @pre `reason` has at most close_reason_limit bytes.
[[nodiscard]] std::size_t write_close_payload(std::uint16_t code, std::string_view reason,
                                              std::span<std::byte, control_limit> to) noexcept;

} // namespace simplenet::v0::http::detail
