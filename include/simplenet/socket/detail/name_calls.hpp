#pragma once
// The calls behind the members of socket_names.hpp: the addresses of a descriptor. Layer socket.

#include <simplenet/core/error.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/ip/local_endpoint.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
struct process_credentials;
} // namespace simplenet::v0

namespace simplenet::v0::detail::names {

// Each is one system call unless noted otherwise. Documented at the members.

[[nodiscard]] result<endpoint> ip_local(int fd) noexcept;
[[nodiscard]] result<endpoint> ip_remote(int fd) noexcept;
/// Also once the peer has reset the connection: up to three system calls then.
[[nodiscard]] result<endpoint> ip_accepted_from(int fd) noexcept;
[[nodiscard]] result<local_endpoint> unix_local(int fd) noexcept;
[[nodiscard]] result<local_endpoint> unix_remote(int fd) noexcept;
[[nodiscard]] result<process_credentials> unix_peer_credentials(int fd) noexcept;
[[nodiscard]] result<> unlink_unix_path(int fd) noexcept; // three system calls

} // namespace simplenet::v0::detail::names

#pragma GCC visibility pop
