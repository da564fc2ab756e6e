#include <simplenet/threads/broadcast.hpp>

#include "support/backend_test.hpp"
#include "support/background_loop.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/or_return.hpp>
#include <simplenet/runtime/run.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class broadcast_test : public backend_test {
protected:
    [[nodiscard]] static loop_options options() { return {.backend = GetParam()}; }
};

/// Receives until the end of the stream; fails on any other error.
template <class T>
task<std::vector<T>> all_of(typename broadcast<T>::receiver from) {
    std::vector<T> all;
    for (;;) {
        auto value = co_await from.receive();
        if (!value) {
            EXPECT_EQ(value.error(), errc::end_of_stream);
            co_return all;
        }
        all.push_back(*std::move(value));
    }
}

/// What try_receive() gives until there is no more: values, and losses as negative numbers.
std::vector<int> there(broadcast<int>::receiver& from) {
    std::vector<int> all;
    for (;;) {
        const auto value = from.try_receive();
        if (value)
            all.push_back(*value);
        else if (value.error() == errc::queue_full)
            all.push_back(-static_cast<int>(value.error().missed));
        else
            return all;
    }
}

TEST_P(broadcast_test, every_receiver_gets_every_value_in_order) {
    run([]() -> task<> {
        broadcast<std::string> news{8};
        auto first = spawn(all_of<std::string>(news.subscribe()));
        auto second = spawn(all_of<std::string>(news.subscribe()));
        co_await turns(2);
        EXPECT_EQ(news.send("a"), 2U);
        EXPECT_EQ(news.send("b"), 2U);
        co_await turns(2);
        EXPECT_EQ(news.send("c"), 2U);
        news.close();
        EXPECT_THAT(co_await first, ElementsAre("a", "b", "c"));
        EXPECT_THAT(co_await second, ElementsAre("a", "b", "c"));
    });
}

TEST_P(broadcast_test, receivers_may_be_on_any_loop) {
    if (IsSkipped()) return;
    broadcast<int> numbers{1000};
    std::atomic<int> sum = 0;
    {
        std::vector<std::unique_ptr<background_loop>> loops;
        std::vector<remote_handle<std::vector<int>>> receivers;
        for (int each = 0; each < 10; ++each) { // more than one unlock wakes
            loops.push_back(std::make_unique<background_loop>(options()));
            receivers.push_back((*loops.back())->spawn_remote(all_of<int>(numbers.subscribe())));
        }
        for (int number = 1; number <= 100; ++number)
            EXPECT_EQ(numbers.send(number), 10U);
        numbers.close();
        for (auto& each : receivers) {
            for (const int number : std::move(each).get())
                sum += number;
        }
    }
    EXPECT_EQ(sum, 10 * 5050);
}

TEST_P(broadcast_test, a_receiver_gets_what_is_sent_after_it_has_subscribed) {
    broadcast<int> numbers{8};
    auto first = numbers.subscribe();
    numbers.send(1);
    auto second = numbers.subscribe();
    numbers.send(2);
    EXPECT_THAT(there(first), ElementsAre(1, 2));
    EXPECT_THAT(there(second), ElementsAre(2));
}

TEST_P(broadcast_test, without_receivers_a_value_is_dropped) {
    broadcast<std::shared_ptr<int>> values{8};
    auto value = std::make_shared<int>(1);
    EXPECT_EQ(values.send(value), 0U);
    EXPECT_EQ(value.use_count(), 1);
    EXPECT_EQ(values.receivers(), 0U);
    const auto receiver = values.subscribe();
    EXPECT_EQ(values.receivers(), 1U);
    EXPECT_EQ(values.send(value), 1U);
    EXPECT_EQ(value.use_count(), 2);
}

