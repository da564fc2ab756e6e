#include <simplenet/coro/detail/foreign_wait.hpp>

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/scoped.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/coro/this_task.hpp>

#include "support/gate.hpp"
#include "support/manual_queue.hpp"
#include "support/other_coroutines.hpp"
#include "support/small_tasks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <coroutine>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace simplenet::v0 {
namespace {

using testing::eager_coroutine;
using ::testing::ElementsAre;
using testing::from_outside;
using testing::gate;
using ::testing::HasSubstr;
using testing::lazy_coroutine;
using testing::manual_queue;
using testing::nothing;
using testing::value;

eager_coroutine wait_at(gate& at, std::vector<std::string>& log) {
    const auto passed = co_await at.wait();
    log.push_back(passed ? std::to_string(*passed) : passed.error().message());
}
task<result<int>> value_of(gate& at) {
    co_return co_await at.wait();
}

const std::string canceled = std::make_error_code(std::errc::operation_canceled).message();

// Each wait needs a place of its own; sharing one, the loop would know and await only one of them.
TEST(foreign_wait_test, each_wait_of_another_librarys_coroutine_is_a_task_of_the_loop) {
    std::array<gate, 3> doors;
    std::vector<std::string> log;
    manual_queue queue; // destroyed first: it ends the coroutines that use the others
    for (gate& each : doors)
        wait_at(each, log);
    EXPECT_EQ(queue.live(), 3U);

    doors[1].open(1);
    queue.turn_until_idle();

    EXPECT_THAT(log, ElementsAre("1"));
    EXPECT_EQ(queue.live(), 2U);
}

TEST(foreign_wait_test, the_end_of_the_loop_ends_each_wait) {
    std::array<gate, 3> doors;
    std::vector<std::string> log;
    const auto frames = detail::live_frames();
    {
        manual_queue queue;
        for (gate& each : doors)
            wait_at(each, log);
    }
    EXPECT_THAT(log, ElementsAre(canceled, canceled, canceled));
    EXPECT_EQ(detail::live_frames(), frames);
}

TEST(foreign_wait_test, a_wait_that_begins_while_the_loop_ends_is_refused) {
    gate door;
    std::vector<std::string> log;
    {
        manual_queue queue;
        [](gate& at, std::vector<std::string>& to) -> eager_coroutine {
            (void)co_await at.wait();
            wait_at(at, to);
        }(door, log);
    }
    EXPECT_THAT(log, ElementsAre(canceled));
    EXPECT_EQ(door.refusals, 1);
}

/// A coroutine that never ends. Its frame belongs to the test.
struct endless_coroutine {
    struct promise_type {
        endless_coroutine get_return_object() noexcept {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        static std::suspend_never initial_suspend() noexcept { return {}; }
        static std::suspend_always final_suspend() noexcept { return {}; }
        static void return_void() noexcept {}
        static void unhandled_exception() noexcept { std::terminate(); }
    };
    std::coroutine_handle<promise_type> frame;
};

TEST(foreign_wait_test, a_coroutine_that_ignores_the_end_of_the_loop_is_not_resumed_forever) {
    gate door;
    std::coroutine_handle<> frame;
    {
        manual_queue queue;
        auto wait_for_ever = [](gate& at) -> endless_coroutine {
            for (;;)
                (void)co_await at.wait();
        };
        frame = wait_for_ever(door).frame;
    }
    EXPECT_EQ(door.refusals, 1001) << "the last one is refused and not resumed, as in a task";
    frame.destroy();
}

TEST(foreign_wait_test, a_stop_of_a_task_does_not_reach_a_coroutine_that_it_calls) {
    manual_queue queue;
    gate inside;
    gate beside;
    std::vector<std::string> log;
    auto handle = queue.spawn([&]() -> task<> {
        wait_at(beside, log);
        (void)co_await inside.wait();
    });
    queue.turn_until_idle();

    handle.request_stop();
    queue.turn_until_idle();

    EXPECT_EQ(inside.stops, 1);
    EXPECT_EQ(beside.stops, 0);
    beside.open(3);
    queue.turn_until_idle();
    EXPECT_THAT(log, ElementsAre("3"));
}

TEST(foreign_wait_test, tasks_and_foreign_coroutines_await_each_other) {
    manual_queue queue;
    gate door;
    int got = 0;
    auto innermost = [&]() -> task<> { got = (co_await door.wait()).value_or(-1); };
    queue.spawn([&]() -> task<> {
        auto middle = [&]() -> task<> { co_await from_outside(innermost()); };
        co_await from_outside(middle());
        ++got;
    });
    queue.turn_until_idle();

    door.open(1);
    queue.turn_until_idle();

    EXPECT_EQ(got, 2);
    EXPECT_EQ(queue.live(), 0U);
}

TEST(foreign_wait_test, an_exception_of_a_task_reaches_the_coroutine_that_awaits_it) {
    manual_queue queue;
    auto thrower = []() -> task<> {
        co_await yield();
        throw std::runtime_error{"late"};
    };
    EXPECT_THROW(queue.run([&]() -> task<> { co_await from_outside(thrower()); }),
                 std::runtime_error);
}

TEST(foreign_wait_test, a_coroutine_that_ends_at_its_start_leaves_nothing_behind) {
    manual_queue queue;
    const auto frames = detail::live_frames();
    std::ptrdiff_t most = 0;
    bool ended = false;
    [](std::ptrdiff_t before, std::ptrdiff_t& peak, bool& over) -> eager_coroutine {
        for (int i = 0; i < 100'000; ++i) {
            if (co_await value(i) != i) co_return;
            (void)co_await when_all();
            peak = std::max(peak, detail::live_frames() - before);
        }
        over = true;
    }(frames, most, ended);
    queue.turn_until_idle();

    EXPECT_TRUE(ended);
    EXPECT_LE(most, 8);
    EXPECT_EQ(detail::live_frames(), frames);
}

TEST(foreign_wait_test, scopes_work_around_its_awaits) {
    manual_queue queue;
    gate door;
    std::vector<int> log;
    [](gate& at, std::vector<int>& to) -> eager_coroutine {
        to.push_back(co_await shield(value(1)));
        to.push_back((co_await shield(at.wait())).value_or(-1));
        to.push_back((co_await shield(value_of(at))).value_or(-1));
        const auto both = co_await when_all(value_of(at), value(5));
        to.push_back(std::get<0>(both).value_or(-1));
        to.push_back(std::get<1>(both));
    }(door, log);

    for (int number = 2; number < 5; ++number) {
        queue.turn_until_idle();
        door.open(number);
    }
    queue.turn_until_idle();

    EXPECT_THAT(log, ElementsAre(1, 2, 3, 4, 5));
    EXPECT_EQ(queue.live(), 0U);
}

TEST(foreign_wait_test, groups_and_handles_are_joined) {
    manual_queue queue;
    gate door;
    std::vector<int> log;
    [](gate& at, std::vector<int>& to) -> eager_coroutine {
        co_await yield();
        task_group group;
        group.spawn([&]() -> task<> { to.push_back((co_await at.wait()).value_or(-1)); });
        to.push_back((co_await group.join()).has_value());
        auto handle = spawn(value_of(at));
        to.push_back((co_await handle).value_or(-1));
        auto body = [&](task_group& children) -> task<> {
            children.spawn(nothing());
            co_return;
        };
        to.push_back((co_await with_group(body)).has_value());
    }(door, log);

    for (int number = 2; number < 4; ++number) {
        queue.turn_until_idle();
        door.open(number);
    }
    queue.turn_until_idle();

    EXPECT_THAT(log, ElementsAre(2, 1, 3, 1));
}

TEST(foreign_wait_test, stop_requested_reports_the_end_of_the_loop) {
    bool before = true;
    bool after = false;
    {
        manual_queue queue;
        gate door;
        [](gate& at, bool& first, bool& second) -> eager_coroutine {
            first = co_await this_task::stop_requested();
            (void)co_await at.wait();
            second = co_await this_task::stop_requested();
        }(door, before, after);
        queue.teardown();
    }
    EXPECT_FALSE(before);
    EXPECT_TRUE(after);
}

TEST(foreign_wait_test, says_where_it_waits) {
    manual_queue queue;
    gate door;
    std::vector<std::string> log;
    [](gate& at) -> eager_coroutine { (void)co_await shield(value_of(at)); }(door);
    queue.turn_until_idle();

    std::string text;
    queue.describe_tasks(text);

    EXPECT_THAT(text, HasSubstr("gate::operation"));
    EXPECT_THAT(text, HasSubstr("foreign_wait_test.cpp"));
    door.open();
    queue.turn_until_idle();
}

} // namespace
} // namespace simplenet::v0
