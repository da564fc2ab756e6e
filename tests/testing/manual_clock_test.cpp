#include <simplenet/testing/manual_clock.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"

#include <simplenet/simplenet.hpp>

#include <gmock/gmock.h>

#include <array>
#include <optional>
#include <thread>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

constexpr auto tick = 16'384ns;

class manual_clock_test : public backend_test {
protected:
    void SetUp() override {
        loop_options options;
        options.clock = &clock;
        remake_loop(options);
    }
    /// The time is `expected`, or at most a tick later for each of the few waits before it.
    void expect_at(std::chrono::nanoseconds expected) {
        EXPECT_GE(clock.elapsed(), expected);
        EXPECT_LE(clock.elapsed(), expected + 10 * tick);
    }

    manual_clock clock;
};

TEST_P(manual_clock_test, a_sleep_of_a_day_takes_a_day_of_the_clock_and_no_real_time) {
    const auto before = std::chrono::steady_clock::now();
    run([&]() -> task<> {
        EXPECT_TRUE(co_await async_sleep(24h));
        expect_at(24h);
        EXPECT_EQ(event_loop::current()->now(), clock.now());
        EXPECT_TRUE(co_await async_sleep_until(clock.now() + 24h));
        expect_at(48h);
    });
    EXPECT_LT(std::chrono::steady_clock::now() - before, 24h);
}

