#pragma once
// base64: text for bytes (RFC 4648, 4), with padding. Layer http/codec.

#include <simplenet/core/buffer.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace simplenet::v0::http::detail {

/// Characters for `bytes` bytes.
[[nodiscard]] constexpr std::size_t base64_size(std::size_t bytes) noexcept {
    return (bytes + 2) / 3 * 4;
}

/// Writes base64_size(bytes.size()) characters to the beginning of `to`.
///
/// @pre `to` has room for them.
void encode_base64(const_buffer bytes, std::span<char> to) noexcept;

/// The number of bytes that `text` stands for, written to the beginning of `to`; nothing if `text`
/// is not base64, or `to` is too small.
///
/// Strict: each sequence of bytes has exactly one text. White space, missing padding, and bits that
/// are set behind the last byte are refused (RFC 4648, 3.5, 12).
[[nodiscard]] std::optional<std::size_t> decode_base64(std::string_view text,
                                                       std::span<std::byte> to) noexcept;

} // namespace simplenet::v0::http::detail
