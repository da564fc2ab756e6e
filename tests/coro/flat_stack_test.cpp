// The stack stays flat whatever the compiler makes of calls in tail position: this file is
// compiled at every level of optimisation, and each test runs on a stack of 256 KiB.
#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/task.hpp>

#include "support/gate.hpp"
#include "support/manual_queue.hpp"

#include <gtest/gtest.h>

#include <pthread.h>

#include <cstddef>

namespace simplenet::inline v0 {
namespace {

using testing::gate;
using testing::manual_queue;

/// Runs `body` on a thread with so small a stack that a frame for each await would not fit.
template <class Body>
void on_small_stack(Body body) {
    constexpr std::size_t stack_bytes = 256 * 1024;
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

TEST(flat_stack_test, one_million_awaits_of_what_is_ready_take_no_stack) {
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
        // Around the depth at which a compiler without tail calls unwinds.
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

} // namespace
} // namespace simplenet::inline v0
