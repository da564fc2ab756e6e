#pragma once
// What the datagram sockets of every layer share: what is told about a datagram, and for the
// blocking and nonblocking layers sending and receiving. Layer socket.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/ip/ip_address.hpp>
#include <simplenet/ip/local_endpoint.hpp>
#include <simplenet/socket/socket_handle.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_options.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

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

namespace detail {

/// The largest segment that send_segmented() still gives to the kernel as such. Sinks when the
/// kernel or the device refuses; one for each socket.
class segment_limit {
public:
    static constexpr std::size_t none = 65'535;

    segment_limit() noexcept = default;
    segment_limit(const segment_limit& other) noexcept
        : most_{other.most_.load(std::memory_order_relaxed)} {}
    segment_limit& operator=(const segment_limit& other) noexcept {
        set(other.get());
        return *this;
    }
    ~segment_limit() = default;

    // Relaxed: any number of threads may send, and each finds out for itself if need be.
    [[nodiscard]] std::size_t get() const noexcept { return most_.load(std::memory_order_relaxed); }
    void set(std::size_t most) noexcept {
        most_.store(static_cast<std::uint16_t>(most), std::memory_order_relaxed);
    }

private:
    std::atomic<std::uint16_t> most_ = none;
};

namespace datagrams {

// The members below have the documentation.

[[nodiscard]] result<std::size_t> send_to(int fd, const_buffer from, const endpoint& to,
                                          const udp_send_options& options) noexcept;
[[nodiscard]] result<std::size_t> send(int fd, const_buffer from,
                                       const udp_send_options& options) noexcept;
[[nodiscard]] result<udp_datagram> receive_from(int fd, mutable_buffer into) noexcept;
[[nodiscard]] transfer_result send_batch(int fd, std::span<const outgoing_datagram> from,
                                         segment_limit& limit) noexcept;
[[nodiscard]] result<std::size_t> receive_batch(int fd, std::span<incoming_datagram> into) noexcept;
[[nodiscard]] transfer_result send_segmented(int fd, const_buffer from, std::size_t segment_size,
                                             const endpoint* to, const udp_send_options& options,
                                             segment_limit& limit) noexcept;
[[nodiscard]] result<> connect(int fd, const endpoint& peer) noexcept;
[[nodiscard]] result<> disconnect(int fd) noexcept;
[[nodiscard]] result<udp_error> take_error(int fd) noexcept;

[[nodiscard]] result<std::size_t> send_to(int fd, const_buffer from,
                                          const local_endpoint& to) noexcept;
[[nodiscard]] result<std::size_t> send(int fd, const_buffer from) noexcept;
[[nodiscard]] result<local_message> receive_message(int fd, mutable_buffer into) noexcept;
[[nodiscard]] transfer_result send_batch(int fd, std::span<const outgoing_message> from) noexcept;
[[nodiscard]] result<std::size_t> receive_batch(int fd, std::span<incoming_message> into) noexcept;
[[nodiscard]] result<> connect(int fd, const local_endpoint& peer) noexcept;

} // namespace datagrams

/// Connecting datagram sockets, and what the network says about them. None of it waits.
template <class Base, class Endpoint>
class with_datagram_peer : public Base {
public:
    using Base::Base;

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
        return datagrams::connect(this->native_handle(), peer);
    }
    /// Ends `connect_to()`. An address or port that the kernel picked goes with it, by `bind()` to
    /// port 0 too; what was bound by number stays.
    [[nodiscard]] result<> disconnect() noexcept {
        return datagrams::disconnect(this->native_handle());
    }
};

template <class Base>
class with_udp_peer : public with_datagram_peer<Base, endpoint> {
public:
    using with_datagram_peer<Base, endpoint>::with_datagram_peer;

    /// The oldest error that the network reported about a datagram of this socket, with the
    /// address that the datagram went to; after `set_receive_errors(true)`. Never waits.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: there is none.
    [[nodiscard]] result<udp_error> take_error() noexcept {
        return datagrams::take_error(this->native_handle());
    }
};

