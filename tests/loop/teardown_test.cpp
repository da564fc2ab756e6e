// The end of a loop (promise 10): every task ends, no task is resumed forever, nothing leaks.

#include "support/error_of.hpp"
#include "support/leak_test.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/threads/with_stop.hpp>
#include <simplenet/time/sleep.hpp>

#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

/// No frame and no descriptor is left after a test.
class teardown_test : public leak_test {};

/// Logs its name when it is destroyed.
class witness {
public:
    witness(std::vector<std::string>& log, std::string name)
        : log_{&log}
        , name_{std::move(name)} {}
    witness(const witness&) = delete;
    witness& operator=(const witness&) = delete;
    ~witness() { log_->push_back(name_); }

private:
    std::vector<std::string>* log_;
    std::string name_;
};

using names = std::vector<std::string>;

/// Continues whatever its operations return.
task<> stubborn(int* refused = nullptr) {
    for (;;) {
        const auto outcome = co_await async_sleep(24h);
        if (refused != nullptr) *refused += error_of(outcome) == std::errc::operation_canceled;
    }
}

// --- tasks that end

TEST_P(teardown_test, a_task_that_ends_on_a_stop_runs_to_its_end) {
    names log;
    auto body = [&]() -> task<> {
        const witness local{log, "locals"};
        EXPECT_EQ(error_of(co_await async_sleep(24h)), std::errc::operation_canceled);
        log.emplace_back("stopped");
        for (int turn = 0; turn < 100; ++turn)
            co_await yield();
        log.emplace_back("ended");
    };
    loop().spawn(body());

    run_a_little_and_destroy();

    EXPECT_THAT(log, ElementsAre("stopped", "ended", "locals"));
}

TEST_P(teardown_test, a_task_that_has_not_started_is_run_stopped) {
    names log;
    auto body = [&]() -> task<> {
        log.emplace_back(co_await async_sleep(24h) ? "slept" : "refused");
    };
    loop().spawn(body());

    destroy_loop();

    EXPECT_THAT(log, ElementsAre("refused"));
}

TEST_P(teardown_test, cleanup_may_use_the_loop) {
    names log;
    auto body = [&]() -> task<> {
        static_cast<void>(co_await async_sleep(24h));
        EXPECT_EQ(event_loop::current(), &loop());
        auto child = [&]() -> task<int> { co_return 42; };
        EXPECT_EQ(co_await spawn(child()), 42);
        log.emplace_back("ended");
    };
    loop().spawn(body());

    run_a_little_and_destroy();

    EXPECT_THAT(log, ElementsAre("ended"));
}

TEST_P(teardown_test, an_exception_of_an_ending_task_reaches_the_hook) {
    static int unhandled;
    unhandled = 0;
    remake_loop({.on_unhandled = [](std::exception_ptr) { ++unhandled; }});
    auto body = []() -> task<> {
        static_cast<void>(co_await async_sleep(24h));
        throw std::runtime_error{""};
    };
    loop().spawn(body());

    run_a_little_and_destroy();

    EXPECT_EQ(unhandled, 1);
}

TEST_P(teardown_test, a_shield_does_not_hold) {
    names log;
    auto body = [&]() -> task<> {
        const auto waiting = co_await shield(async_sleep(24h));
        log.push_back(waiting ? "slept" : "stopped");
        const auto later = co_await shield(async_sleep(24h));
        log.push_back(later ? "slept" : "refused");
    };
    loop().spawn(body());

    run_a_little_and_destroy();

    EXPECT_THAT(log, ElementsAre("stopped", "refused"));
}

// The scope keeps its first reason, which is not the end of the loop. The shield must let the end
// of the loop through nevertheless.
TEST_P(teardown_test, a_shield_does_not_hold_in_a_task_that_was_stopped_before) {
    names log;
    auto body = [&]() -> task<> {
        static_cast<void>(co_await async_sleep(24h));
        const auto cleaning = co_await shield(async_sleep(24h));
        log.push_back(cleaning ? "slept" : "stopped");
        const auto later = co_await shield(async_sleep(24h));
        log.push_back(later ? "slept" : "refused");
    };
    auto handle = loop().spawn(body());
    loop().poll();
    handle.request_stop();

    run_a_little_and_destroy();

    EXPECT_THAT(log, ElementsAre("stopped", "refused"));
}

