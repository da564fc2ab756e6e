#pragma once
// A loop that the fuzzers reuse for every input: creating one costs more than an input.

#include "fuzz/fuzz.hpp"

#include <simplenet/coro/task.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/insight/dump_tasks.hpp>
#include <simplenet/runtime/event_loop.hpp>

#include <chrono>
#include <iostream>
#include <utility>

namespace simplenet::v0::fuzz {

/// The loop of this backend, or of epoll if it is unavailable. Never destroyed.
inline event_loop& shared_loop(backend which) {
    static const auto make = [](backend wanted) {
        auto made = event_loop::create({.backend = wanted, .handle_signals = false});
        if (!made) made = event_loop::create({.backend = backend::epoll, .handle_signals = false});
        return new event_loop{or_throw(std::move(made))};
    };
    static event_loop& epoll = *make(backend::epoll);
    static event_loop& uring = *make(backend::io_uring);
    return which == backend::io_uring ? uring : epoll;
}

inline task<> show_tasks() {
    dump_tasks(std::cerr);
    co_return;
}

/// Runs `main` and everything it started to the end, and checks that nothing is left.
inline void run_on(event_loop& loop, task<> main) {
    const loop_metrics before = loop.metrics();
    loop.spawn(std::move(main));
    const bool ended = loop.run_for(std::chrono::seconds{20});
    if (!ended) {
        loop.spawn(show_tasks());
        loop.poll();
    }
    FUZZ_CHECK(ended); // otherwise something hangs
    const loop_metrics after = loop.metrics();
    FUZZ_CHECK(after.live_tasks == 0 && after.live_operations == 0 && after.timers == 0);
    FUZZ_CHECK(after.open_descriptors == before.open_descriptors);
    FUZZ_CHECK(after.live_frames == 0);
}

/// Lets the loop turn `count` times: everything ready runs, and the loop polls the kernel.
inline task<> turns(std::size_t count) {
    while (count-- > 0)
        co_await yield();
}

} // namespace simplenet::v0::fuzz
