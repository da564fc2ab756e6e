#pragma once
// local_listener: accepts Unix domain connections. Layer net.

#include <simplenet/net/async_listener.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/nonblocking/local_listener.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_settings.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// A listening Unix domain socket.
///
/// A handle to a record that its loop owns, with the rules of tcp_listener: it may be moved at any
/// time, and destroying it is close(), which leaves the path in the file system: see unlink_path().
/// Loop thread only.
class local_listener : public async_listener<local_stream, nonblocking::local_stream>,
                       public local_path_names<local_listener>,
                       public socket_settings<local_listener> {
public:
    /// Takes a listening socket; throws std::bad_alloc. `accept_ahead` is that of
    /// local_listen_options.
    explicit local_listener(nonblocking::local_listener socket,
                            unsigned accept_ahead = local_listen_options{}.accept_ahead)
        : async_listener{std::move(socket).release(), accept_ahead} {}

    /// Listens at `at`; a path becomes a file.
    ///
    /// @pre `options.backlog` is not negative.
    ///
    /// @par Errors
    /// - `std::errc::address_in_use`: the path exists, even if only as the leftover of a server
    ///   that has ended; see local_listen_options::unlink_existing.
    /// - `std::errc::permission_denied`, `std::errc::no_such_file_or_directory`: the path cannot be
    ///   created.
    /// - Any other error of socket(2), bind(2) and listen(2).
    [[nodiscard]] static result<local_listener> bind(const simplenet::local_endpoint& at,
                                                     const local_listen_options& options = {});
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
