#pragma once
// Addresses as the kernel has them. Layer ip, private: for the layers that make system calls.

#include <simplenet/ip/endpoint.hpp>
#include <simplenet/ip/local_endpoint.hpp>

#include <sys/socket.h>

namespace simplenet::v0::detail {

/// Room for any address, and how much of it is used. Behind `size` nothing is initialised: a
/// connect or a send should not pay for clearing 128 bytes of which it uses 16.
///
/// To receive one from the kernel, set `size` to `sizeof storage` and pass both.
struct native_address {
    sockaddr_storage storage;
    socklen_t size; // bytes

    [[nodiscard]] sockaddr* data() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
    [[nodiscard]] const sockaddr* data() const noexcept {
        return reinterpret_cast<const sockaddr*>(&storage);
    }
};

[[nodiscard]] native_address to_native(const endpoint& endpoint) noexcept;
/// An unnamed endpoint is only a family: bind(2) then picks an abstract name, and connect(2)
/// refuses with EINVAL.
[[nodiscard]] native_address to_native(const local_endpoint& endpoint) noexcept;

/// The IPv6 flow label is dropped.
///
/// @pre `address` points to `size` readable bytes, aligned as a sockaddr is.
///
/// @par Errors
/// - `std::errc::address_family_not_supported`: not AF_INET or AF_INET6, or too short to be one.
[[nodiscard]] result<endpoint> endpoint_from_native(const sockaddr* address,
                                                    socklen_t size) noexcept;

/// Takes whatever the kernel reports: unnamed, abstract, a path with or without its NUL.
///
/// @pre `address` points to `size` readable bytes, aligned as a sockaddr is. With a `size` of 0,
/// which is what recvfrom(2) reports for an unnamed sender, it is not read.
///
/// @par Errors
/// - `std::errc::address_family_not_supported`: not AF_UNIX, or longer than one can be.
[[nodiscard]] result<local_endpoint> local_endpoint_from_native(const sockaddr* address,
                                                                socklen_t size) noexcept;

} // namespace simplenet::v0::detail
