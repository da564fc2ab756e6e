#include <simplenet/time/sleep.hpp>

#include "support/backend_test.hpp"
#include "support/error_of.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/time/deadline.hpp>

#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <sys/resource.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using ::testing::ElementsAre;

class sleep_test : public backend_test {};

// Only the lower bound of real time can be asserted.
TEST_P(sleep_test, never_ends_early) {
    run([]() -> task<> {
        for (const auto delay : {1ns, 999ns, 16'385ns, 1'000'000ns, 5'000'001ns}) {
            const auto start = clock::now();
            EXPECT_TRUE(co_await async_sleep(delay));
            EXPECT_GE(clock::now() - start, delay);
        }
    });
}

// Falling asleep and waking up takes longer, and the kernel's timers are late by 50 us.
TEST_P(sleep_test, the_thread_does_not_sleep_for_less_than_a_tick) {
    const auto sleeps_of_the_thread = [] {
        rusage used{};
        ::getrusage(RUSAGE_THREAD, &used);
        return used.ru_nvcsw;
    };
    run([&]() -> task<> {
        const auto before = sleeps_of_the_thread();
        for (int round = 0; round < 100; ++round)
            EXPECT_TRUE(co_await async_sleep(1ns));
        EXPECT_LE(sleeps_of_the_thread() - before, 5); // a lock may cause some
    });
}

// Waits of a second and more are passed to the kernel in parts.
TEST_P(sleep_test, a_long_sleep_does_not_end_early) {
    run([]() -> task<> {
        const auto start = clock::now();
        EXPECT_TRUE(co_await async_sleep(1050ms));
        EXPECT_GE(clock::now() - start, 1050ms);
    });
}

TEST_P(sleep_test, until_never_ends_early) {
    run([]() -> task<> {
        for (int round = 0; round < 20; ++round) {
            const auto deadline = clock::now() + round * 137us;
            EXPECT_TRUE(co_await async_sleep_until(deadline));
            EXPECT_GE(clock::now(), deadline);
        }
    });
}

TEST_P(sleep_test, many_concurrent_sleeps_do_not_end_early) {
    run([]() -> task<> {
        task_group group;
        auto sleeper = [](clock::duration delay) -> task<> {
            const auto start = clock::now();
            EXPECT_TRUE(co_await async_sleep(delay));
            EXPECT_GE(clock::now() - start, delay);
        };
        for (int number = 0; number < 500; ++number)
            group.spawn(sleeper(std::chrono::microseconds{number * 7919 % 20'000}));
        EXPECT_TRUE(co_await group.join());
    });
}

TEST_P(sleep_test, a_duration_that_is_not_positive_lets_the_loop_turn_once) {
    run([this]() -> task<> {
        for (const auto delay : {0ns, -1ns, -5'000'000'000ns, std::chrono::nanoseconds::min()}) {
            const auto before = loop().metrics().turns;
            EXPECT_TRUE(co_await async_sleep(delay));
            EXPECT_GE(loop().metrics().turns, before + 1);
            EXPECT_LE(loop().metrics().turns, before + 2);
        }
        EXPECT_TRUE(co_await async_sleep(std::chrono::hours::min()));
        EXPECT_TRUE(co_await async_sleep(std::chrono::duration<double>{-1e300}));
        EXPECT_TRUE(co_await async_sleep_until(clock::time_point{}));
        EXPECT_TRUE(co_await async_sleep_until(clock::time_point::min()));
    });
}

template <class Duration>
task<> never_ends(Duration delay) {
    const auto outcome = co_await async_sleep(delay);
    EXPECT_EQ(error_of(outcome), std::errc::operation_canceled);
}

// An overflow would make them short.
TEST_P(sleep_test, the_longest_durations_of_every_kind_do_not_end) {
    std::vector<join_handle<void>> handles;
    handles.push_back(loop().spawn(never_ends(std::chrono::nanoseconds::max())));
    handles.push_back(loop().spawn(never_ends(std::chrono::microseconds::max())));
    handles.push_back(loop().spawn(never_ends(std::chrono::hours::max())));
    handles.push_back(loop().spawn(never_ends(std::chrono::years{1'000'000})));
    handles.push_back(loop().spawn(never_ends(std::chrono::duration<double>{1e300})));
    handles.push_back(loop().spawn(
        never_ends(std::chrono::duration<double>{std::numeric_limits<double>::infinity()})));
    handles.push_back(
        loop().spawn(never_ends(std::chrono::duration<std::uint64_t>{std::uint64_t{1} << 63})));
    handles.push_back(
        loop().spawn(never_ends(std::chrono::duration<std::int8_t, std::ratio<3600>>{127})));

    for (int turn = 0; turn < 5; ++turn)
        loop().poll();

    for (auto& each : handles) {
        EXPECT_FALSE(each.done());
        each.request_stop();
    }
    loop().run();
}

TEST_P(sleep_test, until_the_end_of_time_does_not_end) {
    auto body = []() -> task<> {
        const auto outcome = co_await async_sleep_until(clock::time_point::max());
        EXPECT_EQ(error_of(outcome), std::errc::operation_canceled);
    };
    auto handle = loop().spawn(body());
    for (int turn = 0; turn < 5; ++turn)
        loop().poll();

    EXPECT_FALSE(handle.done());
}

TEST_P(sleep_test, durations_are_rounded_up) {
    run([]() -> task<> {
        const auto start = clock::now();
        EXPECT_TRUE(co_await async_sleep(std::chrono::duration<double, std::milli>{1.5}));
        EXPECT_GE(clock::now() - start, 1500us);
        const auto again = clock::now();
        EXPECT_TRUE(co_await async_sleep(std::chrono::duration<int, std::ratio<1, 300>>{1}));
        EXPECT_GE(clock::now() - again, 3'333'333ns);
    });
}

TEST_P(sleep_test, sleepers_wake_in_the_order_of_their_deadlines) {
    std::vector<int> order;
    run([&]() -> task<> {
        task_group group;
        const auto start = clock::now();
        auto sleeper = [&](int ms) -> task<> {
            EXPECT_TRUE(co_await async_sleep_until(start + std::chrono::milliseconds{ms}));
            order.push_back(ms);
        };
        for (const int ms : {8, 2, 6, 4})
            group.spawn(sleeper(ms));
        EXPECT_TRUE(co_await group.join());
    });

    EXPECT_THAT(order, ElementsAre(2, 4, 6, 8));
}

TEST_P(sleep_test, a_stop_ends_it_at_once) {
    run([]() -> task<> {
        auto handle = spawn(never_ends(1h));
        co_await yield();
        handle.request_stop();
        co_await handle;
    });
    EXPECT_EQ(loop().metrics().timers, 0U);
}

TEST_P(sleep_test, after_a_stop_every_sleep_is_refused) {
    run([]() -> task<> {
        auto body = []() -> task<> {
            for (int round = 0; round < 3; ++round) {
                EXPECT_EQ(error_of(co_await async_sleep(0s)), std::errc::operation_canceled);
                EXPECT_EQ(error_of(co_await async_sleep_until({})), std::errc::operation_canceled);
            }
        };
        auto handle = spawn(body());
        handle.request_stop();
        co_await handle;
    });
}

TEST_P(sleep_test, a_deadline_that_ends_it_is_its_error) {
    run([]() -> task<> {
        EXPECT_EQ(error_of(co_await with_timeout(async_sleep(1h), 1ms)), errc::deadline_exceeded);
    });
}

TEST_P(sleep_test, a_hundred_thousand_tasks_can_sleep) {
    int woken = 0;
    auto sleeper = [](int& count, int number) -> task<> {
        EXPECT_TRUE(co_await async_sleep(std::chrono::microseconds{number % 10'000}));
        ++count;
    };
    run(
        [&]() -> task<> {
            task_group group;
            for (int number = 0; number < 100'000; ++number)
                group.spawn(sleeper(woken, number));
            EXPECT_TRUE(co_await group.join());
        },
        10 * test_limit);

    EXPECT_EQ(woken, 100'000);
    EXPECT_EQ(loop().metrics().timers, 0U);
}

TEST_P(sleep_test, a_hundred_thousand_sleeping_tasks_can_be_stopped) {
    int stopped = 0;
    auto sleeper = [&]() -> task<> { stopped += !co_await async_sleep(1h); };
    run(
        [&]() -> task<> {
            task_group group;
            for (int number = 0; number < 100'000; ++number)
                group.spawn(sleeper());
            co_await yield();
            EXPECT_EQ(loop().metrics().timers, 100'000U);
            group.request_stop();
            EXPECT_TRUE(co_await group.join());
        },
        10 * test_limit);

    EXPECT_EQ(stopped, 100'000);
    EXPECT_EQ(loop().metrics().timers, 0U);
}

// --- interval

TEST_P(sleep_test, an_interval_ticks_at_multiples_of_its_period_after_its_construction) {
    run([]() -> task<> {
        const auto start = clock::now();
        interval every{2ms};
        for (int tick = 1; tick <= 5; ++tick) {
            EXPECT_TRUE(co_await every.next());
            EXPECT_GE(clock::now(), start + tick * 2ms);
        }
        EXPECT_EQ(every.period(), 2ms);
    });
}

TEST_P(sleep_test, an_interval_skips_the_ticks_that_were_missed) {
    run([]() -> task<> {
        interval every{3ms};
        const auto start = clock::now();
        EXPECT_TRUE(co_await async_sleep(16ms)); // at least five ticks have passed
        EXPECT_TRUE(co_await every.next());      // the last of them, at once
        const auto late = clock::now();
        int burst = 0;
        while (clock::now() - late < 1ms && burst < 5) {
            EXPECT_TRUE(co_await every.next());
            ++burst;
        }
        // Two ticks in a row may be close to each other, but five only if they were saved up.
        EXPECT_LT(burst, 5);
        EXPECT_GE(clock::now() - start, 18ms);
    });
}

TEST_P(sleep_test, a_tick_that_was_stopped_is_not_used_up) {
    run([]() -> task<> {
        const auto start = clock::now();
        interval every{100ms}; // so that a thread that is delayed still arrives before the tick
        EXPECT_EQ(error_of(co_await with_timeout(every.next(), 1ms)), errc::deadline_exceeded);
        EXPECT_EQ(error_of(co_await with_timeout(every.next(), 1ms)), errc::deadline_exceeded);

        EXPECT_TRUE(co_await every.next());
        // The first tick and not the third; later only if this thread was delayed.
        EXPECT_GE(clock::now(), start + 100ms);
        EXPECT_TRUE(co_await every.next());
        EXPECT_GE(clock::now(), start + 200ms);
    });
}

TEST_P(sleep_test, an_interval_may_have_any_period_that_is_positive) {
    run([]() -> task<> {
        interval tiny{1ns};
        for (int tick = 0; tick < 10; ++tick)
            EXPECT_TRUE(co_await tiny.next());
        for (interval huge : {interval{std::chrono::hours::max()}, interval{1000000h},
                              interval{std::chrono::nanoseconds::max()}}) {
            EXPECT_EQ(error_of(co_await with_timeout(huge.next(), 1us)), errc::deadline_exceeded);
        }
    });
}

TEST_P(sleep_test, an_interval_whose_period_is_not_positive_stops_the_program) {
    EXPECT_DEATH(interval{0s}, "an interval's period must be positive");
    EXPECT_DEATH(interval{-1s}, "an interval's period must be positive");
}

// --- the clock

// Promise 12: no other clock is used. Setting a wall clock would move such deadlines.
TEST_P(sleep_test, deadlines_are_points_of_the_monotonic_clock) {
    static_assert(event_loop::clock::is_steady);
    run([this]() -> task<> {
        timespec monotonic{};
        ::clock_gettime(CLOCK_MONOTONIC, &monotonic);
        const auto now = std::chrono::seconds{monotonic.tv_sec};
        auto handle = spawn(never_ends(1h));
        co_await yield();
        co_await yield();
        const auto next = loop().next_timer();
        EXPECT_TRUE(next);
        EXPECT_GE(next->time_since_epoch(), now + 1h);
        EXPECT_LT(next->time_since_epoch(), now + 2h);
        handle.request_stop();
        co_await handle;
    });
}

INSTANTIATE_TEST_SUITE_P(backends, sleep_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
