#include <simplenet/runtime/run_on.hpp>

#include "support/backend_test.hpp"
#include "support/background_loop.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/held_up.hpp"
#include "support/unhandled_count.hpp"

#include <simplenet/coro/or_return.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

std::thread::id here() {
    return std::this_thread::get_id();
}
task<std::thread::id> here_later() {
    co_await yield();
    co_return here();
}

class run_on_test : public backend_test {
protected:
    [[nodiscard]] static loop_options options() { return {.backend = GetParam()}; }
};

TEST_P(run_on_test, calls_on_the_other_loop_and_continues_on_this_one) {
    background_loop other{options()};

    run([&]() -> task<> {
        EXPECT_NE(co_await run_on(*other, here), here());
        EXPECT_NE(co_await run_on(*other, here_later), here());
        EXPECT_EQ(event_loop::current(), &loop());
    });
}

TEST_P(run_on_test, passes_arguments_and_returns_results) {
    background_loop other{options()};
    auto join = [](std::string a, std::unique_ptr<std::string> b) { return a + *b; };
    auto join_later = [](std::string a, const std::string& b) -> task<std::string> {
        co_await yield();
        co_return a + b;
    };

    run([&]() -> task<> {
        auto owned = std::make_unique<std::string>("two");
        EXPECT_EQ(co_await run_on(*other, join, "one ", std::move(owned)), "one two");
        // Arguments live as long as the task that uses them, including the string made from "two".
        EXPECT_EQ(co_await run_on(*other, join_later, "one ", "two"), "one two");
    });
}

TEST_P(run_on_test, returns_void_references_and_move_only_values) {
    background_loop other{options()};
    std::vector<int> numbers;
    auto nothing = [](std::vector<int>& into) { into.push_back(1); };
    auto reference = [](std::vector<int>& of) -> int& { return of.front(); };
    auto moves = [] { return std::make_unique<int>(7); };

    run([&]() -> task<> {
        co_await run_on(*other, nothing, std::ref(numbers));
        int& first = co_await run_on(*other, reference, std::ref(numbers));
        EXPECT_EQ(&first, numbers.data());
        EXPECT_EQ(*co_await run_on(*other, moves), 7);
    });
}

// GCC 12 destroys the captures of a closure inside a co_await expression twice, so the closure is
// refused. So is a named closure that is moved, which looks the same to run_on.
TEST_P(run_on_test, takes_move_only_state_as_an_argument) {
    background_loop other{options()};
    auto value = [](std::unique_ptr<std::string> state) { return *state; };
    auto value_later = [](std::unique_ptr<std::string> state) -> task<std::string> {
        co_await yield();
        co_return *state;
    };
    const std::string text(100, 'x');

    run([&]() -> task<> {
        auto one = std::make_unique<std::string>(text);
        EXPECT_EQ(co_await run_on(*other, value, std::move(one)), text);
        auto two = std::make_unique<std::string>(text);
        EXPECT_EQ(co_await run_on(*other, value_later, std::move(two)), text);
        auto three = std::make_unique<std::string>(text);
        EXPECT_EQ(co_await run_on(
                      *other, [](std::unique_ptr<std::string> state) { return *state; },
                      std::move(three)),
                  text);
    });
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
    auto owns = [state = std::make_unique<int>()] { return *state; };
    static_assert(!detail::safe_in_co_await<decltype(owns)>);
    static_assert(detail::safe_in_co_await<decltype((owns))>);
    static_assert(detail::safe_in_co_await<decltype(value)>);
#endif
}

TEST_P(run_on_test, returns_exceptions) {
    background_loop other{options()};
    auto throws = []() -> int { throw std::runtime_error{"plain"}; };
    auto throws_later = []() -> task<result<>> {
        co_await yield();
        throw std::runtime_error{"task"};
    };

    run([&]() -> task<> {
        std::vector<std::string> caught;
        try {
            (void)co_await run_on(*other, throws);
        } catch (const std::runtime_error& thrown) {
            caught.emplace_back(thrown.what());
        }
        try {
            (void)co_await run_on(*other, throws_later);
        } catch (const std::runtime_error& thrown) {
            caught.emplace_back(thrown.what());
        }
        EXPECT_EQ(caught, (std::vector<std::string>{"plain", "task"}));
    });
}

TEST_P(run_on_test, works_on_the_same_loop) {
    run([&]() -> task<> {
        EXPECT_EQ(co_await run_on(loop(), here), here());
        EXPECT_EQ(co_await run_on(loop(), here_later), here());
    });
}

