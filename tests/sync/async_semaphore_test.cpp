#include <simplenet/sync/async_semaphore.hpp>

#include "support/manual_queue.hpp"

#include <simplenet/coro/this_task.hpp>

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using ::testing::ElementsAre;
using testing::manual_queue;

class async_semaphore_test : public ::testing::Test {
protected:
    auto acquire(int number) {
        return queue.spawn([this, number]() -> task<> {
            const auto acquired = co_await semaphore->acquire();
            order.push_back(acquired ? number : -number);
        });
    }

    std::optional<async_semaphore> semaphore{2};
    std::vector<int> order;
    manual_queue queue;
};

TEST_F(async_semaphore_test, a_permit_returns_itself) {
    async_semaphore one{1};
    const auto throws = [&]() -> task<> {
        auto mine = co_await one.acquire_permit();
        EXPECT_TRUE(*mine);
        EXPECT_EQ(one.available(), 0U);
        throw std::runtime_error{"in the middle"};
    };
    queue.spawn([&]() -> task<> {
        try {
            co_await throws();
            ADD_FAILURE() << "nothing was thrown";
        } catch (const std::runtime_error&) {
        }
        EXPECT_EQ(one.available(), 1U);
        auto mine = or_throw(co_await one.acquire_permit());
        auto moved = std::move(mine);
        EXPECT_FALSE(mine);
        EXPECT_EQ(one.available(), 0U);
        moved.release();
        moved.release();
        EXPECT_EQ(one.available(), 1U);
    });
    queue.turn_until_idle();
    EXPECT_EQ(one.available(), 1U);
}

TEST_F(async_semaphore_test, a_stopped_waiter_gets_no_permit) {
    async_semaphore none{0};
    auto waits = queue.spawn([&]() -> task<> {
        EXPECT_EQ((co_await none.acquire_permit()).error(), std::errc::operation_canceled);
    });
    queue.turn_until_idle();
    waits.request_stop();
    queue.turn_until_idle();
    EXPECT_TRUE(waits.done());
    none.release();
    EXPECT_EQ(none.available(), 1U);
}

TEST_F(async_semaphore_test, hands_out_its_permits_and_then_waits) {
    for (int number : {1, 2, 3, 4})
        acquire(number);
    queue.turn_until_idle();
    EXPECT_THAT(order, ElementsAre(1, 2));
    EXPECT_EQ(semaphore->available(), 0U);

    semaphore->release();
    queue.turn_until_idle();
    EXPECT_THAT(order, ElementsAre(1, 2, 3));

    semaphore->release(3);
    queue.turn_until_idle();
    EXPECT_THAT(order, ElementsAre(1, 2, 3, 4));
    EXPECT_EQ(semaphore->available(), 2U);
}

TEST_F(async_semaphore_test, no_waiter_is_overtaken) {
    for (int number : {1, 2, 3})
        acquire(number);
    queue.turn_until_idle();

    semaphore->release(); // belongs to 3, which has not run yet
    EXPECT_FALSE(semaphore->try_acquire());
    acquire(4);
    queue.turn_until_idle();

    EXPECT_THAT(order, ElementsAre(1, 2, 3));
    semaphore->release();
    EXPECT_FALSE(semaphore->try_acquire());
    queue.turn_until_idle();
}

TEST_F(async_semaphore_test, a_stop_before_the_permit_takes_none_and_one_after_it_keeps_it) {
    acquire(1);
    acquire(2);
    auto third = acquire(3);
    auto fourth = acquire(4);
    queue.turn_until_idle();

    third.request_stop();
    semaphore->release();
    fourth.request_stop();
    queue.turn_until_idle();

    EXPECT_THAT(order, ElementsAre(1, 2, -3, 4));
    EXPECT_EQ(semaphore->available(), 0U);
}

TEST_F(async_semaphore_test, try_acquire_never_waits) {
    EXPECT_TRUE(semaphore->try_acquire());
    EXPECT_TRUE(semaphore->try_acquire());
    EXPECT_FALSE(semaphore->try_acquire());
    semaphore->release(2);
    EXPECT_EQ(semaphore->available(), 2U);
}

TEST_F(async_semaphore_test, bounds_how_many_run_at_once) {
    int inside = 0;
    int most = 0;
    int done = 0;
    for (int each = 0; each < 20; ++each) {
        queue.spawn([&]() -> task<> {
            EXPECT_TRUE(co_await semaphore->acquire());
            most = std::max(most, ++inside);
            co_await yield();
            --inside;
            semaphore->release();
            ++done;
        });
    }

    queue.turn_until_idle();

    EXPECT_EQ(most, 2);
    EXPECT_EQ(done, 20);
}

TEST_F(async_semaphore_test, its_destruction_ends_the_waits) {
    for (int number : {1, 2, 3})
        acquire(number);
    queue.turn_until_idle();

    semaphore.reset();
    queue.turn_until_idle();

    EXPECT_THAT(order, ElementsAre(1, 2, -3));
}

using async_semaphore_death_test = async_semaphore_test;

TEST_F(async_semaphore_death_test, too_many_permits_are_a_violation) {
    EXPECT_DEATH(semaphore->release(std::numeric_limits<std::size_t>::max()), "too many permits");
}

} // namespace
} // namespace simplenet::v0
