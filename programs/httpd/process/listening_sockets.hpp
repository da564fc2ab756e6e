#pragma once
// Sockets that listen and are not served yet: a change of the configuration has all of them before
// it lets a server accept.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/nonblocking/tcp_listener.hpp>
#include <simplenet/runtime/event_loop_group.hpp>
#include <simplenet/socket/socket_options.hpp>

#include <vector>

namespace httpd {

/// Sockets of one address: one, or one for each loop.
using listening_sockets = std::vector<simplenet::nonblocking::tcp_listener>;

/// One for each loop. Clients can connect, and wait.
///
/// @par Errors
/// - Those of tcp_server::listen().
[[nodiscard]] simplenet::result<listening_sockets>
open_sockets(simplenet::event_loop_group& group, const simplenet::endpoint& at,
             const simplenet::listen_options& options);

/// @par Errors
/// - Those of tcp_listener::adopt().
[[nodiscard]] simplenet::result<listening_sockets>
adopt_all(simplenet::result<std::vector<simplenet::unique_fd>> sockets);

} // namespace httpd
