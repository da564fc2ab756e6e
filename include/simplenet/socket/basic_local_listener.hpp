#pragma once
// basic_local_listener: base of blocking::local_listener and nonblocking::local_listener. Layer
// socket.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/ip/local_endpoint.hpp>
#include <simplenet/socket/socket_handle.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_options.hpp>
#include <simplenet/socket/socket_settings.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// A listening Unix domain socket that owns its descriptor. Destroying it is `close()`, which
/// leaves the path in the file system: see `unlink_path()`.
///
/// `Self` is the derived class, `Stream` the type of its connections.
///
/// @par Thread safety
/// Any number of threads may accept at the same time.
template <class Self, class Stream>
class basic_local_listener : public socket_handle,
                             public local_path_names<Self>,
                             public socket_settings<Self> {
public:
    /// Listens at `at`. A path is created with the permissions that the umask leaves: write
    /// permission allows to connect. If `at` is unnamed, the kernel picks an abstract name, see
    /// `local_endpoint()`; abstract names have no permissions.
    ///
    /// @pre `options.backlog` is not negative.
    ///
    /// @par Errors
    /// - `std::errc::address_in_use`: the path exists, even if only as the leftover of a server
    ///   that has ended (see `local_listen_options::unlink_existing`), or the name is taken.
    /// - `std::errc::no_such_file_or_directory`, `std::errc::permission_denied`: the path cannot be
    ///   created.
    /// - Any other error of socket(2), bind(2) and listen(2).
    [[nodiscard]] static result<Self> bind(const simplenet::local_endpoint& at,
                                           const local_listen_options& options = {}) noexcept;

    /// Accepts a connection; a blocking listener waits for one.
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
    /// - `std::errc::invalid_argument`: not a Unix domain stream socket, or not listening.
    /// - `std::errc::not_a_socket`, `std::errc::bad_file_descriptor`: not a socket, or not open.
    [[nodiscard]] static result<Self> adopt(unique_fd fd) noexcept;

protected:
    explicit basic_local_listener(unique_fd socket) noexcept
        : socket_handle{std::move(socket)} {}
};

} // namespace simplenet::v0

#pragma GCC visibility pop
