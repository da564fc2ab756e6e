#pragma once
// frame_format: how a frame_reader and a frame_writer encode the length of a frame. Layer stream.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

inline namespace runtime {

/// The encoding of a frame's length.
enum class frame_prefix : std::uint8_t {
    u8,  ///< 1 byte: bodies of at most 255 bytes
    u16, ///< 2 bytes: at most 65 535
    u32, ///< 4 bytes
    u64, ///< 8 bytes
    /// 1 to 10 bytes of 7 bits each, the lowest first, as in Protocol Buffers (LEB128). Padded
    /// encodings, such as `80 00` for 0, are read too: writers pad to reserve space for a length
    /// that they do not know yet. frame_writer writes the shortest encoding.
    varint,
};

/// What precedes the body of each frame: its length in bytes, without the prefix itself.
struct frame_format {
    frame_prefix prefix = frame_prefix::u32;
    std::endian order = std::endian::big; ///< of u16, u32 and u64
};

} // namespace runtime

namespace detail {

/// A prefix found in front of the bytes of a stream.
struct found_prefix {
    // incomplete  the bytes end within the prefix
    // malformed   a varint of more than 10 bytes or 64 bits
    enum class state : std::uint8_t { incomplete, malformed, complete };

    state is = state::incomplete;
    std::uint8_t bytes = 0; // of a complete prefix; otherwise how many it has at least
    std::uint64_t length = 0;
};
[[nodiscard]] found_prefix find_prefix(std::span<const std::byte> bytes,
                                       frame_format format) noexcept;

/// An encoded prefix.
struct frame_head {
    std::array<std::byte, 10> bytes;
    std::uint8_t size = 0;
};
/// @pre `length <= longest_frame(format.prefix)`
[[nodiscard]] frame_head encode_prefix(std::uint64_t length, frame_format format) noexcept;

/// The largest length that the prefix can express.
[[nodiscard]] constexpr std::uint64_t longest_frame(frame_prefix prefix) noexcept {
    switch (prefix) {
    case frame_prefix::u8:
        return std::numeric_limits<std::uint8_t>::max();
    case frame_prefix::u16:
        return std::numeric_limits<std::uint16_t>::max();
    case frame_prefix::u32:
        return std::numeric_limits<std::uint32_t>::max();
    default:
        return std::numeric_limits<std::uint64_t>::max();
    }
}

} // namespace detail
} // namespace simplenet::v0

#pragma GCC visibility pop
