#include <simplenet/threads/remote_handle.hpp>

#include "support/backend_test.hpp"
#include "support/background_loop.hpp"
#include "support/error_of.hpp"
#include "support/remote_tasks.hpp"
#include "support/small_tasks.hpp"
#include "support/unhandled_count.hpp"

#include <simplenet/coro/this_task.hpp>
#include <simplenet/sync/async_event.hpp>
#include <simplenet/time/sleep.hpp>

#include <atomic>
#include <chrono>
#include <concepts>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

static_assert(!std::copy_constructible<remote_handle<int>>, "its result is taken once");
static_assert(std::movable<remote_handle<int>>);

class remote_handle_test : public backend_test {
protected:
    [[nodiscard]] static loop_options options() { return {.backend = GetParam()}; }
};

// --- a callable

TEST_P(remote_handle_test, keeps_a_callable_and_its_arguments_until_the_end) {
    background_loop other{options()};
    const std::string long_text(100, 'x');
    auto with_captures = [long_text](const std::string& more) -> task<std::string> {
        co_await yield();
        co_return long_text + more;
    };

    auto handle = other->spawn_remote(std::move(with_captures), "and one more");

    EXPECT_EQ(handle.get(), long_text + "and one more");
}

TEST_P(remote_handle_test,
       calls_and_destroys_a_callable_on_the_loops_thread_before_it_reports_the_end) {
    background_loop other{options()};
    struct witness {
        std::thread::id* died_on;
        std::unique_ptr<int> alive = std::make_unique<int>(0);
        explicit witness(std::thread::id& on)
            : died_on{&on} {}
        witness(witness&&) = default;
        ~witness() {
            if (alive) *died_on = std::this_thread::get_id();
        }
    };
    std::thread::id captured_died_on;
    std::thread::id argument_died_on;
    std::thread::id called_on;
    auto work = [&called_on, captured = witness{captured_died_on}](auto&& argument) {
        called_on = std::this_thread::get_id();
        return [](auto kept) -> task<> {
            (void)kept;
            co_await yield();
        }(std::move(argument));
    };

    other->spawn_remote(std::move(work), witness{argument_died_on}).get();

    EXPECT_NE(called_on, std::thread::id{});
    EXPECT_NE(called_on, std::this_thread::get_id());
    EXPECT_EQ(captured_died_on, called_on);
    EXPECT_EQ(argument_died_on, called_on);
}

TEST_P(remote_handle_test, a_callable_that_throws_fails_its_task) {
    background_loop other{options()};
    auto fails = []() -> task<int> { throw std::runtime_error{"no task"}; };
    auto handle = other->spawn_remote(fails);

    EXPECT_EQ(thrown_by([&] { return handle.get(); }), "no task");
}

TEST_P(remote_handle_test, a_callable_that_the_loop_never_ran_is_destroyed_with_it) {
    auto alive = std::make_shared<int>(1);
    const std::weak_ptr<int> watched = alive;
    auto work = [alive = std::move(alive)]() -> task<> { co_return; };
    auto handle = loop().spawn_remote(std::move(work));

    destroy_loop();

    EXPECT_TRUE(watched.expired());
    EXPECT_EQ(error_thrown_by_get(handle), std::errc::operation_canceled);
}

// --- get() on a plain thread

TEST_P(remote_handle_test, get_returns_the_value) {
    background_loop other{options()};

    EXPECT_EQ(other->spawn_remote(answer(42)).get(), 42);
    auto nothing = []() -> task<> { co_return; };
    other->spawn_remote(nothing()).get();
    auto only_moves = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(7); };
    EXPECT_EQ(*other->spawn_remote(only_moves()).get(), 7);
}

TEST_P(remote_handle_test, get_rethrows_the_exception) {
    background_loop other{options()};
    auto handle = other->spawn_remote(throws("from there"));

    EXPECT_EQ(thrown_by([&] { return handle.get(); }), "from there");
}

TEST_P(remote_handle_test, the_task_runs_on_the_thread_of_its_loop) {
    background_loop other{options()};
    auto where = []() -> task<std::pair<std::thread::id, event_loop*>> {
        co_return std::pair{std::this_thread::get_id(), event_loop::current()};
    };

    const auto [thread, loop_there] = other->spawn_remote(where()).get();

    EXPECT_NE(thread, std::this_thread::get_id());
    EXPECT_EQ(loop_there, &*other);
}

TEST_P(remote_handle_test, done_can_be_called_on_any_thread) {
    background_loop other{options()};
    auto waits = other->spawn_remote(sleep_for_ever());
    auto ends = other->spawn_remote(answer(1));
    while (!ends.done())
        std::this_thread::yield();

    EXPECT_FALSE(waits.done());
    EXPECT_EQ(ends.get(), 1);
}

// --- awaiting

