#include <simplenet/time/deadline.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/stream/transfer.hpp>

#include <array>
#include <chrono>
#include <concepts>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

template <class Awaitable>
using limited = detail::await_result<decltype(with_timeout(std::declval<Awaitable>(), 1s))>;
template <class Awaitable>
using ended_by =
    detail::await_result<decltype(with_deadline(std::declval<Awaitable>(), clock::time_point{}))>;

// A type that can hold an error stays as it is; any other becomes a result.
static_assert(std::same_as<limited<detail::sleep_operation>, result<>>);
static_assert(
    std::same_as<limited<decltype(std::declval<local_stream&>().write_some(const_buffer{}))>,
                 result<std::size_t>>);
static_assert(
    std::same_as<limited<decltype(async_write_all(std::declval<local_stream&>(), const_buffer{}))>,
                 transfer_result>);
static_assert(std::same_as<limited<task<result<int>>>, result<int>>);
static_assert(std::same_as<limited<task<transfer_result>>, transfer_result>);
static_assert(std::same_as<limited<task<int>>, result<int>>);
static_assert(std::same_as<limited<task<>>, result<>>);
static_assert(std::same_as<limited<task<std::string&>>, result<std::string>>);
static_assert(std::same_as<limited<task<std::expected<int, std::string>>>,
                           result<std::expected<int, std::string>>>);
static_assert(std::same_as<limited<detail::group_join>, result<>>);
static_assert(std::same_as<ended_by<task<int>>, result<int>>);
static_assert(std::same_as<ended_by<task<transfer_result>>, transfer_result>);

class deadline_test : public backend_test {
protected:
    [[nodiscard]] std::size_t timers() { return loop().metrics().timers; }
};

task<> wait_for_ever() {
    static_cast<void>(co_await async_sleep(1h));
}
task<result<int>> sleep_then(int value, clock::duration delay) {
    if (auto slept = co_await async_sleep(delay); !slept) co_return fail(slept);
    co_return value;
}

// --- kinds of awaitables

TEST_P(deadline_test, stops_an_operation_that_waits) {
    run([]() -> task<> {
        auto [ours, theirs] = or_throw(local_stream::pair());
        std::array<std::byte, 8> buffer;
        const auto start = clock::now();

        const auto count = co_await with_timeout(ours.read_some(buffer), 2ms);

        EXPECT_EQ(error_of(count), errc::deadline_exceeded);
        EXPECT_EQ(error_of(count), std::errc::timed_out) << "as a condition";
        EXPECT_GE(clock::now() - start, 2ms);
    });
}

TEST_P(deadline_test, says_how_much_moved_before_it_stopped_a_transfer) {
    run([]() -> task<> {
        auto [ours, theirs] = or_throw(local_stream::pair());
        std::array<std::byte, 8> buffer;
        EXPECT_TRUE(co_await theirs.write_some("abc"));

        const auto whole = co_await with_timeout(async_read_exact(ours, buffer), 2ms);

        EXPECT_EQ(error_of(whole), errc::deadline_exceeded);
        EXPECT_EQ(whole.error().transferred, 3U);
    });
}

TEST_P(deadline_test, stops_every_kind_of_wait_of_a_task) {
    run([]() -> task<> {
        auto deep = [](auto& self, int depth) -> task<result<int>> {
            if (depth == 0) co_return co_await sleep_then(1, 1h);
            co_return co_await self(self, depth - 1);
        };
        EXPECT_EQ(error_of(co_await with_timeout(deep(deep, 10), 1ms)), errc::deadline_exceeded);
    });
}

TEST_P(deadline_test, stops_every_awaitable_of_when_all_and_gather) {
    run([]() -> task<> {
        auto both = co_await with_timeout(when_all(sleep_then(1, 1h), sleep_then(2, 1h)), 1ms);
        EXPECT_EQ(error_of(both), errc::deadline_exceeded);

        auto gathered = co_await with_timeout(gather(sleep_then(1, 1h), sleep_then(2, 1h)), 1ms);
        EXPECT_EQ(error_of(gathered), errc::deadline_exceeded);
    });
}

TEST_P(deadline_test, stops_the_children_of_a_group) {
    int stopped = 0;
    run([&]() -> task<> {
        auto child = [&]() -> task<> {
            stopped += error_of(co_await async_sleep(1h)) == errc::deadline_exceeded;
        };
        auto body = [&](task_group& group) -> task<> {
            group.spawn(child());
            group.spawn(child());
            co_return;
        };
        EXPECT_EQ(error_of(co_await with_timeout(with_group(body), 1ms)), errc::deadline_exceeded);
    });
    EXPECT_EQ(stopped, 2);
}

