#pragma once
// address_family: IPv4, IPv6 or both, for name lookups. Layer ip.

#include <simplenet/ip/ip_address.hpp>

#include <cstdint>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

enum class address_family : std::uint8_t { any, v4, v6 };

/// Never `any`.
[[nodiscard]] constexpr address_family family_of(const ip_address& address) noexcept {
    return address.is_v4() ? address_family::v4 : address_family::v6;
}

/// Whether `address` is of that family; every address is of `any`.
[[nodiscard]] constexpr bool is_of(const ip_address& address, address_family family) noexcept {
    return family == address_family::any || family == family_of(address);
}

} // namespace simplenet::v0

#pragma GCC visibility pop
