#pragma once
// The options that are set on a socket while it is open: bases of the socket classes of every
// layer. Layer socket.

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
    /// stays between its own minimum and net.core.rmem_max without saying so, and stops tuning
    /// the size by itself (socket(7), tcp(7)).
    [[nodiscard]] result<> set_receive_buffer(std::size_t bytes) noexcept {
        return detail::options::set_receive_buffer(fd(), bytes);
    }
    /// Bytes the kernel allows itself, so about twice what was asked for.
    [[nodiscard]] result<std::size_t> receive_buffer() const noexcept {
        return detail::options::receive_buffer(fd());
    }

    /// Asks for a send buffer of `bytes`, under the same terms; the limit is net.core.wmem_max.
    [[nodiscard]] result<> set_send_buffer(std::size_t bytes) noexcept {
        return detail::options::set_send_buffer(fd(), bytes);
    }
    /// Bytes the kernel allows itself, so about twice what was asked for.
    [[nodiscard]] result<std::size_t> send_buffer() const noexcept {
        return detail::options::send_buffer(fd());
    }

    /// SO_REUSEADDR. It matters when an address is bound, so rather set it in the options that a
    /// listener or a UDP socket is made with; on a bound socket it says what later ones may do.
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

    /// Probes the peer when the connection is idle, with the timing the socket has: the system's
    /// (two hours) unless the other overload has set one.
    [[nodiscard]] result<> set_keep_alive(bool on) noexcept {
        return detail::options::set_keep_alive(fd(), on);
    }
    /// Turns probing on with this timing.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: a value is out of the range that keep_alive_options tells.
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

    /// Gives the connection up with `std::errc::timed_out` when written data stays
    /// unacknowledged for so long; 0 restores the system's own limit, about 15 minutes. With
    /// keep-alive on it also replaces the number of probes (TCP_USER_TIMEOUT, tcp(7)).
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: negative, or more than 24 days.
    [[nodiscard]] result<> set_user_timeout(std::chrono::milliseconds limit) noexcept {
        return detail::options::set_user_timeout(fd(), limit);
    }
    [[nodiscard]] result<std::chrono::milliseconds> user_timeout() const noexcept {
        return detail::options::user_timeout(fd());
    }

    /// What closing does with data that is not yet acknowledged. `std::nullopt`, as in a fresh
    /// socket: the kernel goes on sending in the background. 0: it is dropped and the peer sees
    /// a reset. More: closing *waits* for so long, in the destructor too, and even if the socket
    /// is nonblocking (SO_LINGER, socket(7)).
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: negative, or does not fit an int.
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

    /// Allows to send to a broadcast address, which otherwise fails with
    /// `std::errc::permission_denied`. Off in a fresh socket.
    [[nodiscard]] result<> set_broadcast(bool on) noexcept {
        return detail::options::set_broadcast(fd(), on);
    }
    [[nodiscard]] result<bool> broadcast() const noexcept {
        return detail::options::broadcast(fd());
    }

    /// Receives what is sent to the multicast address `group` and this socket's port. An IPv6
    /// `group` with a scope id names its interface itself.
    ///
    /// Not only what this socket has joined arrives: one that is bound to any address also hears
    /// the groups that others on this machine have joined (IP_MULTICAST_ALL in ip(7)); bound to
    /// the group's own address it hears that alone.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: not a multicast address.
    /// - `std::errc::no_such_device`: no such interface, or none that leads to the group.
    /// - `std::errc::address_in_use`: a member already.
    [[nodiscard]] result<> join_group(const ip_address& group, unsigned interface = 0) noexcept {
        return detail::options::join_group(fd(), group, interface);
    }
    /// Ends what `join_group()` with the same arguments began. Closing does it too.
    ///
    /// @par Errors
    /// - `std::errc::address_not_available`: not a member.
    [[nodiscard]] result<> leave_group(const ip_address& group, unsigned interface = 0) noexcept {
        return detail::options::leave_group(fd(), group, interface);
    }

    /// Whether multicast that is sent here comes back to members on this machine. On in a fresh
    /// socket.
    [[nodiscard]] result<> set_multicast_loopback(bool on) noexcept {
        return detail::options::set_multicast_loopback(fd(), on);
    }
    [[nodiscard]] result<bool> multicast_loopback() const noexcept {
        return detail::options::multicast_loopback(fd());
    }

    /// How many routers multicast that is sent here may pass, 0 to 255; 0 keeps it on this
    /// machine. 1 in a fresh socket.
    [[nodiscard]] result<> set_multicast_hops(int hops) noexcept {
        return detail::options::set_multicast_hops(fd(), hops);
    }
    [[nodiscard]] result<int> multicast_hops() const noexcept {
        return detail::options::multicast_hops(fd());
    }

    /// The interface by which multicast that is sent here leaves. Cannot be asked for: the kernel
    /// tells an IPv4 address, which an interface chosen by number does not have.
    [[nodiscard]] result<> set_multicast_interface(unsigned interface) noexcept {
        return detail::options::set_multicast_interface(fd(), interface);
    }

    /// Lets the kernel join datagrams of one sender and of equal size before they are received:
    /// one receive then brings several, as `udp_datagram::segment_size` tells. Receive into 64 KiB,
    /// or what does not fit is lost (UDP_GRO, udp(7)).
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
    /// The mark of what is sent here, unless its own options say otherwise. The DSCP of the socket
    /// stays.
    [[nodiscard]] result<> set_ecn(ecn mark) noexcept {
        return detail::options::set_ecn(fd(), mark);
    }

    /// Reports what the network says about datagrams sent here to sockets that are not connected
    /// too, and keeps it for `take_error()` (IP_RECVERR, ip(7)). Off in a fresh socket: then only
    /// a connected socket is told, by an error of its next operation, and without details.
    ///
    /// When it is on, the next operation fails with an error that may be about *any* peer that was
    /// sent to; the socket works on. Each error fails one operation: the next receive waits for a
    /// datagram, whether `take_error()` was called or not. What is not taken takes room in the
    /// receive buffer, and makes poll(2) report an error all the time.
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