TEST_P(teardown_test, every_kind_of_wait_ends) {
    int ended = 0;
    auto count = [&](auto make) -> task<> {
        static_cast<void>(co_await make());
        ++ended;
    };
    auto sleeper = []() -> task<result<>> { co_return co_await async_sleep(24h); };
    auto in_group = [](task_group& group) -> task<> {
        for (int child = 0; child < 3; ++child)
            group.spawn([]() -> task<> { static_cast<void>(co_await async_sleep(24h)); });
        co_return;
    };
    loop().spawn(count, [] { return async_sleep(24h); });
    loop().spawn(count, [&] { return when_all(sleeper(), sleeper()); });
    loop().spawn(count, [&] { return when_any(sleeper(), sleeper()); });
    loop().spawn(count, [&] { return gather(sleeper(), sleeper()); });
    loop().spawn(count, [&] { return with_timeout(sleeper(), 1h); });
    loop().spawn(count, [&] { return with_stop(std::stop_token{}, sleeper()); });
    loop().spawn(count, [&] { return shield(with_timeout(shield(sleeper()), 1h)); });
    loop().spawn(count, [&] { return with_group(in_group); });
    loop().spawn(count, [&] { return with_group(group_options{.limit = 1}, in_group); });
    loop().spawn(count, [&] { return spawn(sleeper()); });

    run_a_little_and_destroy();

    EXPECT_EQ(ended, 10);
}

// --- tasks that do not end

TEST_P(teardown_test, a_task_that_ignores_a_thousand_refusals_is_not_resumed_again) {
    int refused = 0;
    loop().spawn(stubborn(&refused));

    run_a_little_and_destroy();

    EXPECT_GE(refused, 1000);
    EXPECT_LE(refused, 1001) << "the stopped wait, and a thousand refusals";
}

TEST_P(teardown_test, its_frames_are_destroyed_children_first_and_their_locals_die) {
    names log;
    auto inner = [&]() -> task<> {
        const witness first{log, "inner first"};
        const witness second{log, "inner second"};
        co_await stubborn();
    };
    auto outer = [&]() -> task<> {
        const witness local{log, "outer"};
        co_await inner();
        log.emplace_back("never reached");
    };
    loop().spawn(outer());

    run_a_little_and_destroy();

    EXPECT_THAT(log, ElementsAre("inner second", "inner first", "outer"));
}

TEST_P(teardown_test, spawned_children_are_destroyed_before_their_parents) {
    names log;
    auto child = [&](std::string name) -> task<> {
        const witness local{log, name};
        co_await stubborn();
    };
    auto parent = [&]() -> task<> {
        const witness local{log, "parent"};
        auto first = spawn(child("first child"));
        auto second = spawn(child("second child"));
        co_await when_all(std::move(first), std::move(second));
    };
    loop().spawn(parent());

    run_a_little_and_destroy();

    EXPECT_THAT(log, ElementsAre("second child", "first child", "parent"));
}

TEST_P(teardown_test, children_of_a_group_are_destroyed_before_the_frame_that_holds_it) {
    names log;
    auto child = [&](std::string name) -> task<> {
        const witness local{log, name};
        co_await stubborn();
    };
    auto parent = [&]() -> task<> {
        const witness local{log, "parent"};
        task_group group;
        group.spawn(child("first child"));
        group.spawn(child("second child"));
        static_cast<void>(co_await group.join());
    };
    loop().spawn(parent());

    run_a_little_and_destroy();

    EXPECT_THAT(log, ElementsAre("second child", "first child", "parent"));
}

/// Tasks that run forever in different ways; each would keep the loop from ending.
const std::vector<std::pair<const char*, task<> (*)()>> endless_tasks{
    {"sleeps", [] { return stubborn(); }},
    {"yields",
     []() -> task<> {
         for (;;)
             co_await yield();
     }},
    {"shielded yields",
     []() -> task<> {
         auto yields = []() -> task<> { co_await yield(); };
         for (;;)
             co_await shield(yields());
     }},
    {"timeouts",
     []() -> task<> {
         for (;;)
             static_cast<void>(co_await with_timeout(async_sleep(1h), 1h));
     }},
    {"shields",
     []() -> task<> {
         for (;;)
             static_cast<void>(co_await shield(with_timeout(shield(async_sleep(1h)), 1h)));
     }},
    {"when_any",
     []() -> task<> {
         for (;;)
             static_cast<void>(co_await when_any(async_sleep(1h), async_sleep(1h)));
     }},
    {"when_all of stubborn tasks", []() -> task<> { co_await when_all(stubborn(), stubborn()); }},
    {"groups",
     []() -> task<> {
         auto body = [](task_group& group) -> task<> {
             group.spawn([]() -> task<> { static_cast<void>(co_await async_sleep(1h)); });
             co_return;
         };
         for (;;)
             static_cast<void>(co_await with_group(body));
     }},
    {"joined children",
     []() -> task<> {
         auto child = []() -> task<> { static_cast<void>(co_await async_sleep(1h)); };
         for (;;)
             co_await spawn(child());
     }},
    {"children that start children",
     []() -> task<> {
         struct chain {
             static task<> link(bool again) {
                 static_cast<void>(co_await async_sleep(1h));
                 if (again) spawn(link(again));
             }
         };
         co_await chain::link(true);
     }},
    {"closed sockets",
     []() -> task<> {
         for (;;) {
             auto made = local_stream::pair();
             if (!made) continue;
             std::array<std::byte, 8> buffer;
             static_cast<void>(co_await made->first.read_some(buffer));
             made->second.close();
             static_cast<void>(co_await made->second.closed());
         }
     }},
    {"remote tasks",
     []() -> task<> {
         auto child = []() -> task<> { static_cast<void>(co_await async_sleep(1h)); };
         for (;;) {
             try {
                 co_await event_loop::current()->spawn_remote(child());
             } catch (const std::system_error&) {
             }
         }
     }},
};

