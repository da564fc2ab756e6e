// The stack stays flat whatever the compiler does with tail calls: this file is compiled at every
// level of optimisation, and each test runs on a stack of 256 KiB. Only a stop needs stack in
// proportion to the depth, up to a documented limit.
#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/coro/task_group.hpp>

#include "support/gate.hpp"
#include "support/manual_queue.hpp"

#include <gtest/gtest.h>

#include <pthread.h>

#include <cstddef>

namespace simplenet::v0 {
namespace {

using testing::gate;
using testing::manual_queue;

/// Runs `body` on a thread whose stack is too small for a frame for each await.
template <class Body>
void on_small_stack(Body body, std::size_t stack_bytes = std::size_t{256} * 1024) {
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, stack_bytes), 0);
    pthread_t thread;
    auto entry = [](void* argument) -> void* {
        (*static_cast<Body*>(argument))();
        return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, entry, &body), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
}

task<int> one() {
    co_return 1;
}

task<int> nested(int depth, gate* innermost = nullptr) {
    if (depth != 0) co_return co_await nested(depth - 1, innermost) + 1;
    if (innermost != nullptr) (void)co_await innermost->wait();
    co_return 0;
}

TEST(flat_stack_test, one_million_awaits_that_complete_at_once_take_no_stack) {
    on_small_stack([] {
        manual_queue queue;
        auto sum = [](int count) -> task<int> {
            int total = 0;
            for (int i = 0; i < count; ++i)
                total += co_await one();
            co_return total;
        };
        EXPECT_EQ(queue.run(sum(1'000'000)), 1'000'000);
    });
}

TEST(flat_stack_test, one_million_awaits_deep_inside_other_tasks_take_no_stack) {
    on_small_stack([] {
        manual_queue queue;
        auto sum = [](auto& self, int depth) -> task<int> {
            if (depth != 0) co_return co_await self(self, depth - 1);
            int total = 0;
            for (int i = 0; i < 1'000'000; ++i)
                total += co_await one();
            co_return total;
        };
        // Depths around the one at which a compiler without tail calls unwinds.
        for (int depth : {62, 63, 64, 65})
            EXPECT_EQ(queue.run(sum(sum, depth)), 1'000'000);
    });
}

TEST(flat_stack_test, one_hundred_thousand_nested_tasks_take_no_stack) {
    on_small_stack([] {
        manual_queue queue;
        EXPECT_EQ(queue.run(nested(100'000)), 100'000);
    });
}

TEST(flat_stack_test, one_hundred_thousand_nested_tasks_end_one_after_the_other) {
    on_small_stack([] {
        manual_queue queue;
        gate door;
        int depth = 0;
        queue.spawn([&]() -> task<> { depth = co_await nested(100'000, &door); });
        queue.turn_until_idle();

        door.open();
        queue.turn_until_idle();

        EXPECT_EQ(depth, 100'000);
    });
}

TEST(flat_stack_test, an_exception_passes_ten_thousand_tasks_without_stack) {
    on_small_stack([] {
        manual_queue queue;
        auto thrower = [](auto& self, int depth) -> task<> {
            if (depth == 0) throw depth;
            co_await self(self, depth - 1);
        };
        EXPECT_THROW(queue.run(thrower(thrower, 10'000)), int);
    });
}

TEST(flat_stack_test, one_hundred_thousand_combinators_in_a_row_take_no_stack) {
    on_small_stack([] {
        manual_queue queue;
        auto loop = []() -> task<int> {
            int total = 0;
            for (int i = 0; i < 100'000; ++i)
                total += std::get<0>(co_await when_all(shield(one())));
            co_return total;
        };
        EXPECT_EQ(queue.run(loop()), 100'000);
    });
}

// The stack that Linux gives a process, for which docs/usage/coroutines-and-scopes.md makes its
// promise.
constexpr std::size_t usual_stack_bytes = std::size_t{8} * 1024 * 1024;
constexpr int promised_depth = 5'000;

task<> shielded_scopes(gate& innermost, int depth) {
    if (depth == 0) {
        (void)co_await innermost.wait();
    } else {
        co_await shield(shielded_scopes(innermost, depth - 1));
    }
}
task<> joins(gate& innermost, int depth) {
    if (depth == 0) {
        (void)co_await innermost.wait();
    } else {
        auto child = spawn(joins(innermost, depth - 1));
        co_await child;
    }
}
task<> groups(gate& innermost, int depth) {
    if (depth == 0) {
        (void)co_await innermost.wait();
    } else {
        (void)co_await with_group([&](task_group& children) -> task<> {
            children.spawn(groups(innermost, depth - 1));
            co_return;
        });
    }
}
task<> combinators(gate& innermost, int depth) {
    if (depth == 0) {
        (void)co_await innermost.wait();
    } else {
        (void)co_await when_all(combinators(innermost, depth - 1));
    }
}

// Without a limit, 400 000 scopes would overflow the stack in a release build.
TEST(flat_stack_test, a_stop_reaches_the_documented_depth) {
    for (auto* const nest : {joins, groups, combinators}) {
        on_small_stack(
            [&] {
                gate door;
                manual_queue queue;
                auto outermost = queue.spawn(nest(door, promised_depth));
                queue.turn_until_idle();
                ASSERT_TRUE(door.waited_at());

                outermost.request_stop();
                queue.turn_until_idle();

                EXPECT_TRUE(outermost.done());
                EXPECT_EQ(door.stops, 1);
            },
            usual_stack_bytes);
    }
}

TEST(flat_stack_test, the_end_of_the_loop_reaches_the_documented_depth) {
    for (auto* const nest : {shielded_scopes, joins, groups, combinators}) {
        on_small_stack(
            [&] {
                gate door;
                {
                    manual_queue queue;
                    queue.spawn(nest(door, promised_depth));
                    queue.turn_until_idle();
                }
                EXPECT_EQ(door.stops, 1);
            },
            usual_stack_bytes);
    }
}

} // namespace
} // namespace simplenet::v0
