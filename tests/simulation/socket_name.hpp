#pragma once
// Names of simulated sockets: the bytes of a sockaddr, with nothing in them that makes equal ones
// differ.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <netinet/in.h>
#include <sys/socket.h>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::simulation {

using name = std::string;

template <class Native>
[[nodiscard]] Native native(const name& of) noexcept {
    Native value{};
    std::memcpy(&value, of.data(), std::min(of.size(), sizeof value));
    return value;
}

template <class Native>
[[nodiscard]] name name_of(const Native& value) {
    name bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

/// AF_UNSPEC of an empty one.
[[nodiscard]] int family_of(const name& of) noexcept;
[[nodiscard]] name name_of(const sockaddr* at, socklen_t size);
[[nodiscard]] std::uint16_t port_of(const name& of) noexcept;
[[nodiscard]] name with_port(const name& of, std::uint16_t port);
[[nodiscard]] name host_of(const name& of);
[[nodiscard]] name v4(std::uint32_t address);
[[nodiscard]] name v6(const in6_addr& address);
[[nodiscard]] bool is_any(const name& of) noexcept;
[[nodiscard]] name any_of_family(const name& of);
/// Where what goes to `to` comes from, if its sender did not say.
[[nodiscard]] name own_host(const name& to);
/// Of an address as text; anything else is a violation.
[[nodiscard]] name host_by_text(std::string_view text);
/// As getsockname(2) does: what does not fit is cut off, and `size` is of all. Returns 0.
[[nodiscard]] int tell_name(const name& of, sockaddr* into, socklen_t& size) noexcept;
/// Of a local socket that was not bound.
[[nodiscard]] name unnamed();
[[nodiscard]] name name_of_path(const char* path);

} // namespace simplenet::v0::simulation
