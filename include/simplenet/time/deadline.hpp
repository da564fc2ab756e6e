#pragma once
// with_timeout and with_deadline: a time limit for anything that can be awaited. Layer time.

#include <simplenet/coro/scoped.hpp>
#include <simplenet/time/detail/timed_queue.hpp>
#include <simplenet/time/sleep.hpp>

#include <chrono>
#include <concepts>
#include <coroutine>
#include <system_error>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

/// An `expected` that can report why its operation was stopped: the operation reports it itself.
template <class T>
concept reports_errors =
    is_expected<T> && std::constructible_from<typename T::error_type, std::error_code>;

/// The result of an awaitable that can be stopped from outside: its own if that can hold an error,
/// otherwise `result<T>`, in which `code` replaces a value that came too late or never.
template <class Resume>
auto finish_stopped(Resume& resume, bool stopped, std::error_code code) {
    using value = std::remove_cvref_t<std::invoke_result_t<Resume&>>;
    using returned = std::conditional_t<reports_errors<value>, value, result<value>>;
    try {
        if constexpr (reports_errors<value>) {
            return static_cast<returned>(resume());
        } else if constexpr (std::is_void_v<value>) {
            resume();
            return stopped ? returned{fail(code)} : returned{};
        } else {
            value held = resume();
            return stopped ? returned{fail(code)} : returned{std::move(held)};
        }
    } catch (const work_prevented&) { // also from within a task
        if (!stopped) throw;
        return returned{std::unexpect, code};
    }
}

/// Stops a scope when a timer fires. `Limit` determines how the timer is armed.
template <class Limit>
class limit_policy final : public timer_node {
public:
    explicit limit_policy(Limit limit) noexcept
        : limit_{limit} {}
    limit_policy(limit_policy&& other) noexcept
        : limit_{other.limit_} {}

    static stop_reason inherits(stop_reason reason) noexcept { return reason; }
    void entered(scope& inner) noexcept { inner_ = &inner; }
    void suspended(scope& inner) noexcept {
        timer_wheel& timers = timed_queue::of(inner).timers;
        if constexpr (std::same_as<Limit, std::chrono::nanoseconds>) {
            timers.insert_after(*this, limit_);
        } else {
            timers.insert(*this, limit_);
        }
    }
    void leaving() noexcept { cancel(); }
    auto finish(auto&& resume) {
        return finish_stopped(resume, passed_, make_error_code(errc::deadline_exceeded));
    }

private:
    void expired() noexcept override {
        passed_ = true;
        inner_->stop(stop_reason::deadline);
    }

    Limit limit_;
    scope* inner_ = nullptr; // of the awaiter that contains this
    bool passed_ = false;
};

/// An operation that suspends only by itself, so it needs no scope to be stopped.
template <class Awaitable>
concept leaf =
    std::derived_from<Awaitable, suspension> && requires { typename Awaitable::is_leaf; };

/// Awaits a leaf with a limit: the timer stops the operation itself.
// Most awaits with a limit are reads and writes: this saves them entering and leaving a scope, four
// fifths of what the limit costs.
template <leaf Operation, class Limit>
class [[nodiscard]] limited_operation final : private timer_node {
public:
    limited_operation(Operation&& operation, Limit limit) noexcept
        : timer_node{without_deadline{}}
        , operation_{std::move(operation)}
        , limit_{limit} {}
    limited_operation(limited_operation&& other) noexcept
        : timer_node{without_deadline{}}
        , operation_{std::move(other.operation_)}
        , limit_{other.limit_} {}

    bool await_ready() const noexcept { return operation_.await_ready(); }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept(starts_nothrow<Promise>) {
        if constexpr (std::is_void_v<decltype(operation_.await_suspend(caller))>) {
            await_suspend_at(operation_, caller, at);
        } else {
            if (!await_suspend_at(operation_, caller, at)) return false;
        }
        timer_wheel& timers = timed_queue::of(innermost_scope(caller)).timers;
        if constexpr (std::same_as<Limit, std::chrono::nanoseconds>) {
            timers.insert_after(*this, limit_);
        } else {
            timers.insert(*this, limit_);
        }
        return true;
    }
    decltype(auto) await_resume() {
        cancel();
        return operation_.await_resume();
    }

private:
    // Some awaitables create a coroutine when they start.
    template <class Promise>
    static constexpr bool starts_nothrow =
        noexcept(std::declval<Operation&>().await_suspend(std::coroutine_handle<Promise>{}));

    void expired() noexcept override { operation_.on_stop(stop_reason::deadline); }

    Operation operation_;
    Limit limit_;
};

template <class Awaitable, class Limit>
auto limited(Awaitable&& awaitable, Limit limit) {
    if constexpr (leaf<Awaitable> && reports_errors<await_result<Awaitable>>) {
        return limited_operation<Awaitable, Limit>{std::forward<Awaitable>(awaitable), limit};
    } else {
        return scoped_awaiter<Awaitable, limit_policy<Limit>>{std::forward<Awaitable>(awaitable),
                                                              limit};
    }
}

} // namespace detail

inline namespace runtime {

/// Awaits `awaitable`, and stops it when `limit` has passed.
///
/// The limit counts from the moment the awaitable has to wait: available data is never refused.
/// Stopped work is joined: when the await returns, none of it is running any more. Nested limits
/// compose; the earliest wins.
///
/// @return For an awaitable of `expected<U, E>` with an `E` made from std::error_code: its own
///         result; operations that the limit stopped fail with `errc::deadline_exceeded`, and
///         operations that succeeded nevertheless report success. For any other `T`: `result<T>`,
///         which is `errc::deadline_exceeded` if the limit passed before the end; the value is
///         dropped.
/// @par Cancellation
/// A stop from outside reaches the awaitable as without a limit.
/// @par Cost
/// Constant time, no allocation, no coroutine, no system call.
/// @par Example
/// @snippet connect_with_timeout.cpp connect
template <detail::awaitable Awaitable, class Rep, class Period>
[[nodiscard]] auto with_timeout(Awaitable awaitable, std::chrono::duration<Rep, Period> limit) {
    return detail::limited(std::move(awaitable), detail::saturated(limit));
}

/// Like with_timeout(), with a point in time of the monotonic clock.
template <detail::awaitable Awaitable>
[[nodiscard]] auto with_deadline(Awaitable awaitable,
                                 std::chrono::steady_clock::time_point deadline) {
    return detail::limited(std::move(awaitable), deadline);
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
