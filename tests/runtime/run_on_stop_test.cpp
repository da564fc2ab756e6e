// Stops of calls elsewhere that cannot report an error.

#include <simplenet/runtime/run_on.hpp>

#include "support/backend_test.hpp"
#include "support/background_loop.hpp"
#include "support/error_of.hpp"
#include "support/held_up.hpp"
#include "support/unhandled_count.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/time/deadline.hpp>

#include <chrono>
#include <latch>
#include <optional>
#include <system_error>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

task<> yield_once() {
    co_await yield();
}

class run_on_stop_test : public backend_test {
protected:
    [[nodiscard]] static loop_options options() { return {.backend = GetParam()}; }
};

// A call that returns nothing can report a stop only by an exception. Nobody catches it in a
// detached task, and the end of a loop must not end the program.
TEST_P(run_on_stop_test, a_stop_is_no_unhandled_exception) {
    const unhandled_count reported;
    loop_options hooked = options();
    hooked.on_unhandled = unhandled_count::hook;
    remake_loop(hooked);
    held_call held;
    background_loop blocked{options()};
    std::optional<background_loop> ends{std::in_place, hooked};
    auto blocks = [&] { held.hold(); };
    auto nothing = [] {};
    auto waits = [&](auto call) -> task<> { co_await run_on(*blocked, call); };
    auto gathers = [&]() -> task<> {
        auto children = [&](task_group& group) -> task<> {
            group.spawn(waits(nothing));
            co_return;
        };
        EXPECT_EQ(error_of(co_await with_group(children)), std::errc::operation_canceled);
    };
    loop().spawn(waits(blocks)).detach();
    loop().spawn(waits(nothing)).detach();
    loop().spawn(gathers()).detach();
    loop().poll();
    held.wait_for_begin();
    (*ends)->spawn_remote(waits(nothing)).detach();
    (*ends)->spawn_remote(yield_once()).get();
    auto stopped = loop().spawn(waits(nothing));
    loop().poll();
    stopped.request_stop();
    stopped.detach();
    loop().poll();

    destroy_loop();
    ends.reset();
    held.release();

    EXPECT_EQ(reported(), 0);
}

TEST_P(run_on_stop_test, a_limit_reports_calls_that_never_began_within_what_it_limits) {
    std::latch release{1};
    background_loop other{options()};
    other->post([&] { release.wait(); });
    auto nothing = [] {};
    auto children = [&](task_group& group) -> task<> {
        group.spawn(run_on(*other, nothing));
        co_return;
    };
    auto calls = [&]() -> task<result<>> {
        co_await run_on(*other, nothing);
        co_return result<>{};
    };

    run([&]() -> task<> {
        const auto limited = co_await with_timeout(with_group(children), 1ms);
        EXPECT_EQ(error_of(limited), errc::deadline_exceeded);
        const auto task_limited = co_await with_timeout(calls(), 1ms);
        EXPECT_EQ(error_of(task_limited), errc::deadline_exceeded);
        release.count_down();
    });
}

INSTANTIATE_TEST_SUITE_P(backends, run_on_stop_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
