#pragma once
// local_datagram: Unix domain datagrams; its operations are awaited. Layer net.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/async_socket.hpp>
#include <simplenet/io/detail/datagram_operations.hpp>
#include <simplenet/nonblocking/local_datagram.hpp>
#include <simplenet/socket/datagram_peer.hpp>
#include <simplenet/socket/datagram_socket.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_settings.hpp>

#include <span>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// A Unix domain datagram socket. Datagrams arrive in order and none is lost: a sender waits while
/// the queue of the receiver is full.
///
/// A handle to a record that its loop owns, with the rules of udp_socket: it may be moved at any
/// time, destroying it is close(), and at most one receive and one send may be in flight. A
/// datagram is sent whole or not at all, and may be empty. Loop thread only.
///
/// @par Cancellation
/// A stop, close() or a deadline that comes first ends an operation with
/// `std::errc::operation_canceled` or `errc::deadline_exceeded`. Nothing is lost: datagrams stay in
/// the kernel until an operation returns them. Operations on a closed socket fail with
/// `std::errc::bad_file_descriptor`.
class local_datagram : public async_socket,
                       public datagram_peer<local_datagram, simplenet::local_endpoint>,
                       public local_path_names<local_datagram>,
                       public socket_settings<local_datagram> {
public:
    using receive_operation = detail::receive_datagram_operation<local_message>;
    using receive_batch_operation = detail::receive_batch_operation<incoming_message>;
    using send_batch_operation = detail::send_batch_operation<outgoing_message>;

    /// Takes a socket; throws std::bad_alloc.
    explicit local_datagram(nonblocking::local_datagram socket);

    /// A socket that receives the datagrams sent to `at`: a path, or an abstract name; unnamed: an
    /// abstract name that the kernel picks; see local_endpoint().
    ///
    /// @par Errors
    /// - `std::errc::address_in_use`: the path or name is taken, even if only by a file; see
    ///   local_bind_options::unlink_existing.
    /// - `std::errc::permission_denied`, `std::errc::no_such_file_or_directory`: the path cannot be
    ///   created.
    /// - Any other error of socket(2) and bind(2).
    [[nodiscard]] static result<local_datagram> bind(const simplenet::local_endpoint& at,
                                                     const local_bind_options& options = {});

    /// A socket without a name that sends to `peer`; the peer cannot reply.
    ///
    /// @par Errors
    /// - `std::errc::no_such_file_or_directory`, `std::errc::connection_refused`: no socket is
    ///   bound there.
    /// - Any other error of socket(2) and connect(2).
    [[nodiscard]] static result<local_datagram> connect(const simplenet::local_endpoint& peer);

    /// A socket without a name or a peer.
    [[nodiscard]] static result<local_datagram> open();

    /// Two sockets connected to each other.
    [[nodiscard]] static result<std::pair<local_datagram, local_datagram>> pair();

    /// Takes over a descriptor created elsewhere. Makes it CLOEXEC and sets O_NONBLOCK, which its
    /// duplicates share. On failure it is closed.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: not a Unix domain datagram socket.
    /// - `std::errc::not_a_socket`, `std::errc::bad_file_descriptor`: not a socket, or not open.
    [[nodiscard]] static result<local_datagram> adopt(unique_fd fd);

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
    [[nodiscard]] task<result<nonblocking::local_datagram>> release() &&;

    /// Receives one datagram; if the socket is connected, only from its peer.
    ///
    /// @pre `into` is not empty, and no other receive is in flight.
    /// @param into  Borrowed until the await returns.
    /// @return An awaitable of `result<local_message>`.
    ///
    /// @par Errors
    /// - `std::errc::connection_reset`: the peer closed without reading our datagrams.
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
    [[nodiscard]] receive_batch_operation receive_batch(std::span<incoming_message> into) noexcept {
        return {record(), into};
    }

    /// Sends one datagram to the socket bound to `to`; waits while its queue is full.
    ///
    /// The kernel announces room only in the queue of a peer that this socket is connected to.
    /// Otherwise the send is retried after pauses of 1 to 50 ms.
    ///
    /// @pre No other send is in flight.
    /// @param from  Borrowed until the await returns.
    /// @return An awaitable of `result<std::size_t>`: `from.size()`.
    ///
    /// @par Errors
    /// - `std::errc::connection_refused`, `std::errc::no_such_file_or_directory`: no socket is
    ///   bound there.
    /// - `std::errc::message_size`: more than the send buffer can hold.
    /// - `std::errc::operation_not_permitted`: the receiver is connected to another socket.
    /// - Any other error of sendmsg(2).
    [[nodiscard]] detail::send_message_operation
    send_to(const_buffer from, const simplenet::local_endpoint& to) noexcept {
        return {record(), from, to};
    }

    /// Sends one datagram to the peer that the socket is connected to.
    ///
    /// @return As for send_to().
    ///
    /// @par Errors
    /// As for send_to(), and
    /// - `std::errc::not_connected`: not connected.
    /// - `std::errc::connection_reset`, `std::errc::connection_refused`: the peer is gone.
    [[nodiscard]] detail::send_message_operation send(const_buffer from) noexcept {
        return {record(), from, std::nullopt};
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
    /// As for send_to().
    /// @par Cost
    /// One system call for 64 datagrams.
    [[nodiscard]] send_batch_operation send_batch(std::span<const outgoing_message> from) noexcept {
        return {record(), from};
    }
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
