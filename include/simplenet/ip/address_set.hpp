#pragma once
// address_set: addresses and prefixes, for programs that treat some peers differently. Layer ip.
// Used by tcp_server for the senders of the PROXY protocol, and by the reverse proxy of http.

#include <simplenet/core/error.hpp>
#include <simplenet/ip/ip_address.hpp>

#include <span>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// Addresses and prefixes. A value; const functions on any thread.
///
/// @par Cost
/// A lookup is linear in the number of prefixes.
class address_set {
public:
    /// Contains nothing.
    address_set() noexcept = default;

    /// Parses `10.0.0.0/8`, `192.0.2.1`, `::1`, `2001:db8::/32`, `fe80::%3/10`. Bits behind the
    /// prefix are ignored. Throws std::bad_alloc.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: any other text, including prefixes that are too long.
    [[nodiscard]] static result<address_set> parse(std::span<const std::string_view> texts);

    /// Whether `address` is one of the addresses, or begins with one of the prefixes. An
    /// IPv4-mapped address is an IPv4 address here, in texts too: a dual-stack listener reports
    /// IPv4 peers that way. So `::/0` is every IPv6 address, and no IPv4 one. A scope id must be
    /// equal if the text has one.
    [[nodiscard]] bool contains(const ip_address& address) const noexcept;

    [[nodiscard]] bool empty() const noexcept { return prefixes_.empty(); }

private:
    struct prefix {
        ip_address address;
        unsigned bits = 0;
    };

    [[nodiscard]] static result<prefix> parse_prefix(std::string_view text) noexcept;
    [[nodiscard]] static bool covers(const prefix& prefix, const ip_address& address) noexcept;

    std::vector<prefix> prefixes_;
};

} // namespace simplenet::v0

#pragma GCC visibility pop
