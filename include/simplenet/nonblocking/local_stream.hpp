#pragma once
// nonblocking::local_stream: a Unix domain connection whose operations never wait.
// Layer nonblocking.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/fwd.hpp>
#include <simplenet/ip/local_endpoint.hpp>
#include <simplenet/socket/detail/socket_access.hpp>
#include <simplenet/socket/local_stream_socket.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_settings.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::nonblocking {

/// A Unix domain stream connection, unix(7). Owns its descriptor; destroying it is `close()`. An
/// operation that would have to wait fails with `std::errc::operation_would_block` and has no
/// effect: retry when poll(2) or the like reports that the descriptor is readable or writable.
class local_stream : public local_stream_socket,
                     public local_stream_names<local_stream>,
                     public socket_settings<local_stream> {
public:
    /// Connects to the listener at `peer`. The connection is established when this returns;
    /// `accept()` may follow later.
    ///
    /// @par Errors
    /// - `std::errc::no_such_file_or_directory`: the path does not exist.
    /// - `std::errc::connection_refused`: nobody listens there (for a path: no longer).
    /// - `std::errc::operation_would_block`: the listener's backlog is full. poll(2) cannot wait
    ///   for that: try again later.
    /// - `std::errc::permission_denied`: no write permission for the path.
    /// - `std::errc::wrong_protocol_type`: the socket bound to the path is not a stream socket.
    /// - Any other error of socket(2) and connect(2).
    [[nodiscard]] static result<local_stream>
    connect(const simplenet::local_endpoint& peer) noexcept;

    /// Two streams connected to each other, without names.
    [[nodiscard]] static result<std::pair<local_stream, local_stream>> pair() noexcept;

    /// Adopts an existing descriptor, sets CLOEXEC and sets O_NONBLOCK, a flag shared by all its
    /// duplicates. On failure the descriptor is closed.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: a socket, but not a Unix domain stream, or a listener.
    /// - `std::errc::not_a_socket`, `std::errc::bad_file_descriptor`: not a socket, or not a
    ///   descriptor.
    [[nodiscard]] static result<local_stream> adopt(unique_fd fd) noexcept;

    /// Turns a blocking stream into a nonblocking one.
    [[nodiscard]] static result<local_stream> from(blocking::local_stream&& other) noexcept;

private:
    friend detail::socket_access;
    explicit local_stream(unique_fd socket) noexcept
        : local_stream_socket{std::move(socket)} {}
};

} // namespace simplenet::v0::nonblocking

#pragma GCC visibility pop
