#include <simplenet/coro/spawn.hpp>

#include <simplenet/coro/scoped.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/coro/this_task.hpp>

#include "support/gate.hpp"
#include "support/manual_queue.hpp"
#include "support/small_tasks.hpp"
#include "support/witness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <vector>

namespace simplenet::v0 {
namespace {

using ::testing::ElementsAre;
using testing::gate;
using testing::manual_queue;
using testing::value;
using testing::witness;

static_assert(std::is_nothrow_move_constructible_v<join_handle<int>>);
static_assert(!std::is_copy_constructible_v<join_handle<int>>);

constinit int unhandled = 0;
void count_unhandled(std::exception_ptr) {
    ++unhandled;
}

/// A queue that counts exceptions that no awaiter can receive.
class spawn_test : public ::testing::Test {
protected:
    spawn_test() {
        unhandled = 0;
        queue.on_unhandled = count_unhandled;
    }
    gate door; // outlives its waiters
    manual_queue queue;
};

task<> thrower() {
    throw std::runtime_error{"child"};
    co_return;
}

TEST_F(spawn_test, a_handle_can_be_made_before_its_task) {
    join_handle<int> handle;
    handle.detach();
    handle = queue.spawn(value(3));

    EXPECT_EQ(queue.run([&]() -> task<int> { co_return co_await handle; }()), 3);
}

TEST_F(spawn_test, starts_the_child_in_the_next_turn) {
    std::vector<int> log;
    auto child = [&]() -> task<> {
        log.push_back(2);
        co_return;
    };

    queue.run([&]() -> task<> {
        auto handle = spawn(child());
        log.push_back(1);
        co_await handle;
    });

    EXPECT_THAT(log, ElementsAre(1, 2));
}

TEST_F(spawn_test, join_returns_the_value_of_the_child) {
    auto sum = queue.run([]() -> task<int> {
        auto named = spawn(value(1));
        co_return co_await named + co_await spawn(value(2));
    });

    EXPECT_EQ(sum, 3);
}

TEST_F(spawn_test, join_returns_references_and_move_only_values) {
    int object = 0;
    auto refer = [&]() -> task<int&> { co_return object; };
    auto make = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(4); };

    queue.run([&]() -> task<> {
        int& same = co_await spawn(refer());
        same = *co_await spawn(make());
    });

