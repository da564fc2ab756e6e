#pragma once
// basic_local_datagram: what blocking::local_datagram and nonblocking::local_datagram are.
// Layer socket.

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
/// goes whole or not at all, and may be empty; on its way to one socket none is lost and none
/// overtakes another. Descriptors that come along are dropped.
///
/// `Self` is the class that derives from this.
///
/// @par Thread safety
/// Any number of threads may send and receive at the same time.
template <class Self>
class basic_local_datagram : public socket_handle,
                             public datagram_peer<Self, simplenet::local_endpoint>,
                             public local_path_names<Self>,
                             public socket_settings<Self> {
public:
    /// A socket that receives what is sent to `at`: a path, or an abstract name; unnamed: an
    /// abstract name that the kernel picks, which `local_endpoint()` tells.
    ///
    /// @par Errors
    /// - `std::errc::address_in_use`: the path or name is taken, if only by a file.
    /// - Anything else socket(2) and bind(2) report.
    [[nodiscard]] static result<Self> bind(const simplenet::local_endpoint& at,
                                           const local_bind_options& options = {}) noexcept;

    /// A socket without a name that sends to `peer`, which cannot answer it.
    ///
    /// @par Errors
    /// - `std::errc::no_such_file_or_directory`, `std::errc::connection_refused`: nobody is there.
    /// - Anything else socket(2) and connect(2) report.
    [[nodiscard]] static result<Self> connect(const simplenet::local_endpoint& peer) noexcept;

    /// A socket without a name or a peer.
    [[nodiscard]] static result<Self> open() noexcept;

    /// Two sockets connected to each other.
    [[nodiscard]] static result<std::pair<Self, Self>> pair() noexcept;

    /// Takes over a descriptor made elsewhere. Makes it CLOEXEC and sets or clears O_NONBLOCK,
    /// which it shares with its duplicates. On failure it is closed.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: a socket, but not of Unix domain datagrams.
    /// - `std::errc::not_a_socket`, `std::errc::bad_file_descriptor`: not even that.
    [[nodiscard]] static result<Self> adopt(unique_fd fd) noexcept;

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
    /// @return `from.size()`, or the error with the number of datagrams that went before it: the
    ///         one at that index is the one that failed, and the rest was not tried.
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
    /// - `std::errc::operation_would_block`: none is there, and the socket is nonblocking.
    /// - `std::errc::connection_reset`: the peer closed with datagrams of ours unread.
    /// - Anything else recvmsg(2) reports.
    [[nodiscard]] result<local_message> receive_from(mutable_buffer into) noexcept;
    /// The same: for sockets that are connected, where `from` goes without saying.
    [[nodiscard]] result<local_message> receive(mutable_buffer into) noexcept;

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
    [[nodiscard]] result<std::size_t> receive_batch(std::span<incoming_message> into) noexcept;

protected:
    explicit basic_local_datagram(unique_fd socket) noexcept
        : socket_handle{std::move(socket)} {}
};

} // namespace simplenet::v0

#pragma GCC visibility pop