TEST_P(remote_handle_test, it_can_be_awaited_on_another_loop) {
    background_loop other{options()};
    run([&]() -> task<> {
        EXPECT_EQ(co_await other->spawn_remote(answer(42)), 42);
        auto handle = other->spawn_remote(answer(43));
        EXPECT_EQ(co_await handle, 43);
        EXPECT_EQ(event_loop::current(), &loop()) << "it continues on its own thread";
    });
}

TEST_P(remote_handle_test, it_can_be_awaited_on_the_loop_it_runs_on) {
    run([this]() -> task<> { EXPECT_EQ(co_await loop().spawn_remote(answer(42)), 42); });
}

TEST_P(remote_handle_test, a_task_that_has_ended_is_not_waited_for) {
    background_loop other{options()};
    auto handle = other->spawn_remote(answer(42));
    while (!handle.done())
        std::this_thread::yield();

    run([&]() -> task<> { EXPECT_EQ(co_await handle, 42); });
}

TEST_P(remote_handle_test, an_exception_is_rethrown_by_the_await) {
    background_loop other{options()};
    run([&]() -> task<> {
        std::string what;
        try {
            static_cast<void>(co_await other->spawn_remote(throws("from there")));
        } catch (const std::runtime_error& thrown) {
            what = thrown.what();
        }
        EXPECT_EQ(what, "from there");
    });
}

// --- stops

TEST_P(remote_handle_test, a_stop_from_any_thread_reaches_the_task) {
    background_loop other{options()};
    auto handle = other->spawn_remote(sleep_for_ever());

    std::jthread{[&] { handle.request_stop(); }}.join();

    EXPECT_EQ(handle.get(), std::errc::operation_canceled);
}

TEST_P(remote_handle_test, a_stop_before_the_task_has_started_is_not_lost) {
    auto handle = loop().spawn_remote(sleep_for_ever());
    handle.request_stop();

    loop().run();

    EXPECT_EQ(handle.get(), std::errc::operation_canceled);
}

TEST_P(remote_handle_test, a_stop_that_reaches_the_await_goes_to_the_task_which_is_joined) {
    background_loop other{options()};
    run([&]() -> task<> {
        async_event began;
        auto waits = [&]() -> task<std::error_code> {
            auto handle = other->spawn_remote(sleep_for_ever());
            co_await other->spawn_remote(nothing()); // so the task has begun
            began.set();
            co_return co_await handle;
        };
        auto local = spawn(waits());
        EXPECT_TRUE(co_await began.wait());
        local.request_stop();
        EXPECT_EQ(co_await local, std::errc::operation_canceled);
        EXPECT_EQ(error_of(co_await with_timeout(waits(), 1ms)), errc::deadline_exceeded);
    });
}

// The other loop must not report every stop as operation_canceled.
TEST_P(remote_handle_test, the_task_learns_that_a_deadline_stopped_it) {
    background_loop other{options()};
    auto sleeps = []() -> task<result<>> { co_return co_await async_sleep(24h); };
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await with_timeout(other->spawn_remote(sleeps()), 1ms)),
                  errc::deadline_exceeded);
        auto asked_first = other->spawn_remote(sleeps());
        asked_first.request_stop();
        EXPECT_EQ(error_of(co_await with_timeout(std::move(asked_first), 0ms)),
                  std::errc::operation_canceled);
    });
}

TEST_P(remote_handle_test, in_a_stopped_task_the_await_stops_the_task_at_once) {
    background_loop other{options()};
    auto sleeps = []() -> task<result<>> { co_return co_await async_sleep(24h); };
    run([&]() -> task<> {
        auto waits = [&]() -> task<result<>> {
            co_await yield();
            co_return co_await other->spawn_remote(sleeps());
        };
        auto local = spawn(waits());
        local.request_stop();
        EXPECT_EQ(error_of(co_await local), std::errc::operation_canceled);
    });
}

// Otherwise the await would wait for a loop that never gets to the task.
TEST_P(remote_handle_test, a_task_that_has_not_begun_is_withdrawn_at_once) {
    event_loop asleep = or_throw(event_loop::create(options()));
    auto began = std::make_shared<bool>(false);
    auto work = [](std::shared_ptr<bool> at) -> task<result<>> {
        *at = true;
        co_return result<>{};
    };
    auto number = []() -> task<int> { co_return 1; };
    run([&]() -> task<> {
        auto handle = asleep.spawn_remote(work, began);
        EXPECT_EQ(error_of(co_await with_timeout(std::move(handle), 1ms)), errc::deadline_exceeded);
        EXPECT_EQ(began.use_count(), 1);

        auto limited = with_timeout(asleep.spawn_remote(number()), 1ms);
        EXPECT_EQ(error_of(co_await std::move(limited)), errc::deadline_exceeded);

        auto waits = [&]() -> task<int> { co_return co_await asleep.spawn_remote(number()); };
        auto local = spawn(waits());
        co_await yield();
        local.request_stop();
        std::error_code thrown;
        try {
            (void)co_await local;
        } catch (const std::system_error& error) {
            thrown = error.code(); // an int cannot hold an error
        }
        EXPECT_EQ(thrown, std::errc::operation_canceled);
    });

    asleep.run();
    EXPECT_FALSE(*began);
}

