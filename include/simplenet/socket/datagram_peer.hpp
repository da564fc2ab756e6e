#pragma once
// Connecting a datagram socket to one peer: bases of the datagram sockets of every layer. Layer
// socket.

#include <simplenet/core/error.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/socket/datagram_socket.hpp>
#include <simplenet/socket/detail/datagram_calls.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// Connects a datagram socket to a peer. Never waits.
template <class Self, class Endpoint>
class datagram_peer {
public:
    /// Makes this socket send to and receive from `peer` only, until it is connected to another
    /// peer or disconnected. Nothing is sent. Datagrams that arrived from others before are still
    /// received.
    ///
    /// @par Errors
    /// - `std::errc::network_unreachable`, `std::errc::address_family_not_supported`: as for
    ///   `send_to()`.
    /// - On a Unix domain socket `std::errc::connection_refused`,
    ///   `std::errc::no_such_file_or_directory`: no socket is bound there.
    [[nodiscard]] result<> connect_to(const Endpoint& peer) noexcept {
        return detail::datagrams::connect(fd(), peer);
    }
    /// Undoes `connect_to()`. The socket loses an address or port that the kernel picked, also one
    /// from `bind()` to port 0, and keeps those it was bound to explicitly.
    [[nodiscard]] result<> disconnect() noexcept { return detail::datagrams::disconnect(fd()); }

private:
    [[nodiscard]] int fd() const noexcept {
        return static_cast<const Self&>(*this).native_handle();
    }
};

/// The same for UDP, and the errors that the network reports.
template <class Self>
class udp_peer : public datagram_peer<Self, endpoint> {
public:
    /// The oldest error that the network reported about a datagram of this socket, with the
    /// destination of that datagram. Needs `set_receive_errors(true)`. Never waits.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: there is none.
    [[nodiscard]] result<udp_error> take_error() noexcept {
        return detail::datagrams::take_error(fd());
    }

private:
    [[nodiscard]] int fd() const noexcept {
        return static_cast<const Self&>(*this).native_handle();
    }
};

} // namespace simplenet::v0

#pragma GCC visibility pop
