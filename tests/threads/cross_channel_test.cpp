#include <simplenet/threads/cross_channel.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"

#include <simplenet/runtime/run.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include <poll.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class cross_channel_test : public backend_test {
protected:
    [[nodiscard]] static loop_options options() { return {.backend = GetParam()}; }
};

TEST_P(cross_channel_test, receives_values_from_other_threads) {
    cross_channel<std::unique_ptr<int>> numbers{2};
    std::thread sender{[&] {
        for (int number = 0; number < 1'000; ++number)
            EXPECT_TRUE(numbers.blocking_send(std::make_unique<int>(number)));
        numbers.close();
    }};
    int expected = 0;

    run([&]() -> task<> {
        while (auto number = co_await numbers.receive())
            EXPECT_EQ(**number, expected++);
        EXPECT_EQ((co_await numbers.receive()).error(), errc::end_of_stream);
    });
    sender.join();

    EXPECT_EQ(expected, 1'000);
}

TEST_P(cross_channel_test, sends_values_to_other_threads) {
    cross_channel<int> numbers{0};
    std::vector<int> received;
    std::thread receiver{[&] {
        while (auto number = numbers.blocking_receive())
            received.push_back(*number);
    }};

    run([&]() -> task<> {
        for (int number : {1, 2, 3})
            EXPECT_TRUE(co_await numbers.send(number));
        numbers.close();
        EXPECT_EQ((co_await numbers.send(4)).error(), std::errc::broken_pipe);
    });
    receiver.join();

    EXPECT_THAT(received, ElementsAre(1, 2, 3));
}

TEST_P(cross_channel_test, works_within_one_loop) {
    run([]() -> task<> {
        cross_channel<int> numbers{1};
        auto receiver = spawn([&]() -> task<int> {
            int sum = 0;
            while (auto number = co_await numbers.receive())
                sum += *number;
            co_return sum;
        });
        for (int number : {1, 2, 3, 4})
            EXPECT_TRUE(co_await numbers.send(number));
        numbers.close();
        EXPECT_EQ(co_await receiver, 10);
    });
}

TEST_P(cross_channel_test, try_forms_never_wait) {
    cross_channel<std::unique_ptr<int>> numbers{1};
    auto first = std::make_unique<int>(1);
    auto second = std::make_unique<int>(2);
    EXPECT_EQ(numbers.try_receive().error(), std::errc::operation_would_block);
    EXPECT_TRUE(numbers.try_send(std::move(first)));
    EXPECT_EQ(numbers.try_send(std::move(second)).error(), errc::queue_full);
    EXPECT_NE(second, nullptr);
    EXPECT_EQ(numbers.size(), 1U);
    numbers.close();
    EXPECT_EQ(numbers.try_send(std::move(second)).error(), std::errc::broken_pipe);
    EXPECT_NE(second, nullptr);
    EXPECT_EQ(**numbers.try_receive(), 1);
    EXPECT_EQ(numbers.try_receive().error(), errc::end_of_stream);
}

TEST_P(cross_channel_test, a_stopped_operation_moves_nothing) {
    run([]() -> task<> {
        cross_channel<std::unique_ptr<int>> full{1};
        EXPECT_TRUE(full.try_send(std::make_unique<int>(1)));
        auto kept = std::make_unique<int>(2);
        EXPECT_EQ((co_await with_timeout(full.send_from(kept), 1ms)).error(),
                  errc::deadline_exceeded);
        EXPECT_EQ(*kept, 2);
        EXPECT_EQ(**co_await full.receive(), 1);
        EXPECT_EQ((co_await with_timeout(full.receive(), 1ms)).error(), errc::deadline_exceeded);

        auto receiver = spawn([&]() -> task<std::error_code> {
            const auto received = co_await full.receive();
            co_return received ? std::error_code{} : received.error();
        });
        co_await turns(2);
        receiver.request_stop();
        EXPECT_TRUE(full.try_send(std::move(kept)));
        EXPECT_EQ(co_await receiver, std::errc::operation_canceled);
        EXPECT_EQ(full.size(), 1U);
    });
}

TEST_P(cross_channel_test, a_value_being_delivered_beats_a_stop) {
    run([]() -> task<> {
        cross_channel<int> numbers{1};
        auto receiver =
            spawn([&]() -> task<int> { co_return (co_await numbers.receive()).value_or(-1); });
        co_await turns(2);
        EXPECT_TRUE(numbers.try_send(7));
        receiver.request_stop();
        EXPECT_EQ(co_await receiver, 7);
    });
}

TEST_P(cross_channel_test, a_stopped_scope_is_refused) {
    run([]() -> task<> {
        cross_channel<int> numbers{2};
        EXPECT_TRUE(numbers.try_send(1));
        auto stopped = spawn([&]() -> task<> {
            EXPECT_FALSE(co_await async_sleep(1h));
            EXPECT_EQ((co_await numbers.receive()).error(), std::errc::operation_canceled);
            EXPECT_EQ((co_await numbers.send(2)).error(), std::errc::operation_canceled);
        });
        co_await turns(2);
        stopped.request_stop();
        co_await stopped;
        EXPECT_EQ(numbers.size(), 1U);
    });
}

TEST_P(cross_channel_test, operations_without_waiting_are_budgeted) {
    run([]() -> task<> {
        cross_channel<int> numbers{1};
        bool other = false;
        auto handle = spawn([&]() -> task<> {
            other = true;
            co_return;
        });
        while (!other) {
            EXPECT_TRUE(co_await numbers.send(1));
            EXPECT_TRUE(co_await numbers.receive());
        }
        co_await handle;
    });
}

TEST_P(cross_channel_test, a_loop_that_ends_while_it_waits_takes_no_value_with_it) {
    if (IsSkipped()) return;
    cross_channel<int> numbers{1};
    std::vector<std::error_code> errors;
    loop().spawn([&]() -> task<> {
        for (int tries = 0; tries < 3; ++tries)
            errors.push_back((co_await numbers.receive()).error());
    });
    for (int turn = 0; turn < 3; ++turn)
        loop().poll();

    destroy_loop();
    EXPECT_TRUE(numbers.try_send(1));

    EXPECT_EQ(errors.size(), 3U);
    EXPECT_EQ(or_throw(numbers.try_receive()), 1);
}

TEST_P(cross_channel_test, a_loop_that_ends_delivers_the_values_it_accepted) {
    if (IsSkipped()) return;
    cross_channel<int> numbers{1};
    int received = 0;
    loop().spawn([&]() -> task<> { received = (co_await numbers.receive()).value_or(-1); });
    for (int turn = 0; turn < 3; ++turn)
        loop().poll();

    EXPECT_TRUE(numbers.try_send(1));
    destroy_loop();

    EXPECT_EQ(received, 1);
}

/// Ignores its stop forever.
TEST_P(cross_channel_test, a_stubborn_task_does_not_keep_a_loop_from_ending) {
    if (IsSkipped()) return;
    cross_channel<int> numbers{1};
    loop().spawn([&]() -> task<> {
        for (;;)
            (void)co_await numbers.receive();
    });
    for (int turn = 0; turn < 3; ++turn)
        loop().poll();

    destroy_loop();

    EXPECT_TRUE(numbers.try_send(1));
    EXPECT_EQ(numbers.size(), 1U);
}

TEST_P(cross_channel_test, a_loop_that_sleeps_is_woken_by_one_system_call) {
    cross_channel<int> numbers{1'000};
    cross_channel<int> asleep{1};
    std::uint64_t wake_ups = 0;
    std::thread sender{[&] {
        (void)asleep.blocking_receive();
        for (int number = 0; number < 1'000; ++number)
            EXPECT_TRUE(numbers.try_send(number));
        numbers.close();
    }};

    run([&]() -> task<> {
        int waits = 0;
        EXPECT_TRUE(co_await asleep.send(0));
        for (;; ++waits) {
            if (!co_await numbers.receive()) break;
        }
        EXPECT_EQ(waits, 1'000);
        wake_ups = loop().metrics().wake_ups;
    });
    sender.join();

    EXPECT_LE(wake_ups, 1'001U); // at most one for each value, usually far fewer
}

TEST_P(cross_channel_test, posts_to_a_loop_that_is_awake_make_no_system_call) {
    run([&]() -> task<> {
        cross_channel<int> numbers{1};
        auto receiver = spawn([&]() -> task<> {
            while (co_await numbers.receive()) {
            }
        });
        co_await turns(2);
        const auto before = loop().metrics().wake_ups;
        std::thread sender{[&] { EXPECT_TRUE(numbers.try_send(1)); }};
        sender.join(); // the join blocks this thread, so its loop does not sleep
        EXPECT_EQ(loop().metrics().wake_ups, before);
        numbers.close();
        co_await receiver;
    });
}

/// Senders and receivers on loops and threads, loops that are stopped and destroyed, timeouts.
TEST_P(cross_channel_test, neither_loses_nor_duplicates_values_between_threads) {
    if (IsSkipped()) return;
    for (std::size_t capacity : {0U, 1U, 8U}) {
        cross_channel<std::unique_ptr<int>> numbers{capacity};
        std::atomic<long> sent = 0, received = 0, count_sent = 0, count_received = 0;
        std::atomic<int> senders = 4;
        const auto note_sent = [&](int value) {
            sent += value;
            ++count_sent;
        };
        const auto note_received = [&](const std::unique_ptr<int>& value) {
            received += *value;
            ++count_received;
        };
        const auto last_closes = [&] {
            if (--senders == 0) numbers.close();
        };
        std::vector<std::thread> threads;
        for (int thread = 0; thread < 2; ++thread) {
            threads.emplace_back([&] {
                for (int value = 0; value < 500; ++value) {
                    auto box = std::make_unique<int>(value);
                    if (numbers.blocking_send(std::move(box))) note_sent(value);
                }
                last_closes();
            });
            threads.emplace_back([&] { // sends with limits that often pass
                auto body = [&]() -> task<> {
                    for (int value = 0; value < 500; ++value) {
                        auto box = std::make_unique<int>(value);
                        if (co_await with_timeout(numbers.send_from(box), 1us)) note_sent(value);
                    }
                };
                simplenet::run(body(), options());
                last_closes();
            });
            threads.emplace_back([&] {
                while (auto value = numbers.blocking_receive())
                    note_received(*value);
            });
            threads.emplace_back([&] { // loops that end with receivers waiting
                while (!numbers.is_closed()) {
                    auto short_lived = or_throw(event_loop::create(options()));
                    for (int each = 0; each < 3; ++each) {
                        short_lived.spawn([&]() -> task<> {
                            while (auto value = co_await with_timeout(numbers.receive(), 1ms))
                                note_received(*value);
                        });
                    }
                    short_lived.run_for(200us);
                }
            });
        }
        for (std::thread& each : threads)
            each.join();
        while (auto rest = numbers.try_receive())
            note_received(*rest);

        EXPECT_EQ(count_sent, count_received);
        EXPECT_EQ(sent, received);
    }
}

struct nothing_to_do final : detail::posted {
    void run() noexcept override {}
    void drop() noexcept override {}
};

// A system call under the lock would delay every other user of the channel.
TEST_P(cross_channel_test, wakes_a_loop_after_releasing_the_lock) {
    detail::run_queue* queue = nullptr;
    loop().post([&] { queue = detail::run_queue::current(); });
    pollfd handle{.fd = loop().native_handle(), .events = POLLIN, .revents = 0};
    while (loop().poll() != 0) {
    }
    detail::cross_lock lock;
    nothing_to_do item;

    lock.lock();
    lock.post(*queue, item);
    EXPECT_EQ(::poll(&handle, 1, 0), 0);
    lock.unlock();

    EXPECT_EQ(::poll(&handle, 1, 0), 1);
    loop().poll();
}

using cross_channel_death_test = cross_channel_test;

TEST_P(cross_channel_death_test, blocking_a_loop_is_a_violation) {
    if (IsSkipped()) return;
    EXPECT_DEATH(run([]() -> task<> {
                     cross_channel<int> numbers{1};
                     (void)numbers.blocking_receive();
                     co_return;
                 }),
                 "would block the thread's event loop");
}

TEST_P(cross_channel_death_test, destroying_it_with_waiters_is_a_violation) {
    if (IsSkipped()) return;
    EXPECT_DEATH(run([]() -> task<> {
                     auto numbers = std::make_unique<cross_channel<int>>(1);
                     spawn([&]() -> task<> { (void)co_await numbers->receive(); });
                     co_await turns(2);
                     numbers.reset();
                 }),
                 "while a user waited");
}

INSTANTIATE_TEST_SUITE_P(backends, cross_channel_test, all_backends, backend_name);
INSTANTIATE_TEST_SUITE_P(backends, cross_channel_death_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
