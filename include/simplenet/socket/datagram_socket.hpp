#pragma once
// What the datagram sockets of every layer take and give: datagrams, and what is known about them.
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

/// What is known about a datagram that was received.
struct udp_datagram {
    std::size_t size = 0;    // bytes of it that are in the buffer; an empty datagram has 0
    endpoint from;           // who sent it
    bool truncated = false;  // it was longer than the buffer, and the rest of it is lost
    std::size_t missing = 0; // bytes of that rest
    /// After `enable_gro()`: the buffer holds several datagrams of one sender, of so many bytes
    /// each, the last one perhaps less. 0: it is one. See datagrams_of().
    std::size_t segment_size = 0;
    /// After `set_receive_packet_info()`: the address it was sent to, which may be of a group, and
    /// the number of the interface it came by.
    std::optional<ip_address> to;
    unsigned interface = 0;
    /// After `set_receive_ecn()`.
    simplenet::ecn ecn = simplenet::ecn::not_capable;

    friend bool operator==(const udp_datagram&, const udp_datagram&) noexcept = default;
};

/// What a datagram leaves with. The default is what the kernel and the socket's options choose.
struct udp_send_options {
    /// The address it comes from, one of this machine's: `udp_datagram::to` of a question, for the
    /// answer of a server that is bound to the any-address.
    std::optional<ip_address> from = std::nullopt;
    /// The number of the interface it leaves by; 0: what the routes say.
    unsigned interface = 0;
    /// The rest of the traffic class, the DSCP, is 0 in a datagram that has this.
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

    /// What was received.
    [[nodiscard]] mutable_buffer data() const noexcept { return into.first(about.size); }
};

/// What is known about a Unix domain datagram that was received.
struct local_message {
    std::size_t size = 0;    // bytes of it that are in the buffer; an empty one has 0
    local_endpoint from;     // who sent it; unnamed if the sender's socket was never bound
    bool truncated = false;  // it was longer than the buffer, and the rest of it is lost
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

    /// What was received.
    [[nodiscard]] mutable_buffer data() const noexcept { return into.first(about.size); }
};

/// An error that the network reported about a datagram sent before, ICMP mostly.
struct udp_error {
    std::error_code code; // connection_refused: nobody is at that port; host_unreachable ...
    endpoint to;          // where that datagram went

    friend bool operator==(const udp_error&, const udp_error&) noexcept = default;
};

/// Calls `visit(mutable_buffer)` for each of the datagrams that one receive with `enable_gro()` put
/// into `into`, in order; once if it is only one.
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