TEST_P(broadcast_test, a_slow_receiver_learns_how_many_it_missed_and_goes_on) {
    broadcast<int> numbers{3};
    auto slow = numbers.subscribe();
    auto quick = numbers.subscribe();
    for (int number = 0; number < 10; ++number) {
        numbers.send(number);
        EXPECT_EQ(quick.try_receive().value_or(-1), number);
    }
    EXPECT_THAT(there(slow), ElementsAre(-7, 7, 8, 9));
    EXPECT_EQ(slow.missed(), 7U);
    EXPECT_EQ(quick.missed(), 0U);

    for (int number = 10; number < 14; ++number)
        numbers.send(number);
    EXPECT_THAT(there(slow), ElementsAre(-1, 11, 12, 13));
    EXPECT_EQ(slow.missed(), 8U);
}

TEST_P(broadcast_test, an_await_reports_what_was_missed) {
    run([]() -> task<> {
        broadcast<int> numbers{1};
        auto slow = numbers.subscribe();
        numbers.send(1);
        numbers.send(2);
        const auto missed = co_await slow.receive();
        EXPECT_EQ(error_of(missed), errc::queue_full);
        EXPECT_EQ(missed.error().missed, 1U);
        const result<int> next = co_await slow.receive(); // converts
        EXPECT_EQ(next.value_or(0), 2);
    });
}

// A waiting receiver is told of a value, which can be overwritten before its loop turns.
TEST_P(broadcast_test, a_burst_over_a_waiting_receiver_is_counted) {
    run([]() -> task<> {
        broadcast<int> numbers{2};
        auto slow = numbers.subscribe();
        auto receiving = spawn([&]() -> task<std::uint64_t> {
            const auto missed = co_await slow.receive();
            co_return missed ? 0 : missed.error().missed;
        });
        co_await turns(2);
        for (int number = 0; number < 5; ++number)
            numbers.send(number);
        EXPECT_EQ(co_await receiving, 3U);
        EXPECT_THAT(there(slow), ElementsAre(3, 4));
    });
}

TEST_P(broadcast_test, the_last_sender_ends_it) {
    run([]() -> task<> {
        std::optional<broadcast<int>> first{4};
        std::optional<broadcast<int>> second{*first};
        auto waiting = spawn(all_of<int>(first->subscribe()));
        auto late = first->subscribe();
        co_await turns(2);
        first->send(1);
        first.reset();
        second->send(2);
        co_await turns(2);
        EXPECT_FALSE(waiting.done());
        second.reset();
        EXPECT_THAT(co_await waiting, ElementsAre(1, 2));
        EXPECT_THAT(co_await all_of<int>(std::move(late)), ElementsAre(1, 2));
    });
}

TEST_P(broadcast_test, after_a_close_nothing_is_sent) {
    broadcast<int> numbers{4};
    auto copy = numbers;
    auto receiver = numbers.subscribe();
    EXPECT_EQ(error_of(receiver.try_receive()), std::errc::operation_would_block);
    numbers.send(1);
    copy.close();
    EXPECT_EQ(numbers.send(2), 0U);
    EXPECT_EQ(receiver.try_receive().value_or(0), 1);
    EXPECT_EQ(error_of(receiver.try_receive()), errc::end_of_stream);
    EXPECT_EQ(error_of(numbers.subscribe().try_receive()), errc::end_of_stream);
}

TEST_P(broadcast_test, a_stop_or_a_deadline_takes_no_value) {
    run([]() -> task<> {
        broadcast<int> numbers{4};
        auto receiver = numbers.subscribe();
        EXPECT_EQ(error_of(co_await with_timeout(receiver.receive(), 1ms)),
                  errc::deadline_exceeded);

        auto stopped = spawn(
            [&]() -> task<std::error_code> { co_return error_of(co_await receiver.receive()); });
        co_await turns(2);
        stopped.request_stop();
        numbers.send(1);
        EXPECT_EQ(co_await stopped, canceled);
        EXPECT_EQ((co_await receiver.receive()).value_or(0), 1);
    });
}

TEST_P(broadcast_test, a_value_that_has_come_beats_a_stop) {
    run([]() -> task<> {
        broadcast<int> numbers{4};
        auto receiver = numbers.subscribe();
        auto receiving =
            spawn([&]() -> task<int> { co_return (co_await receiver.receive()).value_or(-1); });
        co_await turns(2);
        numbers.send(7);
        receiving.request_stop();
        EXPECT_EQ(co_await receiving, 7);
    });
}

