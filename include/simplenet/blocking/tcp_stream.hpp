#pragma once
// blocking::tcp_stream: a TCP connection whose operations wait in the system call. Layer blocking.

#include <simplenet/socket/socket_types.hpp>

#include <chrono>
#include <optional>

#pragma GCC visibility push(default)

namespace simplenet::v0::nonblocking {
class tcp_stream;
} // namespace simplenet::v0::nonblocking

namespace simplenet::v0::blocking {

/// A TCP connection. Owns its descriptor; destroying it is `close()`. An operation returns when it
/// is done, so the thread waits meanwhile; signal handlers that run then are not noticed.
///
/// Reading, writing, options and addresses are documented with its bases.
class tcp_stream : public detail::with_whole_transfers<detail::tcp_stream_base> {
public:
    /// For the library: `socket` is known to be a blocking TCP connection.
    explicit tcp_stream(detail::known_socket socket) noexcept
        : with_whole_transfers{std::move(socket)} {}

    /// Connects to `peer`, waiting until the peer has answered or `timeout` is over. Without a
    /// timeout the system's own limit applies, about two minutes.
    ///
    /// @par Errors
    /// - `std::errc::connection_refused`: nobody listens there.
    /// - `errc::deadline_exceeded`: `timeout` was over first. 0 asks without waiting.
    /// - `std::errc::timed_out`: the system's limit, or the above.
    /// - `std::errc::network_unreachable`, `std::errc::host_unreachable`: no way there.
    /// - `std::errc::permission_denied`: a broadcast address, or a firewall of this machine.
    /// - `std::errc::address_not_available`: no local port is free, or there is no such address.
    /// - Anything else socket(2) and connect(2) report.
    [[nodiscard]] static result<tcp_stream>
    connect(const endpoint& peer,
            std::optional<std::chrono::nanoseconds> timeout = std::nullopt) noexcept;

    /// Takes over a descriptor made elsewhere, makes it CLOEXEC and clears O_NONBLOCK, which it
    /// shares with its duplicates. On failure it is closed.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: a socket, but not of TCP, or a listener.
    /// - `std::errc::not_a_socket`, `std::errc::bad_file_descriptor`: not even that.
    [[nodiscard]] static result<tcp_stream> adopt(unique_fd fd) noexcept;

    /// Makes a nonblocking stream wait.
    [[nodiscard]] static result<tcp_stream> from(nonblocking::tcp_stream&& other) noexcept;
};

} // namespace simplenet::v0::blocking

#pragma GCC visibility pop
