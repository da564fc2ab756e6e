#pragma once
// Awaitables with which tests force an order without sleeping, and helpers to check data.

#include <simplenet/core/buffer.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/runtime/event_loop.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {

/// Lets the loop turn `count` times: everything ready runs, and the loop polls the kernel.
inline task<> turns(int count) {
    while (count-- > 0)
        co_await yield();
}

/// Turns the loop until `happened()`; otherwise the limit of the test ends it.
template <class Predicate>
task<> until(Predicate happened) {
    while (!happened())
        co_await yield();
}

/// Turns the loop until the kernel has reported another event. Tasks that it woke are then ready
/// and run after the caller.
inline task<> next_event(event_loop& loop) {
    const auto before = loop.metrics().completions;
    while (loop.metrics().completions == before)
        co_await yield();
}

/// Appends what comes to `got`, until a read fails or is stopped.
template <class Stream>
task<> collect(Stream& from, std::string& got) {
    std::array<char, 64> buffer;
    while (const auto count = co_await from.read_some(buffer))
        got.append(buffer.data(), *count);
}

/// Returns the value after an hour; a test gets it earlier only through a stop.
inline task<int> stopped_or(int value) {
    static_cast<void>(co_await async_sleep(std::chrono::hours{1}));
    co_return value;
}

/// Blocks the thread until `moment` has passed: for limits that have passed when the loop looks.
inline void pass(std::chrono::steady_clock::time_point moment) {
    while (std::chrono::steady_clock::now() <= moment) {
    }
}

inline std::string_view text_of(const received& lease) {
    return lease.text();
}
inline std::string_view text_of(mutable_buffer bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// `size` bytes without repetitions; the same for the same seed.
inline std::string noise(std::size_t size, std::uint32_t seed = 1) {
    std::string text(size, '\0');
    std::uint32_t state = seed * 2654435761U + 1;
    for (char& each : text) {
        state = state * 1664525U + 1013904223U;
        each = static_cast<char>(state >> 24U);
    }
    return text;
}

/// Small random numbers; the seed is printed if the test fails.
class dice {
public:
    explicit dice(std::uint32_t seed)
        : engine_{seed}
        , trace_{__FILE__, __LINE__, "seed " + std::to_string(seed)} {}

    /// 0 to `most`.
    std::size_t up_to(std::size_t most) { return engine_() % (most + 1); }
    bool one_in(std::size_t count) { return up_to(count - 1) == 0; }

private:
    std::mt19937 engine_;
    ::testing::ScopedTrace trace_;
};

} // namespace simplenet::v0::testing
