#include <simplenet/runtime/run_blocking.hpp>

#include "support/backend_test.hpp"
#include "support/child_process.hpp"
#include "sys/processors.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/runtime/run.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#if __has_include(<sanitizer/lsan_interface.h>)
#include <sanitizer/lsan_interface.h>

// In a child of fork(2) LeakSanitizer misses what the threads of the parent hold, and calls it a
// leak.
static bool is_child_with_threads = false;
[[gnu::visibility("default")]] int __lsan_is_turned_off() {
    return is_child_with_threads ? 1 : 0;
}
#endif

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

class run_blocking_test : public backend_test {
protected:
    [[nodiscard]] static loop_options options() { return {.backend = GetParam()}; }
};

TEST_P(run_blocking_test, calls_on_another_thread_and_continues_here) {
    auto add = [](int a, std::unique_ptr<int> b) { return a + *b; };
    run([&]() -> task<> {
        EXPECT_NE(co_await run_blocking(std::this_thread::get_id), std::this_thread::get_id());
        EXPECT_EQ(co_await run_blocking(add, 1, std::make_unique<int>(2)), 3);
        EXPECT_EQ(event_loop::current(), &loop());
    });
}

TEST_P(run_blocking_test, eight_calls_may_block_at_the_same_time) {
    auto all = std::make_shared<std::latch>(8);
    auto meet = [=] { all->arrive_and_wait(); };
    run([&]() -> task<> {
        std::vector<task<>> calls;
        for (int each = 0; each < 8; ++each)
            calls.push_back(run_blocking(meet));
        co_await when_all(std::move(calls));
    });
}

TEST_P(run_blocking_test, no_more_calls_run_at_once_than_there_are_threads) {
    const int most = std::max(8, 4 * static_cast<int>(detail::sys::usable_processors()));
    std::atomic<int> inside = 0, highest = 0;
    auto call = [&] {
        const int now = ++inside;
        for (int seen = highest; seen < now && !highest.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::yield();
        --inside;
    };
    run([&]() -> task<> {
        std::vector<task<>> calls;
        for (int each = 0; each < 2'000; ++each)
            calls.push_back(run_blocking(call));
        co_await when_all(std::move(calls));
    });

    EXPECT_LE(highest, most);
}

/// The value of a blocking call on a new loop.
int ask_a_thread(loop_options options) {
    auto main = []() -> task<int> {
        auto call = [] { return 42; };
        co_return co_await run_blocking(call);
    };
    return simplenet::run(main(), options);
}

TEST_P(run_blocking_test, a_forked_child_has_threads_of_its_own) {
    if (under_thread_sanitizer) {
        GTEST_SKIP() << "ThreadSanitizer allows no threads in a child of a program with threads";
    }
    destroy_loop();
    ASSERT_EQ(ask_a_thread(options()), 42);

    child_process child{[] { return ask_a_thread(options()); }};

    EXPECT_EQ(child.end(), "status 42");
}

// Two first callers each made a pool, and one was destroyed while its thread used it.
TEST_P(run_blocking_test, several_threads_may_make_the_first_call) {
    if (under_thread_sanitizer) {
        GTEST_SKIP() << "ThreadSanitizer allows no threads in a child of a program with threads";
    }
    destroy_loop();
    ASSERT_EQ(ask_a_thread(options()), 42);
    for (int round = 0; round < 20; ++round) {
        child_process child{[] {
            std::latch all{4};
            std::atomic<int> answers = 0;
            {
                std::vector<std::jthread> callers;
                for (int each = 0; each < 4; ++each) {
                    callers.emplace_back([&] {
                        all.arrive_and_wait();
                        answers += ask_a_thread(options()) == 42;
                    });
                }
            }
            return answers.load();
        }};

        EXPECT_EQ(child.end(), "status 4");
    }
}

TEST_P(run_blocking_test, its_threads_are_bounded) {
    const int most = std::max(8, 4 * static_cast<int>(detail::sys::usable_processors()));
    std::atomic<int> running = 0;
    std::atomic<int> largest = 0;
    std::latch all_threads{most};
    // The first ones wait until every thread has a call.
    auto blocks = [&] {
        const int now = ++running;
        for (int before = largest; before < now && !largest.compare_exchange_weak(before, now);) {
        }
        if (!all_threads.try_wait()) {
            all_threads.count_down();
            all_threads.wait();
        }
        --running;
    };
    run([&]() -> task<> {
        task_group calls;
        for (int each = 0; each < 3 * most; ++each)
            calls.spawn(run_blocking(blocks));
        EXPECT_TRUE(co_await calls.join());
    });
    EXPECT_EQ(largest, most);
}

TEST_P(run_blocking_test, the_end_of_the_process_does_not_wait_for_calls) {
    if (under_thread_sanitizer) {
        GTEST_SKIP() << "ThreadSanitizer allows no threads in a child of a program with threads";
    }
    destroy_loop();
    child_process child{[] {
#if __has_include(<sanitizer/lsan_interface.h>)
        is_child_with_threads = true;
#endif
        auto main = []() -> task<> {
            auto begun = std::make_shared<std::latch>(1);
            auto blocks = [=]() -> result<> {
                begun->count_down();
                std::this_thread::sleep_for(24h);
                return {};
            };
            auto waits = [](auto call) -> task<> {
                static_cast<void>(co_await run_blocking(call));
            };
            spawn(waits(blocks));
            co_await yield();
            begun->wait();
        };
        simplenet::run(main(), options());
        std::exit(3);
        return 0;
    }};

    EXPECT_EQ(child.end(), "status 3");
}

INSTANTIATE_TEST_SUITE_P(backends, run_blocking_test, real_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