TEST_P(broadcast_test, a_stopped_scope_is_refused) {
    run([]() -> task<> {
        broadcast<int> numbers{4};
        auto receiver = numbers.subscribe();
        numbers.send(1);
        auto stopped = spawn([&]() -> task<> {
            EXPECT_FALSE(co_await async_sleep(1h));
            EXPECT_EQ(error_of(co_await receiver.receive()), canceled);
        });
        co_await turns(2);
        stopped.request_stop();
        co_await stopped;
        EXPECT_EQ((co_await receiver.receive()).value_or(0), 1);
    });
}

TEST_P(broadcast_test, receives_without_waiting_are_budgeted) {
    run([]() -> task<> {
        broadcast<int> numbers{1};
        auto receiver = numbers.subscribe();
        bool other = false;
        auto handle = spawn([&]() -> task<> {
            other = true;
            co_return;
        });
        while (!other) {
            numbers.send(1);
            EXPECT_TRUE(co_await receiver.receive());
        }
        co_await handle;
    });
}

TEST_P(broadcast_test, a_value_lives_until_all_have_read_it) {
    broadcast<std::shared_ptr<int>> values{4};
    auto first = values.subscribe();
    auto second = values.subscribe();
    auto third = values.subscribe();
    const auto value = std::make_shared<int>(1);
    values.send(value);
    EXPECT_TRUE(first.try_receive());
    EXPECT_EQ(value.use_count(), 2);
    {
        const auto gone = std::move(second);
    }
    EXPECT_EQ(value.use_count(), 2);
    EXPECT_TRUE(third.try_receive());
    EXPECT_EQ(value.use_count(), 1);
}

TEST_P(broadcast_test, a_receiver_that_goes_releases_what_only_it_kept) {
    broadcast<std::shared_ptr<int>> values{2};
    std::optional receiver{values.subscribe()};
    const auto value = std::make_shared<int>(1);
    for (int each = 0; each < 3; ++each)
        values.send(value);
    EXPECT_EQ(value.use_count(), 3);
    receiver.reset();
    EXPECT_EQ(value.use_count(), 1);
    auto next = values.subscribe();
    values.send(value);
    EXPECT_EQ(next.try_receive().value_or(nullptr), value);
}

TEST_P(broadcast_test, a_receiver_may_be_moved) {
    broadcast<int> numbers{4};
    auto first = numbers.subscribe();
    numbers.send(1);
    auto second = std::move(first);
    EXPECT_THAT(there(second), ElementsAre(1));
    auto third = numbers.subscribe();
    numbers.send(2);
    numbers.send(3);
    EXPECT_THAT(there(third), ElementsAre(2, 3));
    third = std::move(second);
    EXPECT_EQ(numbers.receivers(), 1U);
    EXPECT_THAT(there(third), ElementsAre(2, 3));
}

struct refuses_copies {
    explicit refuses_copies(int* allowed)
        : allowed_{allowed} {}
    refuses_copies(const refuses_copies& other)
        : allowed_{other.allowed_} {
        if ((*allowed_)-- == 0) throw std::runtime_error{"no copy"};
    }
    refuses_copies(refuses_copies&&) noexcept = default;

    int* allowed_;
};

TEST_P(broadcast_test, a_copy_that_throws_takes_no_value) {
    run([]() -> task<> {
        int allowed = 0;
        broadcast<refuses_copies> values{4};
        auto first = values.subscribe();
        auto second = values.subscribe();
        values.send(refuses_copies{&allowed});
        bool thrown = false;
        try {
            (void)co_await first.receive();
        } catch (const std::runtime_error&) {
            thrown = true;
        }
        EXPECT_TRUE(thrown);
        allowed = 1;
        EXPECT_TRUE(co_await first.receive());
        EXPECT_EQ(error_of(first.try_receive()), std::errc::operation_would_block);
        EXPECT_TRUE(second.try_receive()); // moved: it is the last
    });
}

