#pragma once
// idle_wait: how a connection waits for its next request. Layer http, private.

#include "http/server/exchange.hpp"
#include "http/server/stream_transport.hpp"

#include <simplenet/coro/scoped.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/detail/operation.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/server/server_stop.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/detail/timed_queue.hpp>

#include <chrono>
#include <coroutine>
#include <utility>

namespace simplenet::v0::http::detail {

namespace idle {

using nanoseconds = std::chrono::nanoseconds;

/// Ends a read, in a scope of its own, after a time, which is another one once the server shuts
/// down.
class policy final : public simplenet::detail::timer_node, public simplenet::detail::stop_waiter {
    using scope = simplenet::detail::scope;
    using stop_reason = simplenet::detail::stop_reason;

public:
    policy(connection_state& connection, int socket) noexcept
        : connection_{&connection}
        , socket_{socket} {}
    policy(policy&& other) noexcept
        : connection_{other.connection_}
        , socket_{other.socket_} {}

    static stop_reason inherits(stop_reason reason) noexcept { return reason; }
    void entered(scope& inner) noexcept { inner_ = &inner; }
    void suspended(scope& inner) noexcept {
        // Of a server that is ending already the read has not begun, so a limit of 0 is a timer
        // too.
        const bool is_ending = !simplenet::detail::wait_for_server_stop(inner, *this);
        arm(is_ending ? connection_->last_limit() : connection_->idle_limit());
    }
    void leaving() noexcept {
        cancel();
        simplenet::detail::stop_waiter::unlink();
    }
    auto finish(auto&& resume) { return resume(); }

private:
    void arm(nanoseconds limit) noexcept {
        cancel();
        simplenet::detail::timed_queue::of(*inner_).timers.insert_after(*this, limit);
    }
    void expired() noexcept override { inner_->stop(stop_reason::deadline); }
    void server_stops() noexcept override { arm(connection_->last_limit()); }
    bool make_room() noexcept override {
        connection_->gives_way = true;
        cancel();
        expired();
        return true;
    }
    bool may_lose() const noexcept override { return simplenet::detail::has_more_to_take(socket_); }

    connection_state* connection_;
    int socket_;
    scope* inner_ = nullptr; // of the awaiter that contains this
};

/// For streams whose receive() is a task.
template <class Stream>
task<> receive(Stream& stream, connection_state& connection, received& into) {
    using receiving = decltype(stream.receive());
    result<received> bytes = co_await simplenet::detail::scoped_awaiter<receiving, policy>{
        stream.receive(), connection, socket_of(stream).native_handle()};
    if (bytes) into = *std::move(bytes);
}

} // namespace idle

/// How a connection waits for its next request: await it, then take() what has come. The wait ends
/// after a time, sooner when the server around it shuts down, although the coroutine was not
/// stopped. Bytes that have arrived win.
// A frame that is idle contains it: so it keeps no copy of what its operation or the connection
// knows.
template <class Stream>
class [[nodiscard]] idle_wait {
public:
    idle_wait(Stream& stream, connection_state& connection) noexcept
        : stream_{stream}
        , connection_{connection} {}

    auto operator co_await() & {
        return idle::receive(stream_, connection_, bytes_).operator co_await();
    }
    /// Empty: no request has come.
    [[nodiscard]] received take() noexcept { return std::move(bytes_); }

private:
    Stream& stream_;
    connection_state& connection_;
    received bytes_;
};

/// A leaf needs neither a scope nor a coroutine.
template <class Stream>
    requires simplenet::detail::leaf<decltype(std::declval<Stream&>().receive())>
class [[nodiscard]] idle_wait<Stream> final : private simplenet::detail::timer_node,
                                              private simplenet::detail::stop_waiter {
    using stop_reason = simplenet::detail::stop_reason;

public:
    idle_wait(Stream& stream, connection_state& connection) noexcept
        : timer_node{without_deadline{}}
        , operation_{stream.receive()}
        , connection_{connection} {}
    idle_wait(idle_wait&&) = delete;
    idle_wait& operator=(idle_wait&&) = delete;
    ~idle_wait() = default;

    [[nodiscard]] bool await_ready() const noexcept { return operation_.await_ready(); }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller) {
        if (!operation_.await_suspend(caller)) return false;
        auto& within = simplenet::detail::innermost_scope(caller);
        const bool is_ending = !simplenet::detail::wait_for_server_stop(within, *this);
        arm(is_ending ? connection_.last_limit() : connection_.idle_limit());
        return true;
    }
    void await_resume() noexcept {
        cancel();
        stop_waiter::unlink();
    }
    [[nodiscard]] received take() noexcept {
        result<received> bytes = operation_.await_resume();
        return bytes ? *std::move(bytes) : received{};
    }

private:
    // Called within a turn of the loop, so this is its queue.
    void arm(std::chrono::nanoseconds limit) noexcept {
        cancel();
        simplenet::detail::timed_queue::of_this_thread()->timers.insert_after(*this, limit);
    }
    // A deadline and no stop: a request that has arrived wins, even if no poll has seen it.
    void expired() noexcept override { operation_.on_stop(stop_reason::deadline); }
    void server_stops() noexcept override { arm(connection_.last_limit()); }
    bool make_room() noexcept override {
        using enum simplenet::detail::operation::state;
        if (operation_.phase == queued || operation_.phase == finished) return false; // it reads
        connection_.gives_way = true;
        cancel();
        expired();
        return true;
    }
    bool may_lose() const noexcept override {
        return simplenet::detail::has_more_to_take(operation_.native_handle());
    }

    decltype(std::declval<Stream&>().receive()) operation_;
    connection_state& connection_;
};

} // namespace simplenet::v0::http::detail
