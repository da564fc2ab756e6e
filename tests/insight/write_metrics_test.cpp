#include <simplenet/insight/write_metrics.hpp>

#include "insight/metrics_page.hpp"
#include "insight/metrics_source.hpp"
#include "support/backend_test.hpp"
#include "support/background_loop.hpp"
#include "support/child_process.hpp"
#include "support/coroutines.hpp"
#include "support/promtool.hpp"

#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/runtime/event_loop_group.hpp>
#include <simplenet/time/sleep.hpp>

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <chrono>
#include <latch>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string metrics() {
    std::ostringstream text;
    write_metrics(text);
    return std::move(text).str();
}

/// The figures of one family, by their labels.
std::map<std::string, long> figures(std::string_view family) {
    std::map<std::string, long> all;
    std::istringstream lines{metrics()};
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with(std::string{family} + '{')) continue;
        const std::size_t begin = line.find('{');
        const std::size_t blank = line.rfind(' ');
        all[line.substr(begin, blank - begin)] = std::stol(line.substr(blank));
    }
    return all;
}

std::string labels(std::string_view group, int loop) {
    return "{group=\"" + std::string{group} + "\",loop=\"" + std::to_string(loop) + "\"}";
}

/// Returns in or after the turn that follows the present one: its figures are there then.
void let_turn(event_loop& loop) {
    std::latch turned{1};
    loop.post([&] { turned.count_down(); });
    turned.wait();
}

class write_metrics_test : public backend_test {
protected:
    [[nodiscard]] static loop_options options() { return {.backend = GetParam()}; }
    [[nodiscard]] static event_loop_group group_of(unsigned loops, std::string_view name) {
        event_loop_group_options wanted;
        wanted.loops = loops;
        wanted.loop = options();
        wanted.name = name;
        return or_throw(event_loop_group::create(wanted));
    }
};

TEST_P(write_metrics_test, prints_the_loops_of_all_groups) {
    if (IsSkipped()) return;
    destroy_loop();
    auto web = group_of(2, "web");
    auto other = group_of(1, "web");
    auto jobs = group_of(1, "jobs \"of\" \\n\n");

    const auto tasks = figures("simplenet_loop_tasks");

    EXPECT_EQ(tasks.size(), 4U);
    EXPECT_TRUE(tasks.contains(labels("web", 0)));
    EXPECT_TRUE(tasks.contains(labels("web", 1)));
    EXPECT_TRUE(tasks.contains(labels("web-2", 0)));
    EXPECT_TRUE(tasks.contains(labels("jobs \\\"of\\\" \\\\n\\n", 0)));
}

TEST_P(write_metrics_test, the_figures_are_those_of_now) {
    if (IsSkipped()) return;
    destroy_loop();
    std::latch started{3};
    auto group = group_of(2, "web");
    for (int each = 0; each < 3; ++each) {
        group[1].post([&] {
            spawn([&]() -> task<> {
                started.count_down();
                (void)co_await async_sleep(1h);
            });
        });
    }
    started.wait();
    let_turn(group[1]);
    const auto tasks = figures("simplenet_loop_tasks");
    EXPECT_EQ(tasks.at(labels("web", 0)), 0);
    EXPECT_EQ(tasks.at(labels("web", 1)), 3);
    EXPECT_EQ(figures("simplenet_loop_timers").at(labels("web", 1)), 3);
    const long before = figures("simplenet_loop_turns_total").at(labels("web", 1));
    let_turn(group[1]);
    EXPECT_GT(figures("simplenet_loop_turns_total").at(labels("web", 1)), before);
}

TEST_P(write_metrics_test, prometheus_accepts_it) {
    if (IsSkipped()) return;
    if (!has_promtool()) GTEST_SKIP() << "without promtool";
    auto group = group_of(2, "\"web\" \xff");
    expect_good_metrics(metrics());
}

TEST_P(write_metrics_test, loops_of_no_group_have_the_lowest_free_numbers) {
    if (IsSkipped()) return;
    destroy_loop();
    {
        const background_loop first{options()};
        std::optional<background_loop> second;
        second.emplace(options());
        const background_loop third{options()};
        EXPECT_EQ(figures("simplenet_loop_tasks").size(), 3U);
        second.reset();
        const auto two = figures("simplenet_loop_tasks");
        EXPECT_EQ(two.size(), 2U);
        EXPECT_FALSE(two.contains(labels("", 1)));
        second.emplace(options());
        EXPECT_TRUE(figures("simplenet_loop_tasks").contains(labels("", 1)));
    }
    EXPECT_TRUE(figures("simplenet_loop_tasks").empty());
}

TEST_P(write_metrics_test, a_loop_that_has_ended_is_not_printed) {
    if (IsSkipped()) return;
    destroy_loop();
    auto group = group_of(2, "web");
    EXPECT_EQ(figures("simplenet_loop_tasks").size(), 2U);
    group.stop();
    group.join();
    EXPECT_TRUE(figures("simplenet_loop_tasks").empty());
}

