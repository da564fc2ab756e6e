#include <simplenet/time/detail/timer_wheel.hpp>

#include "support/test_timers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace simplenet::v0::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using time_point = timer_wheel::time_point;

class timer_wheel_test : public ::testing::Test {
    wheels_without_loop fixture_;
};

TEST_F(timer_wheel_test, expires_in_order_of_deadlines) {
    timer_wheel wheel{start};
    timer late, early, between;
    wheel.insert(late, start + 30ms);
    wheel.insert(early, start + 10ms);
    wheel.insert(between, start + 20ms);

    EXPECT_THAT(expired(wheel, start + 21ms), ElementsAre(&early, &between));
    EXPECT_THAT(expired(wheel, start + 1h), ElementsAre(&late));
    EXPECT_TRUE(wheel.empty());
}

TEST_F(timer_wheel_test, equal_deadlines_expire_in_order_of_insertion) {
    for (const nanoseconds distance :
         std::initializer_list<nanoseconds>{1ns, 20us, 3ms, 100ms, 9s, 10min, 30h}) {
        timer_wheel wheel{start};
        std::vector<timer> timers(50);
        std::vector<timer_node*> expected;
        for (timer& each : timers) {
            wheel.insert(each, start + distance);
            expected.push_back(&each);
        }
        EXPECT_EQ(expired(wheel, start + distance + tick), expected);
    }
}

TEST_F(timer_wheel_test, equal_deadlines_keep_their_order_when_armed_at_different_times) {
    timer_wheel wheel{start};
    const time_point deadline = start + 5h;
    std::deque<timer> timers;
    std::vector<timer_node*> expected;

    for (time_point now = start; now < deadline; now += (deadline - now) / 3 + 1us) {
        EXPECT_THAT(expired(wheel, now), IsEmpty());
        for (int i = 0; i != 2; ++i) {
            wheel.insert(timers.emplace_back(), deadline);
            expected.push_back(&timers.back());
        }
    }

    EXPECT_EQ(expired(wheel, deadline + tick), expected);
}

TEST_F(timer_wheel_test, never_early_and_at_most_a_tick_late) {
    for (std::int64_t distance = 1; distance < (std::int64_t{1} << 60);
         distance = distance * 3 + 1) {
        timer_wheel wheel{start};
        timer one;
        const time_point deadline = start + nanoseconds{distance};
        wheel.insert(one, deadline);
        EXPECT_EQ(one.deadline(), deadline);

        EXPECT_THAT(expired(wheel, deadline - 1ns), IsEmpty());
        EXPECT_THAT(expired(wheel, deadline + tick - 1ns), ElementsAre(&one));
    }
}

TEST_F(timer_wheel_test, a_past_deadline_is_due_at_the_next_call_even_within_the_tick) {
    for (const time_point deadline :
         {start, start - 1ns, start - 10h, time_point{}, time_point{-1ns}, time_point::min()}) {
        timer_wheel wheel{start};
        timer one;
        wheel.insert(one, deadline);

        EXPECT_LE(wheel.next(), start);
        EXPECT_THAT(expired(wheel, start), ElementsAre(&one));
    }
}

TEST_F(timer_wheel_test, past_deadlines_come_first_in_order_of_insertion) {
    timer_wheel wheel{start};
    timer ahead, first, second;
    wheel.insert(ahead, start + 1ms);
    wheel.settle(start + 1s); // time passes, but nothing has expired yet

    wheel.insert(first, start + 900ms);
    wheel.insert(second, start + 800ms);

    EXPECT_THAT(expired(wheel, start + 1s), ElementsAre(&first, &second, &ahead));
}

TEST_F(timer_wheel_test, the_end_of_time_is_a_deadline_like_any_other) {
    timer_wheel wheel{start};
    timer one;
    wheel.insert(one, time_point::max());

    EXPECT_EQ(wheel.next(), time_point::max());
    EXPECT_THAT(expired(wheel, time_point::max() - 1ns), IsEmpty());
    EXPECT_EQ(wheel.next(), time_point::max());
    EXPECT_THAT(expired(wheel, time_point::max()), ElementsAre(&one));

    wheel.insert(one, start);
    EXPECT_THAT(expired(wheel, time_point::max()), ElementsAre(&one));
}