// --- handles that are dropped

TEST_P(remote_handle_test, dropping_it_detaches_the_task) {
    std::atomic<bool> ended = false;
    auto body = [&]() -> task<> {
        for (int turn = 0; turn < 10; ++turn)
            co_await yield();
        ended = true;
    };
    static_cast<void>(loop().spawn_remote(body()));

    loop().run();

    EXPECT_TRUE(ended.load());
}

TEST_P(remote_handle_test, an_exception_after_the_handle_was_dropped_reaches_the_hook) {
    const unhandled_count reported;
    remake_loop({.on_unhandled = unhandled_count::hook});
    loop().spawn_remote(throws("nobody sees this")).detach();

    loop().run();

    EXPECT_EQ(reported(), 1);
}

TEST_P(remote_handle_test, a_stop_that_a_detached_task_throws_reaches_no_hook) {
    const unhandled_count reported;
    remake_loop({.on_unhandled = unhandled_count::hook});
    auto sleeps = []() -> task<> {
        const auto slept = co_await async_sleep(std::chrono::hours{1});
        or_throw(slept);
    };
    auto handle = loop().spawn_remote(sleeps());
    loop().poll();

    handle.request_stop();
    handle.detach();
    loop().run();

    EXPECT_EQ(reported(), 0);
}

// The exception must not be swallowed.
TEST_P(remote_handle_test, an_exception_before_the_handle_was_dropped_reaches_the_hook) {
    const unhandled_count reported;
    remake_loop({.on_unhandled = unhandled_count::hook});
    {
        auto handle = loop().spawn_remote(throws("nobody sees this"));
        loop().run();
        EXPECT_TRUE(handle.done());
        EXPECT_EQ(reported(), 0);
    }
    EXPECT_EQ(reported(), 1);

    auto taken = loop().spawn_remote(throws("somebody does"));
    loop().run();
    EXPECT_EQ(thrown_by([&] { return taken.get(); }), "somebody does");
    taken.detach();
    EXPECT_EQ(reported(), 1);
}

// --- at random

TEST_P(remote_handle_test, many_tasks_of_many_threads_all_end) {
    background_loop other{options()};
    std::atomic<int> sum = 0;
    {
        std::vector<std::jthread> threads;
        for (int thread = 0; thread < 4; ++thread) {
            threads.emplace_back([&, thread] {
                for (int number = 0; number < 200; ++number)
                    sum += other->spawn_remote(answer(thread)).get();
            });
        }
    }
    EXPECT_EQ(sum.load(), 200 * (0 + 1 + 2 + 3));
}

TEST_P(remote_handle_test, two_loops_can_keep_spawning_on_each_other) {
    background_loop one{options()}, two{options()};
    auto asks = [](event_loop& other, int rounds) -> task<int> {
        int sum = 0;
        for (int round = 0; round < rounds; ++round)
            sum += co_await other.spawn_remote(answer(1));
        co_return sum;
    };
    auto left = one->spawn_remote(asks(*two, 500));
    auto right = two->spawn_remote(asks(*one, 500));

    EXPECT_EQ(left.get(), 500);
    EXPECT_EQ(right.get(), 500);
}

// --- violations

TEST_P(remote_handle_test, a_second_await_stops_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto twice = [this]() -> task<> {
        auto handle = loop().spawn_remote(answer(1));
        EXPECT_EQ(co_await handle, 1);
        static_cast<void>(co_await handle);
    };
    EXPECT_DEATH((loop().spawn(twice()), loop().run()), "a remote_handle can be awaited once");
}

TEST_P(remote_handle_test, a_second_get_stops_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto handle = loop().spawn_remote(answer(1));
    loop().run();
    EXPECT_EQ(handle.get(), 1);
    EXPECT_DEATH(static_cast<void>(handle.get()), "a remote_handle can be awaited once");
}

TEST_P(remote_handle_test, two_awaits_at_once_stop_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto handle = loop().spawn_remote(sleep_for_ever());
    auto waits = [&]() -> task<> { static_cast<void>(co_await handle); };
    EXPECT_DEATH((loop().spawn(waits()), loop().spawn(waits()), loop().run()),
                 "a remote_handle can be awaited once");
}

TEST_P(remote_handle_test, an_empty_handle_stops_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto handle = loop().spawn_remote(answer(1));
    auto moved = std::move(handle);
    EXPECT_DEATH(handle.request_stop(), "an empty remote_handle has no task");
    moved.detach();
    EXPECT_DEATH(static_cast<void>(moved.get()), "an empty remote_handle has no task");
}

INSTANTIATE_TEST_SUITE_P(backends, remote_handle_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
