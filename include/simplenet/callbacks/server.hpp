#pragma once
// callbacks::server: serves TCP connections with callbacks on every loop of a group. Layer
// callbacks.

#include <simplenet/callbacks/connection.hpp>
#include <simplenet/callbacks/handlers.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/runtime/event_loop_group.hpp>
#include <simplenet/server/server_options.hpp>
#include <simplenet/server/tcp_server.hpp>

#include <chrono>

#pragma GCC visibility push(default)

namespace simplenet::v0::callbacks {

/// A tcp_server whose connections call functions.
///
/// Everything that is said of tcp_server holds here: how connections are distributed, limited,
/// counted and stopped. Destroying it ends the connections at once, and waits until
/// `on_connection` was called for each of them: no function is called afterwards. It may outlive
/// its group.
///
/// @par Thread safety
/// Moving and destroying it, start(): one thread at a time. Everything else: any thread.
///
/// @par Example
/// @snippet muduo_style_echo.cpp server
class server {
public:
    /// Listens at `at`. Connections wait in the backlog until start().
    ///
    /// @throws std::system_error with the errors of tcp_server::listen().
    /// @pre `group` lives until the server is destroyed or `group` was stopped and joined.
    server(event_loop_group& group, const endpoint& at, handlers handlers,
           const server_options& options = {});
    server(server&&) noexcept = default;
    /// Ends the server that it replaces, like the destructor.
    server& operator=(server&&) noexcept = default;
    /// stop() without a grace, and waits for its end.
    ///
    /// @pre Not on a thread of the group, which would wait for itself, unless the server has ended.
    ~server() = default;

    /// Begins to accept, and returns at once. Later calls do nothing, nor does one after stop().
    ///
    /// @throws std::bad_alloc, std::system_error: nothing is served.
    void start();

    /// Accepts no more, and ends what is still connected when `grace` is over. Returns at once. Of
    /// several calls the earliest end counts.
    ///
    /// Connections stay until they end by themselves or the grace is over: only the program knows
    /// which of them has nothing left to do. To end them earlier, it calls
    /// connection::shutdown().
    void stop(std::chrono::nanoseconds grace = {}) noexcept;
    /// Begins stop(grace), and waits until no connection is left, like
    /// tcp_server::shutdown(). A thread that runs no loop waits with `run(server.shutdown(grace))`.
    ///
    /// @return How the connections ended that were open at the beginning: by themselves, or at the
    ///         end of the grace.
    /// @par Cancellation
    /// A stop ends the grace at once. The connections end, then the report is returned.
    [[nodiscard]] task<shutdown_report> shutdown(std::chrono::nanoseconds grace);

    /// The address it listens at, with the port that was chosen.
    [[nodiscard]] endpoint local_endpoint() const noexcept;
    [[nodiscard]] server_statistics statistics() const;

private:
    // Copied by start(), for each loop.
    handlers handlers_;
    tcp_server server_;
    bool is_started_ = false;
};

} // namespace simplenet::v0::callbacks

#pragma GCC visibility pop
