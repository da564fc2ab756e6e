#pragma once
// endpoint: an IP address and a port, which identify a TCP or UDP peer. Layer ip.

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
/// A trivially copyable value of 28 bytes. Only `to_string()` allocates. Any thread. Ordered by
/// address, then by port.
class endpoint {
public:
    /// 0.0.0.0:0. For bind: every IPv4 address of this machine and a port that the kernel chooses.
    constexpr endpoint() noexcept = default;
    /// @param port  In host byte order. For bind, 0 lets the kernel choose.
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

    /// Parses `192.0.2.1:80` or `[2001:db8::1]:80` and nothing else: IPv6 addresses need brackets,
    /// IPv4 addresses must not have them, and no names are looked up. The address is parsed as by
    /// `ip_address::parse`, including a zone inside the brackets. The port is decimal, 0 to 65535,
    /// without sign or leading zeros.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: any other text, including one without a port.
    [[nodiscard]] static result<endpoint> parse(std::string_view text) noexcept;

    /// The form that `parse()` accepts, with the address in canonical form.
    ///
    /// @par Cost
    /// One allocation at most.
    [[nodiscard]] std::string to_string() const;

    [[nodiscard]] constexpr const ip_address& address() const noexcept { return address_; }
    /// In host byte order.
    [[nodiscard]] constexpr std::uint16_t port() const noexcept { return port_; }

    friend constexpr bool operator==(const endpoint&, const endpoint&) noexcept = default;
    friend constexpr std::strong_ordering operator<=>(const endpoint&,
                                                      const endpoint&) noexcept = default;

private:
    // In comparison order.
    ip_address address_;
    std::uint16_t port_ = 0;
};

} // namespace simplenet::v0

/// Not keyed: do not let untrusted peers fill an unbounded table.
template <>
struct std::hash<simplenet::endpoint> {
    [[nodiscard]] std::size_t operator()(const simplenet::endpoint& endpoint) const noexcept;
};

#pragma GCC visibility pop
