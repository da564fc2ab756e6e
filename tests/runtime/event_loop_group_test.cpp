#include <simplenet/runtime/event_loop_group.hpp>

#include "support/backend_test.hpp"
#include "support/child_process.hpp"
#include "support/descriptor_limit.hpp"
#include "support/held_up.hpp"
#if SIMPLENET_SEAMS
#include "support/fault_plan.hpp"
#endif
#include "sys/processors.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/runtime/run.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <future>
#include <iterator>
#include <latch>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sched.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

std::ptrdiff_t threads_of_process() {
    return std::distance(std::filesystem::directory_iterator{"/proc/self/task"},
                         std::filesystem::directory_iterator{});
}

std::string name_of_thread() {
    std::array<char, 16> name{};
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    return name.data();
}

/// Calls `function` on the loop's thread and returns its value.
template <class Function>
auto ask(event_loop& loop, Function function) {
    std::promise<decltype(function())> answer;
    auto future = answer.get_future();
    loop.post([&] { answer.set_value(function()); });
    return future.get();
}

/// Calls `function` on the thread of each loop.
template <class Function>
auto ask_all(event_loop_group& group, Function function) {
    std::vector<decltype(function())> answers;
    for (std::size_t each = 0; each < group.size(); ++each)
        answers.push_back(ask(group[each], function));
    return answers;
}

std::vector<std::string> names_in(std::string_view name, unsigned loops) {
    event_loop_group group =
        or_throw(event_loop_group::create({.loops = loops, .loop = {}, .name = name}));
    return ask_all(group, name_of_thread);
}

bool blocks(int signal) {
    sigset_t mask;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    return sigismember(&mask, signal) == 1;
}

class event_loop_group_test : public own_loops_test {
protected:
    [[nodiscard]] static loop_options options() { return {.backend = GetParam()}; }
    [[nodiscard]] static event_loop_group create(unsigned loops = 2) {
        return or_throw(event_loop_group::create({.loops = loops, .loop = options()}));
    }

private:
    watchdog watchdog_;
};

TEST_P(event_loop_group_test, each_loop_runs_on_a_thread_of_its_own) {
    event_loop_group group = create(3);

    const auto threads = ask_all(group, std::this_thread::get_id);
    const auto loops = ask_all(group, &event_loop::current);

    EXPECT_EQ(group.size(), 3U);
    EXPECT_THAT(std::set(threads.begin(), threads.end()), SizeIs(3));
    EXPECT_THAT(loops, ElementsAre(&group[0], &group[1], &group[2]));
    EXPECT_EQ(group[2].selected_backend(), GetParam());
}

TEST_P(event_loop_group_test, by_default_there_is_a_loop_for_each_processor) {
    event_loop_group group = or_throw(event_loop_group::create({.loop = options()}));

    EXPECT_EQ(group.size(), detail::sys::usable_processors());
}

TEST_P(event_loop_group_test, the_affinity_mask_limits_the_number_of_loops) {
    std::jthread{[] {
        EXPECT_EQ(
            detail::sys::pin_thread(::pthread_self(), detail::sys::allowed_processors().front()),
            0);
        event_loop_group group = or_throw(event_loop_group::create({.loop = options()}));

        EXPECT_EQ(group.size(), 1U);
    }}.join();
}

TEST_P(event_loop_group_test, pinned_threads_have_the_processors_of_the_mask_in_its_order) {
    const auto processors = detail::sys::allowed_processors();
    const auto count = static_cast<unsigned>(processors.size());
    event_loop_group group =
        or_throw(event_loop_group::create({.loops = count, .pin = true, .loop = options()}));

    const auto masks = ask_all(group, detail::sys::allowed_processors);

    ASSERT_THAT(masks, SizeIs(count));
    for (unsigned each = 0; each < count; ++each)
        EXPECT_THAT(masks[each], ElementsAre(processors[each]));
    EXPECT_EQ(detail::sys::allowed_processors(), processors) << "of the creating thread";
}

TEST_P(event_loop_group_test, more_pinned_loops_than_processors_are_an_invalid_argument) {
    const auto too_many = static_cast<unsigned>(detail::sys::allowed_processors().size() + 1);

    const auto group =
        event_loop_group::create({.loops = too_many, .pin = true, .loop = options()});

    EXPECT_EQ(group.error(), std::errc::invalid_argument);
}

