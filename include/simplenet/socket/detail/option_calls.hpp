#pragma once
// The calls behind the members of socket_settings.hpp: set and query options of a descriptor. Layer
// socket.

#include <simplenet/core/error.hpp>
#include <simplenet/ip/ip_address.hpp>
#include <simplenet/socket/socket_options.hpp>

#include <chrono>
#include <cstddef>
#include <optional>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail::options {

// Each is one system call unless noted otherwise. Documented at the members.

[[nodiscard]] result<> set_receive_buffer(int fd, std::size_t bytes) noexcept;
[[nodiscard]] result<std::size_t> receive_buffer(int fd) noexcept;
[[nodiscard]] result<> set_send_buffer(int fd, std::size_t bytes) noexcept;
[[nodiscard]] result<std::size_t> send_buffer(int fd) noexcept;
[[nodiscard]] result<> set_reuse_address(int fd, bool on) noexcept;
[[nodiscard]] result<bool> reuse_address(int fd) noexcept;
[[nodiscard]] result<> set_reuse_port(int fd, bool on) noexcept;
/// For all listeners that share the endpoint of `fd`: chooses one by the number of the processor
/// that received the handshake, modulo `listeners`; 0: not modulo (SO_ATTACH_REUSEPORT_CBPF,
/// socket(7)). Where no listener has the result as its number, the kernel chooses by a hash.
[[nodiscard]] result<> steer_by_cpu(int fd, unsigned listeners) noexcept;
[[nodiscard]] result<bool> reuse_port(int fd) noexcept;

[[nodiscard]] result<> set_no_delay(int fd, bool on) noexcept;
[[nodiscard]] result<bool> no_delay(int fd) noexcept;
[[nodiscard]] result<> set_keep_alive(int fd, bool on) noexcept;
[[nodiscard]] result<> set_keep_alive(int fd, const keep_alive_options& timing) noexcept;
[[nodiscard]] result<bool> keep_alive(int fd) noexcept;
[[nodiscard]] result<keep_alive_options> keep_alive_timing(int fd) noexcept;
[[nodiscard]] result<> set_user_timeout(int fd, std::chrono::milliseconds limit) noexcept;
[[nodiscard]] result<std::chrono::milliseconds> user_timeout(int fd) noexcept;
[[nodiscard]] result<> set_linger(int fd, std::optional<std::chrono::seconds> limit) noexcept;
[[nodiscard]] result<std::optional<std::chrono::seconds>> linger(int fd) noexcept;

[[nodiscard]] result<> set_broadcast(int fd, bool on) noexcept;
[[nodiscard]] result<bool> broadcast(int fd) noexcept;
[[nodiscard]] result<> join_group(int fd, const ip_address& group, unsigned interface) noexcept;
[[nodiscard]] result<> leave_group(int fd, const ip_address& group, unsigned interface) noexcept;
[[nodiscard]] result<> set_multicast_loopback(int fd, bool on) noexcept;
[[nodiscard]] result<bool> multicast_loopback(int fd) noexcept;
[[nodiscard]] result<> set_multicast_hops(int fd, int hops) noexcept;
[[nodiscard]] result<int> multicast_hops(int fd) noexcept;
[[nodiscard]] result<> set_multicast_interface(int fd, unsigned interface) noexcept;
[[nodiscard]] result<> enable_gro(int fd, bool on) noexcept;
[[nodiscard]] result<> set_receive_packet_info(int fd, bool on) noexcept; // up to three
[[nodiscard]] result<> set_receive_ecn(int fd, bool on) noexcept;         // up to three
[[nodiscard]] result<> set_receive_errors(int fd, bool on) noexcept;      // up to three
[[nodiscard]] result<> set_ecn(int fd, ecn mark) noexcept;                // up to five

} // namespace simplenet::v0::detail::options

#pragma GCC visibility pop
