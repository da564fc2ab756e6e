#include <simplenet/coro/scoped.hpp>

#include <simplenet/coro/task_group.hpp>
#include <simplenet/coro/this_task.hpp>

#include "support/gate.hpp"
#include "support/manual_queue.hpp"
#include "support/small_tasks.hpp"
#include "support/witness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <coroutine>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using ::testing::ElementsAre;
using testing::gate;
using testing::manual_queue;
using testing::value;
using testing::witness;

static_assert(detail::awaitable<task<int>>);
static_assert(detail::awaitable<gate::operation>);
static_assert(!detail::awaitable<int>);
static_assert(!detail::awaitable<std::string>);
static_assert(std::same_as<detail::await_result<task<int&>>, int&>);

/// A foreign awaitable whose awaiter a free operator makes.
struct free_awaitable {
    int number;
};
struct free_awaiter {
    int number;
    static bool await_ready() noexcept { return true; }
    static void await_suspend(std::coroutine_handle<>) noexcept {}
    [[nodiscard]] int await_resume() const noexcept { return number; }
};
free_awaiter operator co_await(free_awaitable&& from) noexcept {
    return {from.number};
}

/// Throws when the coroutine asks for its awaiter.
struct throwing_awaitable {
    free_awaiter operator co_await() const { throw std::runtime_error{"no awaiter"}; }
};

/// Does not suspend, whatever type await_suspend() returns.
struct transfer_back {
    static bool await_ready() noexcept { return false; }
    static std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) noexcept {
        return caller;
    }
    static int await_resume() noexcept { return 3; }
};
struct refuse_to_suspend {
    static bool await_ready() noexcept { return false; }
    static bool await_suspend(std::coroutine_handle<>) noexcept { return false; }
    static int await_resume() noexcept { return 4; }
};
/// Unusual, but allowed by the language.
struct resume_inside {
    static bool await_ready() noexcept { return false; }
    static void await_suspend(std::coroutine_handle<> caller) { caller.resume(); }
    static int await_resume() noexcept { return 5; }
};

TEST(shield_test, returns_what_the_awaitable_returns) {
    manual_queue queue;
    int object = 0;
    auto refer = [&]() -> task<int&> { co_return object; };

    queue.run([&]() -> task<> {
        int& same = co_await shield(refer());
        same = co_await shield(value(1)) + co_await shield(free_awaitable{2});
        same += co_await shield(transfer_back{}) + co_await shield(refuse_to_suspend{});
        auto nothing = []() -> task<> { co_return; };
        co_await shield(nothing());
    });

    EXPECT_EQ(object, 10);
}

TEST(shield_test, supports_awaitables_that_resume_inside_their_start) {
    manual_queue queue;
    EXPECT_EQ(queue.run([]() -> task<int> { co_return co_await shield(resume_inside{}); }), 5);
}

TEST(shield_test, passes_on_exceptions_and_leaves_the_scope) {
    manual_queue queue;
    gate door;
    auto throwing = []() -> task<> {
        throw 1;
        co_return;
    };
    auto handle = queue.spawn([&]() -> task<bool> {
        try {
            co_await shield(throwing());
        } catch (int) {
        }
        try {
            (void)co_await shield(throwing_awaitable{});
        } catch (const std::runtime_error&) {
        }
        co_return (co_await door.wait()).has_value();
    });
    queue.turn_until_idle();
    handle.request_stop();

    EXPECT_FALSE(queue.run([&]() -> task<bool> { co_return co_await handle; }));
}

TEST(shield_test, holds_a_stop_back_until_the_awaitable_has_ended) {
    manual_queue queue;
    gate door;
    std::vector<bool> succeeded;
    auto handle = queue.spawn([&]() -> task<> {
        succeeded.push_back((co_await shield(door.wait())).has_value());
        succeeded.push_back((co_await door.wait()).has_value());
        succeeded.push_back((co_await shield(door.wait())).has_value());
    });
    queue.turn_until_idle();

    handle.request_stop();
    queue.turn_until_idle();
    EXPECT_EQ(door.stops, 0);
    door.open();
    queue.turn_until_idle();
    door.open();
    queue.turn_until_idle();

    EXPECT_THAT(succeeded, ElementsAre(true, false, true));
}

TEST(shield_test, hands_a_group_made_inside_to_the_enclosing_scope) {
    manual_queue queue;
    gate door;
    bool stopped = false;
    std::optional<task_group> group;
    auto make_group = [&]() -> task<> {
        group.emplace();
        group->spawn([&]() -> task<> { stopped = !co_await door.wait(); });
        co_return;
    };
    auto handle = queue.spawn([&]() -> task<> {
        co_await shield(make_group());
        (void)co_await group->join();
    });
    queue.turn_until_idle();
    ASSERT_TRUE(door.waited_at());

    handle.request_stop();
    queue.turn_until_idle();

    EXPECT_TRUE(stopped);
    group.reset();
}

TEST(shield_test, a_group_handed_to_a_stopped_scope_is_stopped) {
    manual_queue queue;
    gate inside;
    gate door;
    bool stopped = false;
    std::optional<task_group> group;
    auto make_group = [&]() -> task<> {
        group.emplace();
        group->spawn([&]() -> task<> { stopped = !co_await door.wait(); });
        (void)co_await inside.wait();
    };
    auto handle = queue.spawn([&]() -> task<> { co_await shield(make_group()); });
    queue.turn_until_idle();
    handle.request_stop();
    queue.turn_until_idle();
    EXPECT_TRUE(door.waited_at());

    inside.open();
    queue.turn_until_idle();

    EXPECT_TRUE(stopped);
    group.reset();
}

TEST(shield_test, destroys_its_awaitable_if_it_never_starts) {
    std::vector<int> log;
    auto body = [](witness) -> task<> { co_return; };
    {
        auto never = shield(body(witness{log, 1}));
        auto moved = std::move(never);
    }
    EXPECT_THAT(log, ElementsAre(1));
}

} // namespace
} // namespace simplenet::v0
