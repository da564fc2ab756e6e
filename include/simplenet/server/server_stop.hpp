#pragma once
// server_stopping() and server_stop(): how a handler learns that its server shuts down. Layer
// server.

#include <simplenet/core/detail/intrusive_list.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/detail/foreign_wait.hpp>
#include <simplenet/coro/detail/promise.hpp>
#include <simplenet/coro/detail/run_queue.hpp>

#include <coroutine>
#include <cstddef>
#include <string>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

/// Whether the server around `within` is shutting down.
[[nodiscard]] bool is_server_stopping(const scope& within) noexcept;

/// The same, or whether the server has no room for new connections: then a connection that could
/// wait for another request should end.
[[nodiscard]] bool should_connection_end(const scope& within) noexcept;

/// Something on this thread has found no descriptor: connections to its servers end that can be
/// spared.
void note_lack_of_descriptors() noexcept;

/// Whether our kernel has bytes for the peer of `socket` that it has not acknowledged, or of a Unix
/// domain socket, not read. Cost: a system call.
[[nodiscard]] bool has_more_to_take(int socket) noexcept;

struct spare_tag;

/// Has descriptors, as of cached files, that can be closed before connections have to end.
class spare_holder : public list_hook<spare_tag> {
public:
    /// Closes them; returns how many.
    virtual std::size_t give_up_descriptors() noexcept = 0;

protected:
    spare_holder() noexcept = default;
    ~spare_holder() = default;
};

/// While it lives, `holder` is asked when the servers of this thread find few descriptors. Without
/// a server nothing happens.
void ask_for_spare_descriptors(spare_holder& holder) noexcept;

/// Awaitable of this_task::server_stopping(); the contract is documented there.
class [[nodiscard]] server_stopping_query {
public:
    static bool await_ready() noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
        stopping_ = is_server_stopping(innermost_scope(caller));
        return false;
    }
    [[nodiscard]] bool await_resume() const noexcept { return stopping_; }

private:
    bool stopping_ = false;
};

/// A handler that waits for the shutdown of its server.
class stop_waiter : public list_hook<> {
public:
    virtual void server_stops() noexcept = 0;
    /// There is no room for new connections: ends this one if it can be spared, as one can that
    /// waits for a request. False: it cannot. Called by a timer.
    virtual bool make_room() noexcept { return false; }
    /// Whether ending this connection could lose bytes that its client has not received. Such
    /// connections end last. Called before make_room().
    [[nodiscard]] virtual bool may_lose() const noexcept { return false; }

protected:
    stop_waiter() noexcept = default;
    stop_waiter(stop_waiter&&) noexcept {} // idle awaitables may be moved
    ~stop_waiter() = default;
};

/// Lets the server around `within` tell `waiter` once that it shuts down, until that is unlinked.
/// False: it does already. Without a server nothing happens.
[[nodiscard]] bool wait_for_server_stop(const scope& within, stop_waiter& waiter) noexcept;

/// Awaitable of server_stop(); the contract is documented there.
class [[nodiscard]] server_stop_operation final
    : public suspension,
      public stop_waiter,
      public awaited_from_outside<server_stop_operation> {
public:
    using is_leaf = void; // see with_timeout()

    server_stop_operation() noexcept = default;
    /// @param is_spare  Also ends, as canceled, when there is no room for new connections.
    explicit server_stop_operation(bool is_spare) noexcept
        : is_spare_{is_spare} {}
    server_stop_operation(server_stop_operation&&) noexcept = default;
    ~server_stop_operation() { unlink(); }

    static bool await_ready() noexcept { return false; }
    using awaited_from_outside<server_stop_operation>::await_suspend;
    template <own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept {
        return start(caller, scope_of(caller, at));
    }
    [[nodiscard]] result<> await_resume() const noexcept {
        if (stopped_ != stop_reason::none) return fail(error_of(stopped_));
        return {};
    }

    void on_stop(stop_reason reason) noexcept override;
    void server_stops() noexcept override;
    bool make_room() noexcept override;
    void describe(std::string& text) override { text += "server_stop"; }

private:
    bool start(std::coroutine_handle<> caller, scope& within) noexcept;

    stop_reason stopped_ = stop_reason::none;
    bool waiting_ = false;
    bool is_spare_ = false;
};

} // namespace detail

inline namespace runtime {

/// Waits until the server of this handler shuts down; succeeds at once if it does so already.
///
/// For a handler that waits for its next request: `when_any(stream.readable(), server_stop())`.
/// Children of the handler belong to its server, tasks of spawn() do not. Outside of a server it
/// waits until it is stopped.
///
/// @return An awaitable of `result<>`.
///
/// @par Errors
/// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came first.
/// @par Example
/// @snippet servers.cpp server_stop
[[nodiscard]] inline detail::server_stop_operation server_stop() noexcept {
    return {};
}

namespace this_task {

/// Whether the server of this handler is shutting down, also in the children of the handler. False
/// outside of a server. Never suspends.
///
/// @return An awaitable of `bool`.
[[nodiscard]] inline detail::server_stopping_query server_stopping() noexcept {
    return {};
}

} // namespace this_task
} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
