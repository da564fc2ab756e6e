#include <simplenet/insight/stall_report.hpp>

#include <simplenet/coro/this_task.hpp>
#include <simplenet/runtime/event_loop.hpp>
#include <simplenet/runtime/run.hpp>
#include <simplenet/time/sleep.hpp>

#include "support/backend_test.hpp"
#include "support/background_loop.hpp"
#include "support/coroutines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::mutex guard;
std::vector<stall_report> stall_reports;
std::atomic<int> reported = 0;

class stall_watchdog_test : public backend_test {
protected:
    void SetUp() override {
        backend_test::SetUp();
        const std::lock_guard lock{guard};
        stall_reports.clear();
        reported = 0;
    }
    [[nodiscard]] static loop_options watched(std::chrono::nanoseconds threshold = 20ms) {
        loop_options options{.backend = GetParam()};
        options.stall_threshold = threshold;
        options.on_stall = [](const stall_report& report) {
            const std::lock_guard lock{guard};
            stall_reports.push_back(report);
            ++reported;
        };
        return options;
    }
};

/// Blocks its thread until the watchdog has reported it.
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
    ASSERT_EQ(stall_reports.size(), 1U);
    EXPECT_GE(stall_reports[0].blocked, 20ms);
    EXPECT_EQ(stall_reports[0].name, "blocks");
    EXPECT_EQ(stall_reports[0].task, 1U);
    EXPECT_THAT(stall_reports[0].site.file_name(), HasSubstr("backend_test.hpp")); // its guarded()
    EXPECT_FALSE(stall_reports[0].stack.empty());
}

TEST_P(stall_watchdog_test, reports_each_turn_once) {
    remake_loop(watched());

    run([]() -> task<> {
        block_until_reported();
        // Many periods in the same turn.
        pass(std::chrono::steady_clock::now() + 100ms);
        EXPECT_EQ(reported, 1);
        co_await yield();
        block_until_reported();
    });

    EXPECT_EQ(reported, 2);
    EXPECT_EQ(loop().metrics().stalls, 2U);
}

TEST_P(stall_watchdog_test, does_not_report_a_loop_that_sleeps_or_does_not_run) {
    remake_loop(watched(1s * patience));
    run([]() -> task<> { (void)co_await async_sleep(1ms); });

    EXPECT_EQ(loop().metrics().stalls, 0U);
    EXPECT_EQ(reported, 0);
}

TEST_P(stall_watchdog_test, looking_for_events_before_a_sleep_is_no_stall) {
    loop_options options = watched(20ms);
    options.busy_poll = 1h;
    remake_loop(options);

    // All waits so far were short, so the loop spins.
    run([]() -> task<> { (void)co_await async_sleep(200ms); });

    EXPECT_EQ(reported, 0);
}

TEST_P(stall_watchdog_test, a_sleep_is_no_stall) {
    remake_loop(watched(20ms));
    // Asserted only where the machine lets the watching thread, and this one, run in time.
    run([]() -> task<> { (void)co_await async_sleep(200ms); });

    EXPECT_EQ(reported, 0);
}

TEST_P(stall_watchdog_test, reports_posted_functions_without_a_task) {
    remake_loop(watched());
    loop().post(block_until_reported);

    run([]() -> task<> { co_return; });

    const std::lock_guard lock{guard};
    ASSERT_EQ(stall_reports.size(), 1U);
    EXPECT_EQ(stall_reports[0].task, 0U);
    EXPECT_EQ(stall_reports[0].name, "");
}

static_assert(loop_options{}.stall_signal == SIGURG, "its number differs between machines");

