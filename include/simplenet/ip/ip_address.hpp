#pragma once
// ip_address: an IPv4 or IPv6 address as a value. Layer ip, which makes no system calls. Used by
// endpoint, and by programs that make decisions about their peers.

#include <simplenet/core/error.hpp>

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// An IPv4 address, or an IPv6 address with its scope id.
///
/// A trivially copyable value of 24 bytes. Only `to_string()` allocates, and everything except text
/// and hashing is constexpr. Any thread.
///
/// The predicates judge the address as written: the IPv4-mapped address `::ffff:127.0.0.1`, which a
/// dual-stack socket reports for an IPv4 peer, is not a loopback address. Compare `unmapped()`
/// where that matters.
///
/// Ordered with IPv4 before IPv6, then by bytes, then by scope id.
class ip_address {
public:
    /// `any_v4()`.
    constexpr ip_address() noexcept = default;

    /// 0.0.0.0. For bind: every IPv4 address of this machine.
    [[nodiscard]] static constexpr ip_address any_v4() noexcept { return {}; }
    /// `::`. For bind: every IPv6 address of this machine.
    [[nodiscard]] static constexpr ip_address any_v6() noexcept {
        return {family::v6, storage{}, 0};
    }
    /// 127.0.0.1
    [[nodiscard]] static constexpr ip_address loopback_v4() noexcept {
        return {family::v4, storage{std::byte{127}, {}, {}, std::byte{1}}, 0};
    }
    /// `::1`
    [[nodiscard]] static constexpr ip_address loopback_v6() noexcept {
        storage bytes{};
        bytes.back() = std::byte{1};
        return {family::v6, bytes, 0};
    }

    /// IPv4, in network byte order: 192.0.2.1 begins with 192.
    [[nodiscard]] static constexpr ip_address
    from_bytes(std::span<const std::byte, 4> bytes) noexcept {
        storage copy{};
        std::ranges::copy(bytes, copy.begin());
        return {family::v4, copy, 0};
    }
    /// IPv6, in network byte order. `scope_id` is an interface index, or 0 for none.
    [[nodiscard]] static constexpr ip_address from_bytes(std::span<const std::byte, 16> bytes,
                                                         std::uint32_t scope_id = 0) noexcept {
        storage copy{};
        std::ranges::copy(bytes, copy.begin());
        return {family::v6, copy, scope_id};
    }

    /// Parses an address and nothing else: no port, no brackets, no white space.
    ///
    /// IPv4 is four decimal octets without leading zeros; the octal, hexadecimal and shortened
    /// forms of inet_aton(3) are rejected, because programs disagree about their meaning. IPv6 is
    /// every form of RFC 4291 section 2.2, in upper or lower case, including `::` and a dotted IPv4
    /// tail, and may end in a zone as in `fe80::1%3` (RFC 4007 section 11). The zone is a decimal
    /// interface index without leading zeros; 0 means none.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: any other text. That includes a zone that is an interface
    ///   name (`%eth0`), because only the kernel knows its index: use the result of
    ///   if_nametoindex(3).
    [[nodiscard]] static result<ip_address> parse(std::string_view text) noexcept;

    /// The canonical text: RFC 5952 for IPv6, dotted decimal for IPv4. IPv4-mapped addresses end in
    /// dotted decimal, and a nonzero scope id follows as `%3`. `parse()` turns the text back into
    /// an equal address.
    ///
    /// @par Cost
    /// One allocation at most.
    [[nodiscard]] std::string to_string() const;

    [[nodiscard]] constexpr bool is_v4() const noexcept { return family_ == family::v4; }
    [[nodiscard]] constexpr bool is_v6() const noexcept { return family_ == family::v6; }
    /// 127.0.0.0/8 or `::1`.
    [[nodiscard]] constexpr bool is_loopback() const noexcept {
        return is_v4() ? octet(0) == 127 : bytes_ == loopback_v6().bytes_;
    }
    /// 0.0.0.0 or `::`.
    [[nodiscard]] constexpr bool is_any() const noexcept { return bytes_ == storage{}; }
    /// 224.0.0.0/4 or ff00::/8.
    [[nodiscard]] constexpr bool is_multicast() const noexcept {
        return is_v4() ? (octet(0) & 0xf0) == 0xe0 : octet(0) == 0xff;
    }
    /// 169.254.0.0/16 or fe80::/10. An address of the latter needs a scope id to be reachable.
    [[nodiscard]] constexpr bool is_link_local() const noexcept {
        return is_v4() ? octet(0) == 169 && octet(1) == 254
                       : octet(0) == 0xfe && (octet(1) & 0xc0) == 0x80;
    }
    /// `::ffff:0:0/96`, the IPv6 notation of an IPv4 address.
    [[nodiscard]] constexpr bool is_v4_mapped() const noexcept {
        return is_v6() && std::all_of(bytes_.begin(), bytes_.begin() + 10, is_zero) &&
               octet(10) == 0xff && octet(11) == 0xff;
    }

    /// The IPv4 address inside an IPv4-mapped one; any other address unchanged.
    [[nodiscard]] constexpr ip_address unmapped() const noexcept {
        return is_v4_mapped() ? from_bytes(std::span{bytes_}.last<4>()) : *this;
    }

    /// 4 or 16 bytes in network order, inside this object.
    [[nodiscard]] constexpr std::span<const std::byte> bytes() const noexcept {
        return {bytes_.data(), is_v4() ? std::size_t{4} : bytes_.size()};
    }
    /// The interface index of an IPv6 address, or 0 for none.
    [[nodiscard]] constexpr std::uint32_t scope_id() const noexcept { return scope_id_; }

    friend constexpr bool operator==(const ip_address&, const ip_address&) noexcept = default;
    friend constexpr std::strong_ordering operator<=>(const ip_address&,
                                                      const ip_address&) noexcept = default;

private:
    enum class family : std::uint8_t { v4, v6 };
    using storage = std::array<std::byte, 16>;

    constexpr ip_address(family family, const storage& bytes, std::uint32_t scope_id) noexcept
        : family_{family}
        , bytes_{bytes}
        , scope_id_{scope_id} {}

    [[nodiscard]] constexpr unsigned octet(std::size_t index) const noexcept {
        return std::to_integer<unsigned>(bytes_[index]);
    }
    static constexpr bool is_zero(std::byte byte) noexcept { return byte == std::byte{}; }

    // In comparison order.
    family family_ = family::v4;
    storage bytes_{}; // IPv4: the first four, then zeros, so that the default == is correct
    std::uint32_t scope_id_ = 0;
};

} // namespace simplenet::v0

/// Not keyed: do not let untrusted peers fill an unbounded table.
template <>
struct std::hash<simplenet::ip_address> {
    [[nodiscard]] std::size_t operator()(const simplenet::ip_address& address) const noexcept;
};

#pragma GCC visibility pop
