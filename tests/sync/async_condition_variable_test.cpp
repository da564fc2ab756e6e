#include <simplenet/sync/async_condition_variable.hpp>

#include "support/gate.hpp"
#include "support/manual_queue.hpp"

#include <simplenet/coro/this_task.hpp>

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

namespace simplenet::v0 {
namespace {

using ::testing::ElementsAre;
using testing::gate;
using testing::manual_queue;

class async_condition_variable_test : public ::testing::Test {
protected:
    /// Takes one of `items` and logs its number, negated if it was stopped.
    auto taker(int number) {
        return queue.spawn([this, number]() -> task<> {
            auto held = or_throw(co_await mutex.lock());
            const auto waited = co_await condition->wait(held, [&] {
                EXPECT_TRUE(mutex.locked());
                return items > 0;
            });
            EXPECT_TRUE(held.owns_lock());
            EXPECT_TRUE(mutex.locked());
            if (waited) --items;
            order.push_back(waited ? number : -number);
        });
    }
    void put(int count = 1) {
        items += count;
        for (int each = 0; each < count; ++each)
            condition->notify_one();
    }

    async_mutex mutex;
    std::optional<async_condition_variable> condition{std::in_place};
    int items = 0;
    std::vector<int> order;
    manual_queue queue;
};

TEST_F(async_condition_variable_test, does_not_wait_for_a_condition_that_holds) {
    items = 1;
    taker(1);

    EXPECT_EQ(queue.turn(), 1U);

    EXPECT_THAT(order, ElementsAre(1));
}

// GCC 12 destroys the captures of a closure inside a co_await expression twice; there it is
// refused.
TEST_F(async_condition_variable_test, a_predicate_may_own_its_state) {
    auto ready = std::make_shared<bool>(true);
    queue.spawn([&]() -> task<> {
        auto held = or_throw(co_await mutex.lock());
        auto is_ready = [ready] { return *ready; };
        EXPECT_TRUE(co_await condition->wait(held, is_ready));
        auto only_moves = [own = std::make_unique<bool>(true)] { return *own; };
        EXPECT_TRUE(co_await condition->wait(held, std::ref(only_moves)));
    });
    queue.turn_until_idle();
    EXPECT_EQ(ready.use_count(), 1);
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
    auto owns = [ready] { return *ready; };
    static_assert(!detail::safe_in_co_await<decltype(owns)>);
    static_assert(detail::safe_in_co_await<decltype(owns)&>);
#endif
}

TEST_F(async_condition_variable_test, the_mutex_is_free_while_it_waits) {
    taker(1);
    queue.turn_until_idle();

    EXPECT_FALSE(mutex.locked());
    put();
    queue.turn_until_idle();
    EXPECT_THAT(order, ElementsAre(1));
    EXPECT_FALSE(mutex.locked());
}

TEST_F(async_condition_variable_test, wakes_one_after_the_other) {
    for (int number : {1, 2, 3})
        taker(number);
    queue.turn_until_idle();

    put();
    queue.turn_until_idle();
    EXPECT_THAT(order, ElementsAre(1));
    items += 2;
    condition->notify_all();
    queue.turn_until_idle();
    EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST_F(async_condition_variable_test, keeps_waiting_after_a_spurious_wake_up) {
    taker(1);
    queue.turn_until_idle();

    condition->notify_one();
    condition->notify_all();
    queue.turn_until_idle();
    EXPECT_TRUE(order.empty());
    EXPECT_FALSE(mutex.locked());

    put();
    queue.turn_until_idle();
    EXPECT_THAT(order, ElementsAre(1));
}

TEST_F(async_condition_variable_test, a_notification_under_the_lock_waits_for_the_unlock) {
    gate door;
    taker(1);
    queue.turn_until_idle();
    queue.spawn([&]() -> task<> {
        const auto held = co_await mutex.lock();
        put();
        (void)co_await door.wait();
    });
    queue.turn_until_idle();
    EXPECT_TRUE(order.empty());

    door.open();
    queue.turn_until_idle();

    EXPECT_THAT(order, ElementsAre(1));
}

TEST_F(async_condition_variable_test, a_stop_ends_the_wait_with_the_mutex_held) {
    auto handle = taker(1);
    queue.turn_until_idle();

    handle.request_stop();
    queue.turn_until_idle();

    EXPECT_THAT(order, ElementsAre(-1));
    EXPECT_FALSE(mutex.locked());
}

TEST_F(async_condition_variable_test, a_stopped_wait_still_waits_for_the_mutex) {
    gate door;
    auto handle = taker(1);
    queue.turn_until_idle();
    queue.spawn([&]() -> task<> {
        const auto held = co_await mutex.lock();
        (void)co_await door.wait();
    });
    queue.turn_until_idle();

    handle.request_stop();
    queue.turn_until_idle();
    EXPECT_TRUE(order.empty());
    door.open();
    queue.turn_until_idle();

    EXPECT_THAT(order, ElementsAre(-1));
}

TEST_F(async_condition_variable_test, success_beats_a_stop) {
    auto handle = taker(1);
    queue.turn_until_idle();

    put();
    handle.request_stop();
    queue.turn_until_idle();

    EXPECT_THAT(order, ElementsAre(1));
}

TEST_F(async_condition_variable_test,
       a_condition_that_becomes_true_before_the_mutex_is_locked_is_a_success) {
    gate door;
    auto handle = taker(1);
    queue.turn_until_idle();
    queue.spawn([&]() -> task<> {
        const auto held = co_await mutex.lock();
        (void)co_await door.wait();
        ++items;
    });
    queue.turn_until_idle();
    handle.request_stop();

    door.open();
    queue.turn_until_idle();

    EXPECT_THAT(order, ElementsAre(1));
}

TEST_F(async_condition_variable_test, a_stopped_waiter_does_not_consume_a_notification) {
    bool for_two = false;
    auto first = taker(1);
    queue.spawn([&]() -> task<> {
        auto held = or_throw(co_await mutex.lock());
        EXPECT_TRUE(co_await condition->wait(held, [&] { return for_two; }));
        order.push_back(2);
    });
    queue.turn_until_idle();

    for_two = true;
    condition->notify_one(); // reaches 1, whose condition does not hold
    first.request_stop();
    queue.turn_until_idle();

    EXPECT_THAT(order, ElementsAre(-1, 2));
}

TEST_F(async_condition_variable_test, a_stop_while_it_waits_for_the_mutex_ends_it) {
    gate door;
    auto first = taker(1);
    queue.turn_until_idle();
    queue.spawn([&]() -> task<> {
        const auto held = co_await mutex.lock();
        (void)co_await door.wait();
    });
    queue.turn_until_idle();
    condition->notify_one(); // the wait is for the mutex from here on
    first.request_stop();

    door.open();
    queue.turn_until_idle();

    EXPECT_THAT(order, ElementsAre(-1));
    EXPECT_FALSE(mutex.locked());
}

TEST_F(async_condition_variable_test, a_stopped_scope_is_refused_with_the_mutex_held) {
    gate door;
    items = 1;
    auto handle = queue.spawn([&]() -> task<> {
        auto held = or_throw(co_await mutex.lock());
        (void)co_await door.wait();
        const auto waited = co_await condition->wait(held, [&] { return items > 0; });
        EXPECT_EQ(waited.error(), std::errc::operation_canceled);
        EXPECT_TRUE(held.owns_lock());
        EXPECT_TRUE(mutex.locked());
    });
    queue.turn_until_idle();
    handle.request_stop();

    queue.turn_until_idle();

    EXPECT_TRUE(handle.done());
    EXPECT_FALSE(mutex.locked());
}

TEST_F(async_condition_variable_test, an_exception_of_the_predicate_is_thrown_with_the_mutex_held) {
    bool harmless = true;
    queue.spawn([&]() -> task<> {
        auto held = or_throw(co_await mutex.lock());
        try {
            (void)co_await condition->wait(held, [&]() -> bool {
                if (harmless) return false;
                throw std::runtime_error{"no"};
            });
        } catch (const std::runtime_error&) {
            EXPECT_TRUE(held.owns_lock());
            order.push_back(1);
        }
    });
    taker(2);
    queue.turn_until_idle();

    harmless = false;
    put(); // reaches 1, which cannot take it
    queue.turn_until_idle();

    EXPECT_THAT(order, ElementsAre(1, 2));
    EXPECT_FALSE(mutex.locked());
}

TEST_F(async_condition_variable_test, its_destruction_ends_the_waits_with_the_mutex_held) {
    gate door;
    taker(1);
    taker(2);
    queue.turn_until_idle();
    queue.spawn([&]() -> task<> {
        const auto held = co_await mutex.lock();
        (void)co_await door.wait();
    });
    queue.turn_until_idle();
    condition->notify_one(); // 1 waits for the mutex, 2 for a notification

    condition.reset();
    door.open();
    queue.turn_until_idle();

    EXPECT_THAT(order, ElementsAre(-1, -2));
    EXPECT_FALSE(mutex.locked());
}

TEST_F(async_condition_variable_test, the_end_of_a_loop_ends_the_waits) {
    taker(1);
    queue.turn_until_idle();
    queue.teardown();
    EXPECT_THAT(order, ElementsAre(-1));
}

TEST_F(async_condition_variable_test, the_end_of_a_loop_does_not_wait_for_a_lock_held_forever) {
    gate door;
    taker(1);
    queue.turn_until_idle();
    queue.spawn([&]() -> task<> {
        const auto held = co_await mutex.lock();
        for (;;)
            (void)co_await door.wait();
    });
    queue.turn_until_idle();

    queue.teardown();

    EXPECT_FALSE(mutex.locked());
    EXPECT_TRUE(order.empty());
}

using async_condition_variable_death_test = async_condition_variable_test;

TEST_F(async_condition_variable_death_test, waiting_without_the_lock_is_a_violation) {
    EXPECT_DEATH(queue.run([&]() -> task<> {
        auto held = or_throw(co_await mutex.lock());
        held.unlock();
        (void)co_await condition->wait(held, [] { return false; });
    }),
                 "needs a guard that owns its lock");
}

} // namespace
} // namespace simplenet::v0
