// Arguments and results of a child, and how long each of them is kept.

#include <simplenet/coro/spawn.hpp>

#include <simplenet/coro/this_task.hpp>

#include "support/gate.hpp"
#include "support/manual_queue.hpp"
#include "support/witness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace simplenet::v0 {
namespace {

using ::testing::ElementsAre;
using testing::gate;
using testing::manual_queue;
using testing::witness;

/// A queue and a gate to wait for.
class spawn_values_test : public ::testing::Test {
protected:
    gate door; // outlives its waiters
    manual_queue queue;
};

task<std::string> repeat(const std::string& text) {
    co_await yield();
    co_return text;
}

struct speaker {
    std::string name;
    task<std::string> say(const std::string& text) {
        co_await yield();
        co_return name + text;
    }
};

// The converted argument must still exist when the coroutine continues.
TEST_F(spawn_values_test, converts_arguments_when_it_stores_them) {
    const char* const text = "long enough not to fit into a string's own buffer";
    auto generic = [](const std::string& given, auto) -> task<std::string> {
        co_await yield();
        co_return given;
    };
    speaker named{"she said: "};

    auto function = queue.spawn(repeat, text);
    auto member = queue.spawn(&speaker::say, &named, text);
    auto overloaded = queue.spawn(generic, text, 0);

    queue.run([&]() -> task<> {
        EXPECT_EQ(co_await function, text);
        EXPECT_EQ(co_await member, named.name + text);
        EXPECT_EQ(co_await overloaded, text);
    }());
}

TEST_F(spawn_values_test, a_callable_and_its_arguments_live_with_the_child) {
    std::vector<int> log;
    {
        auto handle = queue.spawn(
            [text = std::string(100, 'x'), last = witness{log, 1}](std::unique_ptr<int> number,
                                                                   const std::string& copied,
                                                                   gate& at) -> task<std::size_t> {
                (void)co_await at.wait();
                co_return text.size() + static_cast<std::size_t>(*number) + copied.size();
            },
            std::make_unique<int>(1), std::string(50, 'y'), std::ref(door));
        queue.turn_until_idle();
        EXPECT_THAT(log, ElementsAre());
        door.open();
        EXPECT_EQ(queue.run([&]() -> task<std::size_t> { co_return co_await handle; }), 151U);
    }
    queue.turn_until_idle();
    EXPECT_THAT(log, ElementsAre(1));
}

// If arguments lived as long as the handle, a stream would stay open after its task.
TEST_F(spawn_values_test, a_handle_keeps_only_the_outcome_alive) {
    std::vector<int> log;
    auto takes = [](witness given) -> task<std::unique_ptr<int>> {
        (void)given;
        co_return std::make_unique<int>(5);
    };
    auto plain = queue.spawn(takes(witness{log, 1}));
    queue.turn_until_idle();
    EXPECT_THAT(log, ElementsAre(1));

    auto with_captures = queue.spawn(
        [captured = witness{log, 3}](witness given) -> task<std::unique_ptr<int>> {
            (void)given;
            co_return std::make_unique<int>(6);
        },
        witness{log, 2});
    queue.turn_until_idle();
    EXPECT_THAT(log, ElementsAre(1, 2, 3));

    queue.run([&]() -> task<> {
        EXPECT_EQ(*co_await plain, 5);
        EXPECT_EQ(*co_await with_captures, 6);
    });
}

TEST_F(spawn_values_test, a_join_ends_the_life_of_captures_too) {
    std::vector<int> log;
    auto handle = queue.spawn([captured = witness{log, 1}]() -> task<> { co_await yield(); });

    queue.run([&]() -> task<> {
        co_await handle;
        log.push_back(2);
    });

    EXPECT_THAT(log, ElementsAre(1, 2));
}

TEST_F(spawn_values_test, values_that_can_only_be_constructed_are_kept) {
    struct fixed {
        const std::string text;
    };
    auto handle = queue.spawn([]() -> task<fixed> { co_return fixed{std::string(50, 'x')}; });
    queue.turn_until_idle();

    EXPECT_EQ(queue.run([&]() -> task<fixed> { co_return co_await handle; }).text.size(), 50U);
}

struct moves_only_so_often {
    explicit moves_only_so_often(int times)
        : left{times} {}
    moves_only_so_often(moves_only_so_often&& other)
        : left{other.left - 1} {
        if (left < 0) throw std::runtime_error{"moved too often"};
    }
    int left;
};

TEST_F(spawn_values_test, a_value_that_cannot_be_stored_is_an_exception_of_the_child) {
    auto handle = queue.spawn([]() -> task<moves_only_so_often> {
        co_return moves_only_so_often{1}; // into the frame, and no further
    });
    queue.turn_until_idle();

    EXPECT_THROW(queue.run([&]() -> task<> { (void)co_await handle; }), std::runtime_error);
}

TEST_F(spawn_values_test, an_argument_of_the_child_may_hold_the_childs_handle) {
    auto handle = std::make_shared<join_handle<int>>();
    const std::weak_ptr<join_handle<int>> watched = handle;
    *handle = queue.spawn(
        [](std::shared_ptr<join_handle<int>> own) -> task<int> {
            (void)own;
            co_await yield();
            co_return 1;
        },
        handle);
    handle.reset();

    queue.turn_until_idle();

    EXPECT_TRUE(watched.expired());
}

TEST_F(spawn_values_test, a_callable_that_throws_instead_of_making_a_task_throws_at_the_call) {
    const auto frames = detail::live_frames();
    auto refuse = [text = std::string(100, 'x')]() -> task<> { throw std::logic_error{text}; };

    EXPECT_THROW(queue.spawn(refuse), std::logic_error);

    EXPECT_EQ(detail::live_frames(), frames);
    EXPECT_EQ(queue.live(), 0U);
}

TEST_F(spawn_values_test, member_functions_can_be_spawned) {
    struct server {
        std::string name;
        task<std::size_t> serve(std::size_t more) { co_return name.size() + more; }
    } object{"forty"};

    auto handle = queue.spawn(&server::serve, &object, 2U);

    EXPECT_EQ(queue.run([&]() -> task<std::size_t> { co_return co_await handle; }), 7U);
}

} // namespace
} // namespace simplenet::v0