// A signal that sigaction(2) has refused must not be sent: it would kill the process.
TEST_P(stall_watchdog_test, works_without_a_signal_that_can_be_handled) {
    for (const int signal : {0, -1, SIGKILL, SIGSTOP, 32, _NSIG}) { // the C library reserves 32
        auto options = watched();
        options.stall_signal = signal;
        remake_loop(options);

        run([]() -> task<> {
            block_until_reported();
            co_return;
        });

        const std::lock_guard lock{guard};
        EXPECT_EQ(stall_reports.back().task, 0U) << signal;
        EXPECT_TRUE(stall_reports.back().stack.empty()) << signal;
    }
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

// The watching thread must not join itself: std::terminate().
TEST_P(stall_watchdog_test, a_hook_may_destroy_the_last_loop_that_is_watched) {
    static std::atomic<bool> alone;
    static std::atomic<bool> through;
    alone = through = false;
    auto options = watched();
    options.on_stall = [](const stall_report&) {
        {
            auto own = or_throw(event_loop::create({.backend = GetParam(), .stall_threshold = 1h}));
            own.poll();
            ++reported;
            while (!alone)
                std::this_thread::sleep_for(1ms); // without spinning: the flag decides
        }
        through = true;
    };
    remake_loop(options);

    run([]() -> task<> {
        block_until_reported();
        co_return;
    });
    destroy_loop();
    alone = true;
    while (!through)
        std::this_thread::sleep_for(1ms); // without spinning: the flag decides
}

// If std::exit() destroyed the watchdog with its thread running, it would call std::terminate().
TEST_P(stall_watchdog_test, a_watched_task_may_call_exit) {
    const auto options = watched();
    const auto task_that_exits = [&options] {
        simplenet::run(
            []() -> task<> {
                (void)co_await async_sleep(1ms);
                std::exit(7);
            }(),
            options);
    };
    EXPECT_EXIT(task_that_exits(), ::testing::ExitedWithCode(7), "");
}

TEST_P(stall_watchdog_test, a_forked_child_is_watched_by_a_thread_of_its_own) {
    if (testing::under_thread_sanitizer) {
        GTEST_SKIP() << "it does not follow a process with threads into fork(2)";
    }
    background_loop ours{watched()};
    ours->spawn_remote([]() -> task<> { co_return; }()).get(); // so the loop is watched

    const pid_t child = ::fork();
    if (child == 0) {
        auto own = event_loop::create(watched());
        if (!own) ::_exit(2);
        own->post(block_until_reported);
        own->run();
        // Memory held by the threads of the parent has no owner here, so a search for leaks would
        // fail.
        ::_exit(reported >= 1 ? 0 : 1); // more if the thread was delayed
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

// If the thread of the last loop were told to stay for the new one, the join would never end.
TEST_P(stall_watchdog_test, loops_may_be_created_while_the_last_one_is_destroyed) {
    const auto come_and_go = [] {
        for (int round = 0; round < 300; ++round) {
            auto made = event_loop::create({.backend = backend::epoll, .stall_threshold = 1h});
            if (made) made->poll();
        }
    };
    std::thread other{come_and_go};
    come_and_go();
    other.join();
}

std::atomic<int> urgent = 0;
std::atomic<int> urgent_with_info = 0;

/// Installs the program's handler of SIGURG while it lives.
class urgent_handler {
public:
    explicit urgent_handler(struct sigaction action) {
        urgent = 0;
        urgent_with_info = 0;
        ::sigaction(SIGURG, &action, &before_);
    }
    urgent_handler(const urgent_handler&) = delete;
    urgent_handler& operator=(const urgent_handler&) = delete;
    ~urgent_handler() { ::sigaction(SIGURG, &before_, nullptr); }

    static struct sigaction plain() {
        struct sigaction action{};
        action.sa_handler = [](int) { ++urgent; };
        return action;
    }
    static struct sigaction with_info() {
        struct sigaction action{};
        action.sa_sigaction = [](int, siginfo_t* info, void*) {
            if (info->si_pid == ::getpid()) ++urgent_with_info;
        };
        action.sa_flags = SA_SIGINFO;
        return action;
    }
    /// The current handler.
    static auto now() {
        struct sigaction action{};
        ::sigaction(SIGURG, nullptr, &action);
        return action.sa_handler;
    }

private:
    struct sigaction before_{};
};

TEST_P(stall_watchdog_test, the_programs_handler_is_called_and_later_restored) {
    const auto plain = urgent_handler::plain();
    const urgent_handler handler{plain};
    remake_loop(watched(1h));
    run([]() -> task<> {
        ::raise(SIGURG);
        co_return;
    });
    EXPECT_EQ(urgent, 1);
    EXPECT_NE(urgent_handler::now(), plain.sa_handler);

    remake_loop({.backend = GetParam()});
    EXPECT_EQ(urgent_handler::now(), plain.sa_handler);
    ::raise(SIGURG);
    EXPECT_EQ(urgent, 2);
}

TEST_P(stall_watchdog_test, a_handler_with_sa_siginfo_gets_its_arguments) {
    const urgent_handler handler{urgent_handler::with_info()};
    remake_loop(watched(1h));
    run([]() -> task<> {
        ::raise(SIGURG);
        co_return;
    });
    EXPECT_EQ(urgent_with_info, 1);
}

TEST_P(stall_watchdog_test, the_programs_handler_is_not_called_for_a_stall) {
    const urgent_handler handler{urgent_handler::plain()};
    remake_loop(watched());
    run([]() -> task<> {
        block_until_reported();
        co_return;
    });
    EXPECT_EQ(urgent, 0);
}

TEST_P(stall_watchdog_test, the_handler_is_restored_with_the_last_loop_that_needs_it) {
    const auto plain = urgent_handler::plain();
    const urgent_handler handler{plain};
    remake_loop(watched(1h));
    run([]() -> task<> { co_return; });
    {
        background_loop other{watched(1h)};
        other->spawn_remote([]() -> task<> { co_return; }()).get();
    }
    EXPECT_NE(urgent_handler::now(), plain.sa_handler);

    remake_loop({.backend = GetParam()});
    EXPECT_EQ(urgent_handler::now(), plain.sa_handler);
}

TEST_P(stall_watchdog_test, a_handler_installed_later_stays) {
    const urgent_handler handler{urgent_handler::plain()};
    remake_loop(watched(1h));
    run([]() -> task<> { co_return; });
    const auto later = urgent_handler::with_info();
    const urgent_handler meanwhile{later};

    remake_loop({.backend = GetParam()});
    EXPECT_EQ(urgent_handler::now(), later.sa_handler);
}

TEST_P(stall_watchdog_test, a_handler_that_calls_the_one_before_it_is_called_once) {
    static std::atomic<void (*)(int, siginfo_t*, void*)> before_it = nullptr;
    remake_loop(watched(1h));
    run([]() -> task<> { co_return; });
    auto on_top = urgent_handler::with_info();
    on_top.sa_sigaction = [](int number, siginfo_t* info, void* context) {
        ++urgent;
        before_it.load()(number, info, context);
    };
    struct sigaction ours{};
    ::sigaction(SIGURG, nullptr, &ours);
    before_it = ours.sa_sigaction;
    const urgent_handler meanwhile{on_top};

    remake_loop(watched(1h)); // is installed again, on top of that handler
    run([]() -> task<> {
        ::raise(SIGURG);
        co_return;
    });
    EXPECT_EQ(urgent, 1);
    remake_loop();
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
} // namespace simplenet::v0::testing
