#pragma once
// blocking::local_datagram: sends and receives Unix domain datagrams, waiting in the system call.
// Layer blocking.

#include <simplenet/socket/socket_types.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::nonblocking {
class local_datagram;
} // namespace simplenet::v0::nonblocking

namespace simplenet::v0::blocking {

/// A Unix domain datagram socket. Owns its descriptor; destroying it is `close()`. Receiving waits
/// for a datagram, sending for room in the queue of the receiver.
///
/// Sending, receiving, options and addresses are documented with its bases.
class local_datagram : public detail::local_datagram_base {
public:
    /// For the library: `socket` is known to be a blocking Unix domain datagram socket.
    explicit local_datagram(detail::known_socket socket) noexcept
        : with_local_datagram_transfers{std::move(socket)} {}

    /// A socket that receives what is sent to `at`: a path, or an abstract name; unnamed: an
    /// abstract name that the kernel picks, which `local_endpoint()` tells.
    ///
    /// @par Errors
    /// - `std::errc::address_in_use`: the path or name is taken, if only by a file.
    /// - Anything else socket(2) and bind(2) report.
    [[nodiscard]] static result<local_datagram>
    bind(const simplenet::local_endpoint& at, const local_bind_options& options = {}) noexcept;

    /// A socket without a name that sends to `peer`, which cannot answer it.
    ///
    /// @par Errors
    /// - `std::errc::no_such_file_or_directory`, `std::errc::connection_refused`: nobody is there.
    /// - Anything else socket(2) and connect(2) report.
    [[nodiscard]] static result<local_datagram>
    connect(const simplenet::local_endpoint& peer) noexcept;

    /// A socket without a name or a peer.
    [[nodiscard]] static result<local_datagram> open() noexcept;

    /// Two sockets connected to each other.
    [[nodiscard]] static result<std::pair<local_datagram, local_datagram>> pair() noexcept;

    /// Takes over a descriptor made elsewhere, makes it CLOEXEC and clears O_NONBLOCK, which it
    /// shares with its duplicates. On failure it is closed.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: a socket, but not of Unix domain datagrams.
    /// - `std::errc::not_a_socket`, `std::errc::bad_file_descriptor`: not even that.
    [[nodiscard]] static result<local_datagram> adopt(unique_fd fd) noexcept;

    /// Makes a nonblocking socket wait.
    [[nodiscard]] static result<local_datagram> from(nonblocking::local_datagram&& other) noexcept;
};

} // namespace simplenet::v0::blocking

#pragma GCC visibility pop
