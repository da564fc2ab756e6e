#pragma once
// virtual_time: what a loop goes by if it is not the monotonic clock. Layer time, private;
// programs use testing::manual_clock.

#include <chrono>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::detail {
// The library's own: not exported, since it is first named here.
class loop;
} // namespace simplenet::v0::detail

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

class timed_queue;

/// A point in time that moves only when it is told to, or by the loop that goes by it.
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
    bool moved_by_poll_ = false; // what the loop waits for moves it, and never further than it may

private:
    friend loop;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