TEST_P(write_metrics_test, a_loop_that_nobody_runs_has_the_figures_of_its_last_turn) {
    if (IsSkipped()) return;
    loop().spawn([]() -> task<> { (void)co_await async_sleep(1h); });
    loop().poll();
    std::thread{[] {
        EXPECT_EQ(figures("simplenet_loop_tasks").at(labels("", 0)), 1);
        EXPECT_EQ(figures("simplenet_loop_timers").at(labels("", 0)), 1);
    }}.join();
    destroy_loop();
    EXPECT_EQ(metrics(), "");
}

// It published its figures only when run() ended, and was not woken for the first question.
TEST_P(write_metrics_test, a_loop_of_no_group_that_sleeps_has_the_figures_of_now) {
    if (IsSkipped()) return;
    destroy_loop();
    std::latch accepting{1};
    const background_loop alone{options()}; // with a task that sleeps
    auto accepts = [&]() -> task<> {
        auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
        accepting.count_down();
        static_cast<void>(co_await listener.accept());
    };
    alone->spawn_remote(accepts).detach();
    accepting.wait();
    let_turn(*alone);

    EXPECT_EQ(figures("simplenet_loop_tasks").at(labels("", 0)), 2);
    EXPECT_EQ(figures("simplenet_loop_operations").at(labels("", 0)), 1);
    EXPECT_EQ(figures("simplenet_loop_sockets").at(labels("", 0)), 1);
    // The first question has woken it.
    while (figures("simplenet_loop_timers").at(labels("", 0)) != 1)
        std::this_thread::yield();
    EXPECT_GE(figures("simplenet_loop_frames").at(labels("", 0)), 2);
}

// A timer that was cancelled between two turns counted as one of the loop that ran next.
TEST_P(write_metrics_test, loops_that_take_turns_on_a_thread_count_their_own_timers) {
    if (IsSkipped()) return;
    auto sleeps = []() -> task<> { static_cast<void>(co_await async_sleep(1h)); };
    auto other = or_throw(event_loop::create(options()));
    auto sleeping = loop().spawn(sleeps());
    other.spawn(sleeps()).detach();
    loop().poll();
    other.poll();

    sleeping.request_stop();
    other.poll();
    loop().poll();

    std::thread{[] {
        const auto timers = figures("simplenet_loop_timers");
        EXPECT_EQ(timers.at(labels("", 0)), 0);
        EXPECT_EQ(timers.at(labels("", 1)), 1);
    }}.join();
}

TEST_P(write_metrics_test, a_stream_that_is_closed_between_two_turns_has_no_timer_left) {
    if (IsSkipped()) return;
    auto [near, far] = or_throw(nonblocking::local_stream::pair());
    std::optional<local_stream> stream{std::move(near)};
    auto reads = [&]() -> task<> {
        stream->set_idle_timeout(1h);
        std::array<char, 1> byte{};
        static_cast<void>(co_await stream->read_some(byte));
    };
    auto other = or_throw(event_loop::create(options()));
    loop().spawn(reads).detach();
    loop().poll();
    loop().poll();
    EXPECT_EQ(loop().metrics().timers, 1U);

    stream.reset();
    other.poll();
    loop().poll();

    EXPECT_EQ(figures("simplenet_loop_timers").at(labels("", 0)), 0);
}

TEST_P(write_metrics_test, a_task_may_write_those_of_its_own_loop) {
    run([&]() -> task<> {
        co_await turns(3);
        const auto own = figures("simplenet_loop_tasks");
        EXPECT_EQ(own.size(), 1U);
        EXPECT_EQ(own.at(labels("", 0)), 1);
    });
}

TEST_P(write_metrics_test, a_loop_that_nobody_runs_is_not_waited_for) {
    if (IsSkipped()) return;
    std::string text;
    std::thread{[&] {
        const auto before = std::chrono::steady_clock::now();
        for (int each = 0; each < 100; ++each)
            text = metrics();
        EXPECT_LT(std::chrono::steady_clock::now() - before, 9s);
    }}.join();
    EXPECT_THAT(text, HasSubstr("simplenet_loop_turns_total" + labels("", 0) + " 0\n"));

    loop().poll();
    std::thread{[&] { text = metrics(); }}.join();
    EXPECT_THAT(text, Not(HasSubstr("simplenet_loop_turns_total" + labels("", 0) + " 0\n")));
}

TEST_P(write_metrics_test, a_loop_in_a_long_turn_does_not_hold_up_the_others) {
    if (IsSkipped()) return;
    destroy_loop();
    std::latch blocked{1}, over{1}, started{1}; // outlive the threads that use them
    auto group = group_of(2, "web");
    (void)figures("simplenet_loop_turns_total");
    group[0].post([&] {
        blocked.count_down();
        over.wait();
    });
    blocked.wait();
    group[1].post([&] {
        spawn([&]() -> task<> {
            started.count_down();
            (void)co_await async_sleep(1h);
        });
    });
    started.wait();
    const auto tasks = figures("simplenet_loop_tasks");
    over.count_down();

    EXPECT_EQ(tasks.at(labels("web", 0)), 0);
    EXPECT_EQ(tasks.at(labels("web", 1)), 1);
}

