// What callstack(), set_name() and dump_tasks() show of a tree of tasks.

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/or_return.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/coro/this_task.hpp>

#include "support/gate.hpp"
#include "support/manual_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using testing::gate;
using ::testing::HasSubstr;
using testing::manual_queue;

using lines = std::vector<unsigned>;

lines lines_of(const std::vector<std::source_location>& sites) {
    lines all;
    for (const auto& site : sites) {
        if (std::string_view{site.file_name()}.ends_with("inspect_test.cpp")) {
            all.push_back(site.line()); // a line of this file, not of the support or the library
        }
    }
    return all;
}

constexpr unsigned here(std::source_location at = std::source_location::current()) {
    return at.line();
}

std::string tasks_of(manual_queue& queue) {
    std::string text;
    queue.describe_tasks(text);
    return text;
}

std::size_t count(std::string_view text, std::string_view part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1))
        ++found;
    return found;
}

TEST(callstack_test, lists_the_line_of_every_await_up_to_the_task) {
    manual_queue queue;
    lines expected;
    auto innermost = [&]() -> task<lines> {
        expected.push_back(here() + 1);
        co_return lines_of(co_await this_task::callstack());
    };
    auto middle = [&]() -> task<lines> {
        co_await yield();
        expected.push_back(here() + 1);
        co_return co_await innermost();
    };

    const auto seen = queue.run([&]() -> task<lines> {
        expected.push_back(here() + 1);
        co_return co_await middle();
    });

    std::ranges::reverse(expected);
    EXPECT_EQ(seen, expected);
}

TEST(callstack_test, goes_through_limits_shields_and_or_return) {
    manual_queue queue;
    lines expected;
    auto innermost = [&]() -> task<result<lines>> {
        co_await yield();
        expected.push_back(here() + 1);
        co_return lines_of(co_await this_task::callstack());
    };
    auto middle = [&]() -> task<result<lines>> {
        expected.push_back(here() + 1);
        co_return co_await or_return(innermost());
    };

    auto handle = queue.spawn([&]() -> task<lines> {
        expected.push_back(here() + 1);
        auto seen = co_await shield(middle());
        co_return *seen;
    });
    queue.turn_until_idle();

    std::ranges::reverse(expected);
    EXPECT_EQ(queue.run([&]() -> task<lines> { co_return co_await handle; }), expected);
}

TEST(callstack_test, ends_at_the_task_that_was_spawned) {
    manual_queue queue;

    const auto seen = queue.run([&]() -> task<lines> {
        auto child =
            spawn([]() -> task<lines> { co_return lines_of(co_await this_task::callstack()); });
        co_return co_await child;
    });

    EXPECT_EQ(seen.size(), 1U);
}

TEST(dump_test, says_what_and_where_a_task_awaits) {
    manual_queue queue;
    unsigned outer = 0;
    unsigned inner = 0;
    auto waits = [&]() -> task<> {
        inner = here() + 1;
        co_await yield();
    };
    queue.spawn([&]() -> task<> {
        outer = here() + 1;
        co_await waits();
    });
    queue.turn();

    const std::string text = tasks_of(queue);

    EXPECT_THAT(text, HasSubstr("#1, 0.000 s: yield\n"));
    EXPECT_THAT(text, HasSubstr("inspect_test.cpp:" + std::to_string(inner) + "\n    at "));
    EXPECT_THAT(text, HasSubstr("inspect_test.cpp:" + std::to_string(outer) + "\n"));
    EXPECT_LT(text.find(':' + std::to_string(inner)), text.find(':' + std::to_string(outer)));
}

TEST(dump_test, names_the_type_of_an_awaitable_that_does_not_describe_itself) {
    gate door;
    manual_queue queue;
    queue.spawn([&]() -> task<> { (void)co_await door.wait(); });
    queue.turn();

    EXPECT_THAT(tasks_of(queue), HasSubstr("simplenet::testing::gate::operation\n"));
    // It does not note where it is awaited either; an unknown place is better than the previous
    // one.
    EXPECT_THAT(tasks_of(queue), HasSubstr("at an unknown place\n"));
    door.open();
}

TEST(dump_test, has_the_name_and_the_age_of_a_task) {
    gate door;
    manual_queue queue;
    queue.clock_ns = 1'000'000'000;
    queue.spawn([&]() -> task<> {
        this_task::set_name("first name");
        this_task::set_name("waiter");
        co_await when_all(door.wait());
    });
    queue.turn();
    queue.clock_ns = 3'500'000'000;

    EXPECT_THAT(tasks_of(queue), HasSubstr("#1 waiter, 2.500 s: 1 at once\n"));
    door.open();
}

TEST(dump_test, an_empty_name_removes_the_name) {
    manual_queue queue;
    queue.spawn([&]() -> task<> {
        this_task::set_name("name");
        this_task::set_name("");
        co_await yield();
    });
    queue.turn();

    EXPECT_THAT(tasks_of(queue), HasSubstr("#1, "));
}

