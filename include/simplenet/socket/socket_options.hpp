#pragma once
// Socket options: the structs that sockets are made with, and the setters and getters that every
// layer's sockets offer. Layer socket; also for the sockets of the runtime.
//
// The work is done once, on a descriptor (namespace detail::options). The with_..._options
// templates are the members that a socket class gets by deriving; `Base` has native_handle().

#include <simplenet/core/error.hpp>
#include <simplenet/ip/ip_address.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// How a TCP listener is made.
struct listen_options {
    /// Connections that may wait for `accept()`; with 0 still one. The kernel lowers it to the
    /// sysctl net.core.somaxconn.
    int backlog = 4096;
    /// Several sockets may bind the same endpoint, all with this option and of one user; the
    /// kernel spreads connections over them (SO_REUSEPORT, socket(7)).
    bool reuse_port = false;
    /// An IPv6 listener on the any-address takes IPv6 only. Otherwise it takes IPv4 too, and
    /// those peers have v4-mapped addresses, whatever the sysctl net.ipv6.bindv6only says.
    bool v6_only = false;
    /// Binding succeeds while connections of an earlier listener are still in TIME_WAIT. It never
    /// takes an endpoint from a listener that lives (SO_REUSEADDR, socket(7)).
    bool reuse_address = true;
    /// Bytes, 0 for the system's own. Set here, because accepted connections inherit the size,
    /// and one beyond 64 KiB must be known when TCP agrees on its window scale (tcp(7)).
    std::size_t receive_buffer = 0;
    /// Bytes, 0 for the system's own. Inherited by accepted connections.
    std::size_t send_buffer = 0;
};

/// How a Unix domain listener is made.
struct local_listen_options {
    /// Connections that may wait for `accept()`; with 0 still one. The kernel lowers it to the
    /// sysctl net.core.somaxconn.
    int backlog = 4096;
    /// Removes a socket that is in the way at the path, whether or not somebody listens on it: a
    /// server that died leaves one. Anything else at the path, a file say, still fails with
    /// `std::errc::address_in_use`.
    bool unlink_existing = false;
};

/// How a UDP socket is made.
struct udp_options {
    /// As in listen_options: the kernel spreads datagrams over the sockets by sender.
    bool reuse_port = false;
    /// As in listen_options.
    bool v6_only = false;
    /// Other sockets with this option may bind the same endpoint too. Unicast goes to the last of
    /// them, multicast to all, which is what it is good for.
    bool reuse_address = false;
};

/// How a Unix domain datagram socket is made.
struct local_bind_options {
    /// As in local_listen_options: removes a socket that is in the way at the path.
    bool unlink_existing = false;
};

/// Explicit congestion notification (RFC 3168): the two low bits of the traffic class.
enum class ecn : std::uint8_t {
    not_capable = 0,            // not-ECT
    ect_1 = 1,                  // the sender understands marks; L4S (RFC 9331)
    ect_0 = 2,                  // the sender understands marks
    congestion_experienced = 3, // a router on the way marked it instead of dropping it
};

/// When an idle TCP connection is probed and given up (tcp(7)). With these values a peer that
/// vanished is noticed after two minutes.
struct keep_alive_options {
    std::chrono::seconds idle{60};     // silence before the first probe, 1 to 32767
    std::chrono::seconds interval{10}; // between probes, 1 to 32767
    int count = 6;                     // unanswered probes that end the connection, 1 to 127
};

