#pragma once
// manual_clock: tests hours of timeouts in no time, identically in each run. Layer testing.

#include <simplenet/core/detail/saturated.hpp>
#include <simplenet/runtime/event_loop.hpp>
#include <simplenet/time/detail/timed_queue.hpp>
#include <simplenet/time/detail/virtual_time.hpp>

#include <chrono>

#pragma GCC visibility push(default)

namespace simplenet::v0::testing {

/// The clock of a loop in a test.
///
///     manual_clock clock;
///     run(main(), {.clock = &clock});
///
/// Sleeps, intervals, time limits and idle timeouts of such a loop follow this clock. It stands
/// still while anything runs. When nothing is ready, it jumps to the next timer, so that nothing
/// sleeps; timers fire in order, at most one tick of 4.1 us late.
///
/// Real I/O works: while an operation of a socket or a descriptor waits, the clock does not jump
/// but follows real time. So use streams in memory for the code under test. The clock does not wait
/// for other threads (cross_channel, spawn_remote, post): a time limit around them expires at once.
///
/// Timers more than 73 years in the future never fire.
///
/// The clock must outlive the loop, and serves one loop at a time. Loop thread only.
///
/// @par Example
/// @snippet testing.cpp clock
class manual_clock final : public detail::virtual_time {
public:
    using time_point = detail::virtual_time::clock::time_point;

    /// Starts at the current time of the monotonic clock.
    manual_clock() noexcept = default;

    /// The loop's current time; the same as event_loop::now(). Code that computes deadlines from
    /// std::chrono::steady_clock::now() does not see it.
    using detail::virtual_time::now;

    /// The time since its construction.
    [[nodiscard]] std::chrono::nanoseconds elapsed() const noexcept { return now_ - start_; }

    /// Advances the clock by `time`. Timers that become due fire in the loop's next turn, in order.
    ///
    /// @pre `time` is not negative.
    template <class Rep, class Period>
    void advance(std::chrono::duration<Rep, Period> time) {
        const auto step = detail::saturated(time);
        SIMPLENET_EXPECTS(step >= step.zero(), "a clock cannot run backwards");
        // Timers armed in this turn count from before the advance.
        auto* const queue = detail::timed_queue::of_this_thread();
        if (queue != nullptr && queue->goes_by(*this)) queue->timers.settle(now_);
        now_ = step < time_point::max() - now_ ? now_ + step : time_point::max();
    }

    /// Whether the clock jumps by itself when nothing is ready. If not, only advance() moves it,
    /// and run() waits for I/O and other threads meanwhile.
    void set_automatic(bool automatic) noexcept {
        moved_by_ = automatic ? mover::loop : mover::owner;
    }

private:
    time_point start_ = now_;
};

} // namespace simplenet::v0::testing

#pragma GCC visibility pop
