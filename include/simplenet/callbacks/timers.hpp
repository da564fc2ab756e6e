#pragma once
// run_after, run_every and cancel: functions that a loop calls later. Layer callbacks.

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/core/detail/saturated.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/runtime/event_loop.hpp>
#include <simplenet/threads/with_stop.hpp>
#include <simplenet/time/sleep.hpp>

#include <chrono>
#include <concepts>
#include <stop_token>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

namespace detail {
struct timer_access;
} // namespace detail

namespace callbacks {

/// Names a timer of run_after() or run_every(), for cancel(). Copyable. Owns nothing but the name,
/// so it may outlive the timer and the loop.
class timer_id {
public:
    /// Names no timer.
    timer_id() noexcept
        : source_{std::nostopstate} {}

    /// Whether it names a timer, which may be over.
    explicit operator bool() const noexcept { return source_.stop_possible(); }
    friend bool operator==(const timer_id& left, const timer_id& right) noexcept {
        return left.source_ == right.source_;
    }

private:
    friend detail::timer_access;
    explicit timer_id(std::stop_source source) noexcept
        : source_{std::move(source)} {}

    // A stop reaches the timer from any thread, also before its loop knows of it.
    std::stop_source source_;
};

} // namespace callbacks

namespace detail {

struct timer_access {
    [[nodiscard]] static callbacks::timer_id make() {
        return callbacks::timer_id{std::stop_source{}};
    }
    [[nodiscard]] static std::stop_token token(const callbacks::timer_id& of) noexcept {
        return of.source_.get_token();
    }
    static void stop(callbacks::timer_id of) noexcept { of.source_.request_stop(); }
};

template <class Function>
task<> call_after(std::stop_token canceled, std::chrono::nanoseconds delay, Function function) {
    const result<> slept = co_await with_stop(canceled, async_sleep(delay));
    // The sleep may have been over when the timer was cancelled.
    if (slept && !canceled.stop_requested()) function();
}

template <class Function>
task<> call_every(std::stop_token canceled, std::chrono::nanoseconds period, Function function) {
    interval ticks{period};
    for (;;) {
        const result<> tick = co_await with_stop(canceled, ticks.next());
        if (!tick || canceled.stop_requested()) co_return;
        function();
    }
}

/// Starts `make()`, a task, on the loop.
template <class Make>
void start_timer(event_loop& loop, Make make) {
    if (event_loop::current() == &loop) {
        loop.spawn(make()).detach();
    } else {
        loop.post([&loop, make = std::move(make)]() mutable { loop.spawn(make()).detach(); });
    }
}

} // namespace detail

namespace callbacks {

/// Calls `function()` on the loop's thread, once, after `delay`, never earlier.
///
/// The delay counts from the moment at which the loop takes the timer: its next turn. One that is
/// not positive ends in that turn. A timer keeps the loop's run() going, like a task, which it is;
/// at the end of the loop it is dropped.
///
/// @param function  Copied or moved; called and destroyed on the loop's thread. An exception that
///                  leaves it goes to `loop_options::on_unhandled`.
/// @pre The loop lives until the call returns.
/// @return The name of the timer, for cancel().
///
/// @par Thread safety
/// Any thread.
/// @par Cost
/// A coroutine, whose frame is recycled, and an allocation for the name; on another thread also
/// that of event_loop::post().
/// @par Example
/// @snippet callbacks.cpp timers
template <class Rep, class Period, class Function>
    requires std::invocable<std::decay_t<Function>&>
timer_id run_after(event_loop& loop, std::chrono::duration<Rep, Period> delay,
                   Function&& function) {
    timer_id timer = detail::timer_access::make();
    detail::start_timer(
        loop, [token = detail::timer_access::token(timer), wait = detail::saturated(delay),
               kept = std::decay_t<Function>(std::forward<Function>(function))]() mutable {
            return detail::call_after(std::move(token), wait, std::move(kept));
        });
    return timer;
}

/// Calls `function()` on the loop's thread after each `period`, until it is cancelled.
///
/// Free of drift: the duration of the calls does not move later ones. Ticks that passed while the
/// loop was busy are skipped, as by an interval. If an exception leaves `function`, the timer ends.
/// Otherwise as run_after().
///
/// @pre `period` is positive. The loop lives until the call returns.
///
/// @par Thread safety
/// Any thread.
template <class Rep, class Period, class Function>
    requires std::invocable<std::decay_t<Function>&>
timer_id run_every(event_loop& loop, std::chrono::duration<Rep, Period> period,
                   Function&& function) {
    const std::chrono::nanoseconds every = detail::saturated(period);
    SIMPLENET_EXPECTS(every.count() > 0, "run_every() with a period that is not positive");
    timer_id timer = detail::timer_access::make();
    detail::start_timer(
        loop, [token = detail::timer_access::token(timer), every,
               kept = std::decay_t<Function>(std::forward<Function>(function))]() mutable {
            return detail::call_every(std::move(token), every, std::move(kept));
        });
    return timer;
}

/// Cancels a timer. Does nothing if it is over, or if the id names none.
///
/// On the loop's thread the function is not called any more when this returns; the function may
/// cancel its own timer. On another thread it may be running at this moment, or begin before the
/// loop sees the request; it is not called after that.
///
/// @param loop  The loop of the timer.
///
/// @par Thread safety
/// Any thread.
inline void cancel(event_loop& loop, const timer_id& timer) noexcept {
    static_cast<void>(loop); // part of the interface; the name is enough
    detail::timer_access::stop(timer);
}

} // namespace callbacks
} // namespace simplenet::v0

#pragma GCC visibility pop