TEST_P(event_loop_group_test, threads_are_named_after_the_group) {
    const std::string before = name_of_thread();

    EXPECT_THAT(names_in("simplenet", 2), ElementsAre("simplenet-0", "simplenet-1"));

    EXPECT_EQ(name_of_thread(), before);
}

TEST_P(event_loop_group_test, a_long_name_is_cut_and_not_the_number) {
    const auto names = names_in("a_very_long_name", 11);

    EXPECT_EQ(names[1], "a_very_long_n-1");
    EXPECT_EQ(names[10], "a_very_long_-10");
}

TEST_P(event_loop_group_test, threads_block_signals_but_those_of_faults) {
    event_loop_group group = create();

    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE, SIGCHLD, SIGRTMIN})
        EXPECT_THAT(ask_all(group, [signal] { return blocks(signal); }), Each(true)) << signal;
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL})
        EXPECT_THAT(ask_all(group, [signal] { return blocks(signal); }), Each(false)) << signal;
    EXPECT_FALSE(blocks(SIGTERM)) << "of the creating thread";
}

TEST_P(event_loop_group_test, threads_take_the_signals_that_the_options_name) {
    loop_options named = options();
    named.dump_signal = SIGUSR2;
    named.stall_threshold = 1min;
    named.stall_signal = SIGURG;
    event_loop_group group = or_throw(event_loop_group::create({.loops = 2, .loop = named}));

    for (const int signal : {SIGUSR2, SIGURG})
        EXPECT_THAT(ask_all(group, [signal] { return blocks(signal); }), Each(false)) << signal;
}

TEST_P(event_loop_group_test, next_returns_the_loops_in_turn) {
    event_loop_group group = create(3);
    std::vector<event_loop*> turns;
    for (int each = 0; each < 6; ++each)
        turns.push_back(&group.next());

    EXPECT_THAT(turns,
                ElementsAre(&group[0], &group[1], &group[2], &group[0], &group[1], &group[2]));
}

TEST_P(event_loop_group_test, posts_before_the_threads_have_started_run) {
    constexpr std::ptrdiff_t posts = 100;
    for (int round = 0; round < 20; ++round) {
        std::latch ran{2 * posts};
        event_loop_group group = create(2);
        for (std::ptrdiff_t each = 0; each < posts; ++each) {
            group[0].post([&] { ran.count_down(); });
            group[1].post([&] { ran.count_down(); });
        }

        ran.wait();
    }
}

TEST_P(event_loop_group_test, loops_go_on_when_they_have_no_work) {
    event_loop_group group = create();

    for (int round = 0; round < 3; ++round) {
        auto answers = []() -> task<int> { co_return 42; };
        EXPECT_EQ(group[1].spawn_remote(answers()).get(), 42);
    }
}

TEST_P(event_loop_group_test, stopping_a_single_loop_has_no_effect) {
    event_loop_group group = create();

    group[0].stop();
    ask(group[0], [] { return event_loop::current()->stop(), 0; });

    EXPECT_EQ(ask(group[0], [] { return 42; }), 42);
}

TEST_P(event_loop_group_test, after_stop_a_post_destroys_its_callable) {
    event_loop_group group = create();
    auto held = std::make_shared<int>();
    bool ran = false;
    group.stop();

    group[0].post([&ran, held] { ran = true; });
    EXPECT_EQ(held.use_count(), 1);
    group.join();
    group[1].post([&ran, held] { ran = true; });
    EXPECT_EQ(held.use_count(), 1);

    EXPECT_FALSE(ran);
}

TEST_P(event_loop_group_test, after_stop_a_remote_task_is_canceled) {
    event_loop_group group = create();
    auto nothing = []() -> task<> { co_return; };
    group.stop();

    auto handle = group[0].spawn_remote(nothing());

    try {
        handle.get();
        ADD_FAILURE() << "it never began";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), std::errc::operation_canceled);
    }
}

