#pragma once
// httpd::counted_address: what limits for one client count as one.

#include <simplenet/ip/ip_address.hpp>

#include <array>
#include <cstdint>
#include <cstring>

namespace httpd {

/// An IPv4 address, or the network of 64 bits of an IPv6 address, which one client has whole.
using counted_address = std::array<std::uint64_t, 2>;

/// No IPv4 address has the words of an IPv6 network: the second word of those is 0.
[[nodiscard]] inline counted_address counted_as(const simplenet::ip_address& from) noexcept {
    const simplenet::ip_address plain = from.unmapped();
    counted_address words{};
    if (plain.is_v4()) {
        std::memcpy(words.data(), plain.bytes().data(), 4);
        words[1] = 1;
    } else {
        std::memcpy(words.data(), plain.bytes().data(), 8);
    }
    return words;
}

} // namespace httpd
