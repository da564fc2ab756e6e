// with_group(): a group that is joined before its scope is left, in every case.

#include <simplenet/coro/task_group.hpp>

#include <simplenet/coro/this_task.hpp>

#include "support/gate.hpp"
#include "support/manual_queue.hpp"
#include "support/small_tasks.hpp"
#include "support/witness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
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
using testing::wait_at;
using testing::witness;

TEST(with_group_test, joins_every_child_that_its_body_spawned) {
    manual_queue queue;
    int ended = 0;
    auto child = [&]() -> task<> {
        co_await yield();
        ++ended;
    };
    auto body = [&](task_group& group) -> task<> {
        for (int i = 0; i < 3; ++i)
            group.spawn(child);
        co_return;
    };
    auto joined = queue.run([&]() -> task<result<>> { co_return co_await with_group(body); });

    EXPECT_TRUE(joined);
    EXPECT_EQ(ended, 3);
}

TEST(with_group_test, keeps_the_callable_until_all_have_ended) {
    manual_queue queue;
    std::vector<int> log;
    auto make = [&] {
        auto body = [&log, last = std::make_shared<witness>(log, 2)](task_group& group) -> task<> {
            group.spawn([&]() -> task<> {
                co_await yield();
                log.push_back(1);
            });
            co_return;
        };
        return with_group(body);
    };
    queue.run([&]() -> task<> { EXPECT_TRUE(co_await make()); });
    EXPECT_THAT(log, ElementsAre(1, 2));
}

TEST(with_group_test, borrows_a_callable_that_cannot_be_copied) {
    manual_queue queue;
    auto body = [number = std::make_unique<int>(1)](task_group&) -> task<> {
        ++*number;
        co_return;
    };
    EXPECT_TRUE(queue.run([&]() -> task<result<>> { co_return co_await with_group(body); }));
}

TEST(with_group_test, a_failing_child_stops_the_body) {
    manual_queue queue;
    gate door;
    auto joined = queue.run([&]() -> task<result<>> {
        co_return co_await with_group([&](task_group& group) -> task<> {
            group.spawn(failing(errc::queue_full));
            (void)co_await door.wait();
        });
    });
    EXPECT_EQ(joined.error(), errc::queue_full);
    EXPECT_EQ(door.stops, 1);
}

TEST(with_group_test, an_exception_of_the_body_stops_and_joins_the_children) {
    manual_queue queue;
    gate door;
    bool ended = false;
    auto child = [&]() -> task<> {
        (void)co_await door.wait();
        ended = true;
    };
    EXPECT_THROW(queue.run([&]() -> task<> {
        (void)co_await with_group([&](task_group& group) -> task<> {
            group.spawn(child);
            co_await yield();
            throw std::runtime_error{"body"};
        });
    }),
                 std::runtime_error);
    EXPECT_TRUE(ended);
}

// The body throws where no child can be joined, which must not end the program.
TEST(with_group_test, a_body_that_is_not_a_coroutine_may_throw_after_spawning) {
    manual_queue queue;
    gate door;
    bool ended = false;
    auto child = [&]() -> task<> {
        (void)co_await door.wait();
        ended = true;
    };
    auto body = [&](task_group& group) -> task<> {
        group.spawn(child);
        if (!ended) throw std::runtime_error{"body"};
        return nothing();
    };

    EXPECT_THROW((void)queue.run(with_group(body)), std::runtime_error);

    EXPECT_TRUE(ended) << "it was stopped and joined";
    EXPECT_EQ(door.refusals, 1);
}

TEST(with_group_test, an_exception_of_a_child_is_rethrown) {
    manual_queue queue;
    EXPECT_THROW(queue.run([&]() -> task<> {
        (void)co_await with_group([](task_group& group) -> task<> {
            group.spawn(late_thrower());
            co_return;
        });
    }),
                 std::runtime_error);
}

TEST(with_group_test, a_stop_reaches_body_and_children) {
    manual_queue queue;
    gate door;
    gate other;
    auto handle = queue.spawn([&]() -> task<std::error_code> {
        auto joined = co_await with_group([&](task_group& group) -> task<> {
            group.spawn(wait_at(other));
            (void)co_await door.wait();
        });
        co_return joined.error();
    });
    queue.turn_until_idle();

    handle.request_stop();

    EXPECT_EQ(queue.run([&]() -> task<std::error_code> { co_return co_await handle; }),
              std::errc::operation_canceled);
    EXPECT_EQ(door.stops + other.stops, 2);
}

TEST(with_group_test, limit_bounds_the_children_that_run_at_once_and_keeps_their_order) {
    manual_queue queue;
    std::array<gate, 4> doors;
    auto handle = queue.spawn([&]() -> task<> {
        (void)co_await with_group({.limit = 2}, [&](task_group& group) -> task<> {
            for (gate& each : doors)
                group.spawn(wait_at(each));
            co_return;
        });
    });
    auto waited_at = [&] {
        queue.turn_until_idle();
        std::string marks;
        for (gate& each : doors)
            marks += each.waited_at() ? 'w' : '-';
        return marks;
    };

    EXPECT_EQ(waited_at(), "ww--");
    doors[1].open();
    EXPECT_EQ(waited_at(), "w-w-");
    doors[0].open();
    EXPECT_EQ(waited_at(), "--ww");
    doors[2].open();
    doors[3].open();
    EXPECT_EQ(waited_at(), "----");
    EXPECT_TRUE(handle.done());
}

TEST(with_group_test, a_stop_refuses_children_that_wait_for_the_limit) {
    manual_queue queue;
    gate door;
    int started = 0;
    auto handle = queue.spawn([&]() -> task<> {
        (void)co_await with_group({.limit = 1}, [&](task_group& group) -> task<> {
            for (int i = 0; i < 3; ++i) {
                group.spawn([&]() -> task<> {
                    ++started;
                    (void)co_await door.wait();
                });
            }
            co_return;
        });
    });
    queue.turn_until_idle();

    handle.request_stop();
    queue.turn_until_idle();

    EXPECT_TRUE(handle.done());
    EXPECT_EQ(started, 3);
    EXPECT_EQ(door.refusals, 2);
}

TEST(with_group_test, nests) {
    manual_queue queue;
    gate door;
    auto handle = queue.spawn([&]() -> task<std::error_code> {
        auto joined = co_await with_group([&](task_group& outer) -> task<> {
            outer.spawn([&]() -> task<result<>> {
                co_return co_await with_group([&](task_group& inner) -> task<> {
                    inner.spawn(wait_at(door));
                    co_return;
                });
            });
            outer.spawn([&]() -> task<result<>> {
                for (int i = 0; i < 3; ++i)
                    co_await yield();
                co_return fail(errc::end_of_stream);
            });
            co_return;
        });
        co_return joined.error();
    });
    EXPECT_EQ(queue.run([&]() -> task<std::error_code> { co_return co_await handle; }),
              errc::end_of_stream);
    EXPECT_EQ(door.stops, 1);
}

} // namespace
} // namespace simplenet::v0
