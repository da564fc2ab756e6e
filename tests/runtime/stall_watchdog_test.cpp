#include <simplenet/runtime/stall_report.hpp>

#include <simplenet/coro/this_task.hpp>
#include <simplenet/runtime/event_loop.hpp>
#include <simplenet/runtime/sleep.hpp>

#include "support/backend_test.hpp"
#include "support/background_loop.hpp"
#include "support/coroutines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace simplenet::inline v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::mutex guard;
std::vector<stall_report> reports;
std::atomic<int> reported = 0;

class stall_watchdog_test : public backend_test {
protected:
    void SetUp() override {
        backend_test::SetUp();
        const std::lock_guard lock{guard};
        reports.clear();
        reported = 0;
    }
    [[nodiscard]] static loop_options watched(std::chrono::nanoseconds threshold = 20ms) {
        loop_options options{.backend = GetParam()};
        options.stall_threshold = threshold;
        options.on_stall = [](const stall_report& report) {
            const std::lock_guard lock{guard};
            reports.push_back(report);
            ++reported;
        };
        return options;
    }
};

/// Blocks its thread until somebody has reported that.
void block_until_reported() {
    const int before = reported;
    while (reported == before)
        std::this_thread::sleep_for(1ms);
}

TEST_P(stall_watchdog_test, reports_the_task_that_blocks_its_loop) {
    remake_loop(watched());
    unsigned line = 0;

    run([&]() -> task<> {
        this_task::set_name("blocks");
        auto inner = []() -> task<> {
            block_until_reported();
            co_return;
        };
        line = std::source_location::current().line() + 1;
        co_await inner();
    });

    const std::lock_guard lock{guard};
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_GE(reports[0].blocked, 20ms);
    EXPECT_EQ(reports[0].name, "blocks");
    EXPECT_EQ(reports[0].task, 1U);
    EXPECT_THAT(reports[0].site.file_name(), HasSubstr("backend_test.hpp")); // its guarded()
    EXPECT_FALSE(reports[0].stack.empty());
}

TEST_P(stall_watchdog_test, reports_a_turn_once_and_the_next_one_again) {
    remake_loop(watched());

    run([]() -> task<> {
        block_until_reported();
        // Many periods, in the same turn.
        pass(std::chrono::steady_clock::now() + 100ms);
        EXPECT_EQ(reported, 1);
        co_await yield();
        block_until_reported();
    });

    EXPECT_EQ(reported, 2);
    EXPECT_EQ(loop().metrics().stalls, 2U);
}

TEST_P(stall_watchdog_test, says_nothing_of_a_loop_that_sleeps_or_does_not_run) {
    remake_loop(watched(1s * patience));
    run([]() -> task<> { (void)co_await async_sleep(1ms); });

    EXPECT_EQ(loop().metrics().stalls, 0U);
    EXPECT_EQ(reported, 0);
}

TEST_P(stall_watchdog_test, looking_for_events_before_a_sleep_is_no_stall) {
    loop_options options = watched(20ms);
    options.busy_poll = 1h;
    remake_loop(options);

    // Only short waits so far, so it spins.
    run([]() -> task<> { (void)co_await async_sleep(200ms); });

    EXPECT_EQ(reported, 0);
}

TEST_P(stall_watchdog_test, a_sleep_is_no_stall) {
    remake_loop(watched(20ms));
    // Only asserted where the machine lets the thread that watches, and this one, run in time.
    run([]() -> task<> { (void)co_await async_sleep(200ms); });

    EXPECT_EQ(reported, 0);
}

TEST_P(stall_watchdog_test, reports_posted_functions_without_a_task) {
    remake_loop(watched());
    loop().post(block_until_reported);

    run([]() -> task<> { co_return; });

    const std::lock_guard lock{guard};
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_EQ(reports[0].task, 0U);
    EXPECT_EQ(reports[0].name, "");
}

TEST_P(stall_watchdog_test, works_without_a_signal) {
    auto options = watched();
    options.stall_signal = 0;
    remake_loop(options);

    run([]() -> task<> {
        block_until_reported();
        co_return;
    });

    const std::lock_guard lock{guard};
    EXPECT_EQ(reports[0].task, 0U);
    EXPECT_TRUE(reports[0].stack.empty());
}

TEST_P(stall_watchdog_test, watches_many_loops_that_come_and_go) {
    for (int round = 0; round < 5; ++round) {
        std::vector<std::unique_ptr<background_loop>> loops;
        for (int i = 0; i < 4; ++i)
            loops.push_back(std::make_unique<background_loop>(watched(1ms)));
        (*loops.front())->post([] { block_until_reported(); });
        (*loops.back())->post([] { block_until_reported(); });
    }
    EXPECT_GE(reported, 5);
}

TEST_P(stall_watchdog_test, a_hook_may_make_and_destroy_loops) {
    auto options = watched();
    options.on_stall = [](const stall_report&) {
        auto nested = watched();
        {
            background_loop other{nested};
        }
        ++reported;
    };
    remake_loop(options);

    run([]() -> task<> {
        block_until_reported();
        co_return;
    });
    EXPECT_EQ(reported, 1);
}

TEST_P(stall_watchdog_test, is_off_by_default) {
    run([]() -> task<> {
        pass(std::chrono::steady_clock::now() + 30ms);
        co_return;
    });
    EXPECT_EQ(loop().metrics().stalls, 0U);
}

INSTANTIATE_TEST_SUITE_P(backends, stall_watchdog_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::inline v0::testing
