#pragma once
// basic_server: base of tcp_server and local_server. Layer server.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/server/server_options.hpp>

#include <chrono>
#include <memory>
#include <vector>

namespace simplenet::v0::detail {
// Internal: not exported, because they are first declared here.
class server_core;
struct server_access;
} // namespace simplenet::v0::detail

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {
class any_handler;
} // namespace detail

inline namespace runtime {

/// Base of tcp_server and local_server: what does not depend on the kind of connections.
///
/// A server listens from its creation, and accepts from serve() on. Each connection and its handler
/// live on one loop of the group. An exception or error of a handler ends its connection and is
/// counted; the server continues.
///
/// A server has ended when its shutdown has, or when its group has stopped. It may outlive its
/// group. May be moved while it serves; one that was moved from can only be destroyed or assigned
/// to.
///
/// @par Thread safety
/// Moving and destroying it, serve(): one thread at a time. Everything else: any thread.
class basic_server {
public:
    basic_server(basic_server&&) noexcept = default;
    /// Ends the server that it replaces, like the destructor.
    basic_server& operator=(basic_server&& other) noexcept;
    /// shutdown() without a grace, and waits for its end.
    ///
    /// @pre Not on a thread of the group, which would wait for itself, unless the server has ended.
    ~basic_server();

    /// Serves the connections that have been accepted and those that wait in the backlog, closes
    /// the listeners, and waits until no handler is left. When `grace` is over, the remaining
    /// handlers are stopped and joined, including calls to pools that have begun.
    ///
    /// May be called more than once, and while another call is in progress: the earliest end of a
    /// grace counts. On any loop, also in a handler of this server or its children; that handler
    /// counts as drained and is not waited for. A connection whose handshake completes just before
    /// its listener is closed is reset, unless another process holds the listener as well.
    ///
    /// @return How the connections ended that were open at the beginning.
    /// @par Cancellation
    /// A stop ends the grace at once. The handlers are joined, then the report is returned.
    [[nodiscard]] task<shutdown_report> shutdown(std::chrono::nanoseconds grace);

    /// Begins the same and returns at once.
    void request_shutdown(std::chrono::nanoseconds grace) noexcept;

    /// The listeners, for the server that succeeds this one: in another process, or here with
    /// adopt(). While a duplicate is open no connection is refused.
    ///
    /// @par Errors
    /// - `std::errc::bad_file_descriptor`: the listeners are closed.
    /// - `std::errc::too_many_files_open`: no descriptors.
    [[nodiscard]] result<std::vector<unique_fd>> duplicate_listeners() const;

    /// Whether `statistics()` may still count new connections: false before serve(), and when a
    /// shutdown has counted the last one. May be true for a moment after the listeners were closed.
    [[nodiscard]] bool is_accepting() const noexcept;

    /// The counts, read from one loop after the other while they serve. So connections that begin,
    /// end or go to another loop during the call may be missing, and `open` may exceed
    /// `max_connections` although the server does not.
    [[nodiscard]] server_statistics statistics() const;

protected:
    explicit basic_server(std::shared_ptr<detail::server_core> core) noexcept
        : core_{std::move(core)} {}

    [[nodiscard]] result<> begin(std::unique_ptr<detail::any_handler> handler);
    [[nodiscard]] detail::server_core& core() const noexcept;

private:
    friend struct detail::server_access;
    void end() noexcept;

    std::shared_ptr<detail::server_core> core_; // null only after a move
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
