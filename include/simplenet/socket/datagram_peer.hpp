#pragma once
// Connecting datagram sockets to one peer: bases of the datagram sockets of every layer.
// Layer socket.

#include <simplenet/core/error.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/socket/datagram_socket.hpp>
#include <simplenet/socket/detail/datagram_calls.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// Connecting datagram sockets, and what the network says about them. None of it waits.
template <class Self, class Endpoint>
class datagram_peer {
public:
    /// Makes `peer` the only one this socket sends to and receives from, until it is connected to
    /// another or disconnected. Nothing is sent. What had arrived from others before is still
    /// received.
    ///
    /// @par Errors
    /// - `std::errc::network_unreachable`, `std::errc::address_family_not_supported`: as for
    ///   `send_to()`.
    /// - Of a Unix domain socket `std::errc::connection_refused`,
    ///   `std::errc::no_such_file_or_directory`: nobody is there.
    [[nodiscard]] result<> connect_to(const Endpoint& peer) noexcept {
        return detail::datagrams::connect(fd(), peer);
    }
    /// Ends `connect_to()`. An address or port that the kernel picked goes with it, by `bind()` to
    /// port 0 too; what was bound by number stays.
    [[nodiscard]] result<> disconnect() noexcept { return detail::datagrams::disconnect(fd()); }

private:
    [[nodiscard]] int fd() const noexcept {
        return static_cast<const Self&>(*this).native_handle();
    }
};

/// The same for UDP.
template <class Self>
class udp_peer : public datagram_peer<Self, endpoint> {
public:
    /// The oldest error that the network reported about a datagram of this socket, with the
    /// address that the datagram went to; after `set_receive_errors(true)`. Never waits.
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
