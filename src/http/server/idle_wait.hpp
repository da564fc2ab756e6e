#pragma once
// idle_wait: how a connection waits for its next request. Layer http, private.

#include <simplenet/coro/scoped.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/server/server_stop.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/detail/timed_queue.hpp>

#include <chrono>
#include <coroutine>
#include <type_traits>
#include <utility>

namespace simplenet::v0::http::detail {

namespace idle {

using nanoseconds = std::chrono::nanoseconds;

/// Ends a read, in a scope of its own, after a time or when the server shuts down.
class policy final : public simplenet::detail::timer_node, public simplenet::detail::stop_waiter {
    using scope = simplenet::detail::scope;
    using stop_reason = simplenet::detail::stop_reason;

public:
    explicit policy(nanoseconds limit) noexcept
        : limit_{limit} {}
    policy(policy&& other) noexcept
        : limit_{other.limit_} {}

    static stop_reason inherits(stop_reason reason) noexcept { return reason; }
    void entered(scope& inner) noexcept { inner_ = &inner; }
    void suspended(scope& inner) noexcept {
        simplenet::detail::timed_queue::of(inner).timers.insert_after(*this, limit_);
        if (!simplenet::detail::wait_for_server_stop(inner, *this)) server_stops();
    }
    void leaving() noexcept {
        cancel();
        simplenet::detail::stop_waiter::unlink();
    }
    auto finish(auto&& resume) { return resume(); }

private:
    void expired() noexcept override { inner_->stop(stop_reason::deadline); }
    void server_stops() noexcept override { inner_->stop(stop_reason::canceled); }

    nanoseconds limit_;
    scope* inner_ = nullptr; // of the awaiter that contains this
};

/// The same for a leaf, which needs no scope.
template <class Stream>
class [[nodiscard]] leaf_receive final : private simplenet::detail::timer_node,
                                         private simplenet::detail::stop_waiter {
    using stop_reason = simplenet::detail::stop_reason;

public:
    // Makes the operation in place, and tells only whether there are bytes: a frame would keep the
    // places of an operation that is moved, and of a result.
    leaf_receive(Stream& stream, nanoseconds limit, received& into) noexcept
        : timer_node{without_deadline{}}
        , operation_{stream.receive()}
        , limit_{limit}
        , into_{into} {}
    leaf_receive(leaf_receive&&) = delete;
    leaf_receive& operator=(leaf_receive&&) = delete;
    ~leaf_receive() = default;

    [[nodiscard]] bool await_ready() const noexcept { return operation_.await_ready(); }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller) {
        if (!operation_.await_suspend(caller)) return false;
        auto& within = simplenet::detail::innermost_scope(caller);
        simplenet::detail::timed_queue::of(within).timers.insert_after(*this, limit_);
        if (!simplenet::detail::wait_for_server_stop(within, *this)) server_stops();
        return true;
    }
    bool await_resume() {
        cancel();
        stop_waiter::unlink();
        result<received> bytes = operation_.await_resume();
        if (bytes) into_ = *std::move(bytes);
        return bytes.has_value();
    }

private:
    void expired() noexcept override { operation_.on_stop(stop_reason::deadline); }
    void server_stops() noexcept override { operation_.on_stop(stop_reason::canceled); }

    decltype(std::declval<Stream&>().receive()) operation_;
    const nanoseconds limit_;
    received& into_;
};

/// For streams whose receive() is a task.
template <class Stream>
task<bool> receive_as_task(Stream& stream, nanoseconds limit, received& into) {
    using receiving = decltype(stream.receive());
    result<received> bytes =
        co_await simplenet::detail::scoped_awaiter<receiving, policy>{stream.receive(), limit};
    if (bytes) into = *std::move(bytes);
    co_return bytes.has_value();
}

} // namespace idle

/// Receives until `limit` has passed, or the server around it shuts down, although the coroutine
/// was not stopped. Bytes that have arrived win.
///
/// @return An awaitable of `bool`: whether `into` has bytes.
template <class Stream>
[[nodiscard]] auto idle_receive(Stream& stream, std::chrono::nanoseconds limit, received& into) {
    if (limit <= std::chrono::nanoseconds::zero()) limit = std::chrono::nanoseconds::max();
    if constexpr (simplenet::detail::leaf<decltype(stream.receive())>) {
        return idle::leaf_receive<Stream>{stream, limit, into};
    } else {
        return idle::receive_as_task(stream, limit, into);
    }
}

} // namespace simplenet::v0::http::detail
