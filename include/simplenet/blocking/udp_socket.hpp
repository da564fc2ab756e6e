#pragma once
// blocking::udp_socket: sends and receives datagrams, waiting in the system call. Layer blocking.

#include <simplenet/socket/socket_types.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0::nonblocking {
class udp_socket;
} // namespace simplenet::v0::nonblocking

namespace simplenet::v0::blocking {

/// A UDP socket. Owns its descriptor; destroying it is `close()`. Receiving waits for a datagram,
/// sending for room in the send buffer.
///
/// Sending, receiving, options and addresses are documented with its bases.
class udp_socket : public detail::udp_socket_base {
public:
    /// For the library: `socket` is known to be a blocking UDP socket.
    explicit udp_socket(detail::known_socket socket) noexcept
        : with_datagram_transfers{std::move(socket)} {}

    /// A socket that receives what is sent to `at`; with port 0 to a free one, which
    /// `local_endpoint()` tells.
    ///
    /// @par Errors
    /// - `std::errc::address_in_use`: taken.
    /// - `std::errc::address_not_available`: not an address of this machine.
    /// - `std::errc::permission_denied`: the port is reserved for privileged programs.
    /// - Anything else socket(2), setsockopt(2) and bind(2) report.
    [[nodiscard]] static result<udp_socket> bind(const endpoint& at,
                                                 const udp_options& options = {}) noexcept;

    /// A socket that sends to `peer` and receives from there only; the kernel picks its port.
    /// Nothing is sent yet, so that nobody is there shows later.
    ///
    /// @par Errors
    /// - `std::errc::network_unreachable`: no way there.
    /// - `std::errc::permission_denied`: a broadcast address: use `bind()`, `set_broadcast()` and
    ///   `connect_to()`.
    /// - Anything else socket(2), setsockopt(2) and connect(2) report.
    [[nodiscard]] static result<udp_socket> connect(const endpoint& peer) noexcept;

    /// An IPv4 socket without an address: it gets one when it sends or is connected.
    [[nodiscard]] static result<udp_socket> open_v4() noexcept;
    /// The same for IPv6. It also speaks to IPv4 peers by their v4-mapped addresses.
    [[nodiscard]] static result<udp_socket> open_v6() noexcept;

    /// Takes over a descriptor made elsewhere, makes it CLOEXEC and clears O_NONBLOCK, which it
    /// shares with its duplicates. On failure it is closed.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: a socket, but not of UDP.
    /// - `std::errc::not_a_socket`, `std::errc::bad_file_descriptor`: not even that.
    [[nodiscard]] static result<udp_socket> adopt(unique_fd fd) noexcept;

    /// Makes a nonblocking socket wait.
    [[nodiscard]] static result<udp_socket> from(nonblocking::udp_socket&& other) noexcept;
};

} // namespace simplenet::v0::blocking

#pragma GCC visibility pop
