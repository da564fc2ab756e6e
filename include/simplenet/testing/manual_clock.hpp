#pragma once
// manual_clock: hours of timeouts in no time, and the same each time. Layer testing.

#include <simplenet/core/detail/saturated.hpp>
#include <simplenet/runtime/event_loop.hpp>
#include <simplenet/time/detail/timed_queue.hpp>
#include <simplenet/time/detail/virtual_time.hpp>

#include <chrono>

#pragma GCC visibility push(default)

namespace simplenet::v0::testing {

/// The time of a loop in a test.
///
///     manual_clock clock;
///     run(main(), {.clock = &clock});
///
/// Sleeps, intervals, time limits and idle timeouts of such a loop go by this clock. It stands
/// still while anything runs. When nothing is ready it jumps to the next timer, so that nobody
/// sleeps; timers come in order, at most one tick of 4.1 us after their time.
///
/// Real I/O works, and is waited for: while an operation of a socket or a descriptor waits, the
/// clock does not jump but runs on as time does. So give code under test streams in memory. What
/// other threads do (cross_channel, spawn_remote, post) is not waited for: a limit around it
/// passes at once.
///
/// Timers that are more than 73 years away never come.
///
/// The clock outlives the loop, and goes with one loop at a time. Loop thread only.
///
/// @par Example
/// @snippet testing.cpp clock
class manual_clock final : public detail::virtual_time {
public:
    using time_point = detail::virtual_time::clock::time_point;

    /// Starts at the present of the monotonic clock.
    manual_clock() noexcept = default;

    /// Now, as the loop counts; event_loop::now() says the same. Code that works out deadlines from
    /// std::chrono::steady_clock::now() is not fooled.
    using detail::virtual_time::now;

    /// Since this was made.
    [[nodiscard]] std::chrono::nanoseconds elapsed() const noexcept { return now_ - start_; }

    /// Lets `time` pass. Timers that this makes due come in the loop's next turn, in order.
    ///
    /// @pre `time` is not negative.
    template <class Rep, class Period>
    void advance(std::chrono::duration<Rep, Period> time) {
        const auto step = detail::saturated(time);
        SIMPLENET_EXPECTS(step >= step.zero(), "time does not run backwards");
        // What began to wait in this turn began before.
        auto* const queue = static_cast<detail::timed_queue*>(detail::run_queue::current());
        if (queue != nullptr && queue->goes_by(*this)) queue->timers.settle(now_);
        now_ = step < time_point::max() - now_ ? now_ + step : time_point::max();
    }

    /// Whether the clock jumps by itself when nothing is ready. If not, it moves only in advance(),
    /// and run() waits for I/O and other threads meanwhile.
    void set_automatic(bool automatic) noexcept { automatic_ = automatic; }

private:
    time_point start_ = now_;
};

} // namespace simplenet::v0::testing

#pragma GCC visibility pop