TEST_P(deadline_test, stops_and_joins_the_child_behind_a_join_handle) {
    run([]() -> task<> {
        auto handle = spawn(sleep_then(1, 1h));

        EXPECT_EQ(error_of(co_await with_timeout(handle.operator co_await(), 1ms)),
                  errc::deadline_exceeded);

        EXPECT_TRUE(handle.done());
    });
}

TEST_P(deadline_test, the_stopped_task_is_joined) {
    run([]() -> task<> {
        bool ended = false;
        auto lingers = [&]() -> task<> {
            static_cast<void>(co_await async_sleep(1h));
            for (int turn = 0; turn < 10; ++turn)
                co_await yield();
            ended = true;
        };
        EXPECT_EQ(error_of(co_await with_timeout(lingers(), 1ms)), errc::deadline_exceeded);
        EXPECT_TRUE(ended);
    });
}

TEST_P(deadline_test, holds_for_every_later_operation_of_the_task) {
    run([]() -> task<> {
        auto stubborn = []() -> task<int> {
            int refused = 0;
            for (int attempt = 0; attempt < 5; ++attempt)
                refused += error_of(co_await async_sleep(1h)) == errc::deadline_exceeded;
            EXPECT_TRUE(co_await this_task::stop_requested());
            EXPECT_EQ(refused, 5);
            co_return refused;
        };
        EXPECT_FALSE(co_await with_timeout(stubborn(), 1ms));
        EXPECT_FALSE(co_await this_task::stop_requested()) << "the limit ends with its await";
        EXPECT_TRUE(co_await async_sleep(1us));
    });
}

// --- success

TEST_P(deadline_test, returns_a_value_that_was_in_time) {
    run([this]() -> task<> {
        EXPECT_EQ(co_await with_timeout(sleep_then(42, 1ms), 1h), result<int>{42});
        EXPECT_TRUE(co_await with_timeout(async_sleep(1us), 1h));
        auto text = []() -> task<std::unique_ptr<int>> {
            co_await yield();
            co_return std::make_unique<int>(7);
        };
        EXPECT_EQ(**co_await with_timeout(text(), 1h), 7);
        EXPECT_EQ(timers(), 0U) << "the limits are cancelled";
    });
}

TEST_P(deadline_test, a_success_after_the_limit_stays_a_success) {
    run([]() -> task<> {
        auto succeeds_all_the_same = []() -> task<result<int>> {
            EXPECT_EQ(error_of(co_await async_sleep(1h)), errc::deadline_exceeded);
            co_return 42;
        };
        EXPECT_EQ(co_await with_timeout(succeeds_all_the_same(), 1ms), result<int>{42});
    });
}

TEST_P(deadline_test, a_plain_value_that_came_too_late_is_dropped) {
    run([]() -> task<> {
        EXPECT_EQ(error_of(co_await with_timeout(stopped_or(42), 1ms)), errc::deadline_exceeded);
        EXPECT_EQ(error_of(co_await with_timeout(wait_for_ever(), 1ms)), errc::deadline_exceeded);
    });
}

TEST_P(deadline_test, available_bytes_beat_a_limit_that_has_passed) {
    run([]() -> task<> {
        auto [ours, theirs] = or_throw(local_stream::pair());
        std::array<std::byte, 8> buffer;
        for (int round = 0; round < 20; ++round) {
            // The first read finds nothing, so that the next one has to wait for the loop.
            EXPECT_FALSE(co_await with_timeout(ours.read_some(buffer), 0ms));
            EXPECT_TRUE(co_await theirs.write_some("x"));

            const auto count = co_await with_deadline(ours.read_some(buffer), clock::now() - 1s);
            EXPECT_EQ(count, result<std::size_t>{1});
        }
    });
}

