#include <simplenet/callbacks/timers.hpp>

#include "support/backend_test.hpp"
#include "support/background_loop.hpp"
#include "support/coroutines.hpp"

#include <simplenet/testing/manual_clock.hpp>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using callbacks::cancel;
using callbacks::run_after;
using callbacks::run_every;
using callbacks::timer_id;
using testing::all_backends;
using testing::backend_name;
using ::testing::ElementsAre;
using testing::turns;

class timers_test : public testing::backend_test {
protected:
    void SetUp() override {
        backend_test::SetUp();
        if (!IsSkipped()) remake_loop({.clock = &clock_});
    }
    /// Whole milliseconds since the beginning; a timer is at most a tick of 4 us late.
    [[nodiscard]] int now_ms() const { return static_cast<int>(clock_.elapsed() / 1ms); }

    testing::manual_clock clock_;
};

TEST_P(timers_test, functions_are_called_once_in_the_order_of_their_times) {
    std::vector<int> times;
    run([&]() -> task<> {
        const auto note = [&] { times.push_back(now_ms()); };
        run_after(loop(), 30ms, note);
        run_after(loop(), 10ms, note);
        run_after(loop(), 20ms, note);
        run_after(loop(), 0ms, note);
        run_after(loop(), -1h, note);
        co_await async_sleep(100ms);
    });
    EXPECT_THAT(times, ElementsAre(0, 0, 10, 20, 30));
}

TEST_P(timers_test, a_timer_can_be_set_before_the_loop_runs_and_keeps_it_running) {
    bool called = false;
    run_after(loop(), 1h, [&] { called = true; });
    run([]() -> task<> { co_return; });
    EXPECT_TRUE(called);
    EXPECT_GE(clock_.elapsed(), 1h);
}

TEST_P(timers_test, a_repeated_function_is_called_without_drift_until_it_is_cancelled) {
    std::vector<int> times;
    run([&]() -> task<> {
        const timer_id timer = run_every(loop(), 10ms, [&] {
            times.push_back(now_ms());
            if (times.size() == 2) clock_.advance(35ms); // busy: ticks pass
        });
        co_await async_sleep(75ms);
        cancel(loop(), timer);
        co_await async_sleep(75ms);
    });
    EXPECT_THAT(times, ElementsAre(10, 20, 55, 60, 70));
}

TEST_P(timers_test, a_cancelled_function_is_not_called_and_does_not_keep_the_loop) {
    run([&]() -> task<> {
        const timer_id once = run_after(loop(), 1h, [] { ADD_FAILURE(); });
        const timer_id often = run_every(loop(), 1h, [] { ADD_FAILURE(); });
        const timer_id soon = run_after(loop(), 1h, [] { ADD_FAILURE(); });
        cancel(loop(), soon); // not begun yet
        co_await turns(2);
        cancel(loop(), once);
        cancel(loop(), often);
        cancel(loop(), often);
    });
    EXPECT_LT(clock_.elapsed(), 1h);
}

TEST_P(timers_test, a_timer_that_is_due_can_still_be_cancelled) {
    run([&]() -> task<> {
        timer_id second;
        run_after(loop(), 10ms, [&] { cancel(loop(), second); });
        second = run_after(loop(), 10ms, [] { ADD_FAILURE(); });
        co_await async_sleep(20ms);
    });
}

TEST_P(timers_test, a_function_can_cancel_its_own_timer_and_set_others) {
    int calls = 0;
    int others = 0;
    run([&]() -> task<> {
        timer_id timer;
        timer = run_every(loop(), 1ms, [&] {
            run_after(loop(), 1ms, [&] { ++others; });
            if (++calls == 3) cancel(loop(), timer);
        });
        co_await async_sleep(1s);
    });
    EXPECT_EQ(calls, 3);
    EXPECT_EQ(others, 3);
}

TEST_P(timers_test, ids_are_values) {
    const timer_id none;
    EXPECT_FALSE(none);
    cancel(loop(), none);
    const timer_id first = run_after(loop(), 1h, [] {});
    const timer_id second = run_after(loop(), 1h, [] {});
    const timer_id copy = first;
    EXPECT_TRUE(first);
    EXPECT_TRUE(copy == first);
    EXPECT_FALSE(first == second);
    EXPECT_FALSE(first == none);
    cancel(loop(), copy);
    destroy_loop();
    EXPECT_TRUE(first);
}