struct sends_at_its_end {
    explicit sends_at_its_end(std::function<void()> send)
        : send_{std::make_shared<std::function<void()>>(std::move(send))} {}
    sends_at_its_end(const sends_at_its_end&) = default;
    sends_at_its_end(sends_at_its_end&&) noexcept = default;
    ~sends_at_its_end() {
        if (send_) (*send_)();
    }

    std::shared_ptr<std::function<void()>> send_;
};

TEST_P(broadcast_test, values_are_destroyed_without_the_lock) {
    int destroyed = 0;
    broadcast<sends_at_its_end> values{1};
    std::optional receiver{values.subscribe()};
    for (int each = 0; each < 3; ++each) {
        values.send(sends_at_its_end{[&] {
            ++destroyed;
            EXPECT_LE(values.receivers(), 1U);
        }});
    }
    EXPECT_GE(destroyed, 2);
    receiver.reset();
    EXPECT_GE(destroyed, 3);
}

TEST_P(broadcast_test, a_loop_that_ends_while_it_waits_misses_nothing) {
    if (IsSkipped()) return;
    broadcast<int> numbers{4};
    auto receiver = numbers.subscribe();
    std::vector<std::error_code> errors;
    loop().spawn([&]() -> task<> {
        for (int tries = 0; tries < 3; ++tries)
            errors.push_back(error_of(co_await receiver.receive()));
    });
    for (int turn = 0; turn < 3; ++turn)
        loop().poll();

    destroy_loop();
    EXPECT_EQ(numbers.send(1), 1U);

    EXPECT_EQ(errors.size(), 3U);
    EXPECT_THAT(there(receiver), ElementsAre(1));
}

/// Ignores its stop for ever.
TEST_P(broadcast_test, a_stubborn_task_does_not_keep_a_loop_from_ending) {
    if (IsSkipped()) return;
    broadcast<int> numbers{4};
    loop().spawn([&]() -> task<> {
        auto receiver = numbers.subscribe();
        for (;;)
            (void)co_await receiver.receive();
    });
    for (int turn = 0; turn < 3; ++turn)
        loop().poll();

    destroy_loop();

    EXPECT_EQ(numbers.send(1), 0U);
}

TEST_P(broadcast_test, receivers_and_senders_go_in_any_order) {
    run([]() -> task<> {
        std::optional<broadcast<int>> numbers{4};
        auto first = numbers->subscribe();
        std::optional second{numbers->subscribe()};
        numbers->send(1);
        second.reset();
        numbers.reset();
        EXPECT_EQ((co_await first.receive()).value_or(0), 1);
        EXPECT_EQ(error_of(co_await first.receive()), errc::end_of_stream);
    });
}

task<result<int>> sum_of_two(broadcast<int>::receiver& from) {
    const int first = co_await or_return(from.receive());
    const int second = co_await or_return(from.receive());
    co_return first + second;
}

TEST_P(broadcast_test, an_error_can_be_passed_on) {
    run([]() -> task<> {
        broadcast<int> numbers{2};
        auto receiver = numbers.subscribe();
        numbers.send(1);
        numbers.send(2);
        EXPECT_EQ((co_await sum_of_two(receiver)).value_or(0), 3);
        for (int number = 0; number < 3; ++number)
            numbers.send(number);
        EXPECT_EQ(error_of(co_await sum_of_two(receiver)), errc::queue_full);
    });
}

