#include "http/codec/base64.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <algorithm>
#include <array>
#include <cstdint>

namespace simplenet::v0::http::detail {

namespace {

constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t no_digit = 64;

constexpr auto values_of_digits = [] {
    std::array<std::uint8_t, 256> values{};
    values.fill(no_digit);
    for (std::size_t value = 0; value < base64_digits.size(); ++value)
        values[static_cast<unsigned char>(base64_digits[value])] = static_cast<std::uint8_t>(value);
    return values;
}();

} // namespace

void encode_base64(const_buffer bytes, std::span<char> to) noexcept {
    SIMPLENET_EXPECTS(to.size() >= base64_size(bytes.size()), "no room for the base64");
    std::size_t out = 0;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        const std::size_t here = std::min<std::size_t>(3, bytes.size() - at);
        std::uint32_t bits = 0;
        for (std::size_t byte = 0; byte < 3; ++byte) {
            bits <<= 8U;
            if (byte < here) bits |= std::to_integer<std::uint32_t>(bytes.data()[at + byte]);
        }
        for (std::size_t digit = 0; digit < 4; ++digit) {
            const std::uint32_t value = bits >> (18 - 6 * digit) & 63U;
            to[out++] = digit <= here ? base64_digits[value] : '=';
        }
    }
}

std::optional<std::size_t> decode_base64(std::string_view text, std::span<std::byte> to) noexcept {
    if (text.size() % 4 != 0) return std::nullopt;
    std::size_t padding = 0;
    if (text.ends_with("==")) {
        padding = 2;
    } else if (text.ends_with('=')) {
        padding = 1;
    }
    text.remove_suffix(padding);
    const std::size_t size = text.size() * 3 / 4;
    if (size > to.size()) return std::nullopt;

    std::uint32_t bits = 0; // of which `held` are not written yet
    unsigned held = 0;
    std::size_t out = 0;
    for (const char each : text) {
        const std::uint8_t value = values_of_digits[static_cast<unsigned char>(each)];
        if (value == no_digit) return std::nullopt;
        bits = bits << 6U | value;
        held += 6;
        if (held < 8) continue;
        held -= 8;
        to[out++] = static_cast<std::byte>(bits >> held & 0xffU);
        bits &= (1U << held) - 1;
    }
    if (bits != 0) return std::nullopt;
    return size;
}

} // namespace simplenet::v0::http::detail
