#include <simplenet/coro/task.hpp>

#include "support/gate.hpp"
#include "support/manual_queue.hpp"
#include "support/small_tasks.hpp"
#include "support/witness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <concepts>
#include <coroutine>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using ::testing::ElementsAre;
using testing::gate;
using testing::manual_queue;
using testing::value;
using testing::witness;

static_assert(std::is_nothrow_move_constructible_v<task<int>>);
static_assert(std::is_nothrow_move_assignable_v<task<int>>);
static_assert(!std::is_copy_constructible_v<task<int>>);
static_assert(!std::is_default_constructible_v<task<int>>);
static_assert(std::same_as<task<>, runtime::task<void>>);

template <class Task>
concept awaited_as_lvalue = requires(Task& t) { t.operator co_await(); };
template <class Task>
concept awaited_as_rvalue = requires(Task&& t) { std::move(t).operator co_await(); };
static_assert(!awaited_as_lvalue<task<int>>);
static_assert(awaited_as_rvalue<task<int>>);

template <class Task, class Value>
concept returns = requires(typename Task::promise_type promise, Value&& value) {
    promise.return_value(std::forward<Value>(value));
};
static_assert(returns<task<int&>, int&>);
static_assert(!returns<task<int&>, int>);
static_assert(!returns<task<const std::string&>, const char*>, "would refer to a temporary");
static_assert(!returns<task<const std::string&>, std::string>, "would refer to a temporary");
static_assert(returns<task<const std::string&>, std::string&>);

TEST(task_test, does_not_start_before_it_is_awaited) {
    manual_queue queue;
    bool started = false;
    auto body = [&]() -> task<> {
        started = true;
        co_return;
    };
    task<> lazy = body();

    EXPECT_FALSE(started);
    queue.run(std::move(lazy));
    EXPECT_TRUE(started);
}

TEST(task_test, destroys_its_arguments_if_it_never_starts) {
    std::vector<int> log;
    auto body = [](witness) -> task<> { co_return; };

    {
        task<> never = body(witness{log, 7});
    }

    EXPECT_THAT(log, ElementsAre(7));
}

TEST(task_test, returns_its_value_through_the_await) {
    manual_queue queue;

    const int sum =
        queue.run([]() -> task<int> { co_return co_await value(40) + co_await value(2); });

    EXPECT_EQ(sum, 42);
}

TEST(task_test, returns_move_only_values) {
    manual_queue queue;
    auto make = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(5); };

    auto made = queue.run([&]() -> task<std::unique_ptr<int>> { co_return co_await make(); });

    EXPECT_EQ(*made, 5);
}

TEST(task_test, returns_values_that_cannot_be_default_constructed_or_assigned) {
    struct rigid {
        explicit rigid(int n)
            : number{n} {}
        rigid(rigid&&) = default;
        const int number;
    };
    manual_queue queue;

    EXPECT_EQ(queue.run([]() -> task<rigid> { co_return rigid{3}; }).number, 3);
}

TEST(task_test, returns_references_to_the_object_itself) {
    manual_queue queue;
    int object = 1;
    auto refer = [&]() -> task<int&> { co_return object; };

    queue.run([&]() -> task<> {
        int& same = co_await refer();
        same = 2;
    });

    EXPECT_EQ(object, 2);
}

TEST(task_test, returns_a_value_written_in_braces) {
    manual_queue queue;
    auto success = []() -> task<result<>> { co_return {}; };
    auto pair = []() -> task<std::pair<int, int>> { co_return {1, 2}; };

    EXPECT_TRUE(queue.run(success()));
    EXPECT_EQ(queue.run(pair()), std::pair(1, 2));
}

TEST(task_test, returns_an_exception_pointer_as_a_value) {
    manual_queue queue;
    auto body = []() -> task<std::exception_ptr> { co_return std::exception_ptr{}; };

    EXPECT_EQ(queue.run(body()), nullptr);
}

TEST(task_test, rethrows_its_exception_at_the_await) {
    manual_queue queue;
    auto thrower = []() -> task<int> {
        throw std::runtime_error{"from inside"};
        co_return 0;
    };

    auto caught = queue.run([&]() -> task<std::string> {
        try {
            co_await thrower();
        } catch (const std::runtime_error& error) {
            co_return error.what();
        }
        co_return "";
    });

    EXPECT_EQ(caught, "from inside");
}

TEST(task_test, passes_an_exception_through_levels_that_do_not_catch_it) {
    manual_queue queue;
    gate late;
    auto thrower = [&]() -> task<> {
        (void)co_await late.wait();
        throw std::out_of_range{"deep"};
    };
    auto middle = [&]() -> task<> { co_await thrower(); };
    auto opener = [&]() -> task<> {
        late.open();
        co_return;
    };

    auto outer = middle();
    auto handle = queue.spawn(std::move(outer));
    queue.turn_until_idle();
    queue.spawn(opener);

    EXPECT_THROW(queue.run([&]() -> task<> { co_await handle; }), std::out_of_range);
}

