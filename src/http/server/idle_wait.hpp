#pragma once
// idle_wait: how a connection waits for its next request. Layer http, private.

#include <simplenet/coro/scoped.hpp>
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
template <simplenet::detail::leaf Operation>
class [[nodiscard]] leaf_wait final : private simplenet::detail::timer_node,
                                      private simplenet::detail::stop_waiter {
    using stop_reason = simplenet::detail::stop_reason;

public:
    leaf_wait(Operation&& operation, nanoseconds limit) noexcept
        : timer_node{without_deadline{}}
        , operation_{std::move(operation)}
        , limit_{limit} {}
    leaf_wait(leaf_wait&&) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return operation_.await_ready(); }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller) {
        if (!operation_.await_suspend(caller)) return false;
        auto& within = simplenet::detail::innermost_scope(caller);
        simplenet::detail::timed_queue::of(within).timers.insert_after(*this, limit_);
        if (!simplenet::detail::wait_for_server_stop(within, *this)) server_stops();
        return true;
    }
    decltype(auto) await_resume() {
        cancel();
        stop_waiter::unlink();
        return operation_.await_resume();
    }

private:
    void expired() noexcept override { operation_.on_stop(stop_reason::deadline); }
    void server_stops() noexcept override { operation_.on_stop(stop_reason::canceled); }

    Operation operation_;
    nanoseconds limit_;
};

} // namespace idle

/// Awaits a read until `limit` has passed, or the server around it shuts down: then it fails with
/// operation_canceled, although the coroutine was not stopped. Bytes that have arrived win.
template <class Awaitable>
[[nodiscard]] auto idle_wait(Awaitable&& reading, std::chrono::nanoseconds limit) {
    if (limit <= std::chrono::nanoseconds::zero()) limit = std::chrono::nanoseconds::max();
    if constexpr (simplenet::detail::leaf<Awaitable>) {
        return idle::leaf_wait<Awaitable>{std::forward<Awaitable>(reading), limit};
    } else {
        return simplenet::detail::scoped_awaiter<Awaitable, idle::policy>{
            std::forward<Awaitable>(reading), limit};
    }
}

} // namespace simplenet::v0::http::detail