TEST_P(event_loop_group_test, stop_stops_the_tasks_of_every_loop) {
    std::atomic<int> canceled = 0;
    std::latch begun{2};
    event_loop_group group = create();
    auto waits = [&]() -> task<> {
        begun.count_down();
        auto slept = co_await async_sleep(1h);
        if (slept.error() == std::errc::operation_canceled) ++canceled;
    };
    group[0].spawn_remote(waits).detach();
    group[1].spawn_remote(waits).detach();
    begun.wait();

    group.stop();
    group.join();

    EXPECT_EQ(canceled, 2);
}

TEST_P(event_loop_group_test, any_thread_may_stop_it_also_one_of_its_own) {
    event_loop_group group = create();

    group[1].post([&] { group.stop(); });

    group.join();
}

TEST_P(event_loop_group_test, stop_and_join_may_be_called_again_and_by_several_threads) {
    event_loop_group group = create();
    std::vector<std::jthread> others;
    for (int each = 0; each < 3; ++each) {
        others.emplace_back([&] {
            group.stop();
            group.join();
        });
    }

    group.join();
    others.clear();
    group.stop();
    group.join();
}

TEST_P(event_loop_group_test, joining_it_on_its_own_thread_stops_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            event_loop_group group = create();
            group[0].post([&] { group.join(); });
            group.join();
        },
        "joined, or destroyed, on a thread of its own");
}

TEST_P(event_loop_group_test, destroying_it_on_its_own_thread_stops_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            auto group = std::make_unique<event_loop_group>(create());
            event_loop& loop = (*group)[0];
            loop.post([&] { group.reset(); });
            std::this_thread::sleep_for(1h);
        },
        "joined, or destroyed, on a thread of its own");
}

TEST_P(event_loop_group_test, it_may_be_moved_while_its_loops_run) {
    event_loop_group first = create();
    event_loop& loop = first[0];
    std::atomic<bool> over = false;
    std::jthread user{[&] {
        while (!over)
            EXPECT_EQ(ask(loop, [] { return 42; }), 42);
    }};

    event_loop_group second = std::move(first);
    event_loop_group third = create();
    third = std::move(second);

    EXPECT_EQ(&third[0], &loop);
    over = true;
    user.join();
    EXPECT_EQ(ask(loop, [] { return 42; }), 42);
}

TEST_P(event_loop_group_test, a_group_that_was_moved_from_can_only_be_destroyed) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            event_loop_group group = create();
            const event_loop_group moved = std::move(group);
            group.stop();
        },
        "after it was moved from");
}

TEST_P(event_loop_group_test, an_index_out_of_range_stops_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            event_loop_group group = create(2);
            static_cast<void>(group[2]);
        },
        "no loop of this index");
}

TEST_P(event_loop_group_test, a_forked_child_may_destroy_it) {
    event_loop_group group = create();

    child_process child{[&] {
        group.stop();
        group.join();
        const event_loop_group ours = std::move(group);
        return 0;
    }};

    EXPECT_EQ(child.end(), "status 0");
    EXPECT_EQ(ask(group[0], [] { return 42; }), 42) << "the parent's loops go on";
}

TEST_P(event_loop_group_test, metrics_are_the_sum_over_the_loops) {
    event_loop_group group = create(3);
    auto waits = []() -> task<> { static_cast<void>(co_await async_sleep(1h)); };
    for (const std::size_t at : {0, 1, 1})
        ask(group[at], [&] { return event_loop::current()->spawn(waits).detach(), 0; });
    ask_all(group, [] { return 0; }); // the tasks have begun

    EXPECT_EQ(group.metrics(0).live_tasks, 1U);
    EXPECT_EQ(group.metrics(1).live_tasks, 2U);
    EXPECT_EQ(group.metrics(2).live_tasks, 0U);
    EXPECT_EQ(group.metrics().live_tasks, 3U);
    EXPECT_EQ(group.metrics().timers, 3U);
    EXPECT_GE(group.metrics().turns, 3U);
}