TEST_F(timer_wheel_test, a_wheel_can_begin_at_zero_and_below) {
    for (const time_point origin : {time_point{}, time_point{-5h}, time_point::min()}) {
        timer_wheel wheel{origin};
        timer one;
        wheel.insert(one, time_point{1ns});

        EXPECT_THAT(expired(wheel, time_point{}), IsEmpty());
        EXPECT_THAT(expired(wheel, time_point{tick}), ElementsAre(&one));
    }
}

TEST_F(timer_wheel_test, time_does_not_run_backwards) {
    timer_wheel wheel{start};
    timer one, two;
    wheel.insert(one, start + 10ms);
    EXPECT_THAT(expired(wheel, start + 9ms), IsEmpty());

    EXPECT_THAT(expired(wheel, start), IsEmpty());
    wheel.insert(two, start + 8ms); // past: 9 ms is the latest time seen
    EXPECT_THAT(expired(wheel, start), ElementsAre(&two));
    EXPECT_THAT(expired(wheel, start + 11ms), ElementsAre(&one));
}

TEST_F(timer_wheel_test, a_cancelled_timer_does_not_expire) {
    timer_wheel wheel{start};
    timer cancelled, other;
    wheel.insert(cancelled, start + 5ms);
    wheel.insert(other, start + 5ms);
    EXPECT_TRUE(cancelled.armed());

    cancelled.cancel();
    cancelled.cancel();

    EXPECT_FALSE(cancelled.armed());
    EXPECT_EQ(wheel.size(), 1U);
    EXPECT_THAT(expired(wheel, start + 1s), ElementsAre(&other));
}

TEST_F(timer_wheel_test, destroying_a_timer_cancels_it) {
    timer_wheel wheel{start};
    {
        timer gone;
        wheel.insert(gone, start + 5ms);
    }
    EXPECT_TRUE(wheel.empty());
    EXPECT_THAT(expired(wheel, start + 1s), IsEmpty());
}

TEST_F(timer_wheel_test, destroying_the_wheel_leaves_its_timers_unarmed) {
    timer armed, fresh;
    {
        timer_wheel wheel{start};
        wheel.insert(armed, start + 5ms);
        wheel.insert_after(fresh, 5ms);
    }
    EXPECT_FALSE(armed.armed());
    EXPECT_FALSE(fresh.armed());
}

TEST_F(timer_wheel_test, an_expired_timer_that_is_cancelled_leaves_the_list) {
    timer_wheel wheel{start};
    timer first, second, third;
    for (timer* each : {&first, &second, &third})
        wheel.insert(*each, start + 1ms);
    timer_list due;
    wheel.expire(start + 1s, due);

    EXPECT_TRUE(second.armed());
    second.cancel();

    EXPECT_EQ(&due.pop_front(), &first);
    EXPECT_EQ(&due.pop_front(), &third);
    EXPECT_TRUE(due.empty());
}

TEST_F(timer_wheel_test, next_is_exact_for_a_lone_timer) {
    for (const nanoseconds distance :
         std::initializer_list<nanoseconds>{1ns, 1ms, 1s, 1h, 20000h}) {
        timer_wheel wheel{start};
        timer one;
        wheel.insert(one, start + distance);

        EXPECT_GE(wheel.next(), start + distance);
        EXPECT_LT(wheel.next(), start + distance + tick);
        EXPECT_EQ(wheel.fire(*wheel.next()), 1U);
    }
}

TEST_F(timer_wheel_test, next_is_empty_without_timers) {
    timer_wheel wheel{start};
    EXPECT_EQ(wheel.next(), std::nullopt);
    EXPECT_TRUE(wheel.empty());
    EXPECT_EQ(wheel.size(), 0U);
}

TEST_F(timer_wheel_test, next_forgets_cancelled_timers) {
    timer_wheel wheel{start};
    std::vector<timer> timers(1000);
    for (std::size_t i = 0; i != timers.size(); ++i)
        wheel.insert(timers[i], start + (i + 1) * 1ms);
    timer last;
    wheel.insert(last, start + 2h);

    for (timer& each : timers)
        each.cancel();

    EXPECT_GE(wheel.next(), last.deadline());
    last.cancel();
    EXPECT_EQ(wheel.next(), std::nullopt);
    EXPECT_TRUE(wheel.empty());
}

