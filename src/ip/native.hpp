#pragma once
// Addresses in the kernel's form. Layer ip, private: for the layers that make system calls.

#include <simplenet/ip/endpoint.hpp>
#include <simplenet/ip/local_endpoint.hpp>

#include <sys/socket.h>

namespace simplenet::v0::detail {

/// Room for any address, and the number of bytes used. Bytes after `size` are not initialised: a
/// connect or a send should not pay for clearing 128 bytes when it uses 16.
///
/// To receive an address from the kernel, set `size` to `sizeof storage` and pass both.
struct native_address {
    sockaddr_storage storage;
    socklen_t size; // bytes

    [[nodiscard]] sockaddr* data() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
    [[nodiscard]] const sockaddr* data() const noexcept {
        return reinterpret_cast<const sockaddr*>(&storage);
    }
};

[[nodiscard]] native_address to_native(const endpoint& endpoint) noexcept;
/// An unnamed endpoint has only a family: bind(2) then chooses an abstract name, and connect(2)
/// fails with EINVAL.
[[nodiscard]] native_address to_native(const local_endpoint& endpoint) noexcept;

/// Drops the IPv6 flow label.
///
/// @pre `address` points to `size` readable bytes, aligned as a sockaddr is.
///
/// @par Errors
/// - `std::errc::address_family_not_supported`: not AF_INET or AF_INET6, or too short for one.
[[nodiscard]] result<endpoint> endpoint_from_native(const sockaddr* address,
                                                    socklen_t size) noexcept;

/// Accepts everything the kernel reports: unnamed, abstract, a path with or without its NUL.
///
/// @pre `address` points to `size` readable bytes, aligned as a sockaddr is. If `size` is 0, as
/// recvfrom(2) reports for an unnamed sender, it is not read.
///
/// @par Errors
/// - `std::errc::address_family_not_supported`: not AF_UNIX, or longer than possible.
[[nodiscard]] result<local_endpoint> local_endpoint_from_native(const sockaddr* address,
                                                                socklen_t size) noexcept;

} // namespace simplenet::v0::detail
