#pragma once
// The options that can be set on an open socket: bases of the socket classes of every layer. Layer
// socket.

#include <simplenet/core/error.hpp>
#include <simplenet/ip/ip_address.hpp>
#include <simplenet/socket/detail/option_calls.hpp>
#include <simplenet/socket/socket_options.hpp>

#include <chrono>
#include <cstddef>
#include <optional>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// The options of every socket.
template <class Self>
class socket_settings {
public:
    /// @name Options of every socket
    /// @{

    /// Asks for a receive buffer of `bytes`. The kernel doubles the number for its bookkeeping,
    /// silently limits it to the range from its own minimum to net.core.rmem_max, and no longer
    /// tunes the size (socket(7), tcp(7)).
    [[nodiscard]] result<> set_receive_buffer(std::size_t bytes) noexcept {
        return detail::options::set_receive_buffer(fd(), bytes);
    }
    /// The size that the kernel set, in bytes: about twice the requested size.
    [[nodiscard]] result<std::size_t> receive_buffer() const noexcept {
        return detail::options::receive_buffer(fd());
    }

    /// Asks for a send buffer of `bytes`, in the same way; the limit is net.core.wmem_max.
    [[nodiscard]] result<> set_send_buffer(std::size_t bytes) noexcept {
        return detail::options::set_send_buffer(fd(), bytes);
    }
    /// The size that the kernel set, in bytes: about twice the requested size.
    [[nodiscard]] result<std::size_t> send_buffer() const noexcept {
        return detail::options::send_buffer(fd());
    }

    /// SO_REUSEADDR. It takes effect when an address is bound, so prefer the options with which a
    /// listener or a UDP socket is created. On a bound socket it controls what later ones may do.
    [[nodiscard]] result<> set_reuse_address(bool on) noexcept {
        return detail::options::set_reuse_address(fd(), on);
    }
    [[nodiscard]] result<bool> reuse_address() const noexcept {
        return detail::options::reuse_address(fd());
    }
    /// @}

private:
    [[nodiscard]] int fd() const noexcept {
        return static_cast<const Self&>(*this).native_handle();
    }
};

/// The options of TCP. Set on a listener, they are inherited by the connections it accepts.
template <class Self>
class tcp_settings : public socket_settings<Self> {
public:
    /// @name Options of TCP
    /// @{

    /// TCP_NODELAY: small writes leave at once instead of waiting for earlier ones to be
    /// acknowledged (Nagle's algorithm, RFC 9293, 3.7.4). Off in a fresh socket.
    [[nodiscard]] result<> set_no_delay(bool on) noexcept {
        return detail::options::set_no_delay(fd(), on);
    }
    [[nodiscard]] result<bool> no_delay() const noexcept { return detail::options::no_delay(fd()); }

    /// Probes the peer when the connection is idle, with the socket's timing: that of the other
    /// overload, or the system's (two hours).
    [[nodiscard]] result<> set_keep_alive(bool on) noexcept {
        return detail::options::set_keep_alive(fd(), on);
    }
    /// Turns probing on with this timing.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: a value outside the range given in keep_alive_options.
    ///
    /// @par Cost
    /// Four system calls.
    [[nodiscard]] result<> set_keep_alive(const keep_alive_options& timing) noexcept {
        return detail::options::set_keep_alive(fd(), timing);
    }
    [[nodiscard]] result<bool> keep_alive() const noexcept {
        return detail::options::keep_alive(fd());
    }
    /// The timing of the probes, whether or not they are on.
    [[nodiscard]] result<keep_alive_options> keep_alive_timing() const noexcept {
        return detail::options::keep_alive_timing(fd());
    }

    /// Gives the connection up with `std::errc::timed_out` when written data stays unacknowledged
    /// for this long. 0 restores the system's limit of about 15 minutes. If keep-alive is on, the
    /// limit also replaces the number of probes (TCP_USER_TIMEOUT, tcp(7)).
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: negative, or more than 24 days.
    [[nodiscard]] result<> set_user_timeout(std::chrono::milliseconds limit) noexcept {
        return detail::options::set_user_timeout(fd(), limit);
    }
    [[nodiscard]] result<std::chrono::milliseconds> user_timeout() const noexcept {
        return detail::options::user_timeout(fd());
    }

    /// What closing does with data that is not yet acknowledged. `std::nullopt`, the default: the
    /// kernel continues to send in the background. 0: the data is dropped and the peer sees a
    /// reset. More: closing *blocks* for at most this long, also in the destructor, even if the
    /// socket is nonblocking (SO_LINGER, socket(7)).
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: negative, or too large for an int.
    [[nodiscard]] result<> set_linger(std::optional<std::chrono::seconds> limit) noexcept {
        return detail::options::set_linger(fd(), limit);
    }
    [[nodiscard]] result<std::optional<std::chrono::seconds>> linger() const noexcept {
        return detail::options::linger(fd());
    }
    /// @}

private:
    [[nodiscard]] int fd() const noexcept {
        return static_cast<const Self&>(*this).native_handle();
    }
};

