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

/// A Unix domain datagram socket: a handle like udp_socket, with the same rules. Datagrams arrive
/// in order and none is lost: a sender waits while the queue of the receiver is full. Loop thread
/// only.
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

    /// A socket that receives what is sent to `at`: a path, or an abstract name; unnamed: an
    /// abstract name that the kernel picks, which local_endpoint() tells.
    ///
    /// @par Errors
    /// - `std::errc::address_in_use`: the path or name is taken, if only by a file; see
    ///   local_bind_options::unlink_existing.
    /// - `std::errc::permission_denied`, `std::errc::no_such_file_or_directory`: of the path.
    /// - Anything else socket(2) and bind(2) report.
    [[nodiscard]] static result<local_datagram> bind(const simplenet::local_endpoint& at,
                                                     const local_bind_options& options = {});

    /// A socket without a name that sends to `peer`, which cannot answer it.
    ///
    /// @par Errors
    /// - `std::errc::no_such_file_or_directory`, `std::errc::connection_refused`: nobody is there.
    /// - Anything else socket(2) and connect(2) report.
    [[nodiscard]] static result<local_datagram> connect(const simplenet::local_endpoint& peer);

    /// As of nonblocking::local_datagram.
    [[nodiscard]] static result<local_datagram> open();
    [[nodiscard]] static result<std::pair<local_datagram, local_datagram>> pair();
    /// Takes over a socket made elsewhere, and makes it nonblocking.
    [[nodiscard]] static result<local_datagram> adopt(unique_fd fd);

    /// As of udp_socket.
    [[nodiscard]] task<result<nonblocking::local_datagram>> release() &&;

    /// Receives one datagram; if the socket is connected, only from its peer.
    ///
    /// @pre `into` is not empty, and no other receive is in flight.
    /// @param into  Borrowed until the await returns.
    ///
    /// @par Errors
    /// - `std::errc::connection_reset`: the peer closed with datagrams of ours unread.
    /// - Anything else recvmsg(2) reports.
    [[nodiscard]] receive_operation receive_from(mutable_buffer into) noexcept {
        return {record(), into};
    }
    /// The same.
    [[nodiscard]] receive_operation receive(mutable_buffer into) noexcept {
        return {record(), into};
    }
    /// As of udp_socket.
    [[nodiscard]] receive_batch_operation receive_batch(std::span<incoming_message> into) noexcept {
        return {record(), into};
    }

    /// Sends one datagram to the socket bound to `to`; waits while its queue is full.
    ///
    /// The kernel tells of room only in the queue of a peer that this socket is connected to.
    /// Otherwise the send is repeated after pauses of 1 to 50 ms.
    ///
    /// @pre No other send is in flight.
    /// @param from  Borrowed until the await returns.
    /// @return `from.size()`.
    ///
    /// @par Errors
    /// - `std::errc::connection_refused`, `std::errc::no_such_file_or_directory`: nobody is there.
    /// - `std::errc::message_size`: more than the send buffer can hold.
    /// - `std::errc::operation_not_permitted`: the receiver is connected to somebody else.
    /// - Anything else sendmsg(2) reports.
    [[nodiscard]] detail::send_message_operation
    send_to(const_buffer from, const simplenet::local_endpoint& to) noexcept {
        return {record(), from, to};
    }
    /// Sends one datagram to the peer that the socket is connected to.
    ///
    /// @par Errors
    /// As of send_to(), and
    /// - `std::errc::not_connected`: not connected.
    /// - `std::errc::connection_reset`, `std::errc::connection_refused`: the peer is gone.
    [[nodiscard]] detail::send_message_operation send(const_buffer from) noexcept {
        return {record(), from, std::nullopt};
    }
    /// As of udp_socket.
    [[nodiscard]] send_batch_operation send_batch(std::span<const outgoing_message> from) noexcept {
        return {record(), from};
    }
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
