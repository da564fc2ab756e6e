#pragma once
// local_server: serves Unix domain connections on every loop of a group. Layer server.

#include <simplenet/ip/local_endpoint.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/nonblocking/local_listener.hpp>
#include <simplenet/runtime/event_loop_group.hpp>
#include <simplenet/server/basic_server.hpp>
#include <simplenet/server/detail/connection_handler.hpp>

#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// A server for Unix domain sockets on the loops of an event_loop_group.
///
/// The first loop accepts and gives connections to the others. connection_info has the credentials
/// of the peer's process, and no addresses.
///
/// @par Example
/// @snippet servers.cpp local_server
class local_server : public basic_server {
public:
    /// Listens at `at`; a path becomes a file, which is removed when the server ends, unless
    /// another socket has replaced it.
    ///
    /// @pre `group` lives until the server is destroyed or `group` was stopped and joined.
    ///
    /// @par Errors
    /// Those of local_listener::bind().
    [[nodiscard]] static result<local_server> listen(event_loop_group& group,
                                                     const simplenet::local_endpoint& at,
                                                     const local_server_options& options = {});

    /// Takes listeners that a service manager or another process created. Their paths remain.
    ///
    /// @pre `group` as for listen().
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: no listener.
    [[nodiscard]] static result<local_server>
    adopt(event_loop_group& group, std::vector<nonblocking::local_listener> listeners,
          const local_server_options& options = {});

    /// As tcp_server::serve(), with a local_stream.
    template <class Handler>
        requires detail::handles<Handler, local_stream>
    [[nodiscard]] result<> serve(Handler&& handler) {
        return begin(detail::make_handler<local_stream>(std::forward<Handler>(handler)));
    }

    /// The address it listens at; the name that was chosen, if it was unnamed.
    [[nodiscard]] simplenet::local_endpoint local_endpoint() const noexcept;

private:
    using basic_server::basic_server;
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