/// Senders on threads; receivers on loops with time limits, which come and go.
TEST_P(broadcast_test, each_value_is_received_or_missed_exactly_once) {
    if (IsSkipped()) return;
    constexpr int per_sender = 2'000;
    constexpr int senders = 2;
    for (const std::size_t capacity : {std::size_t{1}, std::size_t{16}, std::size_t{100'000}}) {
        std::optional<broadcast<std::pair<int, int>>> numbers{capacity};
        auto body = [&](broadcast<std::pair<int, int>>::receiver from, bool limited) -> task<> {
            std::uint64_t received = 0;
            std::uint64_t missed = 0;
            std::array<int, senders> last{-1, -1};
            for (;;) {
                std::optional<std::expected<std::pair<int, int>, broadcast_error>> got;
                if (limited)
                    got.emplace(co_await with_timeout(from.receive(), 10us));
                else
                    got.emplace(co_await from.receive());
                const auto& value = *got;
                if (value) {
                    EXPECT_GT(value->second, last[static_cast<std::size_t>(value->first)]);
                    last[static_cast<std::size_t>(value->first)] = value->second;
                    ++received;
                } else if (value.error() == errc::queue_full) {
                    EXPECT_NE(value.error().missed, 0U);
                    missed += value.error().missed;
                } else if (value.error() != errc::deadline_exceeded) {
                    EXPECT_EQ(value.error(), errc::end_of_stream);
                    break;
                }
            }
            EXPECT_EQ(received + missed, std::uint64_t{per_sender * senders});
            EXPECT_EQ(from.missed(), missed);
            EXPECT_TRUE(missed == 0 || capacity < per_sender * senders);
        };

        std::atomic<bool> over = false;
        std::vector<std::thread> threads;
        for (const bool limited : {false, true}) {
            threads.emplace_back([&, limited, first = numbers->subscribe(),
                                  second = numbers->subscribe()]() mutable {
                auto both = [&]() -> task<> {
                    co_await when_all(body(std::move(first), limited),
                                      body(std::move(second), !limited));
                };
                simplenet::run(both(), options());
            });
        }
        threads.emplace_back([&, sender = *numbers]() mutable { // comes and goes
            while (!over) {
                auto short_lived = or_throw(event_loop::create(options()));
                for (int each = 0; each < 3; ++each) {
                    short_lived.spawn([&]() -> task<> {
                        auto receiver = sender.subscribe();
                        while (co_await receiver.receive()) {
                        }
                    });
                }
                short_lived.run_for(200us);
            }
        });
        std::vector<std::thread> sending;
        for (int which = 0; which < senders; ++which) {
            sending.emplace_back([which, sender = *numbers]() mutable {
                for (int number = 0; number < per_sender; ++number)
                    sender.send({which, number});
            });
        }
        for (std::thread& each : sending)
            each.join();
        over = true;
        numbers.reset();
        for (std::thread& each : threads)
            each.join();
    }
}

using broadcast_death_test = broadcast_test;

TEST_P(broadcast_death_test, one_receiver_is_for_one_task) {
    if (IsSkipped()) return;
    EXPECT_DEATH(run([]() -> task<> {
                     broadcast<int> numbers{1};
                     auto receiver = numbers.subscribe();
                     spawn([&]() -> task<> { (void)co_await receiver.receive(); });
                     co_await turns(2);
                     (void)co_await receiver.receive();
                 }),
                 "used by a second task");
}

TEST_P(broadcast_death_test, destroying_a_receiver_under_its_task_is_a_violation) {
    if (IsSkipped()) return;
    EXPECT_DEATH(run([]() -> task<> {
                     broadcast<int> numbers{1};
                     std::optional receiver{numbers.subscribe()};
                     spawn([&]() -> task<> { (void)co_await receiver->receive(); });
                     co_await turns(2);
                     receiver.reset();
                 }),
                 "while a task waited on it");
}

TEST_P(broadcast_death_test, a_capacity_of_nothing_is_a_violation) {
    if (IsSkipped()) return;
    EXPECT_DEATH(broadcast<int>{0}, "keeps at least one value");
}

TEST_P(broadcast_death_test, using_one_that_was_moved_from_is_a_violation) {
    if (IsSkipped()) return;
    broadcast<int> numbers{1};
    auto moved = std::move(numbers);
    EXPECT_DEATH(numbers.send(1),
                 "after it had been moved from"); // NOLINT(bugprone-use-after-move)
}

INSTANTIATE_TEST_SUITE_P(backends, broadcast_test, all_backends, backend_name);
INSTANTIATE_TEST_SUITE_P(backends, broadcast_death_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
