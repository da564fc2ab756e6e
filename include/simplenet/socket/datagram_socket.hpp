#pragma once
// What the UDP sockets of the blocking and nonblocking layers share: sending and receiving whole
// datagrams. Layer socket.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/socket/socket_handle.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_options.hpp>

#include <cstddef>

namespace simplenet {

/// What is known about a datagram that was received.
struct udp_datagram {
    std::size_t size = 0;   // bytes of it that are in the buffer; an empty datagram has 0
    endpoint from;          // who sent it
    bool truncated = false; // it was longer than the buffer, and the rest of it is lost

    friend bool operator==(const udp_datagram&, const udp_datagram&) noexcept = default;
};

namespace detail {

namespace datagrams {

// The members below have the documentation.

[[nodiscard]] result<std::size_t> send_to(int fd, const_buffer from, const endpoint& to) noexcept;
[[nodiscard]] result<std::size_t> send(int fd, const_buffer from) noexcept;
[[nodiscard]] result<udp_datagram> receive_from(int fd, mutable_buffer into) noexcept;
[[nodiscard]] result<> connect(int fd, const endpoint& peer) noexcept;
[[nodiscard]] result<> disconnect(int fd) noexcept;

} // namespace datagrams

/// Sending and receiving of UDP, one system call each. A datagram goes whole or not at all, and
/// may be empty. Nothing tells whether it arrived.
///
/// @par Thread safety
/// Any number of threads may send and receive at the same time.
template <class Base>
class with_datagram_transfers : public Base {
public:
    using Base::Base;

    /// Sends one datagram to `to`.
    ///
    /// @return `from.size()`.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: the send buffer is full, and the socket nonblocking.
    /// - `std::errc::message_size`: more than UDP or the route can carry at once.
    /// - `std::errc::permission_denied`: a broadcast address, without `set_broadcast()`.
    /// - `std::errc::network_unreachable`: no route; for an IPv4 `to`, also that the socket is of
    ///   IPv6 only.
    /// - `std::errc::address_family_not_supported`: an IPv6 `to` on an IPv4 socket.
    /// - `std::errc::connection_refused`: on a connected socket, as for `send()`.
    /// - Anything else sendto(2) reports.
    [[nodiscard]] result<std::size_t> send_to(const_buffer from, const endpoint& to) noexcept {
        return datagrams::send_to(this->native_handle(), from, to);
    }

    /// Sends one datagram to the peer that the socket is connected to.
    ///
    /// @return `from.size()`.
    ///
    /// @par Errors
    /// As for `send_to()`, and
    /// - `std::errc::destination_address_required`: not connected.
    /// - `std::errc::connection_refused`: nobody received an *earlier* datagram. This one was not
    ///   sent; the socket works on.
    [[nodiscard]] result<std::size_t> send(const_buffer from) noexcept {
        return datagrams::send(this->native_handle(), from);
    }

    /// Receives one datagram; if the socket is connected, only from its peer.
    ///
    /// @pre `into` is not empty: the datagram would be lost. To ask whether one is there, poll.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: none is there, and the socket is nonblocking.
    /// - `std::errc::connection_refused`: on a connected socket: nobody received what was sent
    ///   before. The socket works on.
    /// - Anything else recvfrom(2) reports.
    [[nodiscard]] result<udp_datagram> receive_from(mutable_buffer into) noexcept {
        return datagrams::receive_from(this->native_handle(), into);
    }
    /// The same: for sockets that are connected, where `from` goes without saying.
    [[nodiscard]] result<udp_datagram> receive(mutable_buffer into) noexcept {
        return datagrams::receive_from(this->native_handle(), into);
    }

    /// Makes `peer` the only one this socket sends to and receives from, until it is connected to
    /// another or disconnected. Nothing is sent. What had arrived from others before is still
    /// received.
    ///
    /// @par Errors
    /// - `std::errc::network_unreachable`, `std::errc::address_family_not_supported`: as for
    ///   `send_to()`.
    [[nodiscard]] result<> connect_to(const endpoint& peer) noexcept {
        return datagrams::connect(this->native_handle(), peer);
    }
    /// Ends `connect_to()`. An address or port that the kernel picked goes with it, by `bind()` to
    /// port 0 too; what was bound by number stays.
    [[nodiscard]] result<> disconnect() noexcept {
        return datagrams::disconnect(this->native_handle());
    }
};

} // namespace detail

} // namespace simplenet
