#pragma once
// Creates sockets: opened, bound, connected, accepted, adopted. Layer socket, private: used by the
// blocking and nonblocking layers and by the runtime, which wait differently.

#include "sys/calls.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/ip/local_endpoint.hpp>
#include <simplenet/socket/detail/socket_access.hpp>
#include <simplenet/socket/socket_options.hpp>

#include <chrono>
#include <optional>
#include <utility>

namespace simplenet::v0::detail {

/// The time point `timeout` from now; none if the clock cannot represent it.
[[nodiscard]] std::optional<std::chrono::steady_clock::time_point>
deadline_after(std::optional<std::chrono::nanoseconds> timeout) noexcept;

/// A `Socket` around a descriptor of the matching kind.
template <class Socket>
[[nodiscard]] result<Socket> make_socket(result<unique_fd>&& fd) noexcept {
    if (!fd) return fail(fd);
    return socket_access::make<Socket>(*std::move(fd));
}
template <class Socket>
[[nodiscard]] result<std::pair<Socket, Socket>>
make_pair_of(result<std::pair<unique_fd, unique_fd>>&& fds) noexcept {
    if (!fds) return fail(fds);
    return std::pair{socket_access::make<Socket>(std::move(fds->first)),
                     socket_access::make<Socket>(std::move(fds->second))};
}

enum class socket_kind {
    tcp_stream,
    tcp_listener,
    udp_socket,
    local_stream,
    local_listener,
    local_datagram,
};

/// Checks that `fd` is a socket of this kind, then makes it CLOEXEC and sets its mode. On failure
/// it is closed.
[[nodiscard]] result<unique_fd> adopt_socket(unique_fd fd, socket_kind kind,
                                             sys::mode waiting) noexcept;

/// A TCP socket of the family of `peer`.
[[nodiscard]] result<unique_fd> open_tcp(const endpoint& peer, sys::mode waiting) noexcept;

/// A nonblocking TCP socket that is connecting to `peer`, or already connected. Once it is
/// writable, connect_outcome() has the result.
[[nodiscard]] result<unique_fd> start_connect(const endpoint& peer) noexcept;

/// The result of connecting.
///
/// @pre The socket has become writable: before that, SO_ERROR is 0 and means nothing.
///
/// @par Errors
/// - `std::errc::not_connected`: connecting was never started, or its error has already been
///   reported.
/// - `std::errc::connection_refused`: also if TCP connected the socket to itself. That happens if
///   nobody listens on a port of the ephemeral range, and the kernel picks that same port for the
///   client (simultaneous open, RFC 9293, 3.5).
[[nodiscard]] result<> connect_outcome(int fd) noexcept;

/// connect_outcome(), or `std::errc::operation_would_block` if the socket is not writable yet.
[[nodiscard]] result<> finish_connect(int fd) noexcept;

/// A Unix domain stream connected to `peer`. It never connects in the background: while the
/// listener's backlog is full, a blocking socket waits until the deadline, and a nonblocking one
/// fails with `std::errc::operation_would_block`.
[[nodiscard]] result<unique_fd>
connect_local(const local_endpoint& peer, sys::mode waiting,
              std::optional<std::chrono::steady_clock::time_point> deadline) noexcept;

/// A connected Unix domain stream.
struct local_connection {
    unique_fd socket;
    bool bytes_alone = false; // the kernel refuses descriptors
};
/// As connect_local(), nonblocking, with descriptors refused if the kernel can do that.
[[nodiscard]] result<local_connection> connect_local_for_bytes(const local_endpoint& peer) noexcept;

/// Removes the path of `at`.
///
/// @par Errors
/// - `std::errc::not_a_socket`: the path is not a socket.
[[nodiscard]] result<> unlink_socket(const local_endpoint& at) noexcept;

/// @param type  SOCK_STREAM or SOCK_DGRAM.
[[nodiscard]] result<std::pair<unique_fd, unique_fd>> local_pair(int type,
                                                                 sys::mode waiting) noexcept;

[[nodiscard]] result<unique_fd> listen_on(const endpoint& at, const listen_options& options,
                                          sys::mode waiting) noexcept;
[[nodiscard]] result<unique_fd> listen_on(const local_endpoint& at,
                                          const local_listen_options& options,
                                          sys::mode waiting) noexcept;

/// The next connection of `listener`, in the mode `waiting`, whatever mode the listener has.
/// Connections that failed in the queue are skipped.
[[nodiscard]] result<unique_fd> accept_from(int listener, sys::mode waiting) noexcept;

/// A UDP socket of the family of `address`.
[[nodiscard]] result<unique_fd> open_udp(const ip_address& address, const udp_options& options,
                                         sys::mode waiting) noexcept;
[[nodiscard]] result<unique_fd> bind_udp(const endpoint& at, const udp_options& options,
                                         sys::mode waiting) noexcept;
[[nodiscard]] result<unique_fd> connect_udp(const endpoint& peer, sys::mode waiting) noexcept;

/// A Unix domain datagram socket.
[[nodiscard]] result<unique_fd> open_local_datagram(sys::mode waiting) noexcept;
[[nodiscard]] result<unique_fd> bind_local_datagram(const local_endpoint& at,
                                                    const local_bind_options& options,
                                                    sys::mode waiting) noexcept;
[[nodiscard]] result<unique_fd> connect_local_datagram(const local_endpoint& peer,
                                                       sys::mode waiting) noexcept;

} // namespace simplenet::v0::detail
