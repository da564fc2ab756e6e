#pragma once
// basic_udp_socket: base of blocking::udp_socket and nonblocking::udp_socket. Layer socket.

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

/// A UDP socket that owns its descriptor. Destroying it is `close()`. A datagram is sent whole or
/// not at all, and may be empty. The sender does not learn whether it arrived.
///
/// `Self` is the derived class.
///
/// @par Thread safety
/// Any number of threads may send and receive at the same time.
template <class Self>
class basic_udp_socket : public socket_handle,
                         public udp_peer<Self>,
                         public ip_socket_names<Self>,
                         public udp_settings<Self> {
public:
    /// A socket that receives the datagrams sent to `at`. Port 0 chooses a free port; see
    /// `local_endpoint()`.
    ///
    /// @par Errors
    /// - `std::errc::address_in_use`: another socket is bound there.
    /// - `std::errc::address_not_available`: not an address of this machine.
    /// - `std::errc::permission_denied`: the port is reserved for privileged programs.
    /// - Any other error of socket(2), setsockopt(2) and bind(2).
    [[nodiscard]] static result<Self> bind(const endpoint& at,
                                           const udp_options& options = {}) noexcept;

    /// A socket that sends to `peer` and receives only from it; the kernel picks its port. Nothing
    /// is sent yet, so an absent peer shows only later.
    ///
    /// @par Errors
    /// - `std::errc::network_unreachable`: no route.
    /// - `std::errc::permission_denied`: a broadcast address: use `bind()`, `set_broadcast()` and
    ///   `connect_to()`.
    /// - Any other error of socket(2), setsockopt(2) and connect(2).
    [[nodiscard]] static result<Self> connect(const endpoint& peer) noexcept;

    /// An IPv4 socket without an address: it gets one with its first send or when it is connected.
    [[nodiscard]] static result<Self> open_v4() noexcept;
    /// The same for IPv6. The socket also reaches IPv4 peers through their v4-mapped addresses.
    [[nodiscard]] static result<Self> open_v6() noexcept;

    /// Takes over a descriptor created elsewhere. Makes it CLOEXEC and sets or clears O_NONBLOCK,
    /// which its duplicates share. On failure it is closed.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: not a UDP socket.
    /// - `std::errc::not_a_socket`, `std::errc::bad_file_descriptor`: not a socket, or not open.
    [[nodiscard]] static result<Self> adopt(unique_fd fd) noexcept;

    /// Sends one datagram to `to`.
    ///
    /// @return `from.size()`.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: the send buffer is full, and the socket is
    ///   nonblocking.
    /// - `std::errc::message_size`: more than UDP or the route can carry at once.
    /// - `std::errc::permission_denied`: a broadcast address, without `set_broadcast()`.
    /// - `std::errc::network_unreachable`: no route; for an IPv4 `to`, also an IPv6-only socket.
    /// - `std::errc::address_family_not_supported`: an IPv6 `to` on an IPv4 socket.
    /// - `std::errc::connection_refused`: on a connected socket, as for `send()`.
    /// - `std::errc::invalid_argument`: `options.from` is not an address of this machine.
    /// - Any other error of sendmsg(2).
    [[nodiscard]] result<std::size_t> send_to(const_buffer from, const endpoint& to,
                                              const udp_send_options& options = {}) noexcept;

    /// Sends one datagram to the peer that the socket is connected to.
    ///
    /// @return `from.size()`.
    ///
    /// @par Errors
    /// As for `send_to()`, and
    /// - `std::errc::destination_address_required`: not connected.
    /// - `std::errc::connection_refused`: an *earlier* datagram found no receiver. This one was not
    ///   sent; the socket stays usable. Unconnected sockets get this error only after
    ///   `set_receive_errors(true)`.
    [[nodiscard]] result<std::size_t> send(const_buffer from,
                                           const udp_send_options& options = {}) noexcept;

    /// Sends every datagram of `from`, in order.
    ///
    /// @return `from.size()`, or the error with the number of datagrams sent before it. The
    ///         datagram at that index failed, and the rest was not tried.
    ///
    /// @par Errors
    /// As for `send_to()`. If a connected socket gets an ICMP error in the middle of a batch, the
    /// kernel does not report it (sendmmsg(2), BUGS): the rest is sent, and the network's answer to
    /// that is reported by the next operation.
    ///
    /// @par Cost
    /// One system call for 64 datagrams. Consecutive datagrams of equal size to one destination
    /// cost a fraction: they are passed to the kernel as one buffer, which it splits, as in
    /// `send_segmented()`.
    [[nodiscard]] transfer_result send_batch(std::span<const outgoing_datagram> from) noexcept;

    /// Receives one datagram; if the socket is connected, only from its peer.
    ///
    /// @pre `into` is not empty: the datagram would be lost. To check for a datagram, poll.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: no datagram has arrived, and the socket is
    ///   nonblocking.
    /// - `std::errc::connection_refused`: on a connected socket: an earlier datagram found no
    ///   receiver. The socket stays usable.
    /// - Any other error of recvmsg(2).
    [[nodiscard]] result<udp_datagram> receive_from(mutable_buffer into) noexcept;
    /// The same, for connected sockets, where `from` is always the peer.
    [[nodiscard]] result<udp_datagram> receive(mutable_buffer into) noexcept;

    /// Receives the datagrams that have arrived, at least one and at most `into.size()`. A blocking
    /// socket waits for the first.
    ///
    /// @pre `into` is not empty, and neither is any buffer in it.
    /// @return The number of elements of `into` that were filled, from the first on.
    ///
    /// @par Errors
    /// As for `receive_from()`; then nothing was received. An error that follows a datagram is
    /// reported by the next call.
    ///
    /// @par Cost
    /// One system call for 64 datagrams.
    [[nodiscard]] result<std::size_t> receive_batch(std::span<incoming_datagram> into) noexcept;

    /// Sends `from` to `to` as datagrams of `segment_size` bytes each; the last may be shorter. The
    /// kernel splits the buffer as late as it can (UDP_SEGMENT, udp(7)), which costs a fraction of
    /// sending each datagram. If the kernel or the device cannot split it, the datagrams are sent
    /// one by one, and the socket does not try segments as large again.
    ///
    /// @pre `segment_size` is not 0.
    /// @return `from.size()`, or the error with the number of bytes sent before it. If `from` is
    ///         empty, 0, and nothing is sent.
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
