#pragma once
// endpoint: an IP address and a port, which is what names a TCP or UDP peer. Layer ip.

#include <simplenet/ip/ip_address.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// An IP address and a port.
///
/// A trivially copyable value of 28 bytes. Nothing but `to_string()` allocates. Any thread.
/// Order: by address, then by port.
class endpoint {
public:
    /// 0.0.0.0:0: to bind, every IPv4 address of this machine and a port the kernel picks.
    constexpr endpoint() noexcept = default;
    /// @param port  In host order, as people write it. To bind, 0 lets the kernel pick.
    constexpr endpoint(const ip_address& address, std::uint16_t port) noexcept
        : address_{address}
        , port_{port} {}

    /// 127.0.0.1 and `port`.
    [[nodiscard]] static constexpr endpoint loopback(std::uint16_t port) noexcept {
        return {ip_address::loopback_v4(), port};
    }
    /// 0.0.0.0 and `port`.
    [[nodiscard]] static constexpr endpoint any(std::uint16_t port) noexcept {
        return {ip_address::any_v4(), port};
    }

    /// Reads `192.0.2.1:80` or `[2001:db8::1]:80` and nothing else: IPv6 always stands in
    /// brackets, IPv4 never does, and no names are looked up. The address is what
    /// `ip_address::parse` takes, a zone inside the brackets included. The port is decimal,
    /// 0 to 65535, without sign or leading zeros.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: anything else, a missing port included.
    [[nodiscard]] static result<endpoint> parse(std::string_view text) noexcept;

    /// The form `parse()` reads, with the address in its canonical text.
    ///
    /// @par Cost
    /// One allocation at most.
    [[nodiscard]] std::string to_string() const;

    [[nodiscard]] constexpr const ip_address& address() const noexcept { return address_; }
    /// In host order.
    [[nodiscard]] constexpr std::uint16_t port() const noexcept { return port_; }

    friend constexpr bool operator==(const endpoint&, const endpoint&) noexcept = default;
    friend constexpr std::strong_ordering operator<=>(const endpoint&,
                                                      const endpoint&) noexcept = default;

private:
    // In the order in which endpoints compare.
    ip_address address_;
    std::uint16_t port_ = 0;
};

} // namespace simplenet::v0

/// Not keyed: do not let strangers choose what goes into an unbounded table.
template <>
struct std::hash<simplenet::endpoint> {
    [[nodiscard]] std::size_t operator()(const simplenet::endpoint& endpoint) const noexcept;
};

#pragma GCC visibility pop