TEST_F(timer_wheel_test, going_to_next_reaches_every_deadline_in_a_few_steps) {
    std::mt19937_64 random{7};
    for (int round = 0; round != 50; ++round) {
        timer_wheel wheel{start};
        std::size_t fired = 0;
        time_point now = start;
        std::deque<timer> timers;
        for (int i = 0; i != 100; ++i) {
            const nanoseconds distance{random() >> (2 + random() % 60)};
            timer& made = timers.emplace_back([&fired] { ++fired; });
            wheel.insert(made, start + distance);
        }

        std::size_t steps = 0;
        while (const auto next = wheel.next()) {
            now = std::max(now, *next);
            wheel.fire(now);
            ASSERT_LE(++steps, timers.size() * 9);
        }
        EXPECT_EQ(fired, timers.size());
    }
}

// The start of their slot is before soonest(). If fire() did nothing there, a caller that follows
// next() would come again and again.
TEST_F(timer_wheel_test, going_to_next_and_firing_reaches_timers_that_share_a_slot) {
    timer_wheel wheel{start};
    int fired = 0;
    timer first{[&] { ++fired; }};
    timer second{[&] { ++fired; }};
    wheel.insert_after(first, 100ms);
    wheel.insert_after(second, 101ms);
    wheel.settle(start);

    int steps = 0;
    while (const auto next = wheel.next()) {
        ASSERT_LE(++steps, 20) << "next() does not advance";
        wheel.fire(*next);
    }

    EXPECT_EQ(fired, 2);
}

TEST_F(timer_wheel_test, timers_armed_while_firing_wait_for_the_next_call) {
    timer_wheel wheel{start};
    int count = 0;
    timer again{[&] {
        ++count;
        wheel.insert(again, start);
    }};
    wheel.insert(again, start);

    EXPECT_EQ(wheel.fire(start), 1U);
    EXPECT_TRUE(again.armed());
    EXPECT_LE(wheel.next(), start);
    EXPECT_EQ(wheel.fire(start + 1s), 1U);
    EXPECT_EQ(count, 2);
}

TEST_F(timer_wheel_test, firing_may_cancel_and_destroy_others_that_are_due) {
    timer_wheel wheel{start};
    int count = 0;
    timer cancelled{[&] { ++count; }};
    auto destroyed = std::make_unique<timer>([&] { ++count; });
    timer first{[&] {
        cancelled.cancel();
        destroyed.reset();
    }};
    wheel.insert(first, start + 1ms);
    wheel.insert(*destroyed, start + 1ms);
    wheel.insert(cancelled, start + 2ms);

    EXPECT_EQ(wheel.fire(start + 1s), 1U);
    EXPECT_EQ(count, 0);
    EXPECT_TRUE(wheel.empty());
}

TEST_F(timer_wheel_test, firing_may_destroy_the_timer_itself) {
    timer_wheel wheel{start};
    std::unique_ptr<timer> self;
    self = std::make_unique<timer>([&] {
        auto* const doomed = self.release();
        // The function object lives in the timer, and must not be used afterwards.
        delete doomed;
    });
    wheel.insert(*self, start);

    EXPECT_EQ(wheel.fire(start), 1U);
}

