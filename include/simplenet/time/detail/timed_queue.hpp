#pragma once
// timed_queue: a run_queue with a timer wheel: all that timers and deadlines know of the loop, and
// how they wait. Layer time, private.

#include <simplenet/coro/detail/run_queue.hpp>
#include <simplenet/time/detail/timer_wheel.hpp>
#include <simplenet/time/detail/virtual_time.hpp>

#include <chrono>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// The part of an event loop that is inline in public headers.
class timed_queue : public run_queue {
public:
    /// Uses the monotonic clock if `time` is null.
    explicit timed_queue(virtual_time* time) noexcept
        : time_{time}
        , timers{now()} {}

    /// The queue of a scope. Every run_queue of this library is a loop's.
    [[nodiscard]] static timed_queue& of(scope& within) noexcept {
        return static_cast<timed_queue&>(*within.queue);
    }

    /// That of the loop that runs on this thread. Null if none does.
    [[nodiscard]] static timed_queue* of_this_thread() noexcept {
        return static_cast<timed_queue*>(run_queue::current());
    }

    [[nodiscard]] timer_wheel::time_point now() const noexcept {
        return time_ == nullptr ? timer_wheel::clock::now() : time_->now();
    }
    /// The current time of this thread's loop, or of the monotonic clock if there is no loop.
    [[nodiscard]] static timer_wheel::time_point present() noexcept {
        const auto* const queue = of_this_thread();
        return queue == nullptr ? timer_wheel::clock::now() : queue->now();
    }
    [[nodiscard]] bool goes_by(const virtual_time& time) const noexcept { return time_ == &time; }

protected:
    virtual_time* const time_; // borrowed; null for the monotonic clock

public:
    timer_wheel timers;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