TEST_P(write_metrics_test, loops_that_write_at_the_same_time_do_not_wait_for_each_other) {
    if (IsSkipped()) return;
    destroy_loop();
    auto group = group_of(2, "web");
    constexpr int rounds = 50;
    const auto before = std::chrono::steady_clock::now();
    std::vector<remote_handle<>> writers;
    for (std::size_t each = 0; each < group.size(); ++each) {
        auto body = []() -> task<> {
            for (int round = 0; round < rounds; ++round) {
                EXPECT_THAT(metrics(), HasSubstr(labels("web", 1)));
                co_await yield();
            }
        };
        writers.push_back(group[each].spawn_remote(body()));
    }
    for (auto& each : writers)
        std::move(each).get();
    // Each wait for the other one would take 10 ms.
    EXPECT_LT(std::chrono::steady_clock::now() - before, 10ms * rounds * patience);
}

TEST_P(write_metrics_test, loops_may_come_and_go_meanwhile) {
    if (IsSkipped()) return;
    std::atomic<bool> over = false;
    std::vector<std::thread> threads;
    for (int each = 0; each < 2; ++each) {
        threads.emplace_back([&] {
            while (!over)
                EXPECT_NE(metrics(), "");
        });
        threads.emplace_back([&] {
            for (int round = 0; round < 20; ++round) {
                auto group = group_of(2, "web");
                group.next().post([] { (void)metrics(); });
                auto alone = or_throw(event_loop::create(options()));
                alone.run_for(100us);
            }
            over = true;
        });
    }
    for (std::thread& each : threads)
        each.join();
}

TEST_P(write_metrics_test, a_child_has_its_own_loops_only) {
    if (IsSkipped()) return;
    destroy_loop();
    std::optional idle{or_throw(event_loop::create(options()))};
    child_process child{[&] {
        if (metrics() != "") return 1;
        auto own = or_throw(event_loop::create(options()));
        own.poll();
        if (figures("simplenet_loop_tasks").size() != 1) return 2;
        idle.reset(); // forgets it
        return figures("simplenet_loop_tasks").size() == 1 ? 0 : 3;
    }};
    EXPECT_EQ(child.end(), "status 0");
}

INSTANTIATE_TEST_SUITE_P(backends, write_metrics_test, all_backends, backend_name);

// --- sources -------------------------------------------------------------------------------------

constexpr detail::metric answer{"test_answer", "The answer.", detail::metric_kind::gauge};

class constant final : public detail::metrics_source {
public:
    explicit constant(int value)
        : value_{value} {
        publish();
    }
    ~constant() { withdraw(); }

    void write_to(detail::metrics_page& page) const override {
        const std::string which = std::to_string(number());
        page.add(answer, {{"source", which}}, value_);
    }

private:
    int value_;
};

TEST(metrics_source_test, is_printed_from_its_publication_to_its_withdrawal) {
    EXPECT_THAT(metrics(), Not(HasSubstr("test_answer")));
    std::optional<constant> first{42};
    {
        const constant second{43};
        EXPECT_THAT(metrics(), HasSubstr("# TYPE test_answer gauge\n"
                                         "test_answer{source=\"0\"} 42\n"
                                         "test_answer{source=\"1\"} 43\n"));
    }
    EXPECT_THAT(metrics(), Not(HasSubstr("43")));
    const constant second{44};
    first.reset();
    const constant third{45};
    EXPECT_THAT(metrics(), HasSubstr("test_answer{source=\"0\"} 45\n"
                                     "test_answer{source=\"1\"} 44\n"));
}

TEST(metrics_source_test, a_child_has_none_of_its_parent) {
    std::optional<constant> inherited{42};
    child_process child{[&] {
        if (metrics().find("test_answer") != std::string::npos) return 1;
        const constant own{43};
        inherited.reset(); // takes nothing of the child's away
        return metrics().find("test_answer{source=\"0\"} 43\n") != std::string::npos ? 0 : 2;
    }};
    EXPECT_EQ(child.end(), "status 0");
}

TEST(metrics_source_test, may_come_and_go_on_any_thread) {
    std::atomic<int> left = 3;
    std::vector<std::thread> threads;
    for (int each = 0; each < 3; ++each) {
        threads.emplace_back([&] {
            for (int round = 0; round < 1'000; ++round)
                const constant short_lived{round};
            --left;
        });
    }
    while (left != 0)
        (void)metrics();
    for (std::thread& each : threads)
        each.join();
    EXPECT_THAT(metrics(), Not(HasSubstr("test_answer")));
}

} // namespace
} // namespace simplenet::v0::testing
