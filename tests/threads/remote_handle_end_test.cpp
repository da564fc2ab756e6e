// Tasks on another loop when that loop, or the waiting one, ends.

#include <simplenet/threads/remote_handle.hpp>

#include "support/backend_test.hpp"
#include "support/background_loop.hpp"
#include "support/remote_tasks.hpp"

#include <simplenet/time/sleep.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

class remote_handle_end_test : public backend_test {
protected:
    [[nodiscard]] static loop_options options() { return {.backend = GetParam()}; }
};

// --- loops that end

TEST_P(remote_handle_end_test, a_loop_that_ends_before_the_task_starts_makes_get_throw) {
    auto held = std::make_shared<int>();
    auto body = [](std::shared_ptr<int>) -> task<int> { co_return 1; };
    auto handle = loop().spawn_remote(body(held));
    EXPECT_FALSE(handle.done());

    destroy_loop();

    EXPECT_TRUE(handle.done());
    EXPECT_EQ(held.use_count(), 1) << "the frame is gone";
    EXPECT_EQ(error_thrown_by_get(handle), std::errc::operation_canceled);
}

TEST_P(remote_handle_end_test, a_result_reports_a_loop_that_ends_before_the_task_starts) {
    auto body = []() -> task<result<int>> { co_return 1; };
    auto first = loop().spawn_remote(body());
    auto second = loop().spawn_remote(body());

    remake_loop();

    EXPECT_EQ(first.get(), fail(std::errc::operation_canceled));
    run([&]() -> task<> {
        const result<int> joined = co_await second;
        EXPECT_EQ(joined, fail(std::errc::operation_canceled));
    });
}

TEST_P(remote_handle_end_test, a_loop_that_ends_stops_the_task_whose_value_still_arrives) {
    background_loop other{options()};
    auto handle = other->spawn_remote(sleep_for_ever());
    static_cast<void>(other->spawn_remote(answer(1)).get()); // so the task has started

    other.end();

    EXPECT_EQ(handle.get(), std::errc::operation_canceled);
}

TEST_P(remote_handle_end_test, a_loop_that_ends_before_a_stubborn_task_makes_get_throw) {
    auto stubborn = []() -> task<int> {
        for (;;)
            static_cast<void>(co_await async_sleep(24h));
    };
    auto handle = loop().spawn_remote(stubborn());
    loop().poll();
    destroy_loop();

    EXPECT_EQ(error_thrown_by_get(handle), std::errc::operation_canceled);
}

TEST_P(remote_handle_end_test, a_loop_that_ends_wakes_the_awaiter_of_its_task_on_another_loop) {
    std::optional<background_loop> other{std::in_place, options()};
    run([&]() -> task<> {
        auto stubborn = []() -> task<int> {
            for (;;)
                static_cast<void>(co_await async_sleep(24h));
        };
        auto handle = (*other)->spawn_remote(stubborn());
        std::jthread ender{[&] { other.reset(); }};
        std::error_code error;
        try {
            static_cast<void>(co_await handle);
        } catch (const std::system_error& thrown) {
            error = thrown.code();
        }
        EXPECT_EQ(error, std::errc::operation_canceled);
    });
}

TEST_P(remote_handle_end_test, the_end_of_the_awaiting_loop_does_not_wait_for_the_other_one) {
    // This loop never runs, so its task never starts.
    event_loop asleep = or_throw(event_loop::create(options()));
    std::error_code error;
    auto waits = [&]() -> task<> {
        auto handle = asleep.spawn_remote(answer(1));
        try {
            static_cast<void>(co_await handle);
        } catch (const std::system_error& thrown) {
            error = thrown.code();
        }
    };
    loop().spawn(waits());
    loop().poll();

    destroy_loop();

    EXPECT_EQ(error, std::errc::operation_canceled);
}

TEST_P(remote_handle_end_test, a_task_of_a_loop_that_ends_does_not_begin_to_wait_for_another_loop) {
    event_loop asleep = or_throw(event_loop::create(options()));
    int refused = 0;
    auto waits = [&]() -> task<> {
        static_cast<void>(co_await async_sleep(24h)); // the loop ends during this sleep
        for (int round = 0; round < 3; ++round) {
            try {
                static_cast<void>(co_await asleep.spawn_remote(answer(1)));
            } catch (const std::system_error& thrown) {
                refused += thrown.code() == std::errc::operation_canceled;
            }
        }
    };
    loop().spawn(waits());
    loop().poll();

    destroy_loop();

    EXPECT_EQ(refused, 3);
}

TEST_P(remote_handle_end_test, handles_outlive_both_loops) {
    std::vector<remote_handle<int>> handles;
    {
        event_loop other = or_throw(event_loop::create(options()));
        handles.push_back(other.spawn_remote(answer(1)));
        other.run();
        handles.push_back(other.spawn_remote(answer(2)));
    }
    destroy_loop();

    EXPECT_EQ(handles[0].get(), 1);
    EXPECT_EQ(error_thrown_by_get(handles[1]), std::errc::operation_canceled);
    handles[0].request_stop();
}

// --- at random

// For ThreadSanitizer and AddressSanitizer: stops, drops and the ends of both loops, in any order.
TEST_P(remote_handle_end_test, random_stops_drops_and_ends_of_loops) {
    std::minstd_rand random{11};
    for (int round = 0; round < 150; ++round) {
        std::optional<background_loop> runs{std::in_place, options()};
        std::optional<background_loop> awaits{std::in_place, options()};
        auto waits = [&runs, kind = round % 3]() -> task<> {
            try {
                if (kind == 0) {
                    static_cast<void>(co_await (*runs)->spawn_remote(sleep_for_ever()));
                } else {
                    for (int number = 0; number < kind * 3; ++number)
                        static_cast<void>(co_await (*runs)->spawn_remote(answer(number)));
                }
            } catch (const std::system_error& thrown) {
                EXPECT_EQ(thrown.code(), std::errc::operation_canceled);
            }
        };
        auto handle = (*awaits)->spawn_remote(waits());
        std::jthread stopper{[&, spins = random() % 3000] {
            for (auto left = spins; left != 0; --left)
                static_cast<void>(handle.done());
            handle.request_stop();
        }};
        for (auto left = random() % 3000; left != 0; --left)
            static_cast<void>(handle.done());
        // The loop that spawns remotely must not outlive its target (spawn_remote's @pre).
        awaits.reset();
        runs.reset();
    }
}

TEST_P(remote_handle_end_test, the_loop_of_the_task_may_end_at_any_time) {
    std::minstd_rand random{13};
    for (int round = 0; round < 150; ++round) {
        std::optional<background_loop> other{std::in_place, options()};
        auto handle = (*other)->spawn_remote(sleep_for_ever());
        auto second = (*other)->spawn_remote(answer(1));
        std::jthread ender{[&, spins = random() % 2000] {
            for (auto left = spins; left != 0; --left)
                static_cast<void>(handle.done());
            other.reset();
        }};
        run([&]() -> task<> {
            try {
                EXPECT_EQ(co_await handle, std::errc::operation_canceled);
                EXPECT_EQ(co_await second, 1);
            } catch (const std::system_error& thrown) {
                EXPECT_EQ(thrown.code(), std::errc::operation_canceled);
            }
        });
    }
}

INSTANTIATE_TEST_SUITE_P(backends, remote_handle_end_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
