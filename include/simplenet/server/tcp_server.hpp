#pragma once
// tcp_server: serves TCP connections on every loop of a group. Layer server.

#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/nonblocking/tcp_listener.hpp>
#include <simplenet/runtime/event_loop_group.hpp>
#include <simplenet/server/basic_server.hpp>
#include <simplenet/server/detail/connection_handler.hpp>

#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// A TCP server on the loops of an event_loop_group.
///
/// With accept_mode::reuse_port each loop has a listener, and the kernel distributes the
/// connections. A loop that has more than the mean plus max(4, mean / 32) connections then gives a
/// new one to the loop with the fewest, before its handler starts; it does not with
/// balance::round_robin or listen_options::steer_by_cpu. Connections on the listener of a loop that
/// a handler blocks have to wait for it; other loops give it none.
///
/// With listen_options::steer_by_cpu a connection that CPU number n received is served by loop n
/// modulo the number of loops. If there are fewer loops than CPUs, several CPUs share a loop. A
/// loop that no receiving CPU has serves nothing, such as the third one of three on two CPUs.
///
/// @par Example
/// @snippet servers.cpp tcp_server
class tcp_server : public basic_server {
public:
    /// Listens at `at`. Port 0 chooses a free port; see local_endpoint(). Unless
    /// listen_options::reuse_port is set, no other server can listen there, although the loops
    /// share the port.
    ///
    /// @pre `group` lives until the server is destroyed or `group` was stopped and joined.
    ///
    /// @par Errors
    /// - Those of tcp_listener::bind().
    /// - `std::errc::invalid_argument`: an entry of `proxy_sources` is neither an address nor a
    ///   prefix; listen_options::steer_by_cpu with accept_mode::single_acceptor.
    [[nodiscard]] static result<tcp_server> listen(event_loop_group& group, const endpoint& at,
                                                   const server_options& options = {});

    /// Takes listeners that a service manager or another process created; `options.listen` applies
    /// except for what is set when a socket is bound. They are distributed over the loops, all on
    /// the first one with accept_mode::single_acceptor. If there are fewer than loops, a
    /// loop that has one also gives connections to those without: in turn, or when it has more
    /// connections, with or without steer_by_cpu.
    ///
    /// @pre `group` as for listen().
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: no listener, or `proxy_sources` as for listen().
    [[nodiscard]] static result<tcp_server> adopt(event_loop_group& group,
                                                  std::vector<nonblocking::tcp_listener> listeners,
                                                  const server_options& options = {});

    /// Begins to accept, and returns at once. `handler(stream)` or `handler(stream, info)`, with a
    /// tcp_stream and a connection_info, returns task<> or task<result<>>. A callable that takes
    /// both forms gets the connection_info. It is copied for each loop; a copy outlives the
    /// handlers that it has started.
    ///
    /// Throws std::bad_alloc, and whatever copying the handler throws. Then nothing is served, and
    /// the server can only be destroyed. A loop that has no memory to begin serves nothing, and
    /// reports that as an exception of a handler.
    ///
    /// @pre Not called before, and the group was not destroyed.
    /// @par Errors
    /// - `std::errc::operation_canceled`: the server has been shut down.
    template <class Handler>
        requires detail::handles<Handler, tcp_stream>
    [[nodiscard]] result<> serve(Handler&& handler) {
        return begin(detail::make_handler<tcp_stream>(std::forward<Handler>(handler)));
    }

    /// The address it listens at, with the port that was chosen.
    [[nodiscard]] endpoint local_endpoint() const noexcept;

private:
    using basic_server::basic_server;
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
