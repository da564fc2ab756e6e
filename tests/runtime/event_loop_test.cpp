#include <simplenet/runtime/event_loop.hpp>

#include "support/backend_test.hpp"
#include "support/descriptor_limit.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/other_coroutines.hpp"

#include <simplenet/coro/this_task.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/time/sleep.hpp>

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class event_loop_test : public backend_test {};

// --- construction

TEST_P(event_loop_test, uses_the_requested_backend) {
    EXPECT_EQ(loop().selected_backend(), GetParam());
}

TEST_P(event_loop_test, create_reports_a_lack_of_descriptors) {
    destroy_loop();
    const descriptor_limit none{0};

    EXPECT_EQ(error_of(event_loop::create({.backend = GetParam()})),
              std::errc::too_many_files_open);
}

TEST_P(event_loop_test, a_failed_create_leaks_no_descriptor) {
    destroy_loop();
    const auto before = open_descriptors();

    for (const int spare : {0, 1, 2}) {
        const descriptor_limit few{spare};
        if (auto made = event_loop::create({.backend = GetParam()})) break;
    }

    EXPECT_EQ(open_descriptors(), before);
}

TEST_P(event_loop_test, its_destruction_closes_every_descriptor) {
    destroy_loop();
    const auto before = open_descriptors();
    remake_loop();
    static_cast<void>(loop().native_handle());
    loop().poll();
    EXPECT_GT(open_descriptors(), before);

    destroy_loop();

    EXPECT_EQ(open_descriptors(), before);
}

// --- run, stop

TEST_P(event_loop_test, run_ends_at_once_when_there_is_nothing_to_wait_for) {
    loop().run();

    EXPECT_EQ(loop().metrics().live_tasks, 0U);
}

TEST_P(event_loop_test, a_task_spawned_before_run_runs) {
    int value = 0;
    auto body = [&]() -> task<> {
        value = 42;
        co_return;
    };

    auto handle = loop().spawn(body());
    EXPECT_EQ(value, 0) << "it must start in a turn of the loop";
    EXPECT_FALSE(handle.done());
    loop().run();

    EXPECT_EQ(value, 42);
    EXPECT_TRUE(handle.done());
}

