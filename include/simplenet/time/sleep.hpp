#pragma once
// async_sleep, async_sleep_until and interval: waiting for a time. Layer time. They use only the
// monotonic clock, and no timer fires early.

#include <simplenet/core/detail/saturated.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/time/detail/timed_queue.hpp>

#include <chrono>
#include <coroutine>
#include <string>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

/// Waits for a deadline. Base of the awaitables below.
class sleep_base : public suspension, protected timer_node {
public:
    using is_leaf = void; // see with_timeout()
    static bool await_ready() noexcept { return false; }

    void on_stop(stop_reason reason) noexcept final;
    void describe(std::string& text) final;

protected:
    sleep_base() noexcept = default;
    sleep_base(sleep_base&&) noexcept = default;
    ~sleep_base() = default;

    /// False: refused, and already on the ready list.
    bool begin(std::coroutine_handle<> caller, scope& within) noexcept;
    [[nodiscard]] result<> outcome() const noexcept;

private:
    void expired() noexcept final { within_->queue->push(*this); }

    stop_reason stopped_ = stop_reason::none;
};

/// Awaitable of async_sleep(); the contract is documented there.
class [[nodiscard]] sleep_operation final : public sleep_base,
                                            public awaited_from_outside<sleep_operation> {
public:
    explicit sleep_operation(std::chrono::nanoseconds delay) noexcept
        : delay_{delay} {}

    using awaited_from_outside<sleep_operation>::await_suspend;
    template <own_promise Promise>
    void await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept {
        scope& within = scope_of(caller, at);
        if (begin(caller, within)) timed_queue::of(within).timers.insert_after(*this, delay_);
    }
    result<> await_resume() const noexcept { return outcome(); }

private:
    std::chrono::nanoseconds delay_;
};

/// Awaitable of async_sleep_until(); the contract is documented there.
class [[nodiscard]] sleep_until_operation final
    : public sleep_base,
      public awaited_from_outside<sleep_until_operation> {
public:
    explicit sleep_until_operation(timer_wheel::time_point deadline) noexcept
        : deadline_{deadline} {}

    using awaited_from_outside<sleep_until_operation>::await_suspend;
    template <own_promise Promise>
    void await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept {
        scope& within = scope_of(caller, at);
        if (begin(caller, within)) timed_queue::of(within).timers.insert(*this, deadline_);
    }
    result<> await_resume() const noexcept { return outcome(); }

private:
    timer_wheel::time_point deadline_;
};

} // namespace detail

inline namespace runtime {

/// Waits for `delay`, never less, and at most about 4 us more, plus the delay of the kernel.
///
/// A delay that is not positive lets the loop turn once. A delay beyond the clock's range never
/// ends by itself.
///
/// @return An awaitable of `result<>`.
///
/// @par Errors
/// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came first.
/// @par Cancellation
/// A stop ends the sleep at once. A sleep that is over is a success, even if its coroutine has not
/// resumed yet.
/// @par Cost
/// Constant time; no system call of its own, no allocation.
template <class Rep, class Period>
[[nodiscard]] detail::sleep_operation
async_sleep(std::chrono::duration<Rep, Period> delay) noexcept {
    return detail::sleep_operation{detail::saturated(delay)};
}

/// Waits until `deadline` of the monotonic clock; if it has passed, the loop turns once.
///
/// @return An awaitable of `result<>`.
///
/// @par Errors
/// Those of async_sleep().
[[nodiscard]] inline detail::sleep_until_operation
async_sleep_until(std::chrono::steady_clock::time_point deadline) noexcept {
    return detail::sleep_until_operation{deadline};
}

/// Ticks at `start + period`, `start + 2 * period` and so on, where `start` is the time of
/// construction.
///
/// Free of drift: the duration of the work between two ticks does not move later ticks. Ticks that
/// passed before next() was called are skipped, so a stall is not followed by a burst. Loop thread
/// only.
///
/// @par Example
///     interval every{1s};
///     while (co_await every.next()) report();
class interval {
public:
    class next_operation;

    /// @pre `period` is positive.
    template <class Rep, class Period>
    explicit interval(std::chrono::duration<Rep, Period> period)
        : interval{detail::saturated(period), nullptr} {}

    /// Waits for the next tick. If a stop comes first, the tick is not used up.
    ///
    /// @return An awaitable of `result<>`.
    ///
    /// @par Errors
    /// Those of async_sleep().
    /// @pre The interval outlives the await.
    [[nodiscard]] next_operation next() noexcept;

    [[nodiscard]] std::chrono::nanoseconds period() const noexcept { return period_; }

private:
    interval(std::chrono::nanoseconds period, std::nullptr_t);

    /// The first tick that is not in the past.
    std::chrono::steady_clock::time_point
    upcoming(std::chrono::steady_clock::time_point now) noexcept;

    std::chrono::nanoseconds period_;
    std::chrono::steady_clock::time_point tick_; // the next one
};

/// Awaitable of interval::next(); the contract is documented there.
class [[nodiscard]] interval::next_operation final
    : public detail::sleep_base,
      public detail::awaited_from_outside<next_operation> {
public:
    explicit next_operation(interval& of) noexcept
        : interval_{&of} {}

    using detail::awaited_from_outside<next_operation>::await_suspend;
    template <detail::own_promise Promise>
    void await_suspend(std::coroutine_handle<Promise> caller,
                       detail::await_site at = detail::await_site::current()) noexcept {
        detail::scope& within = detail::scope_of(caller, at);
        if (!begin(caller, within)) return;
        detail::timed_queue& queue = detail::timed_queue::of(within);
        queue.timers.insert(*this, interval_->upcoming(queue.now()));
    }
    result<> await_resume() noexcept {
        const result<> ended = outcome();
        if (ended) interval_->tick_ += interval_->period_;
        return ended;
    }

private:
    interval* interval_; // borrowed
};

inline interval::next_operation interval::next() noexcept {
    return next_operation{*this};
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
