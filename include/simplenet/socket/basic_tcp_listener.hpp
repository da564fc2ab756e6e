#pragma once
// basic_tcp_listener: base of blocking::tcp_listener and nonblocking::tcp_listener. Layer socket.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/socket/socket_handle.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_options.hpp>
#include <simplenet/socket/socket_settings.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// A listening TCP socket that owns its descriptor. Destroying it is `close()`, which also resets
/// the connections that wait to be accepted.
///
/// `Self` is the derived class, `Stream` the type of its connections.
///
/// @par Thread safety
/// Any number of threads may accept at the same time.
template <class Self, class Stream>
class basic_tcp_listener : public socket_handle,
                           public ip_socket_names<Self>,
                           public tcp_settings<Self> {
public:
    /// Listens at `at`. Port 0 chooses a free port; see `local_endpoint()`.
    ///
    /// @pre `options.backlog` is not negative.
    ///
    /// @par Errors
    /// - `std::errc::address_in_use`: another socket listens there.
    /// - `std::errc::address_not_available`: not an address of this machine.
    /// - `std::errc::permission_denied`: the port is reserved for privileged programs.
    /// - `std::errc::invalid_argument`: `steer_by_cpu` without `reuse_port`.
    /// - Any other error of socket(2), setsockopt(2), bind(2) and listen(2).
    [[nodiscard]] static result<Self> bind(const endpoint& at,
                                           const listen_options& options = {}) noexcept;

    /// Accepts a connection; a blocking listener waits for one. Connections that failed while they
    /// were queued are skipped.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: no connection is waiting, and the listener is
    ///   nonblocking.
    /// - `std::errc::too_many_files_open`, `std::errc::too_many_files_open_in_system`,
    ///   `std::errc::no_buffer_space`, `std::errc::not_enough_memory`: no room for another socket.
    ///   The connection stays queued: free something before the next attempt.
    /// - Any other error of accept(2).
    [[nodiscard]] result<Stream> accept() noexcept;

    /// Takes over a descriptor created elsewhere, for example by a service manager. Makes it
    /// CLOEXEC and sets or clears O_NONBLOCK, which its duplicates share. On failure it is closed.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: not a TCP socket, or not listening.
    /// - `std::errc::not_a_socket`, `std::errc::bad_file_descriptor`: not a socket, or not open.
    [[nodiscard]] static result<Self> adopt(unique_fd fd) noexcept;

protected:
    explicit basic_tcp_listener(unique_fd socket) noexcept
        : socket_handle{std::move(socket)} {}
};

} // namespace simplenet::v0

#pragma GCC visibility pop