// The name of a peer could forge lines of a log or move the cursor of a terminal.
TEST(dump_test, a_name_is_one_line_of_text) {
    manual_queue queue;
    queue.spawn([&]() -> task<> {
        this_task::set_name("\x1b[31mJos\xc3\xa9\n#2 root\x7f");
        co_await yield();
    });
    queue.turn();

    EXPECT_THAT(tasks_of(queue), HasSubstr("#1 ?[31mJos\xc3\xa9?#2 root?, "));
}

TEST(dump_test, prints_each_task_once_below_its_parent) {
    gate doors[4];
    manual_queue queue;
    queue.spawn([&]() -> task<> {
        this_task::set_name("parent");
        auto waits = [](const char* name, gate& at) -> task<> {
            this_task::set_name(name);
            (void)co_await at.wait();
        };
        auto body = [&](task_group& group) -> task<> {
            this_task::set_name("body");
            group.spawn(waits, "child", std::ref(doors[0]));
            co_await when_all(waits("left", doors[1]), shield(waits("right", doors[2])));
        };
        (void)co_await with_group(body);
    });
    queue.spawn([&]() -> task<> {
        this_task::set_name("other");
        (void)co_await doors[3].wait();
    });
    for (int i = 0; i < 5; ++i)
        queue.turn();

    const std::string text = tasks_of(queue);

    for (const char* each : {"parent", "body", "child", "left", "right", "other"})
        EXPECT_EQ(count(text, each), 1U) << each << '\n' << text;
    EXPECT_THAT(text, HasSubstr("\n    #")); // the frames of the group
    EXPECT_THAT(text, HasSubstr("\n        - left: "));
    EXPECT_THAT(text, HasSubstr("\n#2 other"));
    for (gate& each : doors)
        each.open();
}

TEST(dump_test, names_the_joined_task) {
    gate door;
    manual_queue queue;
    queue.spawn([&]() -> task<> {
        auto child = spawn([&]() -> task<> { (void)co_await door.wait(); });
        co_await child;
    });
    queue.turn();
    queue.turn();

    EXPECT_THAT(tasks_of(queue), HasSubstr("#1, 0.000 s: join of #2\n"));
    door.open();
}

TEST(dump_test, knows_the_calling_task) {
    manual_queue queue;
    std::string text;
    queue.spawn([&]() -> task<> {
        co_await yield();
        text = tasks_of(queue);
    });
    queue.turn_until_idle();

    EXPECT_THAT(text, HasSubstr("#1, 0.000 s: running\n"));
    EXPECT_EQ(tasks_of(queue), "");
}

TEST(dump_test, shows_no_task_that_has_ended) {
    manual_queue queue;
    auto kept = queue.spawn([]() -> task<> { co_return; });
    queue.turn_until_idle();

    EXPECT_TRUE(kept.done());
    EXPECT_EQ(tasks_of(queue), "");
}

/// Takes a dump of all tasks when it is destroyed.
struct looks_at_the_end {
    manual_queue& queue;
    std::vector<std::string>& seen;
    ~looks_at_the_end() { seen.push_back(tasks_of(queue)); }
};

TEST(dump_test, may_be_taken_in_destructors_of_destroyed_tasks) {
    std::vector<std::string> seen;
    gate doors[3];
    for (gate& each : doors)
        each.deaf = true;
    {
        manual_queue queue;
        auto waits = [&](gate& at) -> task<> {
            const looks_at_the_end local{queue, seen};
            (void)co_await at.wait();
        };
        queue.spawn([&]() -> task<> {
            const looks_at_the_end local{queue, seen};
            auto body = [&](task_group& group) -> task<> {
                const looks_at_the_end own{queue, seen};
                group.spawn(waits, std::ref(doors[0]));
                co_await when_all(waits(doors[1]), shield(waits(doors[2])));
            };
            (void)co_await with_group(body);
        });
        for (int i = 0; i < 5; ++i)
            queue.turn();
    }
    EXPECT_EQ(seen.size(), 5U);
}

TEST(dump_test, may_be_taken_after_or_return_has_ended_a_task) {
    manual_queue queue;
    std::vector<std::string> seen;
    queue.run([&]() -> task<> {
        auto fails = [&]() -> task<result<>> {
            const looks_at_the_end local{queue, seen};
            co_await yield();
            co_await or_return(result<>{fail(errc::queue_full)});
            co_return result<>{};
        };
        (void)co_await fails();
        auto handle = spawn(fails());
        (void)co_await handle;
        spawn(fails); // it outlives this coroutine and the closure in it
    });
    EXPECT_EQ(seen.size(), 3U);
}

TEST(set_name_death_test, needs_a_task) {
    EXPECT_DEATH(this_task::set_name("x"), "needs a running event loop");
    EXPECT_DEATH(
        {
            manual_queue queue;
            this_task::set_name("x");
        },
        "outside of a task");
}

} // namespace
} // namespace simplenet::v0
