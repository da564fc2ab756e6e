// A loop that has ended, or is about to, and that other threads still hold.

#include "runtime/loop_access.hpp"

#include "support/backend_test.hpp"
#include "support/fates.hpp"

#include <simplenet/threads/remote_handle.hpp>
#include <simplenet/time/sleep.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using detail::loop_access;

class event_loop_end_test : public backend_test {};

task<> nothing() {
    co_return;
}

TEST_P(event_loop_end_test, a_post_to_a_loop_that_refuses_is_destroyed_inside_the_call) {
    fates posts;
    loop_access::refuse_posts(loop());

    loop().post(posts.one());

    EXPECT_EQ(posts.destroyed, 1U);
    loop().run();
    EXPECT_EQ(posts.called, 0U);
}

// The process used to end with "an event loop runs on this thread already".
TEST_P(event_loop_end_test, a_loop_that_never_ran_may_be_dropped_inside_another_one) {
    fates posts;

    run([&]() -> task<> {
        {
            event_loop dropped = or_throw(event_loop::create({.backend = GetParam()}));
            dropped.post(posts.one());
        }
        EXPECT_EQ(posts.destroyed, 1U);
        EXPECT_EQ(event_loop::current(), &loop());
        EXPECT_TRUE(co_await async_sleep(1ns));
    });
}

TEST_P(event_loop_end_test, posts_from_before_the_refusal_still_run) {
    fates posts;
    loop().post(posts.one());
    loop_access::refuse_posts(loop());

    loop().run();

    EXPECT_EQ(posts.called, 1U);
    EXPECT_EQ(posts.destroyed, 0U);
}

TEST_P(event_loop_end_test, a_remote_task_for_a_loop_that_refuses_is_canceled) {
    loop_access::refuse_posts(loop());

    auto handle = loop().spawn_remote(nothing());

    EXPECT_TRUE(handle.done());
    try {
        handle.get();
        ADD_FAILURE() << "a task that never began has no result";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), std::errc::operation_canceled);
    }
}

TEST_P(event_loop_end_test, a_loop_that_has_ended_can_still_be_called_by_other_threads) {
    fates posts;
    loop_access::end(loop());

    std::jthread{[&] {
        loop().post(posts.one());
        EXPECT_TRUE(loop().spawn_remote(nothing()).done());
        loop().stop();
        EXPECT_EQ(loop().selected_backend(), GetParam());
    }}.join();

    EXPECT_EQ(posts.destroyed, 1U);
    EXPECT_EQ(posts.called, 0U);
}

TEST_P(event_loop_end_test, an_embedded_loop_that_has_ended_is_not_woken) {
    ASSERT_GE(loop().native_handle(), 0);
    loop().poll();
    loop_access::end(loop());

    loop().stop();
    loop().post([] {});
}

TEST_P(event_loop_end_test, another_thread_may_destroy_a_loop_that_has_ended) {
    loop_access::end(loop());

    std::jthread{[this] { destroy_loop(); }}.join();
}

TEST_P(event_loop_end_test, tasks_end_as_usual_on_a_loop_that_refuses_posts) {
    std::error_code told;
    auto waits = [&]() -> task<> {
        auto slept = co_await async_sleep(1h);
        told = slept.error();
    };
    loop().spawn(waits());
    loop().poll();
    loop_access::refuse_posts(loop());

    loop_access::end(loop());

    EXPECT_EQ(told, std::errc::operation_canceled);
}

TEST_P(event_loop_end_test, a_loop_may_run_without_work_until_it_is_stopped) {
    bool ran = false;
    loop_access::run_without_work(loop());
    std::jthread other{[&] {
        loop().post([&] { ran = true; });
        loop().stop();
    }};

    loop().run();

    other.join();
    loop().poll();
    EXPECT_TRUE(ran);
}

TEST_P(event_loop_end_test, each_post_that_races_with_the_end_runs_or_is_destroyed_once) {
    constexpr std::size_t threads = 3, rounds = 20;
    for (std::size_t round = 0; round < rounds; ++round) {
        remake_loop();
        fates posts;
        std::atomic<std::size_t> made = 0;
        std::atomic<bool> over = false;
        loop_access::run_without_work(loop());
        std::vector<std::jthread> posters;
        for (std::size_t thread = 0; thread < threads; ++thread) {
            posters.emplace_back([&] {
                while (!over) {
                    loop().post(posts.one());
                    ++made;
                }
            });
        }
        std::jthread stopper{[&] {
            while (posts.called < 100)
                std::this_thread::yield();
            loop_access::refuse_posts(loop());
            loop().stop();
        }};

        loop().run();
        loop_access::end(loop());
        while (posts.destroyed == 0)
            std::this_thread::yield();
        over = true;
        posters.clear();

        EXPECT_EQ(posts.decided(), made);
    }
}

INSTANTIATE_TEST_SUITE_P(backends, event_loop_end_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
