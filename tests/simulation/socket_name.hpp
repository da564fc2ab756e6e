#pragma once
// Names of simulated sockets: the bytes of a sockaddr in canonical form, so that equal names
// compare equal.

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

/// The family; AF_UNSPEC if the name is empty.
[[nodiscard]] int family_of(const name& of) noexcept;
[[nodiscard]] name name_of(const sockaddr* at, socklen_t size);
[[nodiscard]] std::uint16_t port_of(const name& of) noexcept;
[[nodiscard]] name with_port(const name& of, std::uint16_t port);
[[nodiscard]] name host_of(const name& of);
[[nodiscard]] name v4(std::uint32_t address);
[[nodiscard]] name v6(const in6_addr& address);
[[nodiscard]] bool is_any(const name& of) noexcept;
[[nodiscard]] name any_of_family(const name& of);
/// The source address of data for `to`, if its sender did not choose one.
[[nodiscard]] name own_host(const name& to);
/// The name of a host from an address as text; other text is a violation.
[[nodiscard]] name host_by_text(std::string_view text);
/// Like getsockname(2): truncates a name that does not fit; `size` becomes its full size. Returns
/// 0.
[[nodiscard]] int tell_name(const name& of, sockaddr* into, socklen_t& size) noexcept;
/// The name of a local socket that is not bound.
[[nodiscard]] name unnamed();
[[nodiscard]] name name_of_path(const char* path);

} // namespace simplenet::v0::simulation