TEST_P(manual_clock_test, timers_fire_in_order) {
    std::vector<int> order;
    run([&]() -> task<> {
        for (int hours : {3, 1, 2}) {
            spawn([&, hours]() -> task<> {
                EXPECT_TRUE(co_await async_sleep(std::chrono::hours{hours}));
                expect_at(std::chrono::hours{hours});
                order.push_back(hours);
            });
        }
        co_return;
    });
    EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

task<> sleep_for(std::chrono::nanoseconds time) {
    static_cast<void>(co_await async_sleep(time));
}

// The clock must not stop forever just before the second of them.
TEST_P(manual_clock_test, reaches_sleeps_that_end_nearly_together) {
    run([&]() -> task<> {
        auto first = spawn(sleep_for(100ms));
        auto second = spawn(sleep_for(101ms));
        co_await first;
        co_await second;

        EXPECT_GE(clock.elapsed(), 101ms);
    });
}

TEST_P(manual_clock_test, stands_still_while_anything_runs) {
    run([&]() -> task<> {
        const auto before = clock.now();
        pass(std::chrono::steady_clock::now() + 2ms);
        co_await turns(200);
        EXPECT_EQ(clock.now(), before);
    });
}

TEST_P(manual_clock_test, limits_use_it) {
    run([&]() -> task<> {
        channel<int> empty{1};
        EXPECT_EQ((co_await with_timeout(empty.receive(), 1h)).error(), errc::deadline_exceeded);
        expect_at(1h);
        EXPECT_EQ((co_await with_deadline(empty.receive(), clock.now() + 1h)).error(),
                  errc::deadline_exceeded);
        expect_at(2h);
        auto slow = []() -> task<result<>> { co_return co_await async_sleep(1min); };
        EXPECT_TRUE(co_await with_timeout(slow(), 1h));
        expect_at(2h + 1min);
    });
}

TEST_P(manual_clock_test, an_interval_uses_it) {
    run([&]() -> task<> {
        interval every{10min};
        for (int ticks = 1; ticks <= 6; ++ticks) {
            EXPECT_TRUE(co_await every.next());
            expect_at(ticks * 10min);
        }
        EXPECT_TRUE(co_await async_sleep(25min));
        EXPECT_TRUE(co_await every.next()); // the tick at 80 min: late, and delivered at once
        expect_at(85min);
        EXPECT_TRUE(co_await every.next());
        expect_at(90min);
    });
}

TEST_P(manual_clock_test, an_interval_does_not_drift_with_the_work_between_its_ticks) {
    run([&]() -> task<> {
        interval every{20min};
        for (int ticks = 1; ticks <= 4; ++ticks) {
            EXPECT_TRUE(co_await every.next());
            expect_at(ticks * 20min);
            EXPECT_TRUE(co_await async_sleep(5min));
        }
    });
}

TEST_P(manual_clock_test, can_be_advanced_by_hand) {
    clock.set_automatic(false);
    bool over = false;
    loop().spawn([&]() -> task<> {
        EXPECT_TRUE(co_await async_sleep(1h));
        over = true;
    });
    const auto turn = [&] {
        for (int each = 0; each < 12; ++each)
            loop().poll();
    };
    turn();

    clock.advance(1h - 1ms);
    turn();
    EXPECT_FALSE(over);
    clock.advance(1ms + tick);
    turn();
    EXPECT_TRUE(over);
}

TEST_P(manual_clock_test, time_that_a_task_lets_pass_counts_for_waits_that_have_just_begun) {
    clock.set_automatic(false);
    run([&]() -> task<> {
        auto sleeper = spawn([]() -> task<> { EXPECT_TRUE(co_await async_sleep(1h)); });
        co_await yield();
        clock.advance(1h + tick);
        co_await sleeper;
    });
}

TEST_P(manual_clock_test, a_timer_at_the_end_of_time_never_fires) {
    run([&]() -> task<> {
        auto forever = spawn([]() -> task<> {
            EXPECT_FALSE(co_await async_sleep(std::chrono::nanoseconds::max()));
        });
        EXPECT_TRUE(co_await async_sleep(1h));
        std::thread other{[&] { // no timer is left, so the loop waits for this thread
            loop().post([&] { forever.request_stop(); });
        }};
        co_await forever;
        other.join();
        expect_at(1h);
    });
}

TEST_P(manual_clock_test, real_io_is_waited_for) {
    run([&]() -> task<> {
        auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
        const auto server = or_throw(listener.local_endpoint());
        std::thread peer{[&] {
            auto stream = or_throw(blocking::tcp_stream::connect(server));
            std::array<std::byte, 1> byte{};
            EXPECT_TRUE(stream.read_exact(byte));
            std::this_thread::sleep_for(5ms); // slow, like a real peer
            EXPECT_TRUE(stream.write_all(byte));
        }};
        std::array<std::byte, 1> byte{};
        auto stream = or_throw(co_await with_timeout(listener.accept(), 1h));
        EXPECT_TRUE(co_await async_write_all(stream, byte));
        EXPECT_TRUE(co_await with_timeout(stream.read_some(byte), 1h));
        // Not at least 5 ms: a busy machine may let them pass before the read begins to wait.
        EXPECT_LT(clock.elapsed(), 1h);
        peer.join();
    });
}

TEST_P(manual_clock_test, a_limit_of_real_io_takes_real_time) {
    const auto before = std::chrono::steady_clock::now();
    run([&]() -> task<> {
        auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
        EXPECT_EQ((co_await with_timeout(listener.accept(), 3ms)).error(), errc::deadline_exceeded);
        EXPECT_GE(clock.elapsed(), 3ms);
    });
    EXPECT_GE(std::chrono::steady_clock::now() - before, 3ms);
}

TEST_P(manual_clock_test, the_loop_says_when_the_next_timer_is_due) {
    loop().spawn([]() -> task<> { (void)co_await async_sleep(1h); });
    loop().poll();

    const auto next = loop().next_timer();

    ASSERT_TRUE(next);
    EXPECT_LE(*next, clock.now() + 1h + tick);
    destroy_loop(); // stops the tasks without any delay
    EXPECT_EQ(clock.elapsed(), 0ns);
}

TEST_P(manual_clock_test, every_run_is_identical) {
    std::vector<std::vector<std::pair<int, std::chrono::nanoseconds>>> runs;
    for (int repeat = 0; repeat < 3; ++repeat) {
        manual_clock own;
        auto& log = runs.emplace_back();
        auto body = [&]() -> task<> {
            task_group group;
            for (int number = 0; number < 50; ++number) {
                group.spawn([&, number]() -> task<> {
                    for (int round = 0; round < 5; ++round) {
                        EXPECT_TRUE(co_await async_sleep((number * 7919 % 1000) * 1ms));
                        log.emplace_back(number, own.elapsed() / 1ms * 1ms);
                    }
                });
            }
            EXPECT_TRUE(co_await group.join());
        };
        simplenet::run(body(), {.backend = GetParam(), .clock = &own});
    }
    EXPECT_EQ(runs[0], runs[1]);
    EXPECT_EQ(runs[0], runs[2]);
}

INSTANTIATE_TEST_SUITE_P(backends, manual_clock_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