TEST_P(run_on_test, forwards_a_stop_and_joins) {
    std::atomic<bool> begun = false;
    std::atomic<bool> ended = false;
    background_loop other{options()};
    auto sleeps = [&]() -> task<result<>> {
        begun = true;
        const auto slept = co_await async_sleep(24h);
        EXPECT_TRUE(co_await this_task::stop_requested());
        ended = true;
        co_return slept;
    };

    run([&]() -> task<> {
        auto waits = spawn(run_on(*other, sleeps));
        while (!begun)
            co_await yield();
        waits.request_stop();
        EXPECT_EQ(error_of(co_await waits), std::errc::operation_canceled);
        EXPECT_TRUE(ended);
    });
}

// The error must not be operation_canceled for every kind of stop.
TEST_P(run_on_test, a_call_that_a_deadline_keeps_from_beginning_reports_the_deadline) {
    std::latch release{1};
    background_loop other{options()};
    other->post([&] { release.wait(); });
    auto calls = []() -> result<> { return {}; };
    auto sleeps = []() -> task<result<>> { co_return co_await async_sleep(24h); };
    auto limited = [](task<result<>> work) -> task<result<>> {
        co_return co_await with_timeout(std::move(work), 1ms);
    };

    run([&]() -> task<> {
        auto call = spawn(limited(run_on(*other, calls)));
        auto work = spawn(limited(run_on(*other, sleeps)));
        // Neither has begun, so their limits end them while the other loop is blocked.
        EXPECT_EQ(error_of(co_await call), errc::deadline_exceeded);
        EXPECT_EQ(error_of(co_await work), errc::deadline_exceeded);
        release.count_down();
    });
}

// An int cannot hold an error, but with_timeout() promises a result, so nothing is thrown.
TEST_P(run_on_test, a_limit_reports_a_call_without_errors_that_never_began) {
    std::latch release{1};
    background_loop other{options()};
    other->post([&] { release.wait(); });
    auto number = [] { return 7; };
    auto nothing = [] {};
    auto within = []<class T>(task<T> work) -> task<result<T>> {
        co_return co_await with_timeout(std::move(work), 1ms);
    };
    auto unlimited = [&]() -> task<std::error_code> {
        try {
            (void)co_await run_on(*other, number);
        } catch (const std::system_error& error) {
            co_return error.code();
        }
        co_return std::error_code{};
    };

    run([&]() -> task<> {
        auto first = spawn(within(run_on(*other, number)));
        auto second = spawn(within(run_on(*other, nothing)));
        auto third = spawn(unlimited());
        // The calls have not begun, so their limits end them while the other loop is blocked.
        EXPECT_EQ(error_of(co_await first), errc::deadline_exceeded);
        EXPECT_EQ(error_of(co_await second), errc::deadline_exceeded);
        third.request_stop();
        // Without a limit, the type has no place for the error.
        EXPECT_EQ(co_await third, std::errc::operation_canceled);
        release.count_down();
    });
}

// The error on the other loop is not operation_canceled if the reason is a deadline.
TEST_P(run_on_test, a_deadline_reaches_the_other_loop_as_a_deadline) {
    background_loop other{options()};
    auto sleeps = []() -> task<result<>> { co_return co_await async_sleep(24h); };

    run([&]() -> task<> {
        const auto slept = co_await with_timeout(run_on(*other, sleeps), 1ms);
        EXPECT_EQ(error_of(slept), errc::deadline_exceeded);

        auto waits = spawn(run_on(*other, sleeps));
        co_await turns(3);
        waits.request_stop();
        EXPECT_EQ(error_of(co_await waits), std::errc::operation_canceled);
    });
}

TEST_P(run_on_test, returns_a_success_in_spite_of_a_stop) {
    std::atomic<bool> begun = false;
    background_loop other{options()};
    auto succeeds = [&]() -> task<result<int>> {
        begun = true;
        static_cast<void>(co_await async_sleep(24h));
        co_return 7;
    };

    run([&]() -> task<> {
        auto call = spawn(run_on(*other, succeeds));
        while (!begun)
            co_await yield();
        call.request_stop();
        EXPECT_EQ(co_await call, 7);
    });
}

// The limits must not wait for an answer of the other loop, which comes late or never.
TEST_P(run_on_test, a_limit_holds_while_the_other_loop_is_busy) {
    std::latch release{1};
    background_loop other{options()};
    other->post([&] { release.wait(); });
    auto call = [] { return 7; };
    auto work = []() -> task<int> { co_return 7; };

    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await with_timeout(run_on(*other, call), 1ms)),
                  errc::deadline_exceeded);
        EXPECT_EQ(error_of(co_await with_timeout(run_on(*other, work), 1ms)),
                  errc::deadline_exceeded);
    });
    release.count_down();
}

