#pragma once
// tcp_listener: accepts TCP connections. Layer net.

#include <simplenet/net/async_listener.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/nonblocking/tcp_listener.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_settings.hpp>

#include <chrono>
#include <optional>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// A listening TCP socket.
///
/// A handle to a record that its loop owns, with the rules of tcp_stream: it may be moved at any
/// time, and destroying it is close(). The loop may accept connections ahead of accept():
/// listen_options::accept_ahead of them plus those that arrive in the same turn. It does not begin
/// to while fewer than 4096 descriptors, or a quarter of RLIMIT_NOFILE, seem to be left. accept()
/// returns them in order; close() closes them. Loop thread only.
///
/// @par Example
/// @snippet echo_server.cpp accept
class tcp_listener : public async_listener<tcp_stream, nonblocking::tcp_stream>,
                     public ip_socket_names<tcp_listener>,
                     public tcp_settings<tcp_listener> {
public:
    /// Takes a listening socket; throws std::bad_alloc. `accept_ahead` is that of listen_options.
    explicit tcp_listener(nonblocking::tcp_listener socket,
                          unsigned accept_ahead = listen_options{}.accept_ahead)
        : async_listener{std::move(socket).release(), accept_ahead} {}

    /// Listens at `at`. Port 0 chooses a free port; see local_endpoint().
    ///
    /// @pre `options.backlog` is not negative.
    ///
    /// @par Errors
    /// - `std::errc::address_in_use`: another socket listens there.
    /// - `std::errc::address_not_available`: not an address of this machine.
    /// - `std::errc::permission_denied`: the port is reserved for privileged programs.
    /// - `std::errc::invalid_argument`: `steer_by_cpu` without `reuse_port`.
    /// - Any other error of socket(2), setsockopt(2), bind(2) and listen(2).
    [[nodiscard]] static result<tcp_listener> bind(const endpoint& at,
                                                   const listen_options& options = {});

    /// @name Closing
    /// @{

    /// What closing a connection does with data that the peer has not acknowledged, for connections
    /// accepted from now on; see tcp_stream::set_linger().
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: more than zero, which would block the loop in close(2).
    [[nodiscard]] result<> set_linger(std::optional<std::chrono::seconds> limit) noexcept;
    /// @}
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
