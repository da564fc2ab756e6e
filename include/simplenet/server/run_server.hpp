#pragma once
// run_server: a program that is a TCP server on every core. Layer server.

#include <simplenet/server/tcp_server.hpp>

#include <chrono>
#include <memory>
#include <stop_token>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// How run_server() serves.
struct run_server_options {
    server_options server = {};
    /// `group.loop.handle_signals` also applies to the calling thread.
    event_loop_group_options group = {};
    /// Of the shutdown, see basic_server::shutdown().
    std::chrono::nanoseconds grace = std::chrono::seconds{10};
    /// Called on the calling thread, with `context`, when connections are served. Null: nothing.
    void (*on_listening)(tcp_server& server, void* context) = nullptr;
    void* context = nullptr;
};

} // namespace runtime

namespace detail {
[[nodiscard]] result<shutdown_report> run_server(const endpoint& at,
                                                 std::unique_ptr<any_handler> handler,
                                                 const run_server_options& options,
                                                 std::stop_token stop);
} // namespace detail

inline namespace runtime {

/// Serves TCP connections at `at` on a new group of loops until it is stopped; then shuts down, and
/// returns. Blocks the calling thread.
///
/// It is stopped by `stop`; by a shutdown that `on_listening` or a handler begins; and on the main
/// thread by the first SIGINT or SIGTERM, under the conditions of run(): a second one kills the
/// process. On other threads signals are left alone.
///
/// @param handler  As for tcp_server::serve().
/// @return How the connections ended that were open at the beginning of the shutdown.
/// @pre No loop runs on this thread.
///
/// @par Errors
/// Those of event_loop_group::create(), tcp_server::listen() and event_loop::create().
/// @par Example
/// @snippet servers.cpp run_server
template <class Handler>
    requires detail::handles<Handler, tcp_stream>
result<shutdown_report> run_server(const endpoint& at, Handler&& handler,
                                   run_server_options options = {}, std::stop_token stop = {}) {
    return detail::run_server(at, detail::make_handler<tcp_stream>(std::forward<Handler>(handler)),
                              options, std::move(stop));
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
