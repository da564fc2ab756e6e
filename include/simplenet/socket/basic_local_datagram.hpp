#pragma once
// basic_local_datagram: base of blocking::local_datagram and nonblocking::local_datagram. Layer
// socket.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/ip/local_endpoint.hpp>
#include <simplenet/socket/datagram_peer.hpp>
#include <simplenet/socket/datagram_socket.hpp>
#include <simplenet/socket/socket_handle.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_options.hpp>
#include <simplenet/socket/socket_settings.hpp>

#include <cstddef>
#include <span>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// A Unix domain datagram socket that owns its descriptor. Destroying it is `close()`. A datagram
/// is sent whole or not at all, and may be empty. Datagrams to one socket are not lost and arrive
/// in order. Descriptors sent with a datagram are dropped.
///
/// `Self` is the derived class.
///
/// @par Thread safety
/// Any number of threads may send and receive at the same time.
template <class Self>
class basic_local_datagram : public socket_handle,
                             public datagram_peer<Self, simplenet::local_endpoint>,
                             public local_path_names<Self>,
                             public socket_settings<Self> {
public:
    /// A socket that receives the datagrams sent to `at`: a path, or an abstract name; unnamed: an
    /// abstract name that the kernel picks; see `local_endpoint()`.
    ///
    /// @par Errors
    /// - `std::errc::address_in_use`: the path or name is taken, even if only by a file.
    /// - Any other error of socket(2) and bind(2).
    [[nodiscard]] static result<Self> bind(const simplenet::local_endpoint& at,
                                           const local_bind_options& options = {}) noexcept;

    /// A socket without a name that sends to `peer`; the peer cannot reply.
    ///
    /// @par Errors
    /// - `std::errc::no_such_file_or_directory`, `std::errc::connection_refused`: no socket is
    ///   bound there.
    /// - Any other error of socket(2) and connect(2).
    [[nodiscard]] static result<Self> connect(const simplenet::local_endpoint& peer) noexcept;

    /// A socket without a name or a peer.
    [[nodiscard]] static result<Self> open() noexcept;

    /// Two sockets connected to each other.
    [[nodiscard]] static result<std::pair<Self, Self>> pair() noexcept;

    /// Takes over a descriptor created elsewhere. Makes it CLOEXEC and sets or clears O_NONBLOCK,
    /// which its duplicates share. On failure it is closed.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: not a Unix domain datagram socket.
    /// - `std::errc::not_a_socket`, `std::errc::bad_file_descriptor`: not a socket, or not open.
    [[nodiscard]] static result<Self> adopt(unique_fd fd) noexcept;

    /// Sends one datagram to the socket bound to `to`.
    ///
    /// @return `from.size()`.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: the queue of the receiver or the send buffer is full,
    ///   and the socket is nonblocking. If this socket is not connected to the receiver, no event
    ///   announces that there is room again.
    /// - `std::errc::connection_refused`, `std::errc::no_such_file_or_directory`: no socket is
    ///   bound there.
    /// - `std::errc::message_size`: more than the send buffer can hold.
    /// - `std::errc::operation_not_permitted`: the receiver is connected to another socket.
    /// - Any other error of sendmsg(2).
    [[nodiscard]] result<std::size_t> send_to(const_buffer from,
                                              const simplenet::local_endpoint& to) noexcept;

    /// Sends one datagram to the peer that the socket is connected to.
    ///
    /// @par Errors
    /// As for `send_to()`, and
    /// - `std::errc::not_connected`: not connected.
    /// - `std::errc::connection_reset`, `std::errc::connection_refused`: the peer is gone.
    [[nodiscard]] result<std::size_t> send(const_buffer from) noexcept;

    /// Sends every datagram of `from`, in order.
    ///
    /// @return `from.size()`, or the error with the number of datagrams sent before it. The
    ///         datagram at that index failed, and the rest was not tried.
    ///
    /// @par Errors
    /// As for `send_to()`.
    ///
    /// @par Cost
    /// One system call for 64 datagrams.
    [[nodiscard]] transfer_result send_batch(std::span<const outgoing_message> from) noexcept;

    /// Receives one datagram; if the socket is connected, only from its peer.
    ///
    /// @pre `into` is not empty.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: no datagram has arrived, and the socket is
    ///   nonblocking.
    /// - `std::errc::connection_reset`: the peer closed without reading our datagrams.
    /// - Any other error of recvmsg(2).
    [[nodiscard]] result<local_message> receive_from(mutable_buffer into) noexcept;
    /// The same, for connected sockets, where `from` is always the peer.
    [[nodiscard]] result<local_message> receive(mutable_buffer into) noexcept;

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
    [[nodiscard]] result<std::size_t> receive_batch(std::span<incoming_message> into) noexcept;

protected:
    explicit basic_local_datagram(unique_fd socket) noexcept
        : socket_handle{std::move(socket)} {}
};

} // namespace simplenet::v0

#pragma GCC visibility pop
