#pragma once
// watchdog: one thread that notices loops which do not turn. Layer runtime, private.

#include <simplenet/core/error.hpp>

#include <atomic>
#include <cstdint>

namespace simplenet::inline v0::detail {

class loop;

/// What a loop shows the watchdog: relaxed stores on its own path, and nothing that waits.
struct loop_pulse {
    std::atomic<std::uint64_t> turns = 0;
    std::atomic<bool> active = false; // inside of run() and its like, and not waiting
    std::atomic<std::uint64_t> stalls = 0;
};

/// Has `watched`, which runs on the calling thread, watched until unwatch(); as its options say.
void watch(loop& watched);
/// Waits while a report about it is being made.
void unwatch(loop& watched) noexcept;

} // namespace simplenet::inline v0::detail