TEST(task_test, keeps_the_childs_locals_until_the_await_expression_ends) {
    manual_queue queue;
    std::vector<int> log;
    auto child = [&]() -> task<int> {
        witness local{log, 1};
        co_return 0;
    };
    auto child_with_argument = [](witness) -> task<int> { co_return 0; };

    queue.run([&]() -> task<> {
        log.push_back(co_await child());
        log.push_back(2);
        auto argument = child_with_argument(witness{log, 3});
        (void)co_await std::move(argument);
        log.push_back(4);
    });

    EXPECT_THAT(log, ElementsAre(1, 0, 2, 3, 4));
}

TEST(task_test, waits_until_its_operation_has_ended) {
    manual_queue queue;
    gate door;
    int got = 0;
    queue.spawn([&]() -> task<> { got = (co_await door.wait()).value(); });

    queue.turn_until_idle();
    EXPECT_TRUE(door.waited_at());
    EXPECT_EQ(got, 0);

    door.open(9);
    EXPECT_EQ(got, 0) << "never resumed inside the call that completes it";
    queue.turn_until_idle();
    EXPECT_EQ(got, 9);
}

TEST(task_test, leaves_no_frame_behind) {
    const auto before = detail::live_frames();
    {
        manual_queue queue;
        queue.run([]() -> task<> {
            for (int i = 0; i < 100; ++i)
                (void)co_await value(i);
        });
    }
    EXPECT_EQ(detail::live_frames(), before);
}

TEST(task_test, may_be_moved_until_it_is_awaited) {
    manual_queue queue;
    task<int> first = value(1);
    task<int> second = value(2);
    second = std::move(first);

    EXPECT_EQ(queue.run(std::move(second)), 1);
}

TEST(task_death_test, awaiting_a_second_time_is_a_contract_violation) {
    auto twice = [] {
        manual_queue queue;
        queue.run([]() -> task<> {
            task<int> once = value(1);
            (void)co_await std::move(once);
            (void)co_await std::move(once);
        });
    };
    EXPECT_DEATH(twice(), "awaited once");
}

/// A foreign coroutine type: it starts at once and knows nothing of this library.
struct foreign {
    struct promise_type {
        static foreign get_return_object() noexcept { return {}; }
        static std::suspend_never initial_suspend() noexcept { return {}; }
        static std::suspend_never final_suspend() noexcept { return {}; }
        static void return_void() noexcept {}
        static void unhandled_exception() noexcept { std::terminate(); }
    };
};

TEST(task_test, can_be_awaited_by_coroutines_of_other_types) {
    manual_queue queue;
    gate door;
    int got = 0;
    auto ours = [&]() -> task<int> { co_return (co_await door.wait()).value() + 1; };
    auto theirs = [&]() -> foreign { got = co_await ours(); };

    theirs();
    queue.turn_until_idle();
    door.open(1);
    queue.turn_until_idle();

    EXPECT_EQ(got, 2);
}

/// A foreign awaitable: any holder of the handle resumes it directly.
struct foreign_event {
    struct awaiter {
        foreign_event& event;
        static bool await_ready() noexcept { return false; }
        void await_suspend(std::coroutine_handle<> caller) noexcept { event.waiter = caller; }
        static void await_resume() noexcept {}
    };
    awaiter wait() noexcept { return {*this}; }

    std::coroutine_handle<> waiter;
};

// Without tail calls, the end of a child must not be noted for a loop that is not running.
TEST(task_test, continues_when_foreign_code_resumes_it) {
    manual_queue queue;
    foreign_event event;
    bool ended = false;
    auto child = [&]() -> task<> { co_await event.wait(); };
    queue.spawn([&]() -> task<> {
        co_await child();
        ended = true;
    });
    queue.turn_until_idle();

    event.waiter.resume();

    EXPECT_TRUE(ended);
}

// Two pending continuations need two places: in one, the second would replace the first.
TEST(task_test, continues_when_another_task_resumes_it_directly) {
    manual_queue queue;
    foreign_event event;
    int ended = 0;
    auto wait = [&]() -> task<> { co_await event.wait(); };
    auto wake = [&]() -> task<> {
        co_await std::suspend_never{};
        event.waiter.resume();
    };
    queue.spawn([&]() -> task<> {
        co_await wait();
        ++ended;
    });
    gate door;
    queue.spawn([&]() -> task<> {
        auto late = [&]() -> task<> {
            (void)co_await door.wait();
            co_await wake();
        };
        co_await late();
        ++ended;
    });
    queue.turn_until_idle();
    door.open();
    queue.turn_until_idle();

    EXPECT_EQ(ended, 2);
}

} // namespace
} // namespace simplenet::v0
