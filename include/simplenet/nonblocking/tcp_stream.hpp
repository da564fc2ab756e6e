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
/// to wait fails with `std::errc::operation_would_block` and has done nothing: try again when
/// poll(2) or the like says that the descriptor is readable or writable.
class tcp_stream : public stream_socket,
                   public ip_socket_names<tcp_stream>,
                   public tcp_settings<tcp_stream> {
public:
    /// Starts to connect to `peer`. How that ends `finish_connect()` tells.
    ///
    /// @par Errors
    /// - `std::errc::network_unreachable`: no way there.
    /// - `std::errc::permission_denied`: a broadcast address, or a firewall of this machine.
    /// - `std::errc::address_not_available`: no local port is free, or there is no such address.
    /// - Anything else socket(2) and connect(2) report at once.
    [[nodiscard]] static result<tcp_stream> connect(const endpoint& peer) noexcept;

    /// Asks whether the connection that `connect()` started is there. Worth asking once the
    /// descriptor is writable; asked earlier it says so, and asked again after success it says
    /// success again.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: not yet.
    /// - `std::errc::connection_refused`: nobody listens there.
    /// - `std::errc::timed_out`, `std::errc::host_unreachable`: nobody answered.
    /// - `std::errc::not_connected`: an error has been reported already. The stream is of no use.
    ///
    /// @par Cost
    /// Four system calls, one as long as it is not there.
    [[nodiscard]] result<> finish_connect() noexcept;

    /// Takes over a descriptor made elsewhere, makes it CLOEXEC and sets O_NONBLOCK, which it
    /// shares with its duplicates. On failure it is closed.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: a socket, but not of TCP, or a listener.
    /// - `std::errc::not_a_socket`, `std::errc::bad_file_descriptor`: not even that.
    [[nodiscard]] static result<tcp_stream> adopt(unique_fd fd) noexcept;

    /// Makes a blocking stream not wait.
    [[nodiscard]] static result<tcp_stream> from(blocking::tcp_stream&& other) noexcept;

private:
    friend detail::socket_access;
    explicit tcp_stream(unique_fd socket) noexcept
        : stream_socket{std::move(socket)} {}
};

} // namespace simplenet::v0::nonblocking

#pragma GCC visibility pop
