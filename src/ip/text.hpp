#pragma once
// Parsing and formatting shared by ip_address and endpoint. Layer ip, private.

#include <simplenet/ip/ip_address.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace simplenet::v0::detail {

/// Bytes: eight full groups of IPv6, and `%4294967295`.
inline constexpr std::size_t max_address_text = 39 + 11;

/// `text` as a decimal number of at most `max`: digits only, without leading zeros, so that each
/// number has one spelling.
[[nodiscard]] std::optional<std::uint32_t> parse_decimal(std::string_view text,
                                                         std::uint32_t max) noexcept;

/// Both return the end of what they wrote.
///
/// @pre `to` has room: `max_address_text`, or 10 digits.
[[nodiscard]] char* write_address(char* to, const ip_address& address) noexcept;
[[nodiscard]] char* write_decimal(char* to, std::uint32_t number) noexcept;

/// Order matters, and equal parts do not cancel out.
[[nodiscard]] constexpr std::size_t combine_hashes(std::size_t seed, std::size_t more) noexcept {
    constexpr std::uint64_t odd =
        0x9e37'79b9'7f4a'7c15; // the golden ratio: its bits have no pattern
    return static_cast<std::size_t>((std::rotl(std::uint64_t{seed}, 23) ^ more) * odd);
}

} // namespace simplenet::v0::detail
