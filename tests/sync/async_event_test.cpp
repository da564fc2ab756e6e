#include <simplenet/sync/async_event.hpp>

#include "support/manual_queue.hpp"

#include <simplenet/coro/this_task.hpp>

#include <gmock/gmock.h>

#include <optional>
#include <vector>

namespace simplenet::v0 {
namespace {

using ::testing::ElementsAre;
using testing::manual_queue;

class async_event_test : public ::testing::Test {
protected:
    auto wait(int number) {
        return queue.spawn([this, number]() -> task<> {
            const auto ended = co_await event->wait();
            order.push_back(ended ? number : -number);
            if (!ended) error = ended.error();
        });
    }

    std::optional<async_event> event{std::in_place};
    std::vector<int> order;
    std::error_code error;
    manual_queue queue;
};

TEST_F(async_event_test, releases_all_waiters_in_the_order_of_their_arrival) {
    wait(1);
    wait(2);
    wait(3);
    queue.turn_until_idle();
    EXPECT_TRUE(order.empty());

    event->set();
    queue.turn_until_idle();

    EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST_F(async_event_test, lets_every_task_pass_until_it_is_reset) {
    event->set();
    EXPECT_TRUE(event->is_set());
    wait(1);
    EXPECT_EQ(queue.turn(), 1U);
    EXPECT_THAT(order, ElementsAre(1));

    event->reset();
    wait(2);
    queue.turn_until_idle();
    EXPECT_THAT(order, ElementsAre(1));
    event->set();
    queue.turn_until_idle();
    EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST_F(async_event_test, a_released_waiter_succeeds_in_spite_of_a_reset_and_a_stop) {
    auto handle = wait(1);
    queue.turn_until_idle();

    event->set();
    event->reset();
    handle.request_stop();
    queue.turn_until_idle();

    EXPECT_THAT(order, ElementsAre(1));
}

TEST_F(async_event_test, a_stop_ends_the_wait) {
    auto handle = wait(1);
    wait(2);
    queue.turn_until_idle();

    handle.request_stop();
    EXPECT_TRUE(order.empty()); // not resumed inside request_stop()
    queue.turn_until_idle();
    EXPECT_THAT(order, ElementsAre(-1));
    EXPECT_EQ(error, std::errc::operation_canceled);

    event->set();
    queue.turn_until_idle();
    EXPECT_THAT(order, ElementsAre(-1, 2));
}

TEST_F(async_event_test, its_destruction_ends_the_waits) {
    wait(1);
    wait(2);
    queue.turn_until_idle();

    event.reset();
    queue.turn_until_idle();

    EXPECT_THAT(order, ElementsAre(-1, -2));
    EXPECT_EQ(error, std::errc::operation_canceled);
}

TEST_F(async_event_test, a_set_one_does_not_starve_the_others) {
    event->set();
    bool other = false;
    auto handle = queue.spawn([&]() -> task<> {
        while (!other)
            (void)co_await event->wait();
    });
    queue.spawn([&]() -> task<> {
        other = true;
        co_return;
    });

    queue.turn_until_idle();

    EXPECT_TRUE(handle.done());
}

TEST_F(async_event_test, the_end_of_a_loop_ends_the_waits) {
    wait(1);
    queue.turn_until_idle();

    queue.teardown();

    EXPECT_THAT(order, ElementsAre(-1));
}

} // namespace
} // namespace simplenet::v0
