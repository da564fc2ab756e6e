#include <simplenet/threads/watch.hpp>

#include "support/backend_test.hpp"
#include "support/background_loop.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"

#include <simplenet/runtime/run.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <functional>
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

class watch_test : public backend_test {
protected:
    [[nodiscard]] static loop_options options() { return {.backend = GetParam()}; }
};

TEST_P(watch_test, has_its_initial_value) {
    const watch<std::string> name{"first"};
    EXPECT_EQ(name.get(), "first");
    auto receiver = name.subscribe();
    EXPECT_EQ(receiver.get(), "first");
    EXPECT_FALSE(receiver.has_changed());
}

TEST_P(watch_test, changed_waits_for_the_next_value) {
    run([]() -> task<> {
        watch<int> number{1};
        auto receiver = number.subscribe();
        bool seen = false;
        auto waiting = spawn([&]() -> task<int> {
            EXPECT_TRUE(co_await receiver.changed());
            seen = true;
            co_return receiver.get();
        });
        co_await turns(3);
        EXPECT_FALSE(seen);
        number.set(2);
        EXPECT_EQ(co_await waiting, 2);
    });
}

TEST_P(watch_test, values_between_two_looks_are_one_change) {
    run([]() -> task<> {
        watch<int> number{0};
        auto receiver = number.subscribe();
        for (int value = 1; value <= 3; ++value)
            number.set(value);
        EXPECT_TRUE(receiver.has_changed());
        EXPECT_TRUE(co_await receiver.changed());
        EXPECT_EQ(receiver.get(), 3);
        EXPECT_EQ(error_of(co_await with_timeout(receiver.changed(), 1ms)),
                  errc::deadline_exceeded);
    });
}

TEST_P(watch_test, a_value_that_was_got_is_no_change) {
    run([]() -> task<> {
        watch<int> number{0};
        auto receiver = number.subscribe();
        number.set(1);
        EXPECT_TRUE(co_await receiver.changed());
        number.set(2);
        EXPECT_EQ(receiver.get(), 2);
        EXPECT_FALSE(receiver.has_changed());
        number.set(2);
        EXPECT_TRUE(receiver.has_changed()) << "an equal value is a change too";
    });
}

TEST_P(watch_test, each_receiver_sees_each_change) {
    run([]() -> task<> {
        watch<int> number{0};
        auto first = number.subscribe();
        auto second = number.subscribe();
        number.set(1);
        auto late = number.subscribe();
        EXPECT_TRUE(co_await first.changed());
        EXPECT_TRUE(co_await second.changed());
        EXPECT_FALSE(late.has_changed());
        auto copy = first;
        number.set(2);
        EXPECT_TRUE(co_await first.changed());
        EXPECT_TRUE(co_await copy.changed());
    });
}

TEST_P(watch_test, update_changes_the_value_in_place) {
    watch<std::vector<int>> numbers{{1}};
    auto receiver = numbers.subscribe();
    numbers.update([](std::vector<int>& all) { all.push_back(2); });
    EXPECT_TRUE(receiver.has_changed());
    EXPECT_THAT(receiver.get(), ElementsAre(1, 2));
}

TEST_P(watch_test, an_update_that_throws_is_a_change) {
    watch<int> number{0};
    auto receiver = number.subscribe();
    EXPECT_THROW(number.update([](int& value) {
        value = 1;
        throw std::runtime_error{"half done"};
    }),
                 std::runtime_error);
    EXPECT_TRUE(receiver.has_changed());
    EXPECT_EQ(receiver.get(), 1);
}

TEST_P(watch_test, after_the_last_sender_the_last_value_is_seen) {
    run([]() -> task<> {
        std::optional<watch<int>> first{0};
        std::optional<watch<int>> second{*first};
        auto receiver = first->subscribe();
        auto waiting = spawn([other = first->subscribe()]() mutable -> task<std::error_code> {
            co_return error_of(co_await other.changed());
        });
        co_await turns(2);
        first.reset();
        co_await turns(2);
        EXPECT_FALSE(waiting.done());
        second.reset();
        EXPECT_EQ(co_await waiting, errc::end_of_stream);
        EXPECT_EQ(error_of(co_await receiver.changed()), errc::end_of_stream);
        EXPECT_EQ(receiver.get(), 0);
    });
}

TEST_P(watch_test, a_change_before_the_end_is_seen_before_the_end) {
    run([]() -> task<> {
        std::optional<watch<int>> number{0};
        auto receiver = number->subscribe();
        number->set(1);
        number.reset();
        EXPECT_TRUE(co_await receiver.changed());
        EXPECT_EQ(receiver.get(), 1);
        EXPECT_EQ(error_of(co_await receiver.changed()), errc::end_of_stream);
    });
}

TEST_P(watch_test, a_stop_sees_nothing) {
    run([]() -> task<> {
        watch<int> number{0};
        auto receiver = number.subscribe();
        auto stopped = spawn(
            [&]() -> task<std::error_code> { co_return error_of(co_await receiver.changed()); });
        co_await turns(2);
        stopped.request_stop();
        number.set(1);
        EXPECT_EQ(co_await stopped, canceled);
        EXPECT_TRUE(receiver.has_changed());
    });
}