namespace detail::options {

// Each is one system call unless it says otherwise. The members below have the documentation.

[[nodiscard]] result<> set_receive_buffer(int fd, std::size_t bytes) noexcept;
[[nodiscard]] result<std::size_t> receive_buffer(int fd) noexcept;
[[nodiscard]] result<> set_send_buffer(int fd, std::size_t bytes) noexcept;
[[nodiscard]] result<std::size_t> send_buffer(int fd) noexcept;
[[nodiscard]] result<> set_reuse_address(int fd, bool on) noexcept;
[[nodiscard]] result<bool> reuse_address(int fd) noexcept;
[[nodiscard]] result<> set_reuse_port(int fd, bool on) noexcept;
[[nodiscard]] result<bool> reuse_port(int fd) noexcept;

[[nodiscard]] result<> set_no_delay(int fd, bool on) noexcept;
[[nodiscard]] result<bool> no_delay(int fd) noexcept;
[[nodiscard]] result<> set_keep_alive(int fd, bool on) noexcept;
[[nodiscard]] result<> set_keep_alive(int fd, const keep_alive_options& timing) noexcept;
[[nodiscard]] result<bool> keep_alive(int fd) noexcept;
[[nodiscard]] result<keep_alive_options> keep_alive_timing(int fd) noexcept;
[[nodiscard]] result<> set_user_timeout(int fd, std::chrono::milliseconds limit) noexcept;
[[nodiscard]] result<std::chrono::milliseconds> user_timeout(int fd) noexcept;
[[nodiscard]] result<> set_linger(int fd, std::optional<std::chrono::seconds> limit) noexcept;
[[nodiscard]] result<std::optional<std::chrono::seconds>> linger(int fd) noexcept;

[[nodiscard]] result<> set_broadcast(int fd, bool on) noexcept;
[[nodiscard]] result<bool> broadcast(int fd) noexcept;
[[nodiscard]] result<> join_group(int fd, const ip_address& group, unsigned interface) noexcept;
[[nodiscard]] result<> leave_group(int fd, const ip_address& group, unsigned interface) noexcept;
[[nodiscard]] result<> set_multicast_loopback(int fd, bool on) noexcept;
[[nodiscard]] result<bool> multicast_loopback(int fd) noexcept;
[[nodiscard]] result<> set_multicast_hops(int fd, int hops) noexcept;
[[nodiscard]] result<int> multicast_hops(int fd) noexcept;
[[nodiscard]] result<> set_multicast_interface(int fd, unsigned interface) noexcept;
[[nodiscard]] result<> enable_gro(int fd, bool on) noexcept;
[[nodiscard]] result<> set_receive_packet_info(int fd, bool on) noexcept; // up to three
[[nodiscard]] result<> set_receive_ecn(int fd, bool on) noexcept;         // up to three
[[nodiscard]] result<> set_receive_errors(int fd, bool on) noexcept;      // up to three
[[nodiscard]] result<> set_ecn(int fd, ecn mark) noexcept;                // up to five

} // namespace detail::options

namespace detail {

/// The options of every socket.
template <class Base>
class with_socket_options : public Base {
public:
    using Base::Base;

    /// Asks for a receive buffer of `bytes`. The kernel doubles the number for its bookkeeping,
    /// stays between its own minimum and net.core.rmem_max without saying so, and stops tuning
    /// the size by itself (socket(7), tcp(7)).
    [[nodiscard]] result<> set_receive_buffer(std::size_t bytes) noexcept {
        return options::set_receive_buffer(this->native_handle(), bytes);
    }
    /// Bytes the kernel allows itself, so about twice what was asked for.
    [[nodiscard]] result<std::size_t> receive_buffer() const noexcept {
        return options::receive_buffer(this->native_handle());
    }

    /// Asks for a send buffer of `bytes`, under the same terms; the limit is net.core.wmem_max.
    [[nodiscard]] result<> set_send_buffer(std::size_t bytes) noexcept {
        return options::set_send_buffer(this->native_handle(), bytes);
    }
    /// Bytes the kernel allows itself, so about twice what was asked for.
    [[nodiscard]] result<std::size_t> send_buffer() const noexcept {
        return options::send_buffer(this->native_handle());
    }

    /// SO_REUSEADDR. It matters when an address is bound, so rather set it in the options that a
    /// listener or a UDP socket is made with; on a bound socket it says what later ones may do.
    [[nodiscard]] result<> set_reuse_address(bool on) noexcept {
        return options::set_reuse_address(this->native_handle(), on);
    }
    [[nodiscard]] result<bool> reuse_address() const noexcept {
        return options::reuse_address(this->native_handle());
    }
};

/// The options of TCP. Set on a listener, they are inherited by the connections it accepts.
template <class Base>
class with_tcp_options : public with_socket_options<Base> {
public:
    using with_socket_options<Base>::with_socket_options;

    /// TCP_NODELAY: small writes leave at once instead of waiting for earlier ones to be
    /// acknowledged (Nagle's algorithm, RFC 9293, 3.7.4). Off in a fresh socket.
    [[nodiscard]] result<> set_no_delay(bool on) noexcept {
        return options::set_no_delay(this->native_handle(), on);
    }
    [[nodiscard]] result<bool> no_delay() const noexcept {
        return options::no_delay(this->native_handle());
    }

    /// Probes the peer when the connection is idle, with the timing the socket has: the system's
    /// (two hours) unless the other overload has set one.
    [[nodiscard]] result<> set_keep_alive(bool on) noexcept {
        return options::set_keep_alive(this->native_handle(), on);
    }
    /// Turns probing on with this timing.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: a value is out of the range that keep_alive_options tells.
    ///
    /// @par Cost
    /// Four system calls.
    [[nodiscard]] result<> set_keep_alive(const keep_alive_options& timing) noexcept {
        return options::set_keep_alive(this->native_handle(), timing);
    }
    [[nodiscard]] result<bool> keep_alive() const noexcept {
        return options::keep_alive(this->native_handle());
    }
    /// The timing of the probes, whether or not they are on.
    [[nodiscard]] result<keep_alive_options> keep_alive_timing() const noexcept {
        return options::keep_alive_timing(this->native_handle());
    }

