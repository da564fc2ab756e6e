#include <simplenet/sync/async_mutex.hpp>

#include "support/gate.hpp"
#include "support/manual_queue.hpp"

#include <simplenet/coro/scoped.hpp>
#include <simplenet/coro/this_task.hpp>

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <vector>

namespace simplenet::v0 {
namespace {

using ::testing::ElementsAre;
using testing::gate;
using testing::manual_queue;

class async_mutex_test : public ::testing::Test {
protected:
    /// A task that locks, logs its number, and unlocks when `until` opens.
    auto locker(int number, gate& until) {
        return queue.spawn([this, number, &until]() -> task<> {
            auto held = co_await mutex.lock();
            if (!held) {
                errors.push_back(held.error());
                co_return;
            }
            order.push_back(number);
            (void)co_await until.wait();
        });
    }

    async_mutex mutex;
    std::vector<int> order;
    std::vector<std::error_code> errors;
    manual_queue queue;
};

TEST_F(async_mutex_test, a_free_lock_is_taken_without_suspending) {
    auto body = [&]() -> task<bool> {
        const auto held = co_await mutex.lock();
        co_return held.has_value() && held->owns_lock() && mutex.locked();
    };
    auto handle = queue.spawn(body());

    EXPECT_EQ(queue.turn(), 1U);

    EXPECT_TRUE(handle.done());
    EXPECT_FALSE(mutex.locked());
}

TEST_F(async_mutex_test, goes_to_the_waiters_in_the_order_of_their_arrival) {
    gate first, second, third;
    locker(1, first);
    locker(2, second);
    locker(3, third);
    queue.turn_until_idle();
    EXPECT_THAT(order, ElementsAre(1));

    first.open();
    queue.turn_until_idle();
    EXPECT_THAT(order, ElementsAre(1, 2));
    second.open();
    queue.turn_until_idle();
    EXPECT_THAT(order, ElementsAre(1, 2, 3));
    third.open();
    queue.turn_until_idle();
    EXPECT_FALSE(mutex.locked());
}

TEST_F(async_mutex_test, no_task_overtakes_a_waiter_that_received_the_lock) {
    gate first, second;
    locker(1, first);
    locker(2, second);
    queue.turn_until_idle();

    first.open();
    queue.turn(); // 1 unlocks; 2 owns the lock and has not run yet
    EXPECT_FALSE(mutex.try_lock());
    locker(3, first);
    queue.turn();
    EXPECT_THAT(order, ElementsAre(1, 2));
    second.open();
    queue.turn_until_idle();
    EXPECT_THAT(order, ElementsAre(1, 2, 3));
    first.open();
    queue.turn_until_idle();
}

TEST_F(async_mutex_test, a_stop_ends_the_wait_and_the_next_gets_the_lock) {
    gate first, third;
    locker(1, first);
    auto second = locker(2, first);
    locker(3, third);
    queue.turn_until_idle();

    second.request_stop();
    queue.turn_until_idle();
    EXPECT_THAT(errors, ElementsAre(std::errc::operation_canceled));
    first.open();
    queue.turn_until_idle();

    EXPECT_THAT(order, ElementsAre(1, 3));
    third.open();
    queue.turn_until_idle();
    EXPECT_FALSE(mutex.locked());
}

TEST_F(async_mutex_test, a_waiter_that_received_the_lock_keeps_it_when_stopped) {
    gate first, second;
    locker(1, first);
    auto stopped = locker(2, second);
    queue.turn_until_idle();
    first.open();
    queue.turn(); // the lock passes to 2
    stopped.request_stop();

    queue.turn_until_idle();

    EXPECT_THAT(order, ElementsAre(1, 2)); // 2 was refused at the gate, so it unlocked
    EXPECT_FALSE(mutex.locked());
}

TEST_F(async_mutex_test, a_stopped_scope_is_refused_even_a_free_lock_by_way_of_the_ready_list) {
    gate door;
    std::error_code error;
    auto handle = queue.spawn([&]() -> task<> {
        (void)co_await door.wait();
        error = (co_await mutex.lock()).error();
    });
    queue.turn_until_idle();
    handle.request_stop();

    queue.turn();
    EXPECT_FALSE(handle.done());
    queue.turn_until_idle();

    EXPECT_EQ(error, std::errc::operation_canceled);
    EXPECT_FALSE(mutex.locked());
}

TEST_F(async_mutex_test, locks_without_waiting_are_budgeted) {
    bool other = false;
    int locks = 0;
    auto handle = queue.spawn([&]() -> task<> {
        while (!other) {
            const auto held = co_await mutex.lock();
            ++locks;
        }
    });
    queue.spawn([&]() -> task<> {
        other = true;
        co_return;
    });

    queue.turn_until_idle();

    EXPECT_TRUE(handle.done());
    EXPECT_LE(locks, 65);
}

TEST_F(async_mutex_test, guards_can_be_moved) {
    queue.run([&]() -> task<> {
        std::optional<async_mutex::guard> outer;
        {
            auto held = or_throw(co_await mutex.lock());
            outer.emplace(std::move(held));
            EXPECT_FALSE(held.owns_lock());
        }
        EXPECT_TRUE(mutex.locked());
        async_mutex other;
        outer = or_throw(co_await other.lock());
        EXPECT_FALSE(mutex.locked());
        EXPECT_TRUE(other.locked());
        outer->unlock();
        outer->unlock();
        EXPECT_FALSE(other.locked());
    });
}

TEST_F(async_mutex_test, excludes_others_across_suspensions) {
    int inside = 0;
    int most = 0;
    int done = 0;
    for (int each = 0; each < 50; ++each) {
        queue.spawn([&]() -> task<> {
            for (int round = 0; round < 20; ++round) {
                const auto held = co_await mutex.lock();
                most = std::max(most, ++inside);
                co_await yield();
                --inside;
            }
            ++done;
        });
    }

    queue.turn_until_idle();

    EXPECT_EQ(most, 1);
    EXPECT_EQ(done, 50);
}

/// Ignores its stop while it holds the lock.
task<> stubborn(async_mutex& mutex, gate& door) {
    const auto held = co_await mutex.lock();
    for (;;)
        (void)co_await door.wait();
}

TEST_F(async_mutex_test, the_end_of_a_loop_unlocks_it) {
    gate door;
    {
        manual_queue* const ending = &queue;
        ending->spawn(stubborn(mutex, door));
        ending->spawn([&]() -> task<> { (void)co_await mutex.lock(); });
        ending->turn_until_idle();
        ending->teardown();
    }

    EXPECT_FALSE(mutex.locked());
}

TEST_F(async_mutex_test, may_be_destroyed_before_a_guard_when_the_loop_ends) {
    gate door;
    std::optional<async_mutex::guard> older;
    queue.spawn([&]() -> task<> {
        const auto held = std::move(older);
        for (;;)
            (void)co_await door.wait();
    });
    queue.spawn([&]() -> task<> {
        async_mutex younger;
        older.emplace(or_throw(co_await younger.lock()));
        auto deaf = [&]() -> task<> {
            for (;;)
                (void)co_await younger.lock();
        };
        co_await deaf();
    });
    queue.turn_until_idle();

    queue.teardown();
    older.reset(); // nothing left to unlock
}

using async_mutex_death_test = async_mutex_test;

TEST_F(async_mutex_death_test, destroying_it_locked_is_a_violation) {
    EXPECT_DEATH(queue.run([]() -> task<> {
        auto mutex = std::make_unique<async_mutex>();
        const auto held = co_await mutex->lock();
        mutex.reset();
    }),
                 "destroyed while it was locked");
}

} // namespace
} // namespace simplenet::v0