TEST_P(watch_test, a_change_that_has_come_beats_a_stop) {
    run([]() -> task<> {
        watch<int> number{0};
        auto receiver = number.subscribe();
        auto waiting = spawn(
            [&]() -> task<std::error_code> { co_return error_of(co_await receiver.changed()); });
        co_await turns(2);
        number.set(1);
        waiting.request_stop();
        EXPECT_EQ(co_await waiting, std::error_code{});
    });
}

TEST_P(watch_test, a_stopped_scope_is_refused) {
    run([]() -> task<> {
        watch<int> number{0};
        auto receiver = number.subscribe();
        number.set(1);
        auto stopped = spawn([&]() -> task<> {
            EXPECT_FALSE(co_await async_sleep(1h));
            EXPECT_EQ(error_of(co_await receiver.changed()), canceled);
        });
        co_await turns(2);
        stopped.request_stop();
        co_await stopped;
        EXPECT_TRUE(receiver.has_changed());
    });
}

TEST_P(watch_test, a_loop_that_ends_while_it_waits_sees_nothing) {
    if (IsSkipped()) return;
    watch<int> number{0};
    auto receiver = number.subscribe();
    loop().spawn([&]() -> task<> {
        for (;;) // a stubborn task
            (void)co_await receiver.changed();
    });
    for (int turn = 0; turn < 3; ++turn)
        loop().poll();

    destroy_loop();
    number.set(1);

    EXPECT_TRUE(receiver.has_changed());
    EXPECT_EQ(receiver.get(), 1);
}

struct looks_at_its_end {
    std::function<void()> look = [] {};
    std::shared_ptr<int> end = std::make_shared<int>(0);

    looks_at_its_end() = default;
    looks_at_its_end(const looks_at_its_end&) = default;
    looks_at_its_end(looks_at_its_end&&) noexcept = default;
    looks_at_its_end& operator=(const looks_at_its_end&) = default;
    looks_at_its_end& operator=(looks_at_its_end&&) noexcept = default;
    ~looks_at_its_end() {
        if (look) look();
    }
};

TEST_P(watch_test, the_old_value_is_destroyed_without_the_lock) {
    int looked = 0;
    watch<looks_at_its_end> value{{}};
    auto receiver = value.subscribe();
    value.update([&](looks_at_its_end& it) {
        it.look = [&] {
            ++looked;
            (void)receiver.has_changed();
        };
    });
    value.set({});
    EXPECT_GE(looked, 1);
}

/// Writers on threads, receivers on loops that come and go: nobody goes back in time, and everybody
/// sees the last value.
TEST_P(watch_test, receivers_on_all_loops_see_the_last_value) {
    if (IsSkipped()) return;
    constexpr int rounds = 3'000;
    std::optional<watch<std::pair<int, int>>> state{std::in_place, std::pair{0, 0}};
    std::atomic<bool> over = false;
    std::vector<std::thread> threads;
    for (const bool limited : {false, true}) {
        threads.emplace_back([&, limited, receiver = state->subscribe()]() mutable {
            auto body = [&]() -> task<> {
                int last = 0;
                for (;;) {
                    result<> changed;
                    if (limited)
                        changed = co_await with_timeout(receiver.changed(), 10us);
                    else
                        changed = co_await receiver.changed();
                    if (!changed && changed.error() == errc::deadline_exceeded) continue;
                    const auto [left, right] = receiver.get();
                    EXPECT_EQ(left, -right) << "a value is replaced as a whole";
                    EXPECT_GE(left, last);
                    last = left;
                    if (!changed) break;
                }
                EXPECT_EQ(last, 2 * rounds);
            };
            simplenet::run(body(), options());
        });
    }
    threads.emplace_back([&, sender = *state]() mutable { // comes and goes
        while (!over) {
            auto short_lived = or_throw(event_loop::create(options()));
            for (int each = 0; each < 3; ++each) {
                short_lived.spawn([&]() -> task<> {
                    auto receiver = sender.subscribe();
                    while (co_await receiver.changed()) {
                    }
                });
            }
            short_lived.run_for(200us);
        }
    });
    std::vector<std::thread> writing;
    for (int which = 0; which < 2; ++which) {
        writing.emplace_back([sender = *state]() mutable {
            for (int round = 0; round < rounds; ++round) {
                sender.update([](std::pair<int, int>& value) {
                    ++value.first;
                    --value.second;
                });
            }
        });
    }
    for (std::thread& each : writing)
        each.join();
    over = true;
    state.reset();
    for (std::thread& each : threads)
        each.join();
}

using watch_death_test = watch_test;

TEST_P(watch_death_test, one_receiver_is_for_one_task) {
    if (IsSkipped()) return;
    EXPECT_DEATH(run([]() -> task<> {
                     watch<int> number{1};
                     auto receiver = number.subscribe();
                     spawn([&]() -> task<> { (void)co_await receiver.changed(); });
                     co_await turns(2);
                     (void)co_await receiver.changed();
                 }),
                 "used by a second task");
}

TEST_P(watch_death_test, destroying_a_receiver_under_its_task_is_a_violation) {
    if (IsSkipped()) return;
    EXPECT_DEATH(run([]() -> task<> {
                     watch<int> number{1};
                     std::optional receiver{number.subscribe()};
                     spawn([&]() -> task<> { (void)co_await receiver->changed(); });
                     co_await turns(2);
                     receiver.reset();
                 }),
                 "while a task waited on it");
}

INSTANTIATE_TEST_SUITE_P(backends, watch_test, all_backends, backend_name);
INSTANTIATE_TEST_SUITE_P(backends, watch_death_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