/// Sending and receiving of UDP. A datagram goes whole or not at all, and may be empty. Nothing
/// tells whether it arrived.
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
    /// - `std::errc::invalid_argument`: `options.from` is not an address of this machine.
    /// - Anything else sendmsg(2) reports.
    [[nodiscard]] result<std::size_t> send_to(const_buffer from, const endpoint& to,
                                              const udp_send_options& options = {}) noexcept {
        return datagrams::send_to(this->native_handle(), from, to, options);
    }

    /// Sends one datagram to the peer that the socket is connected to.
    ///
    /// @return `from.size()`.
    ///
    /// @par Errors
    /// As for `send_to()`, and
    /// - `std::errc::destination_address_required`: not connected.
    /// - `std::errc::connection_refused`: nobody received an *earlier* datagram. This one was not
    ///   sent; the socket works on. Sockets that are not connected are never told
    ///   (`set_receive_errors()` changes that).
    [[nodiscard]] result<std::size_t> send(const_buffer from,
                                           const udp_send_options& options = {}) noexcept {
        return datagrams::send(this->native_handle(), from, options);
    }

    /// Sends every datagram of `from`, in order.
    ///
    /// @return `from.size()`, or the error with the number of datagrams that went before it: the
    ///         one at that index is the one that failed, and the rest was not tried.
    ///
    /// @par Errors
    /// As for `send_to()`. Which error an ICMP message caused on a connected socket in the middle
    /// of a batch the kernel does not say (sendmmsg(2), BUGS): the rest is sent, and what the
    /// network answers to that is reported by the next operation.
    ///
    /// @par Cost
    /// One system call for 64 datagrams. Neighbours of one size to one destination are given to the
    /// kernel as one to cut, as by `send_segmented()`, which costs a fraction.
    [[nodiscard]] transfer_result send_batch(std::span<const outgoing_datagram> from) noexcept {
        return datagrams::send_batch(this->native_handle(), from, limit_);
    }

    /// Receives one datagram; if the socket is connected, only from its peer.
    ///
    /// @pre `into` is not empty: the datagram would be lost. To ask whether one is there, poll.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: none is there, and the socket is nonblocking.
    /// - `std::errc::connection_refused`: on a connected socket: nobody received what was sent
    ///   before. The socket works on.
    /// - Anything else recvmsg(2) reports.
    [[nodiscard]] result<udp_datagram> receive_from(mutable_buffer into) noexcept {
        return datagrams::receive_from(this->native_handle(), into);
    }
    /// The same: for sockets that are connected, where `from` goes without saying.
    [[nodiscard]] result<udp_datagram> receive(mutable_buffer into) noexcept {
        return datagrams::receive_from(this->native_handle(), into);
    }

    /// Receives the datagrams that are there, at least one and at most `into.size()`. A blocking
    /// socket waits for the first.
    ///
    /// @pre `into` is not empty, and neither is any buffer in it.
    /// @return How many places were filled, from the first on.
    ///
    /// @par Errors
    /// As for `receive_from()`; then nothing was received. An error behind a datagram is reported
    /// by the next call.
    ///
    /// @par Cost
    /// One system call for 64 datagrams.
    [[nodiscard]] result<std::size_t> receive_batch(std::span<incoming_datagram> into) noexcept {
        return datagrams::receive_batch(this->native_handle(), into);
    }

    /// Sends `from` as datagrams of `segment_size` bytes each, the last one perhaps less, to `to`.
    /// The kernel cuts them, as late as it can (UDP_SEGMENT, udp(7)), which costs a fraction of
    /// sending each. Where the kernel or the device cannot, they are sent one by one; then the
    /// socket does not ask again for segments as large.
    ///
    /// @pre `segment_size` is not 0.
    /// @return `from.size()`, or the error with the number of bytes that went before it. Of an
    ///         empty `from` 0, and nothing is sent.
    ///
    /// @par Errors
    /// As for `send_batch()`. `std::errc::message_size`: a segment is too long for a datagram.
    [[nodiscard]] transfer_result send_segmented(const_buffer from, std::size_t segment_size,
                                                 const endpoint& to,
                                                 const udp_send_options& options = {}) noexcept {
        return datagrams::send_segmented(this->native_handle(), from, segment_size, &to, options,
                                         limit_);
    }
    /// The same, to the peer that the socket is connected to.
    [[nodiscard]] transfer_result send_segmented(const_buffer from, std::size_t segment_size,
                                                 const udp_send_options& options = {}) noexcept {
        return datagrams::send_segmented(this->native_handle(), from, segment_size, nullptr,
                                         options, limit_);
    }

private:
    segment_limit limit_;
};

/// Sending and receiving of Unix domain datagrams: whole or not at all, perhaps empty, never lost
/// and never out of order on their way to one socket. Descriptors that come along are dropped.
///
/// @par Thread safety
/// Any number of threads may send and receive at the same time.
template <class Base>
class with_local_datagram_transfers : public Base {
public:
    using Base::Base;

    /// Sends one datagram to the socket bound to `to`.
    ///
    /// @return `from.size()`.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: the queue of the receiver or the send buffer is full,
    ///   and the socket nonblocking. Of a receiver to which this socket is not connected nothing
    ///   tells when there is room again.
    /// - `std::errc::connection_refused`, `std::errc::no_such_file_or_directory`: nobody is there.
    /// - `std::errc::message_size`: more than the send buffer can hold.
    /// - `std::errc::operation_not_permitted`: the receiver is connected to somebody else.
    /// - Anything else sendmsg(2) reports.
    [[nodiscard]] result<std::size_t> send_to(const_buffer from,
                                              const local_endpoint& to) noexcept {
        return datagrams::send_to(this->native_handle(), from, to);
    }
    /// Sends one datagram to the peer that the socket is connected to.
    ///
    /// @par Errors
    /// As for `send_to()`, and
    /// - `std::errc::not_connected`: not connected.
    /// - `std::errc::connection_reset`, `std::errc::connection_refused`: the peer is gone.
    [[nodiscard]] result<std::size_t> send(const_buffer from) noexcept {
        return datagrams::send(this->native_handle(), from);
    }
    /// As for UDP.
    [[nodiscard]] transfer_result send_batch(std::span<const outgoing_message> from) noexcept {
        return datagrams::send_batch(this->native_handle(), from);
    }

    /// Receives one datagram; if the socket is connected, only from its peer.
    ///
    /// @pre `into` is not empty.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: none is there, and the socket is nonblocking.
    /// - `std::errc::connection_reset`: the peer closed with datagrams of ours unread.
    /// - Anything else recvmsg(2) reports.
    [[nodiscard]] result<local_message> receive_from(mutable_buffer into) noexcept {
        return datagrams::receive_message(this->native_handle(), into);
    }
    /// The same.
    [[nodiscard]] result<local_message> receive(mutable_buffer into) noexcept {
        return datagrams::receive_message(this->native_handle(), into);
    }
    /// As for UDP.
    [[nodiscard]] result<std::size_t> receive_batch(std::span<incoming_message> into) noexcept {
        return datagrams::receive_batch(this->native_handle(), into);
    }
};

} // namespace detail

} // namespace simplenet::v0

#pragma GCC visibility pop
