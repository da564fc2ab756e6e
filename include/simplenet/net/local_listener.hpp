#pragma once
// local_listener: takes Unix domain connections. Layer net.

#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/nonblocking/local_listener.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_settings.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// A listening Unix domain socket: a handle like tcp_listener, with the same accept(). Loop thread
/// only.
class local_listener : public detail::listening_object,
                       public local_path_names<local_listener>,
                       public socket_settings<local_listener> {
public:
    using accept_operation = detail::accept_operation<local_stream, nonblocking::local_stream>;

    /// Takes a listening socket; throws std::bad_alloc.
    explicit local_listener(nonblocking::local_listener socket)
        : listening_object{std::move(socket).release()} {}

    /// Listens at `at`; a path becomes a file.
    ///
    /// @pre `options.backlog` is not negative.
    ///
    /// @par Errors
    /// - `std::errc::address_in_use`: something is at the path, if only what a dead server left;
    ///   see local_listen_options::unlink_existing.
    /// - `std::errc::permission_denied`, `std::errc::no_such_file_or_directory`: of the path.
    /// - Anything else socket(2), bind(2) and listen(2) report.
    [[nodiscard]] static result<local_listener> bind(const simplenet::local_endpoint& at,
                                                     const local_listen_options& options = {});

    /// As tcp_listener::accept().
    [[nodiscard]] accept_operation accept() noexcept { return accept_operation{record()}; }
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
