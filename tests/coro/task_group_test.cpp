#include <simplenet/coro/task_group.hpp>

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/this_task.hpp>

#include "support/gate.hpp"
#include "support/manual_queue.hpp"
#include "support/small_tasks.hpp"
#include "support/witness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace simplenet::v0 {
namespace {

using ::testing::ElementsAre;
using testing::failing;
using testing::gate;
using testing::late_thrower;
using testing::manual_queue;
using testing::nothing;
using testing::pass;
using testing::wait_at;
using testing::witness;

TEST(task_group_test, join_waits_until_every_child_has_ended) {
    manual_queue queue;
    gate first;
    gate second;
    auto handle = queue.spawn([&]() -> task<result<>> {
        task_group group;
        group.spawn(wait_at(first));
        group.spawn(pass(second));
        EXPECT_EQ(group.size(), 2U);
        auto joined = co_await group.join();
        EXPECT_EQ(group.size(), 0U);
        co_return joined;
    });
    queue.turn_until_idle();

    first.open();
    queue.turn_until_idle();
    EXPECT_FALSE(handle.done());
    second.open();

    EXPECT_TRUE(queue.run([&]() -> task<result<>> { co_return co_await handle; }));
}

TEST(task_group_test, size_does_not_count_the_body_of_with_group) {
    manual_queue queue;
    auto body = [](task_group& group) -> task<> {
        EXPECT_EQ(group.size(), 0U);
        group.spawn([]() -> task<> { co_return; });
        group.spawn([]() -> task<> { co_return; });
        EXPECT_EQ(group.size(), 2U);
        co_return;
    };

    EXPECT_TRUE(queue.run(with_group(body)));
}

TEST(task_group_test, join_of_no_children_completes_at_once) {
    manual_queue queue;
    queue.spawn([]() -> task<> {
        task_group group;
        EXPECT_TRUE(co_await group.join());
        EXPECT_FALSE(group.failed());
    });
    EXPECT_EQ(queue.turn(), 1U);
    EXPECT_EQ(queue.live(), 0U);
}

TEST(task_group_test, children_start_in_the_next_turn_in_order) {
    manual_queue queue;
    std::vector<int> log;
    auto child = [&](int mark) -> task<> {
        log.push_back(mark);
        co_return;
    };
    queue.run([&]() -> task<> {
        task_group group;
        group.spawn(child(1));
        group.spawn(child, 2);
        log.push_back(0);
        (void)co_await group.join();
    });
    EXPECT_THAT(log, ElementsAre(0, 1, 2));
}

TEST(task_group_test, callables_and_arguments_live_with_the_child) {
    manual_queue queue;
    std::vector<int> log;
    std::size_t length = 0;
    queue.run([&]() -> task<> {
        task_group group;
        group.spawn(
            [&, text = std::string(80, 'x'),
             last = witness{log, 1}](std::unique_ptr<int> number) -> task<> {
                co_await yield();
                length = text.size() + static_cast<std::size_t>(*number);
            },
            std::make_unique<int>(1));
        (void)co_await group.join();
        log.push_back(2);
    });
    EXPECT_EQ(length, 81U);
    EXPECT_THAT(log, ElementsAre(1, 2)) << "a child is freed before the join returns";
}

TEST(task_group_test, the_first_error_of_a_child_stops_the_others_and_is_returned) {
    manual_queue queue;
    gate door;
    auto joined = queue.run([&]() -> task<result<>> {
        task_group group;
        group.spawn(pass(door));
        co_await yield();
        group.spawn(failing(errc::queue_full));
        group.spawn(failing(errc::limit_exceeded));
        auto ended = co_await group.join();
        EXPECT_TRUE(group.failed());
        co_return ended;
    });
    EXPECT_EQ(joined.error(), errc::queue_full);
    EXPECT_EQ(door.stops, 1);
}

TEST(task_group_test, the_first_exception_of_a_child_stops_the_others_and_is_rethrown) {
    manual_queue queue;
    gate door;
    EXPECT_THROW(queue.run([&]() -> task<> {
        task_group group;
        group.spawn(wait_at(door));
        group.spawn(late_thrower());
        (void)co_await group.join();
    }),
                 std::runtime_error);
    EXPECT_EQ(door.stops, 1);
}

TEST(task_group_test, failed_stays_true_after_the_join) {
    manual_queue queue;
    queue.run([&]() -> task<> {
        task_group group;
        group.spawn(late_thrower());
        try {
            (void)co_await group.join();
        } catch (const std::runtime_error&) {
        }
        EXPECT_TRUE(group.failed());
    });
}

TEST(task_group_test, request_stop_reaches_running_and_later_children) {
    manual_queue queue;
    gate door;
    auto joined = queue.run([&]() -> task<result<>> {
        task_group group;
        group.spawn(pass(door));
        co_await yield();
        group.request_stop();
        group.spawn(pass(door));
        group.request_stop();
        co_return co_await group.join();
    });
    EXPECT_TRUE(joined) << "an error that only repeats the stop is not a failure";
    EXPECT_EQ(door.stops, 1);
    EXPECT_EQ(door.refusals, 1);
}

TEST(task_group_test, an_exception_that_only_repeats_the_stop_is_not_a_failure) {
    manual_queue queue;
    gate door;
    auto waits = [&]() -> task<> {
        const auto opened = co_await door.wait();
        or_throw(opened);
    };
    queue.run([&]() -> task<> {
        task_group group;
        group.spawn(waits());
        co_await yield();

        group.request_stop();

        EXPECT_TRUE(co_await group.join());
        EXPECT_FALSE(group.failed());
    });
}

TEST(task_group_test, a_child_may_stop_its_own_group_and_spawn_into_it) {
    manual_queue queue;
    gate door;
    int ran = 0;
    queue.run([&]() -> task<> {
        task_group group;
        group.spawn(wait_at(door));
        group.spawn([&]() -> task<> {
            co_await yield();
            group.request_stop();
            group.spawn([&]() -> task<> {
                ++ran;
                (void)co_await door.wait();
                ++ran;
            });
        });
        EXPECT_TRUE(co_await group.join());
        EXPECT_EQ(group.size(), 0U);
    });
    EXPECT_EQ(ran, 2);
    EXPECT_EQ(door.refusals, 1);
}

TEST(task_group_test, a_stop_of_the_scope_reaches_the_children_and_is_returned_by_join) {
    manual_queue queue;
    gate door;
    gate slow;
    auto handle = queue.spawn([&]() -> task<std::error_code> {
        task_group group;
        group.spawn(wait_at(door));
        (void)co_await slow.wait();
        co_return (co_await group.join()).error();
    });
    queue.turn_until_idle();

    handle.request_stop();

    EXPECT_EQ(queue.run([&]() -> task<std::error_code> { co_return co_await handle; }),
              std::errc::operation_canceled);
    EXPECT_EQ(door.stops, 1);
}

TEST(task_group_test, a_stop_that_reaches_only_the_join_goes_to_the_children) {
    manual_queue queue;
    gate door;
    std::optional<task_group> group;
    queue.spawn([&]() -> task<> {
        group.emplace();
        group->spawn(wait_at(door));
        (void)co_await shield(yield());
    });
    auto joiner =
        queue.spawn([&]() -> task<std::error_code> { co_return (co_await group->join()).error(); });
    queue.turn_until_idle();
    ASSERT_TRUE(door.waited_at());

    joiner.request_stop();

    EXPECT_EQ(queue.run([&]() -> task<std::error_code> { co_return co_await joiner; }),
              std::errc::operation_canceled);
    group.reset();
}

TEST(task_group_test, success_of_all_children_beats_a_stop) {
    manual_queue queue;
    gate door;
    door.deaf = true;
    auto handle = queue.spawn([&]() -> task<bool> {
        task_group group;
        group.spawn(pass(door));
        co_return (co_await group.join()).has_value();
    });
    queue.turn_until_idle();

    handle.request_stop();
    door.open();

    EXPECT_TRUE(queue.run([&]() -> task<bool> { co_return co_await handle; }));
}

TEST(task_group_test, moves_to_the_enclosing_scope_when_its_own_ends) {
    manual_queue queue;
    gate door;
    gate rest;
    std::optional<task_group> group;
    auto inside = [&]() -> task<> {
        group.emplace();
        group->spawn(wait_at(door));
        co_return;
    };
    auto handle = queue.spawn([&]() -> task<> {
        co_await shield(inside());
        group->spawn(wait_at(rest));
        (void)co_await group->join();
    });
    queue.turn_until_idle();

    handle.request_stop();
    queue.turn_until_idle();

    EXPECT_EQ(door.stops, 1);
    EXPECT_EQ(rest.stops, 1);
    EXPECT_TRUE(handle.done());
    group.reset();
}

TEST(task_group_test, outlives_the_task_that_made_it_and_then_belongs_to_the_loop) {
    gate door;
    std::optional<task_group> group;
    {
        manual_queue queue;
        queue.run([&]() -> task<> {
            group.emplace();
            group->spawn(wait_at(door));
            co_return;
        });
        queue.turn_until_idle();
        group->spawn(wait_at(door));
        EXPECT_EQ(group->size(), 2U);
    }
    EXPECT_EQ(group->size(), 0U);
    group.reset();
}

// The join has begun to return when another task spawns; it must not return with a child alive.
TEST(task_group_test, join_waits_for_a_child_that_is_spawned_just_before_it_returns) {
    manual_queue queue;
    gate door;
    gate late;
    std::optional<task_group> group;
    std::size_t left = 99;
    queue.spawn([&]() -> task<> {
        group.emplace();
        group->spawn(wait_at(door));
        (void)co_await group->join();
        left = group->size();
    });
    queue.turn_until_idle();
    queue.spawn([&]() -> task<> {
        co_await yield();
        group->spawn(wait_at(late));
    });
    queue.turn();
    door.open();
    queue.turn();
    queue.turn_until_idle();

    EXPECT_EQ(left, 99U);
    late.open();
    queue.turn_until_idle();
    EXPECT_EQ(left, 0U);
    group.reset();
}

TEST(task_group_test, frees_each_child_as_it_ends) {
    manual_queue queue;
    const auto frames = detail::live_frames();
    std::ptrdiff_t most = 0;
    queue.run([&]() -> task<> {
        task_group group;
        for (int i = 0; i < 100'000; ++i) {
            group.spawn(nothing());
            co_await yield();
            most = std::max(most, detail::live_frames() - frames);
        }
        EXPECT_TRUE(co_await group.join());
    });
    EXPECT_LE(most, 16);
    EXPECT_EQ(detail::live_frames(), frames);
}

TEST(task_group_test, an_exception_that_was_not_joined_reaches_the_hook) {
    static int reported;
    reported = 0;
    manual_queue queue;
    queue.on_unhandled = [](std::exception_ptr) { ++reported; };
    queue.run([&]() -> task<> {
        task_group group;
        group.spawn(late_thrower());
        while (group.size() != 0)
            co_await yield();
    });
    EXPECT_EQ(reported, 1);
}

TEST(task_group_death_test, spawning_after_the_end_of_its_loop_is_a_contract_violation) {
    auto outlive_the_loop = [] {
        std::optional<task_group> group;
        {
            manual_queue queue;
            queue.run([&]() -> task<> {
                group.emplace();
                co_return;
            });
        }
        group->spawn(nothing());
    };
    EXPECT_DEATH(outlive_the_loop(), "loop of this task_group is gone");
}

TEST(task_group_death_test, destroying_it_with_live_children_is_a_contract_violation) {
    auto forget_to_join = [] {
        manual_queue queue;
        queue.run([]() -> task<> {
            task_group group;
            group.spawn(nothing());
            co_return;
        });
    };
    EXPECT_DEATH(forget_to_join(), "join it first");
}

// A second spawn that fails for lack of memory must not end the program.
TEST(task_group_test, an_exception_before_the_join_destroys_children_that_have_not_begun) {
    manual_queue queue;
    std::vector<int> log;
    int started = 0;
    auto child = [&](witness) -> task<> {
        ++started;
        co_return;
    };
    auto spawner = [&]() -> task<> {
        const witness before{log, 1};
        task_group group;
        group.spawn(child(witness{log, 3}));
        group.spawn([&, held = witness{log, 2}]() -> task<> { return child(witness{log, 4}); });
        throw std::runtime_error{"between spawn and join"};
        co_return;
    };

    EXPECT_THROW(queue.run(spawner), std::runtime_error);

    EXPECT_THAT(log, ElementsAre(4, 2, 3, 1))
        << "newest first, and before objects to which they may refer";
    EXPECT_EQ(started, 0);
    EXPECT_EQ(queue.live(), 0U);
}

TEST(task_group_test, an_exception_at_the_end_of_the_loop_destroys_children_that_have_not_begun) {
    std::vector<int> log;
    {
        gate door; // its waiters are destroyed first
        manual_queue queue;
        queue.spawn([&]() -> task<> {
            (void)co_await door.wait();
            try {
                task_group group;
                for (int each = 0; each < 3; ++each)
                    group.spawn([](witness) -> task<> { co_return; }, witness{log, each});
                throw std::runtime_error{"between spawn and join"};
            } catch (const std::runtime_error&) {
                log.push_back(9);
            }
        });
        queue.turn_until_idle();
    }
    EXPECT_THAT(log, ElementsAre(2, 1, 0, 9));
}

TEST(task_group_death_test, an_exception_cannot_join_children_that_have_begun) {
    auto fail_late = [] {
        manual_queue queue;
        gate door;
        queue.run([&]() -> task<> {
            task_group group;
            group.spawn(wait_at(door));
            co_await yield();
            throw std::runtime_error{"between spawn and join"};
        });
    };
    EXPECT_DEATH(fail_late(), "where an exception may come before the join, use with_group");
}

TEST(task_group_death_test, two_concurrent_joins_are_a_contract_violation) {
    auto join_twice = [] {
        manual_queue queue;
        gate door;
        queue.run([&]() -> task<> {
            task_group group;
            group.spawn(wait_at(door));
            auto join = [&]() -> task<> { (void)co_await group.join(); };
            (void)co_await when_all(join(), join());
        });
    };
    EXPECT_DEATH(join_twice(), "one join");
}

} // namespace
} // namespace simplenet::v0
