#pragma once
// Datagrams and their properties, as the datagram sockets of every layer send and receive them.
// Layer socket.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/ip/ip_address.hpp>
#include <simplenet/ip/local_endpoint.hpp>
#include <simplenet/socket/socket_options.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// The properties of a received datagram.
struct udp_datagram {
    std::size_t size = 0;    // bytes in the buffer; 0 for an empty datagram
    endpoint from;           // the sender
    bool truncated = false;  // it was longer than the buffer, and the rest is lost
    std::size_t missing = 0; // bytes of that rest
    /// After `enable_gro()`: if not 0, the buffer holds several datagrams of one sender, of this
    /// size each; the last may be shorter. See datagrams_of().
    std::size_t segment_size = 0;
    /// After `set_receive_packet_info()`: the address the datagram was sent to, which may be a
    /// multicast group, and the number of the interface it arrived on.
    std::optional<ip_address> to;
    unsigned interface = 0;
    /// After `set_receive_ecn()`.
    simplenet::ecn ecn = simplenet::ecn::not_capable;

    friend bool operator==(const udp_datagram&, const udp_datagram&) noexcept = default;
};

/// How a datagram is sent. By default the kernel and the socket's options decide.
struct udp_send_options {
    /// The source address, one of this machine's. A server that is bound to the any-address sets it
    /// to `udp_datagram::to` of the request that it answers.
    std::optional<ip_address> from = std::nullopt;
    /// The number of the outgoing interface; 0: the routes decide.
    unsigned interface = 0;
    /// If set, the DSCP, the rest of the traffic class, is 0 in this datagram.
    std::optional<simplenet::ecn> ecn = std::nullopt;

    friend bool operator==(const udp_send_options&, const udp_send_options&) noexcept = default;
};

/// A datagram of `send_batch()`. Everything in it is borrowed.
struct outgoing_datagram {
    const_buffer data;                         // may be empty
    std::optional<endpoint> to = std::nullopt; // none: the peer that the socket is connected to
    udp_send_options options = {};
};

/// A place for a datagram of `receive_batch()`.
struct incoming_datagram {
    mutable_buffer into;     // borrowed, not empty
    udp_datagram about = {}; // written by receive_batch()

    /// The received bytes.
    [[nodiscard]] mutable_buffer data() const noexcept { return into.first(about.size); }
};

/// The properties of a received Unix domain datagram.
struct local_message {
    std::size_t size = 0;    // bytes in the buffer; 0 for an empty datagram
    local_endpoint from;     // the sender; unnamed if its socket was never bound
    bool truncated = false;  // it was longer than the buffer, and the rest is lost
    std::size_t missing = 0; // bytes of that rest

    friend bool operator==(const local_message&, const local_message&) noexcept = default;
};

/// A Unix domain datagram of `send_batch()`. Everything in it is borrowed.
struct outgoing_message {
    const_buffer data; // may be empty
    std::optional<local_endpoint> to =
        std::nullopt; // none: the peer that the socket is connected to
};

/// A place for a Unix domain datagram of `receive_batch()`.
struct incoming_message {
    mutable_buffer into;      // borrowed, not empty
    local_message about = {}; // written by receive_batch()

    /// The received bytes.
    [[nodiscard]] mutable_buffer data() const noexcept { return into.first(about.size); }
};

/// An error that the network, usually ICMP, reported about an earlier datagram.
struct udp_error {
    std::error_code code; // connection_refused: no socket has that port; host_unreachable ...
    endpoint to;          // the destination of that datagram

    friend bool operator==(const udp_error&, const udp_error&) noexcept = default;
};

/// Calls `visit(mutable_buffer)` for each datagram that one receive with `enable_gro()` put into
/// `into`, in order; once if there is only one.
template <class Visit>
void datagrams_of(mutable_buffer into, const udp_datagram& received, Visit visit) {
    mutable_buffer rest = into.first(received.size);
    if (received.segment_size != 0) {
        for (; rest.size() > received.segment_size; rest = rest.subspan(received.segment_size))
            visit(rest.first(received.segment_size));
    }
    visit(rest);
}

} // namespace simplenet::v0

#pragma GCC visibility pop
