#pragma once
// Digits, and cutting text. Layer http/codec, private: what list.hpp lacks.

#include <simplenet/core/abi.hpp>

#include <cstddef>
#include <optional>
#include <string_view>

namespace simplenet::v0::http::detail::ascii {

[[nodiscard]] constexpr bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

/// -1 if `c` is no hexadecimal digit.
[[nodiscard]] constexpr int hex_value(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/// Cuts `text` before its first `character`, if it has one.
/// @return What follows that character.
constexpr std::optional<std::string_view> cut_behind(std::string_view& text,
                                                     char character) noexcept {
    const std::size_t at = text.find(character);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view behind = text.substr(at + 1);
    text = text.substr(0, at);
    return behind;
}

} // namespace simplenet::v0::http::detail::ascii