    /// Gives the connection up with `std::errc::timed_out` when written data stays
    /// unacknowledged for so long; 0 restores the system's own limit, about 15 minutes. With
    /// keep-alive on it also replaces the number of probes (TCP_USER_TIMEOUT, tcp(7)).
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: negative, or more than 24 days.
    [[nodiscard]] result<> set_user_timeout(std::chrono::milliseconds limit) noexcept {
        return options::set_user_timeout(this->native_handle(), limit);
    }
    [[nodiscard]] result<std::chrono::milliseconds> user_timeout() const noexcept {
        return options::user_timeout(this->native_handle());
    }

    /// What closing does with data that is not yet acknowledged. `std::nullopt`, as in a fresh
    /// socket: the kernel goes on sending in the background. 0: it is dropped and the peer sees
    /// a reset. More: closing *waits* for so long, in the destructor too, and even if the socket
    /// is nonblocking (SO_LINGER, socket(7)).
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: negative, or does not fit an int.
    [[nodiscard]] result<> set_linger(std::optional<std::chrono::seconds> limit) noexcept {
        return options::set_linger(this->native_handle(), limit);
    }
    [[nodiscard]] result<std::optional<std::chrono::seconds>> linger() const noexcept {
        return options::linger(this->native_handle());
    }
};

/// The options of UDP. Interfaces are numbered as by if_nametoindex(3); 0 lets the kernel choose.
template <class Base>
class with_udp_options : public with_socket_options<Base> {
public:
    using with_socket_options<Base>::with_socket_options;

    /// Allows to send to a broadcast address, which otherwise fails with
    /// `std::errc::permission_denied`. Off in a fresh socket.
    [[nodiscard]] result<> set_broadcast(bool on) noexcept {
        return options::set_broadcast(this->native_handle(), on);
    }
    [[nodiscard]] result<bool> broadcast() const noexcept {
        return options::broadcast(this->native_handle());
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
        return options::join_group(this->native_handle(), group, interface);
    }
    /// Ends what `join_group()` with the same arguments began. Closing does it too.
    ///
    /// @par Errors
    /// - `std::errc::address_not_available`: not a member.
    [[nodiscard]] result<> leave_group(const ip_address& group, unsigned interface = 0) noexcept {
        return options::leave_group(this->native_handle(), group, interface);
    }

    /// Whether multicast that is sent here comes back to members on this machine. On in a fresh
    /// socket.
    [[nodiscard]] result<> set_multicast_loopback(bool on) noexcept {
        return options::set_multicast_loopback(this->native_handle(), on);
    }
    [[nodiscard]] result<bool> multicast_loopback() const noexcept {
        return options::multicast_loopback(this->native_handle());
    }

    /// How many routers multicast that is sent here may pass, 0 to 255; 0 keeps it on this
    /// machine. 1 in a fresh socket.
    [[nodiscard]] result<> set_multicast_hops(int hops) noexcept {
        return options::set_multicast_hops(this->native_handle(), hops);
    }
    [[nodiscard]] result<int> multicast_hops() const noexcept {
        return options::multicast_hops(this->native_handle());
    }

    /// The interface by which multicast that is sent here leaves. Cannot be asked for: the kernel
    /// tells an IPv4 address, which an interface chosen by number does not have.
    [[nodiscard]] result<> set_multicast_interface(unsigned interface) noexcept {
        return options::set_multicast_interface(this->native_handle(), interface);
    }

    /// Lets the kernel join datagrams of one sender and of equal size before they are received:
    /// one receive then brings several, as `udp_datagram::segment_size` tells. Receive into 64 KiB,
    /// or what does not fit is lost (UDP_GRO, udp(7)).
    ///
    /// @par Errors
    /// - `std::errc::no_protocol_option`: Linux before 5.0.
    [[nodiscard]] result<> enable_gro(bool on = true) noexcept {
        return options::enable_gro(this->native_handle(), on);
    }

    /// Fills `udp_datagram::to` and `interface` (IP_PKTINFO, ip(7)). Off in a fresh socket.
    [[nodiscard]] result<> set_receive_packet_info(bool on) noexcept {
        return options::set_receive_packet_info(this->native_handle(), on);
    }

    /// Fills `udp_datagram::ecn` (IP_RECVTOS, ip(7)). Off in a fresh socket.
    [[nodiscard]] result<> set_receive_ecn(bool on) noexcept {
        return options::set_receive_ecn(this->native_handle(), on);
    }
    /// The mark of what is sent here, unless its own options say otherwise. The DSCP of the socket
    /// stays.
    [[nodiscard]] result<> set_ecn(ecn mark) noexcept {
        return options::set_ecn(this->native_handle(), mark);
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
        return options::set_receive_errors(this->native_handle(), on);
    }
};

} // namespace detail

} // namespace simplenet::v0

#pragma GCC visibility pop
