#include "ip/native.hpp"

#include "ip/local_endpoint_access.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

namespace simplenet::v0::detail {

namespace {

constexpr std::size_t path_offset = offsetof(sockaddr_un, sun_path);
constexpr std::size_t path_capacity = sizeof(sockaddr_un::sun_path);
static_assert(path_capacity == local_endpoint::max_name_size + 1);

/// AF_UNSPEC if there is not even room for a family.
sa_family_t family_of(const sockaddr* address, socklen_t size) noexcept {
    sa_family_t family = AF_UNSPEC;
    static_assert(offsetof(sockaddr, sa_family) == 0);
    if (size >= sizeof family) std::memcpy(&family, address, sizeof family);
    return family;
}

// memcpy throughout: it is the way to look at the same bytes as another type, and a sockaddr is
// aligned only for its family.

template <class Native>
native_address pack(const Native& from) noexcept {
    native_address packed;
    static_assert(sizeof from <= sizeof packed.storage);
    std::memcpy(&packed.storage, &from, sizeof from);
    packed.size = sizeof from;
    return packed;
}

template <class Native>
Native unpack(const sockaddr* address) noexcept {
    Native unpacked;
    std::memcpy(&unpacked, address, sizeof unpacked);
    return unpacked;
}

} // namespace

native_address to_native(const endpoint& endpoint) noexcept {
    const ip_address& address = endpoint.address();
    if (address.is_v4()) {
        sockaddr_in v4{};
        v4.sin_family = AF_INET;
        v4.sin_port = htons(endpoint.port());
        std::memcpy(&v4.sin_addr, address.bytes().data(), sizeof v4.sin_addr);
        return pack(v4);
    }
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(endpoint.port());
    v6.sin6_scope_id = address.scope_id();
    std::memcpy(&v6.sin6_addr, address.bytes().data(), sizeof v6.sin6_addr);
    return pack(v6);
}

native_address to_native(const local_endpoint& endpoint) noexcept {
    native_address packed;
    packed.storage.ss_family = AF_UNIX;

    const std::string_view bytes = local_endpoint_access::bytes(endpoint);
    char* const path = reinterpret_cast<char*>(&packed.storage) + path_offset;
    std::memcpy(path, bytes.data(), bytes.size());
    packed.size = static_cast<socklen_t>(path_offset + bytes.size());

    // Every byte of an abstract name counts, so a NUL would be part of it. A path that fills
    // sun_path has no NUL, which unix(7) allows.
    const bool terminated = !endpoint.path().empty() && bytes.size() < path_capacity;
    if (terminated) {
        path[bytes.size()] = '\0';
        ++packed.size;
    }
    return packed;
}

result<endpoint> endpoint_from_native(const sockaddr* address, socklen_t size) noexcept {
    const sa_family_t family = family_of(address, size);
    if (family == AF_INET && size >= sizeof(sockaddr_in)) {
        const auto v4 = unpack<sockaddr_in>(address);
        const std::span<const in_addr, 1> bits{&v4.sin_addr, 1};
        return endpoint{ip_address::from_bytes(std::as_bytes(bits)), ntohs(v4.sin_port)};
    }
    if (family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
        const auto v6 = unpack<sockaddr_in6>(address);
        const std::span<const in6_addr, 1> bits{&v6.sin6_addr, 1};
        return endpoint{ip_address::from_bytes(std::as_bytes(bits), v6.sin6_scope_id),
                        ntohs(v6.sin6_port)};
    }
    return fail(std::errc::address_family_not_supported);
}

result<local_endpoint> local_endpoint_from_native(const sockaddr* address,
                                                  socklen_t size) noexcept {
    if (size == 0) return local_endpoint{};

    // unix(7), BUGS: for a path of 108 bytes the kernel reports one byte more than sockaddr_un has,
    // which counts the NUL.
    if (family_of(address, size) != AF_UNIX || size > sizeof(sockaddr_un) + 1) {
        return fail(std::errc::address_family_not_supported);
    }
    std::array<char, path_capacity + 1> copy;
    const std::size_t count = size - path_offset;
    std::memcpy(copy.data(), reinterpret_cast<const char*>(address) + path_offset, count);

    const std::string_view bytes{copy.data(), count};
    if (bytes.empty()) return local_endpoint{};
    if (bytes.front() != '\0') {
        const std::string_view path = bytes.substr(0, bytes.find('\0'));
        if (path.size() > path_capacity) return fail(std::errc::address_family_not_supported);
        return local_endpoint_access::path(path);
    }
    if (count > path_capacity) return fail(std::errc::address_family_not_supported);
    return local_endpoint_access::abstract(bytes.substr(1));
}

} // namespace simplenet::v0::detail