TEST_P(event_loop_group_test, metrics_may_be_asked_for_on_any_loop) {
    event_loop_group group = create(2);
    auto waits = []() -> task<> { static_cast<void>(co_await async_sleep(1h)); };
    ask(group[0], [&] { return event_loop::current()->spawn(waits).detach(), 0; });

    EXPECT_EQ(ask(group[0], [&] { return group.metrics().live_tasks; }), 1U);
    EXPECT_EQ(ask(group[1], [&] { return group.metrics().live_tasks; }), 1U);
    event_loop other = or_throw(event_loop::create(options()));
    std::size_t seen = 0;
    other.post([&] { seen = group.metrics().live_tasks; });
    other.run();
    EXPECT_EQ(seen, 1U);
}

TEST_P(event_loop_group_test, a_blocked_loop_has_the_figures_of_the_turn_before) {
    event_loop_group group = create(2);
    auto waits = []() -> task<> { static_cast<void>(co_await async_sleep(1h)); };
    auto accepts = []() -> task<> {
        auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
        static_cast<void>(co_await listener.accept());
    };
    ask(group[0], [&] { return event_loop::current()->spawn(waits).detach(), 0; });
    ask(group[0], [&] { return event_loop::current()->spawn(accepts).detach(), 0; });
    ask(group[0], [] { return 0; }); // their turns are over
    const held_up blocked{group[0]};

    // Nobody has asked before, and the loop cannot answer.
    const loop_metrics seen = group.metrics(0);
    EXPECT_GE(seen.turns, 3U);
    EXPECT_EQ(seen.live_tasks, 2U);
    EXPECT_EQ(seen.live_operations, 1U);
    EXPECT_EQ(seen.timers, 1U);
    EXPECT_EQ(seen.open_descriptors, 1U);
    EXPECT_GE(seen.live_frames, 2);
    EXPECT_EQ(group.metrics().live_tasks, 2U);
}

TEST_P(event_loop_group_test, a_blocked_loop_has_the_tasks_and_operations_of_now) {
    std::latch begun{1}, over{1}; // outlive the threads that use them
    event_loop_group group = create(1);
    auto accepts = []() -> task<> {
        auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
        static_cast<void>(co_await listener.accept());
    };
    auto blocks = [&]() -> task<> {
        begun.count_down();
        over.wait();
        co_return;
    };
    group[0].post([&] {
        spawn(accepts).detach();
        spawn(blocks).detach(); // begins in the same turn
    });
    begun.wait();

    const loop_metrics seen = group.metrics();
    over.count_down();

    EXPECT_EQ(seen.live_tasks, 2U);
    EXPECT_EQ(seen.live_operations, 1U);
    EXPECT_EQ(seen.open_descriptors, 1U);
}

TEST_P(event_loop_group_test, metrics_count_what_begins_and_ends) {
    event_loop_group group = create(1);
    auto work = []() -> task<> {
        auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
        const auto at = or_throw(listener.local_endpoint());
        for (int each = 0; each < 10; ++each) {
            auto client = or_throw(co_await async_connect(at));
            auto server = or_throw(co_await listener.accept());
            std::array<char, 4> bytes{};
            auto late = co_await with_timeout(server.read_some(bytes), 1ms); // a timer that fires
            EXPECT_EQ(late.error(), errc::deadline_exceeded);
            auto reading = spawn([&]() -> task<result<std::size_t>> {
                co_return co_await with_timeout(server.read_some(bytes), 1h); // one that does not
            });
            co_await yield();
            or_throw(co_await client.write_some("abcd"));
            EXPECT_EQ(co_await reading, 4U);
            EXPECT_FALSE(server.try_receive());
        }
    };
    group[0].spawn_remote(work).get();
    ask(group[0], [] { return 0; });

    const loop_metrics seen = group.metrics(0);
    EXPECT_EQ(seen.live_tasks, 0U);
    EXPECT_EQ(seen.live_operations, 0U);
    EXPECT_EQ(seen.timers, 0U);
    EXPECT_EQ(seen.open_descriptors, 0U);
    EXPECT_EQ(seen.receive_pool_leased, 0U);
    EXPECT_GE(seen.completions, 20U);
    EXPECT_EQ(ask(group[0], [] { return event_loop::current()->metrics().timers; }), 0U);
}