TEST_P(event_loop_test, run_ends_when_tasks_spawned_inside_have_ended) {
    std::vector<int> order;
    auto child = [&order](int number) -> task<> {
        co_await yield();
        order.push_back(number);
    };
    auto body = [&]() -> task<> {
        spawn(child, 1);
        event_loop::current()->spawn(child, 2);
        co_return;
    };
    loop().spawn(body());

    loop().run();

    EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST_P(event_loop_test, a_stop_before_run_is_not_lost_and_is_consumed_by_it) {
    bool ran = false;
    auto body = [&]() -> task<> {
        ran = true;
        co_return;
    };
    loop().spawn(body());
    loop().stop();

    loop().run();
    EXPECT_FALSE(ran);

    loop().run();
    EXPECT_TRUE(ran);
}

TEST_P(event_loop_test, a_stop_from_inside_ends_run_and_the_next_run_continues_the_rest) {
    std::vector<int> order;
    auto body = [&]() -> task<> {
        order.push_back(1);
        loop().stop();
        co_await yield();
        order.push_back(2);
    };
    loop().spawn(body());

    loop().run();
    EXPECT_THAT(order, ElementsAre(1));
    loop().run();
    EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST_P(event_loop_test, a_stop_in_the_last_turn_does_not_reach_the_next_run) {
    int ran = 0;
    auto stops = [&]() -> task<> {
        loop().stop();
        co_return;
    };
    auto counts = [&]() -> task<> {
        ++ran;
        co_return;
    };
    loop().spawn(stops());
    loop().run();
    loop().spawn(counts());
    loop().run();

    EXPECT_EQ(ran, 1);
}

// A stop between the last look at the flag and parking must not get lost.
TEST_P(event_loop_test, a_stop_from_another_thread_ends_a_run_that_sleeps) {
    auto body = []() -> task<> { static_cast<void>(co_await async_sleep(1h)); };
    loop().spawn(body());
    constexpr int rounds = 3000;
    std::atomic<int> round = 0;
    std::jthread stopper{[&] {
        for (int next = 1; next <= rounds; ++next) {
            while (round.load() < next)
                std::this_thread::yield();
            loop().stop();
        }
    }};

    for (int next = 1; next <= rounds; ++next) {
        round.store(next);
        EXPECT_TRUE(loop().run_for(test_limit));
    }

    EXPECT_EQ(loop().metrics().live_tasks, 1U);
}

// The loop may be gone before the stop() that ended it has returned.
TEST_P(event_loop_test, a_loop_may_be_destroyed_as_soon_as_a_stop_or_a_post_ends_its_run) {
    destroy_loop();
    for (int round = 0; round < 200; ++round) {
        std::atomic<event_loop*> published = nullptr;
        std::jthread runs{[&, chosen = loop_options{.backend = GetParam()}] {
            event_loop local = or_throw(event_loop::create(chosen));
            auto for_ever = []() -> task<> { static_cast<void>(co_await async_sleep(1h)); };
            local.spawn(for_ever());
            published.store(&local);
            local.run();
        }};
        while (published.load() == nullptr)
            std::this_thread::yield();
        event_loop* const other = published.load();
        if (round % 2 == 0) {
            other->stop();
        } else {
            other->post([other] { other->stop(); });
        }
    }
}

TEST_P(event_loop_test, run_for_says_whether_the_time_ran_out) {
    auto sleeper = []() -> task<> { static_cast<void>(co_await async_sleep(1h)); };
    EXPECT_TRUE(loop().run_for(1h)) << "nothing to wait for";
    auto handle = loop().spawn(sleeper());

    const auto start = event_loop::clock::now();
    EXPECT_FALSE(loop().run_for(5ms));
    EXPECT_GE(event_loop::clock::now() - start, 5ms);

    handle.request_stop();
    EXPECT_TRUE(loop().run_for(1h));
}

TEST_P(event_loop_test, run_for_takes_durations_of_every_kind_and_size) {
    auto sleeper = []() -> task<> { static_cast<void>(co_await async_sleep(1h)); };
    loop().spawn(sleeper());
    EXPECT_FALSE(loop().run_for(0s));
    EXPECT_FALSE(loop().run_for(-1h));
    EXPECT_FALSE(loop().run_for(std::chrono::nanoseconds::min()));
    EXPECT_FALSE(loop().run_for(std::chrono::duration<double>{0.001}));

    for (int round = 0; round < 4; ++round) {
        loop().stop();
        EXPECT_TRUE(round == 0   ? loop().run_for(std::chrono::hours::max())
                    : round == 1 ? loop().run_for(std::chrono::nanoseconds::max())
                    : round == 2 ? loop().run_for(std::chrono::duration<double>{1e300})
                                 : loop().run_for(std::chrono::years{100'000}));
    }
}

// --- current, moves, metrics

TEST_P(event_loop_test, current_is_the_loop_of_the_thread_while_it_runs) {
    EXPECT_EQ(event_loop::current(), nullptr);
    event_loop* inside = nullptr;
    std::array<event_loop*, 1> elsewhere{&loop()};
    loop().post([&] {
        inside = event_loop::current();
        std::jthread{[&] { elsewhere[0] = event_loop::current(); }}.join();
    });

    loop().run();

    EXPECT_EQ(inside, &loop());
    EXPECT_EQ(elsewhere[0], nullptr);
    EXPECT_EQ(event_loop::current(), nullptr);
}

TEST_P(event_loop_test, a_loop_moves_with_everything_on_it) {
    event_loop* inside = nullptr;
    auto body = [&]() -> task<> {
        co_await yield();
        inside = event_loop::current();
    };
    auto handle = loop().spawn(body());
    loop().poll();

    event_loop moved = std::move(loop());
    moved.run();

    EXPECT_EQ(inside, &moved);
    EXPECT_TRUE(handle.done());
    remake_loop();
    loop() = std::move(moved);
    loop().post([&] { inside = event_loop::current(); });
    loop().run();
    EXPECT_EQ(inside, &loop());
}

TEST_P(event_loop_test, metrics_count_what_lives_on_the_loop) {
    auto [ours, theirs] = or_throw(local_stream::pair());
    const auto frames = loop().metrics().live_frames;
    auto reader = [](local_stream stream) -> task<> {
        std::array<std::byte, 8> buffer;
        static_cast<void>(co_await stream.read_some(buffer));
    };
    auto sleeper = []() -> task<> { static_cast<void>(co_await async_sleep(1h)); };
    auto reads = loop().spawn(reader(std::move(ours)));
    auto sleeps = loop().spawn(sleeper());
    loop().poll();

    const loop_metrics busy = loop().metrics();
    EXPECT_EQ(busy.live_tasks, 2U);
    EXPECT_EQ(busy.live_operations, 1U);
    EXPECT_EQ(busy.timers, 1U);
    EXPECT_EQ(busy.open_descriptors, 1U);
    EXPECT_GE(busy.live_frames, frames + 2);
    EXPECT_EQ(busy.turns, 1U);

    reads.request_stop();
    sleeps.request_stop();
    reads.detach(); // the handle keeps the result, and with it the frame
    loop().run();
    const loop_metrics idle = loop().metrics();
    EXPECT_EQ(idle.live_tasks + idle.live_operations + idle.timers + idle.open_descriptors, 0U);
    EXPECT_GT(idle.turns, busy.turns);
}

TEST_P(event_loop_test, metrics_count_completions) {
    auto [ours, theirs] = or_throw(local_stream::pair());
    run([&]() -> task<> {
        auto writer = [](local_stream& stream) -> task<> {
            EXPECT_TRUE(co_await stream.write_some("x"));
        };
        std::array<std::byte, 8> buffer;
        spawn(writer, std::ref(theirs));
        EXPECT_TRUE(co_await ours.read_some(buffer));
    });

    EXPECT_GE(loop().metrics().completions, 1U);
}

// --- exceptions of detached tasks

std::vector<std::string> unhandled;

TEST_P(event_loop_test, an_exception_of_a_detached_task_reaches_the_hook) {
    unhandled.clear();
    remake_loop({.on_unhandled = [](std::exception_ptr thrown) {
        try {
            std::rethrow_exception(std::move(thrown));
        } catch (const std::exception& error) {
            unhandled.emplace_back(error.what());
        }
    }});
    auto throws = [](const char* what) -> task<> {
        co_await yield();
        throw std::runtime_error{what};
    };
    loop().spawn(throws("detached"));
    auto held = loop().spawn(throws("dropped later"));
    loop().run();
    EXPECT_THAT(unhandled, ElementsAre("detached"));

    held.detach();

    EXPECT_THAT(unhandled, ElementsAre("detached", "dropped later"));
}

// Must not call into the dead loop.
TEST_P(event_loop_test, an_exception_is_not_lost_when_its_handle_outlives_the_loop) {
    unhandled.clear();
    remake_loop({.on_unhandled = [](std::exception_ptr) { unhandled.emplace_back("thrown"); }});
    auto throws = []() -> task<> {
        throw std::runtime_error{""};
        co_return;
    };
    auto held = loop().spawn(throws());
    loop().run();
    destroy_loop();

    held.detach();

    EXPECT_THAT(unhandled, ElementsAre("thrown"));
}

// --- foreign coroutines

TEST_P(event_loop_test, a_foreign_coroutine_can_await_operations) {
    bool done = false;
    auto body = [&]() -> eager_coroutine {
        EXPECT_TRUE(co_await async_sleep(1ms));
        co_await yield();
        done = true;
    };
    auto waits = [&]() -> task<> {
        body();
        while (!done)
            co_await yield();
    };
    run(waits);

    EXPECT_TRUE(done);
}

INSTANTIATE_TEST_SUITE_P(backends, event_loop_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