TEST_P(run_on_test, a_limit_holds_when_the_other_loop_no_longer_runs) {
    event_loop ended = or_throw(event_loop::create(options()));
    ended.run();
    auto call = [] { return 7; };
    auto work = []() -> task<result<int>> { co_return 7; };

    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await with_timeout(run_on(ended, call), 1ms)),
                  errc::deadline_exceeded);
        EXPECT_EQ(error_of(co_await with_timeout(run_on(ended, work), 1ms)),
                  errc::deadline_exceeded);
    });
    ended.run(); // nothing of them is left there
}

TEST_P(run_on_test, a_withdrawn_call_is_destroyed_here_before_the_await_returns) {
    std::latch release{1};
    background_loop other{options()};
    other->post([&] { release.wait(); });
    std::vector<std::thread::id> destroyed;
    auto argument = [&] {
        return std::shared_ptr<int>{new int, [&](const int* each) {
                                        delete each;
                                        destroyed.push_back(here());
                                    }};
    };
    auto call = [](const std::shared_ptr<int>&) {};
    auto work = [](std::shared_ptr<int>) -> task<> { co_return; };

    run([&]() -> task<> {
        EXPECT_FALSE(co_await with_timeout(run_on(*other, call, argument()), 1ms));
        EXPECT_EQ(destroyed.size(), 1);
        EXPECT_FALSE(co_await with_timeout(run_on(*other, work, argument()), 1ms));
        EXPECT_EQ(destroyed, (std::vector<std::thread::id>(2, here())));
    });
    release.count_down();
}

TEST_P(run_on_test, a_call_in_a_stopped_task_never_begins) {
    background_loop other{options()};
    bool called = false;
    auto call = [&] { called = true; };
    auto stopped = [&]() -> task<std::error_code> {
        co_await yield();
        try {
            co_await run_on(*other, call);
        } catch (const std::system_error& error) {
            co_return error.code();
        }
        co_return std::error_code{};
    };

    run([&]() -> task<> {
        auto waits = spawn(stopped());
        waits.request_stop();
        EXPECT_EQ(co_await waits, std::errc::operation_canceled);
        co_await run_on(*other, [] {}); // an earlier call would have run by now
    });
    EXPECT_FALSE(called);
}

TEST_P(run_on_test, at_a_random_limit_a_call_has_run_and_returned_or_never_runs) {
    constexpr int calls = 2000;
    background_loop other{options()};
    std::atomic<int> began = 0;
    auto call = [&] { return ++began; };
    auto work = [&]() -> task<int> { co_return ++began; };
    int returned = 0;

    run([&]() -> task<> {
        for (int i = 0; i < calls; ++i) {
            const std::chrono::microseconds limit{i % 40};
            // A limit that passes after the call began discards its value, but the call runs.
            auto within = [&]() -> task<> {
                const int before = began;
                const auto one = co_await with_timeout(run_on(*other, call), limit);
                const auto two = co_await with_timeout(run_on(*other, work), limit);
                returned += began - before;
                EXPECT_LE(one.has_value() + two.has_value(), began - before);
            };
            co_await within();
        }
        co_await run_on(*other, [] {}); // every pending call has run by now
    });

    EXPECT_EQ(began, returned);
}

TEST_P(run_on_test, does_not_begin_a_call_that_was_stopped_before) {
    std::latch release{1};
    background_loop other{options()};
    other->post([&] { release.wait(); });
    bool called = false;
    auto calls = [&]() -> result<> {
        called = true;
        return {};
    };

    run([&]() -> task<> {
        auto waits = spawn(run_on(*other, calls));
        co_await turns(3);
        waits.request_stop();
        release.count_down();
        EXPECT_EQ((co_await waits).error(), std::errc::operation_canceled);
    });
    EXPECT_FALSE(called);
}

TEST_P(run_on_test, fails_with_operation_canceled_when_the_other_loop_ends) {
    std::optional<background_loop> other{options()};
    auto alive = std::make_shared<int>();
    const std::weak_ptr<int> watched = alive;
    auto sleeps = [](std::shared_ptr<int>) -> task<result<int>> {
        for (;;) // it is never stopped, but destroyed
            (void)co_await async_sleep(24h);
    };
    auto throws = []() -> task<int> {
        for (;;)
            (void)co_await async_sleep(24h);
    };

    run([&]() -> task<> {
        auto first = spawn(run_on(**other, sleeps, std::move(alive)));
        auto second = spawn(run_on(**other, throws));
        co_await turns(3);
        co_await run_on(**other, [] {}); // both have begun by now
        other.reset();

        EXPECT_EQ((co_await first).error(), std::errc::operation_canceled);
        EXPECT_TRUE(watched.expired());
        bool caught = false;
        try {
            (void)co_await second;
        } catch (const std::system_error& thrown) {
            caught = thrown.code() == std::errc::operation_canceled;
        }
        EXPECT_TRUE(caught);
    });
}

