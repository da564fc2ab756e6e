#pragma once
// virtual_time: a loop's clock if it is not the monotonic one. Layer time, private; programs use
// testing::manual_clock.

#include <simplenet/core/abi.hpp>

#include <chrono>
#include <cstdint>

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

    // owner  only its owner moves it
    // loop   the loop moves it to the next timer
    // poll   events that the loop waits for move it, but never too far
    enum class mover : std::uint8_t { owner, loop, poll };

    clock::time_point now_ = clock::now();
    mover moved_by_ = mover::loop;

private:
    friend loop;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