/// The options of UDP. Interfaces are numbered as by if_nametoindex(3); 0 lets the kernel choose.
template <class Self>
class udp_settings : public socket_settings<Self> {
public:
    /// @name Options of UDP
    /// @{

    /// Allows sending to a broadcast address, which otherwise fails with
    /// `std::errc::permission_denied`. Off in a fresh socket.
    [[nodiscard]] result<> set_broadcast(bool on) noexcept {
        return detail::options::set_broadcast(fd(), on);
    }
    [[nodiscard]] result<bool> broadcast() const noexcept {
        return detail::options::broadcast(fd());
    }

    /// Receives datagrams sent to the multicast address `group` and this socket's port. An IPv6
    /// `group` with a scope id selects its interface itself.
    ///
    /// A socket that is bound to the any-address also receives the groups that other sockets of
    /// this machine have joined (IP_MULTICAST_ALL in ip(7)). A socket that is bound to the group's
    /// address receives only that group.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: not a multicast address.
    /// - `std::errc::no_such_device`: no such interface, or no interface leads to the group.
    /// - `std::errc::address_in_use`: already a member.
    [[nodiscard]] result<> join_group(const ip_address& group, unsigned interface = 0) noexcept {
        return detail::options::join_group(fd(), group, interface);
    }
    /// Undoes `join_group()` with the same arguments. Closing the socket does, too.
    ///
    /// @par Errors
    /// - `std::errc::address_not_available`: not a member.
    [[nodiscard]] result<> leave_group(const ip_address& group, unsigned interface = 0) noexcept {
        return detail::options::leave_group(fd(), group, interface);
    }

    /// Whether multicast sent from this socket also reaches members on this machine. On in a fresh
    /// socket.
    [[nodiscard]] result<> set_multicast_loopback(bool on) noexcept {
        return detail::options::set_multicast_loopback(fd(), on);
    }
    [[nodiscard]] result<bool> multicast_loopback() const noexcept {
        return detail::options::multicast_loopback(fd());
    }

    /// The hop limit of multicast sent from this socket, 0 to 255; 0 keeps it on this machine, 1,
    /// the default, on the local network.
    [[nodiscard]] result<> set_multicast_hops(int hops) noexcept {
        return detail::options::set_multicast_hops(fd(), hops);
    }
    [[nodiscard]] result<int> multicast_hops() const noexcept {
        return detail::options::multicast_hops(fd());
    }

    /// The interface for multicast sent from this socket. There is no getter: the kernel reports an
    /// IPv4 address, which an interface chosen by number does not have.
    [[nodiscard]] result<> set_multicast_interface(unsigned interface) noexcept {
        return detail::options::set_multicast_interface(fd(), interface);
    }

    /// Lets the kernel join datagrams of one sender and of equal size before they are received. One
    /// receive then returns several, see `udp_datagram::segment_size`. Receive into 64 KiB: what
    /// does not fit is lost (UDP_GRO, udp(7)).
    ///
    /// @par Errors
    /// - `std::errc::no_protocol_option`: Linux before 5.0.
    [[nodiscard]] result<> enable_gro(bool on = true) noexcept {
        return detail::options::enable_gro(fd(), on);
    }

    /// Fills `udp_datagram::to` and `interface` (IP_PKTINFO, ip(7)). Off in a fresh socket.
    [[nodiscard]] result<> set_receive_packet_info(bool on) noexcept {
        return detail::options::set_receive_packet_info(fd(), on);
    }

    /// Fills `udp_datagram::ecn` (IP_RECVTOS, ip(7)). Off in a fresh socket.
    [[nodiscard]] result<> set_receive_ecn(bool on) noexcept {
        return detail::options::set_receive_ecn(fd(), on);
    }
    /// The mark of datagrams sent from this socket, unless their udp_send_options have another. The
    /// DSCP of the socket stays.
    [[nodiscard]] result<> set_ecn(ecn mark) noexcept {
        return detail::options::set_ecn(fd(), mark);
    }

    /// Reports the network's errors about sent datagrams to unconnected sockets, too, and keeps
    /// them for `take_error()` (IP_RECVERR, ip(7)). Off in a fresh socket: then only a connected
    /// socket gets an error, from its next operation and without details.
    ///
    /// If it is on, the next operation fails with an error that may concern *any* peer that was
    /// sent to; the socket stays usable. Each error fails one operation: the next receive waits for
    /// a datagram, whether `take_error()` was called or not. Errors that are not taken occupy the
    /// receive buffer, and make poll(2) report an error all the time.
    [[nodiscard]] result<> set_receive_errors(bool on) noexcept {
        return detail::options::set_receive_errors(fd(), on);
    }
    /// @}

private:
    [[nodiscard]] int fd() const noexcept {
        return static_cast<const Self&>(*this).native_handle();
    }
};

} // namespace simplenet::v0

#pragma GCC visibility pop
