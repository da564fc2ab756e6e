#pragma once
// test_timers: timers and moments for the tests of the timer wheel.

#include <simplenet/time/detail/timer_wheel.hpp>

#include <chrono>
#include <functional>
#include <utility>
#include <vector>

namespace simplenet::v0::detail {

inline constexpr std::chrono::nanoseconds tick{1 << 12};
inline constexpr timer_wheel::time_point start{
    std::chrono::hours{1000}}; // like a machine that has been up for a while

/// The first member of a fixture whose wheels belong to no loop. Its cancelled timers are not left
/// to the next loop of the thread.
struct wheels_without_loop {
    wheels_without_loop() = default;
    wheels_without_loop(const wheels_without_loop&) = delete;
    wheels_without_loop& operator=(const wheels_without_loop&) = delete;
    ~wheels_without_loop() { cancelled_timers = 0; }
};

/// Calls a function when it fires.
class timer final : public timer_node {
public:
    explicit timer(std::function<void()> fired = [] {})
        : fired_{std::move(fired)} {}

private:
    void expired() noexcept override { fired_(); }

    std::function<void()> fired_;
};

/// The timers that `wheel.expire(now)` returns, in order.
inline std::vector<timer_node*> expired(timer_wheel& wheel, timer_wheel::time_point now) {
    timer_list due;
    wheel.expire(now, due);
    std::vector<timer_node*> nodes;
    while (!due.empty())
        nodes.push_back(&due.pop_front());
    return nodes;
}

} // namespace simplenet::v0::detail
