// Misuse of a loop stops the program.

#include <simplenet/runtime/event_loop.hpp>

#include "support/backend_test.hpp"
#include "support/other_coroutines.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <stdexcept>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

class event_loop_death_test : public backend_test {};

TEST_P(event_loop_death_test, a_loop_inside_a_loop_stops_the_program) {
    loop().post([this] { loop().run(); });
    EXPECT_DEATH(loop().run(), "an event loop runs on this thread already");
}

TEST_P(event_loop_death_test, running_it_from_a_second_thread_stops_the_program) {
    loop().run();
    EXPECT_DEATH(std::jthread{[this] { loop().run(); }}.join(),
                 "an event loop is run, and destroyed, by one thread");
}

TEST_P(event_loop_death_test, an_unhandled_exception_terminates_by_default) {
    auto throws = []() -> task<> {
        throw std::runtime_error{"nobody catches this"};
        co_return;
    };
    EXPECT_DEATH((loop().spawn(throws()), loop().run()), "nobody catches this");
}

TEST_P(event_loop_death_test, get_on_a_loop_thread_stops_the_program) {
    auto nothing = []() -> task<> { co_return; };
    loop().post([&] { loop().spawn_remote(nothing()).get(); });
    EXPECT_DEATH(loop().run(), "get\\(\\) would block this thread's event loop");
}

#ifndef NDEBUG
TEST_P(event_loop_death_test, spawning_from_another_thread_stops_the_program) {
    auto nothing = []() -> task<> { co_return; };
    EXPECT_DEATH(std::jthread{[&] { loop().spawn(nothing()); }}.join(), "on the loop's thread");
}

TEST_P(event_loop_death_test, stopping_a_task_from_another_thread_stops_the_program) {
    auto forever = []() -> task<> { static_cast<void>(co_await async_sleep(1h)); };
    auto handle = loop().spawn(forever());
    loop().poll();
    EXPECT_DEATH(std::jthread{[&] { handle.request_stop(); }}.join(), "on the loop's thread");
}

TEST_P(event_loop_death_test, asking_for_metrics_from_another_thread_stops_the_program) {
    loop().poll();
    EXPECT_DEATH(std::jthread{[&] { static_cast<void>(loop().metrics()); }}.join(),
                 "on the loop's thread");
}

TEST_P(event_loop_death_test, using_a_socket_on_a_second_loop_stops_the_program) {
    auto [ours, theirs] = or_throw(local_stream::pair());
    auto write = [](local_stream& stream) -> task<> {
        static_cast<void>(co_await stream.write_some("x"));
    };
    loop().spawn(write(ours));
    loop().run();
    auto other = or_throw(event_loop::create({.backend = GetParam()}));
    other.spawn(write(ours));
    EXPECT_DEATH(other.run(), "a socket belongs to the loop that used it first");
}

TEST_P(event_loop_death_test, closing_a_socket_on_another_thread_stops_the_program) {
    auto [ours, theirs] = or_throw(local_stream::pair());
    auto write = [](local_stream& stream) -> task<> {
        static_cast<void>(co_await stream.write_some("x"));
    };
    loop().spawn(write(ours));
    loop().run();
    EXPECT_DEATH(std::jthread{[&] { ours.close(); }}.join(), "on the loop's thread");
}
#endif

INSTANTIATE_TEST_SUITE_P(backends, event_loop_death_test, all_backends, backend_name);

TEST(no_loop_death_test, awaiting_an_operation_without_a_loop_stops_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto body = []() -> eager_coroutine { static_cast<void>(co_await async_sleep(1ms)); };
    EXPECT_DEATH(body(), "this needs a running event loop on the calling thread");
}

TEST(no_loop_death_test, spawning_without_a_loop_stops_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto nothing = []() -> task<> { co_return; };
    EXPECT_DEATH(spawn(nothing()), "this needs a running event loop on the calling thread");
}

TEST(no_loop_death_test, a_task_group_without_a_loop_stops_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(task_group{}, "this needs a running event loop on the calling thread");
}

} // namespace
} // namespace simplenet::v0::testing
