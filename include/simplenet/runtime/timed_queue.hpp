#pragma once
// timed_queue: a run_queue with a timer wheel, which is all that timers and deadlines know of the
// loop; and how they wait. Layer runtime, private.

#include <simplenet/coro/run_queue.hpp>
#include <simplenet/runtime/timer_wheel.hpp>

#include <chrono>

namespace simplenet::detail {

/// The part of an event loop that is inline in public headers.
class timed_queue : public run_queue {
public:
    /// The queue of a scope. Every run_queue of this library is a loop's.
    [[nodiscard]] static timed_queue& of(scope& within) noexcept {
        return static_cast<timed_queue&>(*within.queue);
    }

    timer_wheel timers{timer_wheel::clock::now()};
};

} // namespace simplenet::detail
