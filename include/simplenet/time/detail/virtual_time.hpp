#pragma once
// virtual_time: a loop's clock if it is not the monotonic one. Layer time, private; programs use
// testing::manual_clock.

#include <chrono>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::detail {
// Internal: not exported, because it is first declared here.
class loop;
} // namespace simplenet::v0::detail

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

class timed_queue;

/// A point in time that moves only on request, or by the loop that uses it.
class virtual_time {
public:
    using clock = std::chrono::steady_clock;

    virtual_time(const virtual_time&) = delete;
    virtual_time& operator=(const virtual_time&) = delete;

    [[nodiscard]] clock::time_point now() const noexcept { return now_; }

protected:
    virtual_time() noexcept = default;
    ~virtual_time() = default;

    clock::time_point now_ = clock::now();
    bool automatic_ = true;      // the loop moves it to the next timer
    bool moved_by_poll_ = false; // events that the loop waits for move it, but never too far

private:
    friend loop;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
