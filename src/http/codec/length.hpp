#pragma once
// parse_length: the value of Content-Length, as all recipients of a message read it. Layer
// http/codec.

#include "http/codec/ascii.hpp"

#include <simplenet/core/abi.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace simplenet::v0::http::detail {

/// 1*DIGIT (RFC 9110, section 8.6) and at most 2^63 - 1: what a signed number of another recipient
/// can hold, too.
[[nodiscard]] constexpr std::optional<std::uint64_t> parse_length(std::string_view text) noexcept {
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    if (text.empty()) return {};
    std::uint64_t length = 0;
    for (const char byte : text) {
        if (!ascii::is_digit(byte)) return {};
        const auto digit = static_cast<std::uint64_t>(byte - '0');
        if (length > (most - digit) / 10) return {};
        length = length * 10 + digit;
    }
    return length;
}

} // namespace simplenet::v0::http::detail
