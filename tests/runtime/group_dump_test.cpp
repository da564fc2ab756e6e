// event_loop_group::dump_tasks().

#include "support/backend_test.hpp"
#include "support/held_up.hpp"

#include <simplenet/coro/this_task.hpp>
#include <simplenet/runtime/event_loop_group.hpp>
#include <simplenet/time/sleep.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <sstream>
#include <string>
#include <string_view>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr std::string_view no_answer = "does not answer; a task blocks it\n";

/// The text in which `blocked` loops do not answer. On a busy machine a thread may get no processor
/// for 100 ms: then it is asked again.
std::string tasks_of(const event_loop_group& group, int blocked = 0) {
    for (;;) {
        std::ostringstream made;
        group.dump_tasks(made);
        const std::string text = made.str();
        int silent = 0;
        for (std::size_t at = text.find(no_answer); at != std::string::npos;
             at = text.find(no_answer, at + 1))
            ++silent;
        if (silent == blocked) return text;
    }
}

/// Starts a task that waits on `loop`, and returns when it does.
void start_sleeper(event_loop& loop, std::string name) {
    std::promise<void> waits;
    auto sleeps = [](std::string called, std::promise<void>& begun) -> task<> {
        this_task::set_name(called);
        begun.set_value();
        static_cast<void>(co_await async_sleep(1h));
    };
    loop.spawn_remote(sleeps(std::move(name), waits)).detach();
    waits.get_future().wait();
}

class group_dump_test : public own_loops_test {
protected:
    [[nodiscard]] static event_loop_group create() {
        return or_throw(event_loop_group::create({.loops = 2, .loop = {.backend = GetParam()}}));
    }

private:
    watchdog watchdog_;
};

TEST_P(group_dump_test, prints_the_tasks_of_every_loop) {
    event_loop_group group = create();
    start_sleeper(group[0], "first");
    start_sleeper(group[1], "second");

    const std::string text = tasks_of(group);

    const auto of_second = text.find("\nloop 1: ");
    ASSERT_NE(of_second, std::string::npos) << text;
    EXPECT_THAT(text.substr(0, of_second),
                AllOf(MatchesRegex("loop 0: .* loop: 1 tasks, 0 operations, 1 timers.*"),
                      HasSubstr(" first, "), HasSubstr("sleep for another")));
    EXPECT_THAT(text.substr(of_second), AllOf(HasSubstr(" second, "), Not(HasSubstr(" first, "))));
}

TEST_P(group_dump_test, may_be_asked_for_by_a_task_of_the_group) {
    event_loop_group group = create();
    start_sleeper(group[0], "first");
    start_sleeper(group[1], "second");
    auto asks = [](const event_loop_group& of) -> task<std::string> {
        this_task::set_name("asks");
        co_return tasks_of(of);
    };

    const std::string text = group[1].spawn_remote(asks(group)).get();

    EXPECT_THAT(text, AllOf(HasSubstr(" first, "), HasSubstr(" second, "), HasSubstr(" asks, ")));
}

TEST_P(group_dump_test, names_a_loop_that_a_task_blocks) {
    event_loop_group group = create();
    start_sleeper(group[1], "second");
    const held_up blocked{group[0]};

    EXPECT_THAT(tasks_of(group, 1), AllOf(HasSubstr("loop 0: does not answer; a task blocks it\n"),
                                          HasSubstr(" second, ")));
}

TEST_P(group_dump_test, after_stop_the_loops_have_ended) {
    event_loop_group group = create();
    group.stop();

    EXPECT_EQ(tasks_of(group), "loop 0: has ended\nloop 1: has ended\n");
}

INSTANTIATE_TEST_SUITE_P(backends, group_dump_test, real_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
