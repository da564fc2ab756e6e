#pragma once
// blocking::tcp_stream: a TCP connection whose operations block in the system call. Layer blocking.

#include <simplenet/blocking/whole_transfers.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/fwd.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/socket/detail/socket_access.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_settings.hpp>
#include <simplenet/socket/stream_socket.hpp>

#include <chrono>
#include <optional>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::blocking {

/// A TCP connection. Owns its descriptor; destroying it is `close()`. An operation blocks the
/// thread until it is done, and continues after signal handlers.
class tcp_stream : public stream_socket,
                   public whole_transfers<tcp_stream>,
                   public ip_socket_names<tcp_stream>,
                   public tcp_settings<tcp_stream> {
public:
    /// Connects to `peer`, waiting until the peer answers or `timeout` passes. Without a timeout
    /// the system's own limit applies, about two minutes.
    ///
    /// @par Errors
    /// - `std::errc::connection_refused`: nobody listens there.
    /// - `errc::deadline_exceeded`: `timeout` passed first. With 0 the call does not wait.
    /// - `std::errc::timed_out`: the system's limit passed; also equal to the error above.
    /// - `std::errc::network_unreachable`, `std::errc::host_unreachable`: no route to the peer.
    /// - `std::errc::permission_denied`: a broadcast address, or blocked by this machine's
    ///   firewall.
    /// - `std::errc::address_not_available`: no local port is free, or the address does not exist.
    /// - Any other error of socket(2) and connect(2).
    [[nodiscard]] static result<tcp_stream>
    connect(const endpoint& peer,
            std::optional<std::chrono::nanoseconds> timeout = std::nullopt) noexcept;

    /// Adopts an existing descriptor, sets CLOEXEC and clears O_NONBLOCK, a flag shared by all its
    /// duplicates. On failure the descriptor is closed.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: a socket, but not of TCP, or a listener.
    /// - `std::errc::not_a_socket`, `std::errc::bad_file_descriptor`: not a socket, or not a
    ///   descriptor.
    [[nodiscard]] static result<tcp_stream> adopt(unique_fd fd) noexcept;

    /// Turns a nonblocking stream into a blocking one.
    [[nodiscard]] static result<tcp_stream> from(nonblocking::tcp_stream&& other) noexcept;

private:
    friend detail::socket_access;
    explicit tcp_stream(unique_fd socket) noexcept
        : stream_socket{std::move(socket)} {}
};

extern template class whole_transfers<tcp_stream>; // in the library

} // namespace simplenet::v0::blocking

#pragma GCC visibility pop