TEST_P(deadline_test, an_expired_limit_stops_an_operation_that_has_to_wait) {
    run([]() -> task<> {
        for (const auto limit : {0ns, -1ns, std::chrono::nanoseconds::min()}) {
            EXPECT_EQ(error_of(co_await with_timeout(async_sleep(1h), limit)),
                      errc::deadline_exceeded);
            EXPECT_EQ(error_of(co_await with_timeout(wait_for_ever(), limit)),
                      errc::deadline_exceeded);
        }
        EXPECT_EQ(error_of(co_await with_deadline(async_sleep(1h), clock::now() - 1h)),
                  errc::deadline_exceeded);
        EXPECT_EQ(error_of(co_await with_deadline(async_sleep(1h), clock::time_point{})),
                  errc::deadline_exceeded);
    });
}

TEST_P(deadline_test, an_expired_limit_refuses_no_operation_that_need_not_wait) {
    run([]() -> task<> {
        auto immediate = []() -> task<int> { co_return 42; };
        EXPECT_EQ(co_await with_timeout(immediate(), -1h), result<int>{42});
        auto [ours, theirs] = or_throw(local_stream::pair());
        EXPECT_TRUE(co_await with_deadline(ours.write_some("x"), clock::time_point{}));
    });
}

TEST_P(deadline_test, a_limit_beyond_the_clock_never_passes) {
    run([]() -> task<> {
        EXPECT_TRUE(co_await with_timeout(async_sleep(1ms), std::chrono::hours::max()));
        EXPECT_TRUE(co_await with_timeout(async_sleep(1ms), std::chrono::duration<double>{1e300}));
        EXPECT_TRUE(co_await with_timeout(async_sleep(1ms), std::chrono::years{100'000}));
        EXPECT_TRUE(co_await with_deadline(async_sleep(1ms), clock::time_point::max()));
    });
}

TEST_P(deadline_test, an_exception_passes_through_before_and_after_the_limit) {
    run([]() -> task<> {
        auto throws = [](clock::duration delay) -> task<int> {
            static_cast<void>(co_await async_sleep(delay));
            throw std::runtime_error{"through"};
        };
        for (const auto delay : {clock::duration{1us}, clock::duration{1h}}) {
            std::string what;
            try {
                static_cast<void>(co_await with_timeout(throws(delay), 2ms));
            } catch (const std::runtime_error& thrown) {
                what = thrown.what();
            }
            EXPECT_EQ(what, "through");
        }
        EXPECT_TRUE(co_await async_sleep(1us)) << "the scope of the limit was left";
    });
}

// --- nested limits, and other stops

TEST_P(deadline_test, the_inner_limit_wins_if_it_ends_first) {
    run([]() -> task<> {
        auto inner = []() -> task<result<int>> {
            EXPECT_EQ(error_of(co_await with_timeout(async_sleep(1h), 1ms)),
                      errc::deadline_exceeded);
            EXPECT_FALSE(co_await this_task::stop_requested());
            co_return co_await sleep_then(42, 1us);
        };
        EXPECT_EQ(co_await with_timeout(inner(), 1h), result<int>{42});
    });
}

TEST_P(deadline_test, the_outer_limit_wins_if_it_ends_first) {
    run([]() -> task<> {
        auto inner = []() -> task<result<int>> {
            EXPECT_EQ(error_of(co_await with_timeout(async_sleep(1h), 1h)),
                      errc::deadline_exceeded);
            EXPECT_TRUE(co_await this_task::stop_requested());
            co_return co_await sleep_then(42, 1us);
        };
        EXPECT_EQ(error_of(co_await with_timeout(inner(), 1ms)), errc::deadline_exceeded);
    });
}

TEST_P(deadline_test, only_the_limit_that_passed_replaces_a_plain_value) {
    run([]() -> task<> {
        // The inner limit turns the value into an error, which the outer one passes on.
        auto nested = with_timeout(with_timeout(stopped_or(1), 1ms), 1h);
        const auto outcome = co_await std::move(nested);
        static_assert(std::same_as<decltype(outcome), const result<int>>);
        EXPECT_EQ(error_of(outcome), errc::deadline_exceeded);

        // The outer limit passes first, but the inner one returns its value, and so does the outer
        // one.
        EXPECT_EQ(co_await with_timeout(with_timeout(stopped_or(1), 1h), 1ms), result<int>{1});
    });
}

TEST_P(deadline_test, a_stop_from_outside_keeps_its_own_reason) {
    run([]() -> task<> {
        auto body = []() -> task<> {
            const auto outcome = co_await with_timeout(async_sleep(1h), 1h);
            EXPECT_EQ(error_of(outcome), std::errc::operation_canceled);
            EXPECT_EQ(error_of(co_await with_timeout(async_sleep(1h), 1h)),
                      std::errc::operation_canceled)
                << "stopped from the start";
        };
        auto handle = spawn(body());
        co_await yield();
        handle.request_stop();
        co_await handle;
    });
}

TEST_P(deadline_test, the_first_of_stop_and_limit_gives_the_reason) {
    run([]() -> task<> {
        auto body = [](bool& passed) -> task<> {
            auto stubborn = [&]() -> task<result<>> {
                EXPECT_EQ(error_of(co_await async_sleep(1h)), errc::deadline_exceeded);
                passed = true;
                // The stop arrives during these attempts; the reason stays.
                result<> last;
                for (int attempt = 0; attempt < 10; ++attempt) {
                    last = co_await async_sleep(1h);
                    co_await yield();
                }
                co_return last;
            };
            EXPECT_EQ(error_of(co_await with_timeout(stubborn(), 1ms)), errc::deadline_exceeded);
            EXPECT_EQ(error_of(co_await async_sleep(1h)), std::errc::operation_canceled);
        };
        bool passed = false;
        auto handle = spawn(body(passed));
        while (!passed)
            co_await yield();
        handle.request_stop();
        co_await handle;
    });
}

TEST_P(deadline_test, a_shield_keeps_an_outer_limit_out_but_not_an_inner_one) {
    run([]() -> task<> {
        auto inner = []() -> task<result<int>> {
            EXPECT_TRUE(co_await shield(async_sleep(3ms)));
            EXPECT_EQ(error_of(co_await shield(with_timeout(async_sleep(1h), 1ms))),
                      errc::deadline_exceeded);
            co_return co_await sleep_then(1, 1us);
        };
        EXPECT_EQ(error_of(co_await with_timeout(inner(), 1ms)), errc::deadline_exceeded);
    });
}

TEST_P(deadline_test, a_group_made_inside_moves_out_of_reach_of_the_limit) {
    int ended = 0;
    run([&]() -> task<> {
        std::optional<task_group> group;
        auto child = [&]() -> task<> {
            EXPECT_TRUE(co_await async_sleep(5ms)) << "the limit had ended without passing";
            ++ended;
        };
        auto inner = [&]() -> task<> {
            group.emplace();
            group->spawn(child());
            co_return;
        };
        EXPECT_TRUE(co_await with_timeout(inner(), 2ms));
        EXPECT_TRUE(co_await group->join());
    });
    EXPECT_EQ(ended, 1);
}

TEST_P(deadline_test, a_group_that_moved_out_is_stopped_from_there) {
    run([]() -> task<> {
        auto outer = [](bool& joined) -> task<> {
            std::optional<task_group> group;
            auto inner = [&]() -> task<> {
                group.emplace();
                group->spawn(wait_for_ever());
                co_return;
            };
            EXPECT_TRUE(co_await with_timeout(inner(), 1h));
            EXPECT_EQ(error_of(co_await group->join()), std::errc::operation_canceled);
            joined = true;
        };
        bool joined = false;
        auto handle = spawn(outer(joined));
        for (int turn = 0; turn < 5; ++turn)
            co_await yield();
        handle.request_stop();
        co_await handle;
        EXPECT_TRUE(joined);
    });
}

// --- pauses

// The timer must not refuse the second read although all its bytes have arrived.
TEST_P(deadline_test, bytes_that_arrive_while_the_thread_is_busy_beat_the_limit_of_a_task) {
    run([]() -> task<> {
        auto [ours, theirs] = or_throw(local_stream::pair());
        auto read_twice = [&]() -> task<result<>> {
            std::array<std::byte, 2> half;
            for (int each = 0; each < 2; ++each) {
                const auto count = co_await async_read_exact(ours, half);
                if (!count) co_return fail(count);
            }
            co_return result<>{};
        };
        result<> outcome;
        auto reading = [&]() -> task<> { outcome = co_await with_timeout(read_twice(), 20ms); };
        auto handle = spawn(reading());
        co_await turns(3); // the read waits, with its timer
        EXPECT_TRUE(co_await async_write_all(theirs, "four"));
        pass(std::chrono::steady_clock::now() + 50ms);

        co_await handle;
        EXPECT_TRUE(outcome) << outcome.error().message();
    });
}

// A long turn looks like a pause, after which arriving data takes precedence over timers.
TEST_P(deadline_test, turns_that_are_always_long_do_not_delay_the_timers) {
    run([]() -> task<> {
        auto [left, right] = or_throw(local_stream::pair());
        int rounds = 0;
        const auto play = [&rounds](local_stream& side) -> task<> {
            std::array<std::byte, 1> ball;
            while (co_await side.read_some(ball)) {
                ++rounds;
                pass(clock::now() + 30ms);
                if (!co_await side.write_some(ball)) break;
            }
        };
        auto first = spawn(play(left));
        auto second = spawn(play(right));
        EXPECT_TRUE(co_await left.write_some("x"));

        EXPECT_EQ(error_of(co_await with_timeout(async_sleep(1h), 35ms)), errc::deadline_exceeded);
        EXPECT_LT(rounds, 20);
        left.close();
        right.close();
        co_await first;
        co_await second;
    });
}

// --- cost

TEST_P(deadline_test, a_limit_around_an_operation_that_completes_at_once_arms_no_timer) {
    run(
        [this]() -> task<> {
            auto [ours, theirs] = or_throw(local_stream::pair());
            std::array<std::byte, 1> buffer;
            std::size_t most = 0;
            for (int round = 0; round < 100'000; ++round) {
                EXPECT_TRUE(co_await with_timeout(ours.write_some("x"), 1h));
                EXPECT_TRUE(co_await with_timeout(async_read_exact(theirs, buffer), 1h));
                if (round % 1000 == 0) most = std::max(most, timers());
            }
            EXPECT_EQ(most, 0U);
        },
        10 * test_limit);
}

TEST_P(deadline_test, a_hundred_thousand_limits_can_wait_at_once) {
    int exceeded = 0;
    auto limited_wait = [&]() -> task<> {
        exceeded +=
            error_of(co_await with_timeout(async_sleep(1h), 10ms)) == errc::deadline_exceeded;
    };
    run(
        [&]() -> task<> {
            task_group group;
            for (int number = 0; number < 100'000; ++number)
                group.spawn(limited_wait());
            EXPECT_TRUE(co_await group.join());
        },
        10 * test_limit);

    EXPECT_EQ(exceeded, 100'000);
    EXPECT_EQ(timers(), 0U);
}

/// An awaitable that needs memory to start, as read_line() does, and gets none.
struct leaf_without_memory final : detail::suspension {
    using is_leaf = void;
    leaf_without_memory() = default;
    leaf_without_memory(leaf_without_memory&&) = default;
    static bool await_ready() noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise>) {
        throw std::bad_alloc{};
    }
    static result<> await_resume() noexcept { return {}; }
    void on_stop(detail::stop_reason) noexcept override {}
};

// The limit must not promise noexcept, or std::terminate() would be called.
TEST_P(deadline_test, an_exception_at_the_start_of_an_operation_passes_the_limit) {
    run([]() -> task<> {
        bool caught = false;
        try {
            (void)co_await with_timeout(leaf_without_memory{}, 24h);
        } catch (const std::bad_alloc&) {
            caught = true;
        }
        EXPECT_TRUE(caught);
        EXPECT_EQ(event_loop::current()->metrics().timers, 0U);
        EXPECT_TRUE(co_await with_timeout(async_sleep(1ms), 24h)); // the scope is intact
    });
}

// Two buffers of the pool are received ahead, and dropped with the loop. The bytes that follow them
// in the socket are not the next ones.
TEST_P(deadline_test, a_read_whose_limit_has_passed_skips_no_bytes_at_the_end_of_the_loop) {
    const std::string sent = noise(60'000);
    for (std::size_t turns = 1; turns < 20; ++turns) {
        remake_loop({.receive_pool = 32 * 1024});
        auto [ours, theirs] = connect_raw();
        std::string got;
        auto read = [&]() -> task<> {
            char byte = 0;
            while (true) { // the inline turns end, and the limit passes
                const auto count = co_await with_timeout(ours.read_some({&byte, 1}), 0ns);
                if (count) {
                    got.push_back(byte);
                } else if (count.error() != errc::deadline_exceeded) {
                    break;
                }
            }
        };
        loop().spawn(read);
        loop().poll();
        theirs.send(sent);
        while (got.size() < 64 * turns)
            loop().poll();
        destroy_loop();
        ASSERT_TRUE(got == sent.substr(0, got.size())) << "after " << turns << " turns";
    }
}

INSTANTIATE_TEST_SUITE_P(backends, deadline_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
