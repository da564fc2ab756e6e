#pragma once
// The options with which sockets of every layer are created, and the values of some that are set
// later (socket_settings.hpp). Layer socket.

#include <simplenet/core/abi.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// How a TCP listener is created.
struct listen_options {
    /// Connections that may wait for `accept()`; with 0 still one. The kernel lowers it to the
    /// sysctl net.core.somaxconn.
    int backlog = 4096;
    /// Several sockets of one user may bind the same endpoint if all have this option; the kernel
    /// distributes connections among them (SO_REUSEPORT, socket(7)).
    bool reuse_port = false;
    /// An IPv6 listener on the any-address accepts IPv6 only. Otherwise it also accepts IPv4, whose
    /// peers have v4-mapped addresses, whatever the sysctl net.ipv6.bindv6only says.
    bool v6_only = false;
    /// Binding succeeds while connections of an earlier listener are still in TIME_WAIT. It never
    /// takes an endpoint from a live listener (SO_REUSEADDR, socket(7)).
    bool reuse_address = true;
    /// Bytes; 0: the system's default. Set here, because accepted connections inherit the size, and
    /// a size above 64 KiB must be known when TCP negotiates its window scale (tcp(7)).
    std::size_t receive_buffer = 0;
    /// Bytes; 0: the system's default. Inherited by accepted connections.
    std::size_t send_buffer = 0;
    /// Of the runtime's listeners: connections that the loop may accept before `accept()` asks for
    /// them; 0: none. io_uring accepts ahead, epoll never does. Connections that arrive in the same
    /// turn may exceed it.
    unsigned accept_ahead = 64;
    /// With `reuse_port`: a connection goes to the listener whose number is that of the processor
    /// which received its handshake, where the listeners of an endpoint are numbered in the order
    /// in which they began to listen (SO_ATTACH_REUSEPORT_CBPF, socket(7)). It suits threads that
    /// are pinned to the processors in that order. If there are fewer listeners, the kernel
    /// distributes the connections of the other processors among all of them by a hash; if there
    /// are more, those without a processor get none. tcp_server has its own rule. The last listener
    /// that is created with the option decides for all.
    bool steer_by_cpu = false;
};

/// How a Unix domain listener is created.
struct local_listen_options {
    /// Connections that may wait for `accept()`; with 0 still one. The kernel lowers it to the
    /// sysctl net.core.somaxconn.
    int backlog = 4096;
    /// Removes an existing socket at the path, whether or not a process listens on it: a server
    /// that died leaves one. If anything else is at the path, such as a file, binding still fails
    /// with `std::errc::address_in_use`.
    bool unlink_existing = false;
    /// As in listen_options.
    unsigned accept_ahead = 64;
};

/// How a UDP socket is created.
struct udp_options {
    /// As in listen_options: the kernel distributes datagrams among the sockets by sender.
    bool reuse_port = false;
    /// As in listen_options.
    bool v6_only = false;
    /// Other sockets with this option may bind the same endpoint. Unicast goes to the last of them,
    /// multicast to all: the option is meant for multicast.
    bool reuse_address = false;
};

/// How a Unix domain datagram socket is created.
struct local_bind_options {
    /// As in local_listen_options: removes an existing socket at the path.
    bool unlink_existing = false;
};

/// Explicit congestion notification (RFC 3168): the two low bits of the traffic class.
enum class ecn : std::uint8_t {
    not_capable = 0,            // not-ECT
    ect_1 = 1,                  // the sender understands marks; L4S (RFC 9331)
    ect_0 = 2,                  // the sender understands marks
    congestion_experienced = 3, // a router on the way marked it instead of dropping it
};

/// When an idle TCP connection is probed and given up (tcp(7)). With the defaults a vanished peer
/// is noticed after two minutes.
struct keep_alive_options {
    std::chrono::seconds idle{60};     // silence before the first probe, 1 to 32767
    std::chrono::seconds interval{10}; // between probes, 1 to 32767
    int count = 6;                     // unanswered probes that end the connection, 1 to 127
};

} // namespace simplenet::v0

#pragma GCC visibility pop