// The number of cancelled timers is the thread's, so the inner loop took those of the outer one.
TEST_P(event_loop_group_test, metrics_count_timers_though_a_loop_ends_inside_another_one) {
    event_loop_group group = create(1);
    auto work = [](backend which) -> task<> {
        auto inner = std::make_unique<event_loop>(or_throw(event_loop::create({.backend = which})));
        auto sleeps = []() -> task<> { static_cast<void>(co_await async_sleep(1h)); };
        auto sleeping = spawn(sleeps());
        co_await yield();
        sleeping.request_stop();
        inner.reset();
        co_await sleeping;
    };
    group[0].spawn_remote(work, GetParam()).get();
    ask(group[0], [] { return 0; });

    EXPECT_EQ(group.metrics(0).timers, 0U);
}

TEST_P(event_loop_group_test, loops_that_ask_each_other_know_the_answers) {
    std::latch asking{2}, over{2};
    std::array<std::size_t, 2> seen{};
    event_loop_group group = create(2);
    auto waits = []() -> task<> { static_cast<void>(co_await async_sleep(1h)); };
    for (const std::size_t at : {0, 1})
        ask(group[at], [&] { return event_loop::current()->spawn(waits).detach(), 0; });
    for (const std::size_t at : {0, 1}) {
        group[at].post([&, at] {
            asking.arrive_and_wait();
            seen[at] = group.metrics().live_tasks;
            over.count_down();
        });
    }
    over.wait();

    EXPECT_THAT(seen, Each(2U));
}

TEST_P(event_loop_group_test, after_the_end_the_metrics_are_those_of_the_end) {
    event_loop_group group = create(2);
    auto waits = []() -> task<> { static_cast<void>(co_await async_sleep(1h)); };
    ask(group[0], [&] { return event_loop::current()->spawn(waits).detach(), 0; });
    const auto before = group.metrics();

    group.stop();
    group.join();

    EXPECT_GE(group.metrics().turns, before.turns);
    EXPECT_EQ(group.metrics().live_tasks, 0U);
    EXPECT_EQ(group.metrics().timers, 0U);
}

TEST_P(event_loop_group_test, without_descriptors_for_all_loops_there_is_none) {
    const auto threads = threads_of_process();
    const descriptor_limit few{2};

    const auto group = event_loop_group::create({.loops = 8, .loop = options()});

    EXPECT_EQ(group.error(), std::errc::too_many_files_open);
    EXPECT_EQ(threads_of_process(), threads);
}

#if SIMPLENET_SEAMS
TEST_P(event_loop_group_test, without_a_thread_for_each_loop_none_runs) {
    const auto threads = threads_of_process();
    fault_plan plan;
    plan.fail(call::thread, 2, EAGAIN);

    const auto group = event_loop_group::create({.loops = 4, .loop = options()});

    EXPECT_EQ(group.error(), std::errc::resource_unavailable_try_again);
    EXPECT_EQ(threads_of_process(), threads);
}

// run_server() creates its group in a task. The process used to end.
TEST_P(event_loop_group_test, a_task_too_learns_that_there_are_not_enough_threads) {
    auto creates = [](loop_options with) -> task<std::error_code> {
        fault_plan plan;
        plan.fail(call::thread, 2, EAGAIN);
        const auto group = event_loop_group::create({.loops = 4, .loop = with});
        co_return group ? std::error_code{} : group.error();
    };

    EXPECT_EQ(run(creates(options()), options()), std::errc::resource_unavailable_try_again);
}

TEST_P(event_loop_group_test, if_automatic_falls_back_for_one_loop_it_does_for_all) {
    if (GetParam() != backend::io_uring) GTEST_SKIP() << "epoll has no fallback";
    if (std::getenv("SIMPLENET_BACKEND") != nullptr) GTEST_SKIP() << "the backend is not automatic";
    fault_plan plan;
    plan.fail(call::uring_setup, 2, ENOMEM, from_then_on);

    event_loop_group group = or_throw(event_loop_group::create({.loops = 4}));

    for (std::size_t each = 0; each < group.size(); ++each)
        EXPECT_EQ(group[each].selected_backend(), backend::epoll);
    EXPECT_NE(plan.struck(), 0U);
}
#endif

INSTANTIATE_TEST_SUITE_P(backends, event_loop_group_test, real_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
