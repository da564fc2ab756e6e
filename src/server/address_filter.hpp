#pragma once
// address_filter: a set of addresses and prefixes, as text. Layer server, private: who may speak
// the PROXY protocol.

#include <simplenet/core/error.hpp>
#include <simplenet/ip/ip_address.hpp>

#include <span>
#include <string_view>
#include <vector>

namespace simplenet::v0::detail {

/// Addresses that may do something. A value; const functions on any thread.
class address_filter {
public:
    /// Everybody.
    address_filter() noexcept = default;

    /// Parses `10.0.0.0/8`, `192.0.2.1`, `::1`, `2001:db8::/32`, `fe80::%3/10`. Bits behind the
    /// prefix are ignored. No texts: everybody.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: any other text, including prefixes that are too long.
    [[nodiscard]] static result<address_filter> parse(std::span<const std::string_view> texts);

    /// Whether `address` is in it. An IPv4-mapped address is an IPv4 address here, in texts too: a
    /// dual-stack listener reports IPv4 peers that way. So `::/0` is every IPv6 address, and no
    /// IPv4 one. A scope id must be equal if the text has one.
    [[nodiscard]] bool allows(const ip_address& address) const noexcept;

private:
    struct prefix {
        ip_address address;
        unsigned bits = 0;
    };

    [[nodiscard]] static result<prefix> parse_prefix(std::string_view text) noexcept;
    [[nodiscard]] static bool contains(const prefix& prefix, const ip_address& address) noexcept;

    std::vector<prefix> prefixes_; // empty: everybody
};

} // namespace simplenet::v0::detail
