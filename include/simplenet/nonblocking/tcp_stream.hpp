#pragma once
// nonblocking::tcp_stream: a TCP connection whose operations never wait. Layer nonblocking.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/fwd.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/socket/detail/socket_access.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_settings.hpp>
#include <simplenet/socket/stream_socket.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::nonblocking {

/// A TCP connection. Owns its descriptor; destroying it is `close()`. An operation that would have
/// to wait fails with `std::errc::operation_would_block` and has no effect: retry when poll(2) or
/// the like reports that the descriptor is readable or writable.
class tcp_stream : public stream_socket,
                   public ip_socket_names<tcp_stream>,
                   public tcp_settings<tcp_stream> {
public:
    /// Starts to connect to `peer`. `finish_connect()` reports the outcome.
    ///
    /// @par Errors
    /// - `std::errc::network_unreachable`: no route to the peer.
    /// - `std::errc::permission_denied`: a broadcast address, or blocked by this machine's
    ///   firewall.
    /// - `std::errc::address_not_available`: no local port is free, or the address does not exist.
    /// - Any other error that socket(2) and connect(2) report at once.
    [[nodiscard]] static result<tcp_stream> connect(const endpoint& peer) noexcept;

    /// Reports whether the connection started by `connect()` is established. Call it when the
    /// descriptor is writable. An earlier call fails with `operation_would_block`, and a call after
    /// success succeeds again.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: not established yet.
    /// - `std::errc::connection_refused`: nobody listens there.
    /// - `std::errc::timed_out`, `std::errc::host_unreachable`: no answer.
    /// - `std::errc::not_connected`: an error has already been reported. The stream is unusable.
    ///
    /// @par Cost
    /// Four system calls; one while the connection is not established.
    [[nodiscard]] result<> finish_connect() noexcept;

    /// Adopts an existing descriptor, sets CLOEXEC and sets O_NONBLOCK, a flag shared by all its
    /// duplicates. On failure the descriptor is closed.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: a socket, but not of TCP, or a listener.
    /// - `std::errc::not_a_socket`, `std::errc::bad_file_descriptor`: not a socket, or not a
    ///   descriptor.
    [[nodiscard]] static result<tcp_stream> adopt(unique_fd fd) noexcept;

    /// Turns a blocking stream into a nonblocking one.
    [[nodiscard]] static result<tcp_stream> from(blocking::tcp_stream&& other) noexcept;

private:
    friend detail::socket_access;
    explicit tcp_stream(unique_fd socket) noexcept
        : stream_socket{std::move(socket)} {}
};

} // namespace simplenet::v0::nonblocking

#pragma GCC visibility pop