TEST_P(teardown_test, no_endless_task_keeps_the_loop_from_ending) {
    for (const auto& [name, make] : endless_tasks) {
        SCOPED_TRACE(name);
        remake_loop();
        loop().spawn(make());
        run_a_little_and_destroy();
        remake_loop();
        loop().spawn(make());
        destroy_loop();
    }
}

// The reason of their scope is an earlier one than the teardown, which must not matter.
TEST_P(teardown_test, no_task_that_was_stopped_before_keeps_the_loop_from_ending) {
    for (const auto& [name, make] : endless_tasks) {
        if (std::string_view{name} == "children that start children") continue; // it would not stop
        SCOPED_TRACE(name);
        remake_loop();
        auto handle = loop().spawn(make());
        loop().poll();
        handle.request_stop();
        run_a_little_and_destroy();
    }
}

TEST_P(teardown_test, all_endless_tasks_together_do_not_keep_it_from_ending) {
    for (const auto& each : endless_tasks)
        loop().spawn(each.second());

    run_a_little_and_destroy();
}

TEST_P(teardown_test, a_destructor_of_a_destroyed_frame_may_spawn_and_post) {
    struct spawns {
        ~spawns() {
            for (int child = 0; child < 3; ++child) {
                spawn(stubborn());
                event_loop::current()->post([] {});
            }
        }
    };
    auto body = []() -> task<> {
        const spawns local;
        co_await stubborn();
    };
    for (int number = 0; number < 3; ++number)
        loop().spawn(body());

    run_a_little_and_destroy();
}

// --- handles

TEST_P(teardown_test, a_handle_that_outlives_the_loop_knows_how_its_task_ended) {
    auto ends = []() -> task<int> {
        static_cast<void>(co_await async_sleep(24h));
        co_return 42;
    };
    auto ended = loop().spawn(ends());
    auto abandoned = loop().spawn(stubborn());
    run_a_little_and_destroy();

    EXPECT_TRUE(ended.done());
    EXPECT_TRUE(abandoned.done());
    ended.request_stop();
    abandoned.request_stop();

    remake_loop();
    run([&]() -> task<> {
        EXPECT_EQ(co_await ended, 42);
        std::error_code error;
        try {
            co_await abandoned;
        } catch (const std::system_error& thrown) {
            error = thrown.code();
        }
        EXPECT_EQ(error, std::errc::operation_canceled);
    });
}

TEST_P(teardown_test, tasks_that_wait_for_each_other_end) {
    std::optional<join_handle<void>> first, second;
    auto waits_for = [](std::optional<join_handle<void>>& other) -> task<> {
        co_await yield();
        co_await *other;
    };
    first = loop().spawn(waits_for(second));
    second = loop().spawn(waits_for(first));

    run_a_little_and_destroy();
    first.reset();
    second.reset();
}

// --- waiters outside of tasks

TEST_P(teardown_test, posts_and_remote_tasks_that_have_not_run_are_dropped) {
    auto held = std::make_shared<int>();
    auto body = [](std::shared_ptr<int>) -> task<> { co_return; };
    loop().post([held] {});
    auto handle = loop().spawn_remote(body(held));
    EXPECT_EQ(held.use_count(), 3);

    destroy_loop();

    EXPECT_EQ(held.use_count(), 1);
}

TEST_P(teardown_test, posts_beside_a_stubborn_task_are_dropped_or_run_but_not_lost) {
    auto held = std::make_shared<int>();
    loop().spawn(stubborn());
    loop().poll();
    for (int number = 0; number < 10; ++number)
        loop().post([held] {});

    destroy_loop();

    EXPECT_EQ(held.use_count(), 1);
}

TEST_P(teardown_test, a_loop_whose_handle_was_polled_ends) {
    loop().spawn(stubborn());
    static_cast<void>(loop().native_handle());

    run_a_little_and_destroy();
}

INSTANTIATE_TEST_SUITE_P(backends, teardown_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
