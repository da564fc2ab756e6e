#pragma once
// udp_socket: sends and receives datagrams; its operations are awaited. Layer net.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/async_socket.hpp>
#include <simplenet/io/detail/datagram_operations.hpp>
#include <simplenet/nonblocking/udp_socket.hpp>
#include <simplenet/socket/datagram_peer.hpp>
#include <simplenet/socket/datagram_socket.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_settings.hpp>

#include <cstddef>
#include <span>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// A UDP socket.
///
/// A handle to a record that its loop owns, with the rules of tcp_stream: it may be moved at any
/// time, and destroying it is close(). At most one receive and one send may be in flight; a second
/// of either kind stops the program. A datagram is sent whole or not at all, and may be empty: a
/// receive of 0 bytes is a datagram, not the end. Loop thread only.
///
/// @par Cancellation
/// A stop, close() or a deadline that comes first ends an operation with
/// `std::errc::operation_canceled` or `errc::deadline_exceeded`. Nothing is lost: datagrams stay in
/// the kernel until an operation returns them. Operations on a closed socket fail with
/// `std::errc::bad_file_descriptor`.
///
/// @par Cost
/// One system call per operation, and another one for each receive that has to wait. A batch is one
/// call for 64 datagrams. Consecutive datagrams of equal size to one destination cost a fraction:
/// they are passed to the kernel as one buffer, which it splits, as in send_segmented().
///
/// @par Example
/// @snippet udp_echo.cpp serve
class udp_socket : public async_socket,
                   public udp_peer<udp_socket>,
                   public ip_socket_names<udp_socket>,
                   public udp_settings<udp_socket> {
public:
    using receive_operation = detail::receive_datagram_operation<udp_datagram>;
    using receive_batch_operation = detail::receive_batch_operation<incoming_datagram>;
    using send_batch_operation = detail::send_batch_operation<outgoing_datagram>;

    /// Takes a socket; throws std::bad_alloc.
    explicit udp_socket(nonblocking::udp_socket socket);

    /// A socket that receives the datagrams sent to `at`. Port 0 chooses a free port; see
    /// local_endpoint().
    ///
    /// @par Errors
    /// - `std::errc::address_in_use`: another socket is bound there.
    /// - `std::errc::address_not_available`: not an address of this machine.
    /// - `std::errc::permission_denied`: the port is reserved for privileged programs.
    /// - Any other error of socket(2), setsockopt(2) and bind(2).
    [[nodiscard]] static result<udp_socket> bind(const endpoint& at,
                                                 const udp_options& options = {});

    /// A socket that sends to `peer` and receives only from it; the kernel picks its port. send()
    /// reports if nobody is at `peer`.
    ///
    /// @par Errors
    /// - `std::errc::network_unreachable`: no route.
    /// - `std::errc::permission_denied`: a broadcast address.
    /// - Any other error of socket(2), setsockopt(2) and connect(2).
    [[nodiscard]] static result<udp_socket> connect(const endpoint& peer);

    /// An IPv4 socket without an address: it gets one with its first send or when it is connected.
    [[nodiscard]] static result<udp_socket> open_v4();
    /// The same for IPv6. The socket also reaches IPv4 peers through their v4-mapped addresses.
    [[nodiscard]] static result<udp_socket> open_v6();

    /// Takes over a descriptor created elsewhere. Makes it CLOEXEC and sets O_NONBLOCK, which its
    /// duplicates share. On failure it is closed.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: not a UDP socket.
    /// - `std::errc::not_a_socket`, `std::errc::bad_file_descriptor`: not a socket, or not open.
    [[nodiscard]] static result<udp_socket> adopt(unique_fd fd);

    /// Leaves the loop, for another loop or for other uses. Waits until the kernel no longer uses
    /// the socket. This object is empty afterwards.
    ///
    /// @pre No operation is in flight.
    ///
    /// @par Errors
    /// - `std::errc::bad_file_descriptor`: already closed.
    /// - `std::errc::operation_canceled`: the loop ended, and closed the socket.
    /// @par Cancellation
    /// A stop does not end it: it takes a turn or two.
    [[nodiscard]] task<result<nonblocking::udp_socket>> release() &&;

    /// Receives one datagram; if the socket is connected, only from its peer.
    ///
    /// @pre `into` is not empty, and no other receive is in flight.
    /// @param into  Borrowed until the await returns.
    /// @return An awaitable of `result<udp_datagram>`.
    ///
    /// @par Errors
    /// - `std::errc::connection_refused`: on a connected socket: an earlier datagram found no
    ///   receiver. The socket stays usable.
    /// - Any other error of recvmsg(2).
    [[nodiscard]] receive_operation receive_from(mutable_buffer into) noexcept {
        return {record(), into};
    }
    /// The same, for connected sockets, where `from` is always the peer.
    [[nodiscard]] receive_operation receive(mutable_buffer into) noexcept {
        return {record(), into};
    }

    /// Receives the datagrams that have arrived, at least one, at most `into.size()` and 64.
    ///
    /// @pre `into` is not empty, neither is any buffer in it, and no other receive is in flight.
    /// @param into  Borrowed until the await returns, as are the buffers.
    /// @return An awaitable of `result<std::size_t>`: the number of elements of `into` that were
    ///         filled, from the first on.
    ///
    /// @par Errors
    /// As for receive_from(); then nothing was received. An error that follows a datagram is
    /// reported by the next receive.
    ///
    /// @par Example
    /// @snippet udp.cpp batch
    [[nodiscard]] receive_batch_operation
    receive_batch(std::span<incoming_datagram> into) noexcept {
        return {record(), into};
    }

    /// Sends one datagram to `to`. Waits only for room in the send buffer.
    ///
    /// @pre No other send is in flight.
    /// @param from  Borrowed until the await returns.
    /// @return An awaitable of `result<std::size_t>`: `from.size()`.
    ///
    /// @par Errors
    /// - `std::errc::message_size`: more than UDP or the route can carry at once.
    /// - `std::errc::permission_denied`: a broadcast address, without `set_broadcast()`.
    /// - `std::errc::network_unreachable`, `std::errc::address_family_not_supported`: no route.
    /// - `std::errc::invalid_argument`: `options.from` is not an address of this machine.
    /// - `std::errc::connection_refused`: on a connected socket, as for send().
    /// - Any other error of sendmsg(2).
    [[nodiscard]] detail::send_datagram_operation
    send_to(const_buffer from, const endpoint& to, const udp_send_options& options = {}) noexcept {
        return {record(), from, to, options};
    }
    /// Sends one datagram to the peer that the socket is connected to.
    ///
    /// @return As for send_to().
    ///
    /// @par Errors
    /// As for send_to(), and
    /// - `std::errc::destination_address_required`: not connected.
    /// - `std::errc::connection_refused`: an *earlier* datagram found no receiver. This one was not
    ///   sent; the socket stays usable. Unconnected sockets get this error only after
    ///   `set_receive_errors(true)`.
    [[nodiscard]] detail::send_datagram_operation
    send(const_buffer from, const udp_send_options& options = {}) noexcept {
        return {record(), from, std::nullopt, options};
    }

    /// Sends every datagram of `from`, in order, waiting for room as often as needed.
    ///
    /// @pre No other send is in flight.
    /// @param from  Borrowed until the await returns, as is what it points to.
    /// @return An awaitable of `transfer_result`: `from.size()`, or the error with the number of
    ///         datagrams sent before it. The datagram at that index failed, and the rest was not
    ///         tried.
    ///
    /// @par Errors
    /// As for send_to(). If a connected socket gets an ICMP error in the middle of a batch, the
    /// kernel does not report it (sendmmsg(2), BUGS): the rest is sent, and the network's answer to
    /// that is reported by the next operation.
    ///
    /// @par Example
    /// @snippet udp.cpp batch
    [[nodiscard]] send_batch_operation
    send_batch(std::span<const outgoing_datagram> from) noexcept {
        return {record(), from};
    }

    /// Sends `from` to `to` as datagrams of `segment_size` bytes each; the last may be shorter. The
    /// kernel splits the buffer as late as it can (UDP_SEGMENT, udp(7)), which costs a fraction of
    /// sending each datagram. If the kernel or the device cannot split it, the datagrams are sent
    /// one by one, and the socket does not try segments as large again.
    ///
    /// @pre `segment_size` is not 0, and no other send is in flight.
    /// @param from  Borrowed until the await returns.
    /// @return An awaitable of `transfer_result`: `from.size()`, or the error with the number of
    ///         bytes sent before it. If `from` is empty, 0, and nothing is sent.
    ///
    /// @par Errors
    /// As for send_to(). `std::errc::message_size`: a segment is too long for a datagram.
    ///
    /// @par Example
    /// @snippet udp.cpp segmented
    [[nodiscard]] detail::send_segmented_operation
    send_segmented(const_buffer from, std::size_t segment_size, const endpoint& to,
                   const udp_send_options& options = {}) noexcept {
        return {record(), from, segment_size, to, options};
    }
    /// The same, to the peer that the socket is connected to.
    [[nodiscard]] detail::send_segmented_operation
    send_segmented(const_buffer from, std::size_t segment_size,
                   const udp_send_options& options = {}) noexcept {
        return {record(), from, segment_size, std::nullopt, options};
    }
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
