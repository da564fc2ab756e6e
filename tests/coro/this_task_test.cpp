#include <simplenet/coro/this_task.hpp>

#include <simplenet/coro/scoped.hpp>

#include "support/gate.hpp"
#include "support/manual_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace simplenet::v0 {
namespace {

using ::testing::ElementsAre;
using testing::gate;
using testing::manual_queue;

TEST(yield_test, lets_ready_tasks_run_first) {
    manual_queue queue;
    std::vector<int> log;
    queue.spawn([&]() -> task<> {
        log.push_back(1);
        co_await yield();
        log.push_back(3);
    });
    queue.spawn([&]() -> task<> {
        log.push_back(2);
        co_return;
    });

    queue.turn_until_idle();

    EXPECT_THAT(log, ElementsAre(1, 2, 3));
}

TEST(yield_test, returns_in_the_turn_after_this_one_even_if_it_is_stopped) {
    manual_queue queue;
    int yields = 0;
    auto handle = queue.spawn([&]() -> task<> {
        for (;;) {
            co_await yield();
            if (++yields == 3) co_return;
        }
    });
    queue.turn();
    handle.request_stop();

    queue.turn_until_idle();

    EXPECT_TRUE(handle.done());
    EXPECT_EQ(yields, 3);
}

TEST(stop_requested_test, says_whether_operations_would_be_refused) {
    manual_queue queue;
    gate door;
    std::vector<bool> answers;
    auto handle = queue.spawn([&]() -> task<> {
        answers.push_back(co_await this_task::stop_requested());
        (void)co_await door.wait();
        answers.push_back(co_await this_task::stop_requested());
        auto inside = []() -> task<bool> { co_return co_await this_task::stop_requested(); };
        answers.push_back(co_await inside());
        answers.push_back(co_await shield(inside()));
    });
    queue.turn_until_idle();

    handle.request_stop();
    queue.turn_until_idle();

    EXPECT_THAT(answers, ElementsAre(false, true, true, false));
}

TEST(stop_requested_test, never_suspends) {
    manual_queue queue;
    queue.spawn([]() -> task<> {
        for (int i = 0; i < 1000; ++i)
            (void)co_await this_task::stop_requested();
    });

    EXPECT_EQ(queue.turn(), 1U);
    EXPECT_EQ(queue.live(), 0U);
}

} // namespace
} // namespace simplenet::v0
