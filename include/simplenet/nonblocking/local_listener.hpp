#pragma once
// nonblocking::local_listener: takes Unix domain connections that are waiting. Layer nonblocking.

#include <simplenet/nonblocking/local_stream.hpp>
#include <simplenet/socket/socket_types.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0::blocking {
class local_listener;
} // namespace simplenet::v0::blocking

namespace simplenet::v0::nonblocking {

/// A listening Unix domain socket. Owns its descriptor; destroying it is `close()`, which leaves
/// the path in the file system: see `unlink_path()`.
///
/// Options and names are documented with its bases.
///
/// @par Thread safety
/// Any number of threads may accept at the same time.
class local_listener : public detail::local_listener_base {
public:
    /// For the library: `socket` is known to be a nonblocking Unix domain listener.
    explicit local_listener(detail::known_socket socket) noexcept
        : with_local_path{std::move(socket)} {}

    /// Listens at `at`. A path is created, with the permissions that the umask leaves: who may
    /// write to it may connect. Unnamed, the kernel picks an abstract name, which
    /// `local_endpoint()` tells; abstract names have no permissions.
    ///
    /// @pre `options.backlog` is not negative.
    ///
    /// @par Errors
    /// - `std::errc::address_in_use`: the path exists, even if only as the leftover of a server
    ///   that is gone (see `local_listen_options::unlink_existing`), or the name is taken.
    /// - `std::errc::no_such_file_or_directory`, `std::errc::permission_denied`: about the
    ///   directory.
    /// - Anything else socket(2), bind(2) and listen(2) report.
    [[nodiscard]] static result<local_listener>
    bind(const simplenet::local_endpoint& at, const local_listen_options& options = {}) noexcept;

    /// Takes a connection that is waiting.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: none is waiting.
    /// - `std::errc::too_many_files_open`, `std::errc::too_many_files_open_in_system`,
    ///   `std::errc::no_buffer_space`, `std::errc::not_enough_memory`: no room for another
    ///   socket. The connection stays queued: free something before trying again.
    /// - Anything else accept(2) reports.
    [[nodiscard]] result<local_stream> accept() noexcept;

    /// Takes over a descriptor made elsewhere, by a service manager say; makes it CLOEXEC and
    /// sets O_NONBLOCK, which it shares with its duplicates. On failure it is closed.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: a socket, but not a Unix domain stream, or not listening.
    /// - `std::errc::not_a_socket`, `std::errc::bad_file_descriptor`: not even that.
    [[nodiscard]] static result<local_listener> adopt(unique_fd fd) noexcept;

    /// Makes a blocking listener not wait.
    [[nodiscard]] static result<local_listener> from(blocking::local_listener&& other) noexcept;
};

} // namespace simplenet::v0::nonblocking

#pragma GCC visibility pop