TEST_P(timers_test, the_end_of_the_loop_drops_timers_and_their_functions) {
    auto held = std::make_shared<int>();
    run([&]() -> task<> {
        run_after(loop(), 1h, [held] { ADD_FAILURE(); });
        run_every(loop(), 1h, [held] { ADD_FAILURE(); });
        co_await turns(2);
        loop().stop();
    });
    run_after(loop(), 1h, [held] { ADD_FAILURE(); }); // never begun
    EXPECT_EQ(held.use_count(), 4);
    destroy_loop();
    EXPECT_EQ(held.use_count(), 1);
}

TEST_P(timers_test, functions_that_cannot_be_copied_are_moved) {
    int sum = 0;
    run([&]() -> task<> {
        run_after(loop(), 1ms, [own = std::make_unique<int>(7), &sum] { sum += *own; });
        co_await async_sleep(2ms);
    });
    EXPECT_EQ(sum, 7);
}

TEST_P(timers_test, an_exception_goes_to_the_loop) {
    static int unhandled = 0;
    unhandled = 0;
    remake_loop({.clock = &clock_, .on_unhandled = [](std::exception_ptr) { ++unhandled; }});
    run([&]() -> task<> {
        run_after(loop(), 1ms, [] { throw std::runtime_error{"once"}; });
        run_every(loop(), 1ms, [] { throw std::runtime_error{"often"}; });
        co_await async_sleep(10ms);
    });
    EXPECT_EQ(unhandled, 2);
}

TEST_P(timers_test, a_period_that_is_not_positive_is_a_violation) {
    EXPECT_DEATH(run_every(loop(), 0s, [] {}), "a period that is not positive");
}

// --- other threads -------------------------------------------------------------------------------

class remote_timers_test : public testing::own_loops_test {};

TEST_P(remote_timers_test, other_threads_set_and_cancel_timers) {
    testing::background_loop loop{{.backend = GetParam()}};
    std::latch called{2};
    std::thread::id where;
    const auto start = std::chrono::steady_clock::now();
    run_after(*loop, 5ms, [&] {
        where = std::this_thread::get_id();
        EXPECT_GE(std::chrono::steady_clock::now() - start, 5ms);
        called.count_down();
    });
    std::atomic<int> ticks = 0;
    const timer_id often = run_every(*loop, 1ms, [&] {
        if (++ticks == 3) called.count_down();
    });
    const timer_id never = run_after(*loop, 1h, [] { ADD_FAILURE(); });
    cancel(*loop, never);
    called.wait();
    cancel(*loop, often);
    EXPECT_NE(where, std::this_thread::get_id());

    // What was posted before a later post has been seen by then.
    std::latch seen{1};
    loop->post([&] { seen.count_down(); });
    seen.wait();
    std::latch turned{1};
    run_after(*loop, 5ms, [&] { turned.count_down(); });
    const int before = ticks;
    turned.wait();
    EXPECT_LE(ticks, before + 1);
}

TEST_P(remote_timers_test, many_threads_race_with_the_timers_they_cancel) {
    const auto held = std::make_shared<std::atomic<int>>(); // calls
    {
        testing::background_loop loop{{.backend = GetParam()}};
        std::vector<std::jthread> threads;
        for (int each = 0; each < 4; ++each) {
            threads.emplace_back([&] {
                for (int round = 0; round < 500; ++round) {
                    const auto once = run_after(*loop, 1us * (round % 50), [held] { ++*held; });
                    const auto often = run_every(*loop, 10us, [held] { ++*held; });
                    if (round % 2 == 0) std::this_thread::yield();
                    cancel(*loop, once);
                    cancel(*loop, often);
                }
            });
        }
    } // joins, then ends the loop
    EXPECT_EQ(held.use_count(), 1) << "a function was not destroyed, after " << *held << " calls";
}

INSTANTIATE_TEST_SUITE_P(backends, timers_test, all_backends, backend_name);
INSTANTIATE_TEST_SUITE_P(backends, remote_timers_test, testing::real_backends, backend_name);

} // namespace
} // namespace simplenet::v0
