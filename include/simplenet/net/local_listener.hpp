#pragma once
// local_listener: takes Unix domain connections. Layer net.

#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/nonblocking/local_listener.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// A listening Unix domain socket: a handle like tcp_listener, with the same accept(). Loop thread
/// only.
class local_listener
    : public detail::with_local_names<detail::with_socket_options<detail::listening_object>> {
public:
    using accept_operation = detail::accept_operation<local_stream, nonblocking::local_stream>;

    /// Takes a listening socket; throws std::bad_alloc.
    explicit local_listener(nonblocking::local_listener socket)
        : with_local_names{std::move(socket).release()} {}

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

    /// Removes the path from the file system, if there is one and it is a socket. close() does not.
    ///
    /// @par Errors
    /// - `std::errc::no_such_file_or_directory`: gone already.
    [[nodiscard]] result<> unlink_path() noexcept {
        return detail::names::unlink_unix_path(native_handle());
    }
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