TEST_F(timer_wheel_test, fire_may_be_called_recursively) {
    timer_wheel wheel{start};
    std::vector<int> order;
    timer inner{[&] { order.push_back(2); }};
    timer outer{[&] {
        order.push_back(1);
        wheel.insert(inner, start);
        EXPECT_EQ(wheel.fire(start + 1s), 1U);
    }};
    timer last{[&] { order.push_back(3); }};
    wheel.insert(outer, start + 1ms);
    wheel.insert(last, start + 1ms);

    EXPECT_EQ(wheel.fire(start + 1s), 2U);
    EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST_F(timer_wheel_test, a_fresh_timer_counts_from_its_settling) {
    timer_wheel wheel{start};
    timer one;
    wheel.insert_after(one, 10ms);
    EXPECT_TRUE(one.armed());
    EXPECT_TRUE(wheel.has_fresh());
    EXPECT_FALSE(wheel.empty());
    EXPECT_EQ(wheel.size(), 1U);
    EXPECT_LE(wheel.next(), start); // unknown before settle(), so at once
    EXPECT_THAT(expired(wheel, start + 1h), IsEmpty());

    wheel.settle(start + 2h);

    EXPECT_FALSE(wheel.has_fresh());
    EXPECT_GT(wheel.soonest(), start + 2h);
    EXPECT_LE(wheel.soonest(), start + 2h + 10ms + tick);
    EXPECT_THAT(expired(wheel, start + 2h + 10ms - 1ns), IsEmpty());
    EXPECT_THAT(expired(wheel, start + 2h + 10ms + tick), ElementsAre(&one));
}

TEST_F(timer_wheel_test, every_deadline_is_known_after_settling_all) {
    timer_wheel wheel{start};
    timer batched, fresh;
    wheel.insert_after(batched, 10ms);
    wheel.settle(start + 1h); // counts from here, and is in a batch
    wheel.insert_after(fresh, 20ms);

    wheel.settle_all(start + 1h + 5ms);

    EXPECT_EQ(batched.deadline(), start + 1h + 10ms);
    EXPECT_EQ(fresh.deadline(), start + 1h + 25ms);
    EXPECT_THAT(expired(wheel, start + 1h + 25ms + tick), ElementsAre(&batched, &fresh));
}

TEST_F(timer_wheel_test, a_fresh_timer_can_be_cancelled_before_it_enters_the_wheel) {
    timer_wheel wheel{start};
    timer one, two;
    wheel.insert_after(one, 10ms);
    wheel.insert_after(two, 10ms);

    one.cancel();

    EXPECT_EQ(wheel.size(), 1U);
    wheel.settle(start);
    EXPECT_THAT(expired(wheel, start + 1s), ElementsAre(&two));
}

TEST_F(timer_wheel_test, limits_that_are_cancelled_soon_never_reach_a_slot) {
    timer_wheel wheel{start};
    timer one;
    time_point now = start;

    for (int turn = 0; turn != 1000; ++turn) {
        wheel.insert_after(one, 30s);
        wheel.settle(now);
        EXPECT_EQ(wheel.fire(now), 0U);
        now += 1ms;
        one.cancel();
    }

    EXPECT_FALSE(wheel.quiet());
    wheel.settle(now + 1min);
    EXPECT_EQ(wheel.fire(now + 1min), 0U);
    wheel.calm_down();
    EXPECT_TRUE(wheel.quiet());
    EXPECT_EQ(wheel.soonest(), time_point::max());
}

TEST_F(timer_wheel_test, soonest_is_never_late) {
    timer_wheel wheel{start};
    timer late, early, fresh;
    wheel.insert(late, start + 1s);
    wheel.insert(early, start + 1ms);
    EXPECT_LE(wheel.soonest(), start + 1ms + tick);

    wheel.insert_after(fresh, 100us);
    wheel.settle(start);
    EXPECT_LE(wheel.soonest(), start + 100us + tick);

    EXPECT_EQ(wheel.fire(wheel.soonest()), 1U);
    EXPECT_FALSE(fresh.armed());
    EXPECT_EQ(wheel.fire(wheel.soonest()), 1U);
    EXPECT_FALSE(early.armed());
    EXPECT_LE(wheel.soonest(), start + 1s + tick);
}

TEST_F(timer_wheel_test, fresh_timers_and_points_fire_in_order_of_their_deadlines) {
    timer_wheel wheel{start};
    std::vector<int> order;
    timer first{[&] { order.push_back(1); }}, second{[&] { order.push_back(2); }};
    timer third{[&] { order.push_back(3); }}, fourth{[&] { order.push_back(4); }};
    wheel.insert(fourth, start + 40ms);
    wheel.insert_after(second, 20ms);
    wheel.settle(start);
    wheel.insert(third, start + 30ms);
    wheel.insert_after(first, 9ms);
    wheel.settle(start + 1ms);

    // Timers due by the time of a settle() keep their order as well, after those due at once.
    timer fifth{[&] { order.push_back(5); }};
    wheel.insert_after(fifth, 0ms);
    wheel.settle(start + 1s);

    EXPECT_EQ(wheel.fire(start + 1s), 5U);
    EXPECT_THAT(order, ElementsAre(5, 1, 2, 3, 4));
}

TEST_F(timer_wheel_test, delays_of_fresh_timers_saturate) {
    timer_wheel wheel{start};
    timer longest, zero, negative, most_negative;
    wheel.insert_after(longest, nanoseconds::max());
    wheel.insert_after(negative, -1s);
    wheel.insert_after(zero, 0ns);
    wheel.insert_after(most_negative, nanoseconds::min());

    wheel.settle(start + 5ns);

    EXPECT_LE(wheel.next(), start + 5ns);
    EXPECT_EQ(longest.deadline(), time_point::max());
    EXPECT_THAT(expired(wheel, start + 5ns), ElementsAre(&negative, &zero, &most_negative));
    EXPECT_TRUE(longest.armed());
}

TEST_F(timer_wheel_test, a_timer_moves_while_it_is_not_armed) {
    struct holder final : timer_node {
        void expired() noexcept override {}
    };
    holder one;
    holder two{std::move(one)};
    timer_wheel wheel{start};
    wheel.insert(two, start);
    EXPECT_DEBUG_DEATH({ holder three{std::move(two)}; }, "cannot move");
    EXPECT_THAT(expired(wheel, start), ElementsAre(&two));
}

TEST_F(timer_wheel_test, a_million_timers) {
    timer_wheel wheel{start};
    struct silent final : timer_node {
        void expired() noexcept override {}
    };
    std::vector<silent> timers(1'000'000);
    std::mt19937_64 random{3};
    for (auto& each : timers)
        wheel.insert(each, start + nanoseconds{random() % 60'000'000'000});
    EXPECT_EQ(wheel.size(), timers.size());

    time_point latest = start;
    timer_list due;
    for (time_point now = start; now <= start + 61s; now += 1ms)
        wheel.expire(now, due);

    std::size_t count = 0;
    while (!due.empty()) {
        const time_point deadline = due.pop_front().deadline();
        ASSERT_GT(deadline, latest - tick);
        latest = std::max(latest, deadline);
        ++count;
    }
    EXPECT_EQ(count, timers.size());
}

TEST_F(timer_wheel_test, counts_without_looking_at_each) {
    timer_wheel wheel{start};
    std::mt19937 dice{1};
    std::vector<std::unique_ptr<timer>> timers(100);
    time_point now = start;
    for (int step = 0; step < 10'000; ++step) {
        std::unique_ptr<timer>& one = timers[dice() % timers.size()];
        if (one == nullptr) one = std::make_unique<timer>();
        switch (dice() % 6) {
        case 0:
            if (!one->armed()) wheel.insert(*one, now + nanoseconds{dice() % 10'000'000});
            break;
        case 1:
            if (!one->armed()) wheel.insert_after(*one, nanoseconds{dice() % 10'000'000});
            break;
        case 2:
            one->cancel(); // armed or not
            break;
        case 3:
            one.reset();
            break;
        case 4:
            now += nanoseconds{dice() % 100'000};
            wheel.settle(now);
            wheel.fire(now);
            break;
        case 5:
            wheel.cancel(*one);
            break;
        }
        ASSERT_EQ(wheel.count(), wheel.size());
    }
}

TEST_F(timer_wheel_test, counts_what_is_cancelled_between_the_turns_of_two_wheels) {
    timer_wheel first{start};
    timer_wheel second{start};
    timer of_first;
    timer of_second;
    first.insert(of_first, start + 1ms);
    second.insert(of_second, start + 1ms);

    first.cancel(of_first);

    EXPECT_EQ(second.count(), 1U);
    EXPECT_EQ(first.count(), 0U);
    EXPECT_EQ(second.fire(start + 2ms), 1U);
    EXPECT_EQ(second.count(), 0U);
}

// The count used to wrap in release builds.
TEST_F(timer_wheel_test, a_timer_of_another_wheel_that_is_cancelled_in_a_turn_wraps_no_count) {
    timer_wheel first{start};
    timer_wheel second{start};
    timer of_first;
    first.insert(of_first, start + 1ms);

    of_first.cancel();

#ifdef NDEBUG
    EXPECT_EQ(second.count(), 0U);
#else
    EXPECT_DEATH(static_cast<void>(second.count()), "timers of another loop were cancelled");
#endif
}

} // namespace
} // namespace simplenet::v0::detail