TEST_P(run_on_test, fails_when_the_other_loop_ends_before_the_call_began) {
    std::optional<event_loop> other;
    std::latch made{1};
    std::latch posted{1};
    std::jthread thread{[&] { // makes a loop, and never runs it
        other = or_throw(event_loop::create(options()));
        made.count_down();
        posted.wait();
        other.reset();
    }};
    made.wait();
    auto alive = std::make_shared<int>();
    const std::weak_ptr<int> watched = alive;

    run([&]() -> task<> {
        auto call = [](std::shared_ptr<int>) -> result<int> { return 1; };
        auto work = [](std::shared_ptr<int>) -> task<result<int>> { co_return 1; };
        auto first = spawn(run_on(*other, call, alive));
        auto second = spawn(run_on(*other, work, std::move(alive)));
        co_await turns(3);
        posted.count_down();

        EXPECT_EQ((co_await first).error(), std::errc::operation_canceled);
        EXPECT_EQ((co_await second).error(), std::errc::operation_canceled);
        EXPECT_TRUE(watched.expired());
    });
}

TEST_P(run_on_test, this_loop_may_end_while_the_call_runs) {
    std::latch release{1};
    background_loop other{options()};
    std::latch ended{2};
    struct counts_down {
        std::latch* at;
        explicit counts_down(std::latch& latch)
            : at{&latch} {}
        counts_down(counts_down&& from) noexcept
            : at{std::exchange(from.at, nullptr)} {}
        ~counts_down() {
            if (at != nullptr) at->count_down();
        }
    };
    auto call = [&release](counts_down) -> result<> {
        release.wait();
        return {};
    };
    auto work = [](counts_down) -> task<result<>> { co_return co_await async_sleep(24h); };
    std::vector<std::error_code> errors;
    auto main = [&](auto& function) -> task<> {
        const auto end = co_await run_on(*other, function, counts_down{ended});
        errors.push_back(end.error());
    };
    loop().spawn(main(work));
    loop().spawn(main(call));
    loop().run_for(2ms);

    destroy_loop();
    release.count_down();
    ended.wait(); // both end on the other loop

    EXPECT_EQ(errors,
              std::vector<std::error_code>(2, std::make_error_code(std::errc::operation_canceled)));
}

TEST_P(run_on_test, an_exception_that_comes_too_late_reaches_the_hook) {
    const unhandled_count reported;
    remake_loop({.on_unhandled = unhandled_count::hook});
    held_call held;
    {
        background_loop other{options()};
        auto call = [&] {
            held.hold();
            throw std::runtime_error{"late"};
        };
        loop().spawn([&]() -> task<> {
            try {
                co_await run_on(*other, call);
            } catch (const std::system_error&) {
            }
        });
        loop().run_for(1ms);
        held.wait_for_begin();
        destroy_loop();
        held.release();
    }
    EXPECT_EQ(reported(), 1);
}

/// An executor that is not a loop, like a pool or a strand.
class plain_executor {
public:
    template <class Function>
    void post(Function&& function) {
        threads_.emplace_back([kept = std::forward<Function>(function)]() mutable { kept(); });
    }

private:
    std::vector<std::jthread> threads_;
};

TEST_P(run_on_test, takes_any_type_with_post) {
    static_assert(executor<event_loop>);
    plain_executor pool;

    run([&]() -> task<> {
        EXPECT_NE(co_await run_on(pool, here), here());
        auto add = [](int a, int b) { return a + b; };
        EXPECT_EQ(co_await run_on(pool, add, 1, 2), 3);
    });
}

TEST_P(run_on_test, many_at_once_from_loops_that_call_each_other) {
    constexpr int calls = 500;
    background_loop other{options()};
    std::atomic<int> sum = 0;

    run([&]() -> task<> {
        auto back = [&]() -> task<result<>> {
            auto add = [&] { ++sum; };
            for (int i = 0; i < calls; ++i)
                co_await run_on(loop(), add);
            co_return result<>{};
        };
        auto add = [&] { ++sum; };
        auto returning = spawn(run_on(*other, back));
        for (int i = 0; i < calls; ++i)
            co_await run_on(*other, add);
        EXPECT_TRUE(co_await returning);
    });

    EXPECT_EQ(sum, 2 * calls);
}

INSTANTIATE_TEST_SUITE_P(backends, run_on_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
