#include "simulation/socket_name.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <cstddef>

#include <arpa/inet.h>
#include <sys/un.h>

namespace simplenet::v0::simulation {

int family_of(const name& of) noexcept {
    return of.size() < sizeof(sa_family_t) ? AF_UNSPEC : native<sockaddr>(of).sa_family;
}

name name_of(const sockaddr* at, socklen_t size) {
    name bytes(reinterpret_cast<const char*>(at), size);
    if (family_of(bytes) == AF_INET) {
        auto address = native<sockaddr_in>(bytes);
        std::memset(&address.sin_zero, 0, sizeof address.sin_zero);
        return name_of(address);
    }
    if (family_of(bytes) == AF_INET6) {
        auto address = native<sockaddr_in6>(bytes);
        address.sin6_flowinfo = 0;
        return name_of(address);
    }
    // A path ends with or without a NUL.
    constexpr std::size_t path = offsetof(sockaddr_un, sun_path);
    if (bytes.size() > path && bytes[path] != '\0') {
        const auto end = bytes.find('\0', path);
        if (end != name::npos) bytes.resize(end);
    }
    return bytes;
}

std::uint16_t port_of(const name& of) noexcept {
    // At the same offset in both families.
    return ntohs(native<sockaddr_in>(of).sin_port);
}

name with_port(const name& of, std::uint16_t port) {
    auto changed = of;
    const std::uint16_t bytes = htons(port);
    std::memcpy(changed.data() + offsetof(sockaddr_in, sin_port), &bytes, sizeof bytes);
    return changed;
}

name host_of(const name& of) {
    return with_port(of, 0);
}

name v4(std::uint32_t address) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(address);
    return name_of(any);
}

name v6(const in6_addr& address) {
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_addr = address;
    return name_of(any);
}

bool is_any(const name& of) noexcept {
    if (family_of(of) == AF_INET) return native<sockaddr_in>(of).sin_addr.s_addr == INADDR_ANY;
    const auto address = native<sockaddr_in6>(of).sin6_addr;
    return std::memcmp(&address, &in6addr_any, sizeof address) == 0;
}

name any_of_family(const name& of) {
    return with_port(family_of(of) == AF_INET ? v4(INADDR_ANY) : v6(in6addr_any), port_of(of));
}

name own_host(const name& to) {
    if (family_of(to) == AF_INET6) return v6(in6addr_loopback);
    const std::uint32_t address = ntohl(native<sockaddr_in>(to).sin_addr.s_addr);
    return v4(address >> 24U == 127 ? INADDR_LOOPBACK : 0x0a000001);
}

name host_by_text(std::string_view text) {
    const std::string terminated{text};
    in_addr four{};
    if (::inet_pton(AF_INET, terminated.c_str(), &four) == 1) return v4(ntohl(four.s_addr));
    in6_addr six{};
    SIMPLENET_EXPECTS(::inet_pton(AF_INET6, terminated.c_str(), &six) == 1, "not an address");
    return v6(six);
}

int tell_name(const name& of, sockaddr* into, socklen_t& size) noexcept {
    std::memcpy(into, of.data(), std::min<std::size_t>(size, of.size()));
    size = static_cast<socklen_t>(of.size());
    return 0;
}

name unnamed() {
    const sa_family_t family = AF_UNIX;
    name bytes(sizeof family, '\0');
    std::memcpy(bytes.data(), &family, sizeof family);
    return bytes;
}

name name_of_path(const char* path) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::strncpy(at.sun_path, path, sizeof at.sun_path - 1);
    return name_of(reinterpret_cast<const sockaddr*>(&at), sizeof at);
}

} // namespace simplenet::v0::simulation