    EXPECT_EQ(object, 4);
}

TEST_F(spawn_test, join_of_a_child_that_has_ended_does_not_wait) {
    auto handle = queue.spawn(value(8));
    queue.turn_until_idle();
    ASSERT_TRUE(handle.done());
    int got = 0;

    queue.spawn([&]() -> task<> { got = co_await handle; });
    EXPECT_EQ(queue.turn(), 1U);

    EXPECT_EQ(got, 8);
}

TEST_F(spawn_test, join_rethrows_the_exception_of_the_child) {
    EXPECT_THROW(queue.run([]() -> task<> { co_await spawn(thrower()); }), std::runtime_error);
    EXPECT_EQ(unhandled, 0);
}

TEST_F(spawn_test, join_ends_the_life_of_the_childs_locals) {
    std::vector<int> log;
    auto child = [&]() -> task<> {
        witness local{log, 1};
        co_return;
    };

    queue.run([&]() -> task<> {
        auto handle = spawn(child());
        co_await handle;
        log.push_back(2);
    });

    EXPECT_THAT(log, ElementsAre(1, 2));
}

TEST_F(spawn_test, an_exception_is_kept_for_a_late_join) {
    auto handle = queue.spawn([]() -> task<int> {
        co_await yield();
        throw std::runtime_error{"kept"};
    });
    queue.turn_until_idle();

    EXPECT_THROW(queue.run([&]() -> task<> { (void)co_await handle; }), std::runtime_error);
    EXPECT_EQ(unhandled, 0);
}

TEST_F(spawn_test, the_child_runs_outside_the_scope_that_spawned_it) {
    bool stopped = true;
    auto child = [&]() -> task<> {
        (void)co_await door.wait();
        stopped = co_await this_task::stop_requested();
    };
    auto parent = queue.spawn([&]() -> task<> {
        spawn(child());
        (void)co_await door.wait();
    });
    parent.request_stop();
    queue.turn_until_idle();

    door.open();
    queue.turn_until_idle();

    EXPECT_FALSE(stopped);
}

TEST_F(spawn_test, done_says_whether_the_child_has_ended) {
    auto handle = queue.spawn([&]() -> task<> { (void)co_await door.wait(); });
    queue.turn_until_idle();

    EXPECT_FALSE(handle.done());
    door.open();
    EXPECT_FALSE(handle.done());
    queue.turn_until_idle();
    EXPECT_TRUE(handle.done());
}

TEST_F(spawn_test, request_stop_fails_the_operations_of_the_child) {
    auto handle =
        queue.spawn([&]() -> task<std::error_code> { co_return (co_await door.wait()).error(); });
    queue.turn_until_idle();

    handle.request_stop();
    handle.request_stop();

    EXPECT_EQ(queue.run([&]() -> task<std::error_code> { co_return co_await handle; }),
              std::errc::operation_canceled);
    handle.request_stop();
}

TEST_F(spawn_test, a_dropped_or_detached_child_runs_on) {
    int ended = 0;
    auto child = [&]() -> task<> {
        (void)co_await yield();
        ++ended;
    };
    {
        auto dropped = queue.spawn(child());
    }
    auto detached = queue.spawn(child());
    detached.detach();
    detached.detach();
    auto replaced = queue.spawn(child());
    replaced = queue.spawn(child());

    queue.turn_until_idle();

    EXPECT_EQ(ended, 4);
}

TEST_F(spawn_test, a_stop_that_reaches_the_await_goes_to_the_child_which_is_joined) {
    gate slow;
    std::vector<int> log;
    auto child = [&]() -> task<int> {
        const bool stopped = !co_await door.wait();
        log.push_back(1);
        slow.deaf = true;
        (void)co_await shield(slow.wait());
        log.push_back(2);
        co_return stopped ? 7 : 0;
    };
    auto parent = queue.spawn([&]() -> task<int> {
        const int got = co_await spawn(child());
        log.push_back(3);
        co_return got;
    });
    queue.turn_until_idle();

    parent.request_stop();
    queue.turn_until_idle();
    EXPECT_THAT(log, ElementsAre(1)) << "joined, not abandoned";
    slow.open();

    EXPECT_EQ(queue.run([&]() -> task<int> { co_return co_await parent; }), 7);
    EXPECT_THAT(log, ElementsAre(1, 2, 3));
}

TEST_F(spawn_test, an_await_in_a_stopped_scope_stops_the_child_at_once) {
    auto child = [&]() -> task<bool> { co_return (co_await door.wait()).has_value(); };
    auto parent = queue.spawn([&]() -> task<bool> {
        auto handle = spawn(child());
        co_await yield();
        co_return co_await handle;
    });
    parent.request_stop();

    EXPECT_FALSE(queue.run([&]() -> task<bool> { co_return co_await parent; }));
    EXPECT_EQ(door.stops, 1);
}

TEST_F(spawn_test, a_shield_around_the_await_keeps_the_stop_from_the_child) {
    auto child = [&]() -> task<bool> { co_return (co_await door.wait()).has_value(); };
    auto parent = queue.spawn([&]() -> task<bool> { co_return co_await shield(spawn(child())); });
    queue.turn_until_idle();

    parent.request_stop();
    queue.turn_until_idle();
    EXPECT_TRUE(door.waited_at());
    door.open();

    EXPECT_TRUE(queue.run([&]() -> task<bool> { co_return co_await parent; }));
}

TEST_F(spawn_test, an_exception_of_a_detached_child_reaches_the_hook_of_the_loop) {
    queue.spawn(thrower());
    queue.spawn([]() -> task<int> {
        throw 1;
        co_return 2;
    });

    queue.turn_until_idle();

    EXPECT_EQ(unhandled, 2);
}

// It used to, so the end of a loop ended a program whose detached task used or_throw().
TEST_F(spawn_test, a_stop_that_a_stopped_child_throws_reaches_no_hook) {
    auto waits = [&](gate& at) -> task<> {
        const auto opened = co_await at.wait();
        or_throw(opened);
    };
    gate other;
    auto stopped = queue.spawn(waits(door));
    queue.spawn(waits(other));
    queue.turn_until_idle();

    stopped.request_stop();
    stopped.detach();
    queue.turn_until_idle();
    EXPECT_FALSE(door.waited_at());
    queue.teardown();

    EXPECT_EQ(unhandled, 0);
}

TEST_F(spawn_test, a_stopped_child_that_throws_anything_else_has_failed) {
    auto fails = [&](std::errc with) -> task<> {
        static_cast<void>(co_await door.wait());
        throw std::system_error{std::make_error_code(with)};
    };
    queue.spawn(fails(std::errc::operation_canceled)); // is not stopped
    queue.turn_until_idle();
    door.open();
    queue.turn_until_idle();
    EXPECT_EQ(unhandled, 1);

    queue.spawn(fails(std::errc::io_error));
    queue.turn_until_idle();
    queue.teardown();

    EXPECT_EQ(unhandled, 2);
}

TEST_F(spawn_test, an_exception_reaches_the_hook_when_the_handle_is_dropped_later) {
    auto handle = queue.spawn(thrower());
    queue.turn_until_idle();
    EXPECT_EQ(unhandled, 0);

    handle.detach();

    EXPECT_EQ(unhandled, 1);
}

TEST_F(spawn_test, an_exception_reaches_the_hook_when_the_handle_is_dropped_in_the_same_turn) {
    std::optional<join_handle<void>> handle = queue.spawn(thrower());
    queue.spawn([&]() -> task<> {
        handle.reset();
        co_return;
    });

    queue.turn_until_idle();

    EXPECT_EQ(unhandled, 1);
}

TEST_F(spawn_test, an_exception_that_was_joined_is_not_reported_again) {
    auto handle = queue.spawn(thrower());
    EXPECT_THROW(queue.run([&]() -> task<> { co_await handle; }), std::runtime_error);

    handle.detach();

    EXPECT_EQ(unhandled, 0);
}

// A handle may still report an exception at this point, and must not read the hook of a loop that
// is gone.
TEST_F(spawn_test, an_exception_reaches_the_hook_at_the_latest_when_the_loop_is_destroyed) {
    auto handle = queue.spawn(thrower());
    queue.turn_until_idle();

    queue.teardown();
    EXPECT_EQ(unhandled, 1);
    handle.detach();

    EXPECT_EQ(unhandled, 1);
}

TEST_F(spawn_test, the_awaiter_keeps_the_child_when_the_handle_is_destroyed) {
    const auto frames = detail::live_frames();
    std::optional<join_handle<int>> handle = queue.spawn([&]() -> task<int> {
        (void)co_await door.wait();
        co_return 6;
    });
    int got = 0;
    queue.spawn([&]() -> task<> { got = co_await *handle; });
    queue.turn_until_idle();

    handle.reset();
    door.open();
    queue.turn_until_idle();

    EXPECT_EQ(got, 6);
    EXPECT_EQ(detail::live_frames(), frames);
}

TEST_F(spawn_test, an_awaiter_that_never_starts_does_not_affect_the_child) {
    auto handle = queue.spawn(value(2));
    {
        [[maybe_unused]] auto awaiter = handle.operator co_await();
    }

    EXPECT_EQ(queue.run([&]() -> task<int> { co_return co_await handle; }), 2);
}

TEST(spawn_teardown_test, a_handle_outlives_its_loop) {
    std::optional<join_handle<int>> waiting;
    std::optional<join_handle<int>> ended;
    gate door;
    {
        manual_queue queue;
        waiting = queue.spawn([&]() -> task<int> {
            for (;;)
                (void)co_await door.wait();
        });
        ended = queue.spawn(value(3));
        queue.turn_until_idle();
    }
    EXPECT_TRUE(waiting->done());
    EXPECT_TRUE(ended->done());
    waiting->request_stop();
    ended->request_stop();

    manual_queue another;
    EXPECT_EQ(another.run([&]() -> task<int> { co_return co_await *ended; }), 3);
    EXPECT_THROW(another.run([&]() -> task<int> { co_return co_await *waiting; }),
                 std::system_error);
}

// The scope of the child must not hand its group to the top of a loop that is gone.
TEST(spawn_teardown_test, a_handle_and_a_group_of_its_child_outlive_the_loop) {
    gate door;
    std::optional<task_group> group;
    std::optional<join_handle<void>> handle;
    {
        manual_queue queue;
        handle = queue.spawn([&]() -> task<> {
            group.emplace();
            for (;;)
                (void)co_await door.wait();
        });
        queue.turn_until_idle();
    }
    EXPECT_TRUE(handle->done());
    handle.reset();
    EXPECT_EQ(group->size(), 0U);
}

// The awaiter must keep the child alive, which it would otherwise notify after its end.
TEST(spawn_teardown_test, frees_child_and_awaiter_when_the_handle_is_destroyed_first) {
    const auto frames = detail::live_frames();
    gate door;
    {
        manual_queue queue;
        auto stubborn = [&]() -> task<> {
            for (;;)
                (void)co_await door.wait();
        };
        std::optional<join_handle<void>> handle;
        queue.spawn([&]() -> task<> {
            handle = spawn(stubborn());
            co_await *handle;
        });
        queue.turn_until_idle();
        handle.reset();
        queue.teardown();
    }
    EXPECT_EQ(detail::live_frames(), frames);
}

TEST_F(spawn_test, frees_every_child_as_it_ends) {
    const auto frames = detail::live_frames();
    queue.run([]() -> task<> {
        for (int i = 0; i < 1000; ++i) {
            spawn(value(i));
            (void)co_await spawn(value(i));
        }
    });
    EXPECT_EQ(detail::live_frames(), frames);
}

TEST(spawn_death_test, an_exception_in_a_detached_child_terminates_by_default) {
    auto detach_a_thrower = [] {
        manual_queue queue;
        queue.spawn(thrower());
        queue.turn_until_idle();
    };
    EXPECT_DEATH(detach_a_thrower(), "");
}

TEST(spawn_death_test, joining_twice_is_a_contract_violation) {
    auto join_twice = [] {
        manual_queue queue;
        queue.run([]() -> task<> {
            auto handle = spawn(value(1));
            (void)co_await handle;
            (void)co_await handle;
        });
    };
    EXPECT_DEATH(join_twice(), "awaited once");
}

TEST(spawn_death_test, joining_from_two_tasks_is_a_contract_violation) {
    auto join_from_two = [] {
        manual_queue queue;
        gate door;
        auto handle = queue.spawn([&]() -> task<> { (void)co_await door.wait(); });
        auto join = [&]() -> task<> { co_await handle; };
        queue.spawn(join());
        queue.spawn(join());
        queue.turn_until_idle();
    };
    EXPECT_DEATH(join_from_two(), "awaited once");
}

TEST(spawn_death_test, an_empty_handle_is_a_contract_violation) {
    auto use_empty = [] {
        manual_queue queue;
        auto handle = queue.spawn(value(1));
        handle.detach();
        (void)handle.done();
    };
    EXPECT_DEATH(use_empty(), "empty join_handle");
}

// --- memory --------------------------------------------------------------------------------------

TEST(root_test, fits_a_recycled_frame_size) {
    // Each connection of a server is a task, and the next size class has 32 bytes more.
    EXPECT_LE(sizeof(detail::root<void>), 152U);
}

} // namespace
} // namespace simplenet::v0
