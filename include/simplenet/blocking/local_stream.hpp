#pragma once
// blocking::local_stream: a Unix domain connection whose operations block in the system call. Layer
// blocking.

#include <simplenet/blocking/whole_transfers.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/fwd.hpp>
#include <simplenet/ip/local_endpoint.hpp>
#include <simplenet/socket/detail/socket_access.hpp>
#include <simplenet/socket/local_stream_socket.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_settings.hpp>

#include <chrono>
#include <optional>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::blocking {

/// A Unix domain stream connection, unix(7). Owns its descriptor; destroying it is `close()`. An
/// operation blocks the thread until it is done, and continues after signal handlers.
class local_stream : public local_stream_socket,
                     public whole_transfers<local_stream>,
                     public local_stream_names<local_stream>,
                     public socket_settings<local_stream> {
public:
    /// Connects to the listener at `peer`. Waits only while its backlog is full, at most for
    /// `timeout`; does not wait for `accept()`.
    ///
    /// @par Errors
    /// - `std::errc::no_such_file_or_directory`: the path does not exist.
    /// - `std::errc::connection_refused`: nobody listens there (for a path: no longer).
    /// - `errc::deadline_exceeded`: `timeout` passed first.
    /// - `std::errc::permission_denied`: no write permission for the path.
    /// - `std::errc::wrong_protocol_type`: the socket bound to the path is not a stream socket.
    /// - Any other error of socket(2) and connect(2).
    ///
    /// @par Cost
    /// Two system calls; with a timeout at least four.
    [[nodiscard]] static result<local_stream>
    connect(const simplenet::local_endpoint& peer,
            std::optional<std::chrono::nanoseconds> timeout = std::nullopt) noexcept;

    /// Two streams connected to each other, without names.
    [[nodiscard]] static result<std::pair<local_stream, local_stream>> pair() noexcept;

    /// Adopts an existing descriptor, sets CLOEXEC and clears O_NONBLOCK, a flag shared by all its
    /// duplicates. On failure the descriptor is closed.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: a socket, but not a Unix domain stream, or a listener.
    /// - `std::errc::not_a_socket`, `std::errc::bad_file_descriptor`: not a socket, or not a
    ///   descriptor.
    [[nodiscard]] static result<local_stream> adopt(unique_fd fd) noexcept;

    /// Turns a nonblocking stream into a blocking one.
    [[nodiscard]] static result<local_stream> from(nonblocking::local_stream&& other) noexcept;

private:
    friend detail::socket_access;
    explicit local_stream(unique_fd socket) noexcept
        : local_stream_socket{std::move(socket)} {}
};

extern template class whole_transfers<local_stream>; // in the library

} // namespace simplenet::v0::blocking

#pragma GCC visibility pop
