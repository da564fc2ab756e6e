#pragma once
// basic_udp_socket: what blocking::udp_socket and nonblocking::udp_socket are. Layer socket.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/socket/datagram_peer.hpp>
#include <simplenet/socket/datagram_socket.hpp>
#include <simplenet/socket/detail/datagram_calls.hpp>
#include <simplenet/socket/socket_handle.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_options.hpp>
#include <simplenet/socket/socket_settings.hpp>

#include <cstddef>
#include <span>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// A UDP socket that owns its descriptor. Destroying it is `close()`. A datagram goes whole or not
/// at all, and may be empty. Nothing tells whether it arrived.
///
/// `Self` is the class that derives from this.
///
/// @par Thread safety
/// Any number of threads may send and receive at the same time.
template <class Self>
class basic_udp_socket : public socket_handle,
                         public udp_peer<Self>,
                         public ip_socket_names<Self>,
                         public udp_settings<Self> {
public:
    /// A socket that receives what is sent to `at`; with port 0 to a free one, which
    /// `local_endpoint()` tells.
    ///
    /// @par Errors
    /// - `std::errc::address_in_use`: taken.
    /// - `std::errc::address_not_available`: not an address of this machine.
    /// - `std::errc::permission_denied`: the port is reserved for privileged programs.
    /// - Anything else socket(2), setsockopt(2) and bind(2) report.
    [[nodiscard]] static result<Self> bind(const endpoint& at,
                                           const udp_options& options = {}) noexcept;

    /// A socket that sends to `peer` and receives from there only; the kernel picks its port.
    /// Nothing is sent yet, so that nobody is there shows later.
    ///
    /// @par Errors
    /// - `std::errc::network_unreachable`: no way there.
    /// - `std::errc::permission_denied`: a broadcast address: use `bind()`, `set_broadcast()` and
    ///   `connect_to()`.
    /// - Anything else socket(2), setsockopt(2) and connect(2) report.
    [[nodiscard]] static result<Self> connect(const endpoint& peer) noexcept;

    /// An IPv4 socket without an address: it gets one when it sends or is connected.
    [[nodiscard]] static result<Self> open_v4() noexcept;
    /// The same for IPv6. It also speaks to IPv4 peers by their v4-mapped addresses.
    [[nodiscard]] static result<Self> open_v6() noexcept;

    /// Takes over a descriptor made elsewhere. Makes it CLOEXEC and sets or clears O_NONBLOCK,
    /// which it shares with its duplicates. On failure it is closed.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: a socket, but not of UDP.
    /// - `std::errc::not_a_socket`, `std::errc::bad_file_descriptor`: not even that.
    [[nodiscard]] static result<Self> adopt(unique_fd fd) noexcept;

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
                                              const udp_send_options& options = {}) noexcept;

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
                                           const udp_send_options& options = {}) noexcept;

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
    /// One system call for 64 datagrams. Neighbours of one size to one destination cost a fraction:
    /// the kernel gets them as one buffer, which it splits, as by `send_segmented()`.
    [[nodiscard]] transfer_result send_batch(std::span<const outgoing_datagram> from) noexcept;

    /// Receives one datagram; if the socket is connected, only from its peer.
    ///
    /// @pre `into` is not empty: the datagram would be lost. To ask whether one is there, poll.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: none is there, and the socket is nonblocking.
    /// - `std::errc::connection_refused`: on a connected socket: nobody received what was sent
    ///   before. The socket works on.
    /// - Anything else recvmsg(2) reports.
    [[nodiscard]] result<udp_datagram> receive_from(mutable_buffer into) noexcept;
    /// The same: for sockets that are connected, where `from` goes without saying.
    [[nodiscard]] result<udp_datagram> receive(mutable_buffer into) noexcept;

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
    [[nodiscard]] result<std::size_t> receive_batch(std::span<incoming_datagram> into) noexcept;

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
                                                 const udp_send_options& options = {}) noexcept;
    /// The same, to the peer that the socket is connected to.
    [[nodiscard]] transfer_result send_segmented(const_buffer from, std::size_t segment_size,
                                                 const udp_send_options& options = {}) noexcept;

protected:
    explicit basic_udp_socket(unique_fd socket) noexcept
        : socket_handle{std::move(socket)} {}

private:
    detail::segment_limit limit_;
};

} // namespace simplenet::v0

#pragma GCC visibility pop
