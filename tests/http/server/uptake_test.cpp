#include "http/server/uptake.hpp"

#include "support/backend_test.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/testing/manual_clock.hpp>
#include <simplenet/time/sleep.hpp>

#include <chrono>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0::http::detail {
namespace {

using namespace std::chrono_literals;

constexpr limits only_idle{.send_idle = 60s, .minimum_rate = 0};
constexpr limits only_rate{.send_idle = 0s, .minimum_rate = 240};

TEST(uptake_test, a_client_that_takes_nothing_has_its_time_and_no_more) {
    uptake client;
    client.saw(1000);
    client.waited(30s);
    client.saw(1000);
    client.waited(30s - 1ns);
    EXPECT_FALSE(client.is_too_slow(only_idle));
    client.saw(1000);
    client.waited(1ns);

    EXPECT_TRUE(client.is_too_slow(only_idle));
}

TEST(uptake_test, a_client_that_takes_something_has_its_time_again) {
    uptake client;
    client.saw(1000);
    client.waited(59s);
    client.saw(1001);
    client.waited(59s);
    client.saw(1001);

    EXPECT_FALSE(client.is_too_slow(only_idle));
    client.waited(1s);
    EXPECT_TRUE(client.is_too_slow(only_idle));
}

// As where only the send buffer tells: it can grow.
TEST(uptake_test, less_than_before_is_not_taken) {
    uptake client;
    client.saw(-1000);
    client.waited(59s);
    client.saw(-5000);
    client.waited(1s);

    EXPECT_TRUE(client.is_too_slow(only_idle));
    client.saw(-4999);
    EXPECT_FALSE(client.is_too_slow(only_idle));
}

TEST(uptake_test, a_client_that_takes_less_than_the_rate_is_too_slow) {
    uptake client;
    client.saw(0);
    client.waited(30s);
    EXPECT_FALSE(client.is_too_slow(only_rate)); // whatever it has taken
    for (int second = 1; second <= 60; ++second) {
        client.saw(239 * second);
        client.waited(1s);
    }

    EXPECT_TRUE(client.is_too_slow(only_rate));
}

TEST(uptake_test, what_was_taken_earns_time) {
    uptake client;
    client.saw(1'000'000);
    client.saw(1'000'000 + 240 * 100);
    client.waited(130s);
    EXPECT_FALSE(client.is_too_slow(only_rate));
    client.waited(1ms);

    EXPECT_TRUE(client.is_too_slow(only_rate));
}

TEST(uptake_test, a_limit_of_zero_is_none) {
    constexpr limits none{.send_idle = 0s, .minimum_rate = 0};
    uptake client;
    client.saw(1000);
    client.waited(24h);

    EXPECT_FALSE(client.is_too_slow(none));
}

TEST(uptake_test, looks_follow_each_other_by_an_eighth_of_the_limit) {
    limits within = only_idle;
    within.send_idle = 8s;
    uptake client;
    client.saw(0);
    EXPECT_EQ(client.until_look(within), 1s);
    client.waited(600ms); // several waits may be part of it
    EXPECT_EQ(client.until_look(within), 400ms);
    client.saw(0);
    EXPECT_EQ(client.until_look(within), 1s);
    within.send_idle = 24h;
    EXPECT_EQ(client.until_look(within), 5s);
}

TEST(uptake_test, a_time_that_begins_late_begins_anew) {
    uptake client;
    EXPECT_EQ(client.until_look(only_idle), 20ms);
    client.waited(24h);
    client.saw(1000);

    EXPECT_FALSE(client.is_too_slow(only_idle));
    EXPECT_FALSE(client.is_too_slow(only_rate));
}

TEST(uptake_test, the_last_look_is_when_the_time_is_up) {
    limits within = only_idle;
    within.send_idle = 51s;
    uptake client;
    client.saw(0);
    client.waited(50s);
    client.saw(0);

    EXPECT_EQ(client.until_look(within), 1s);
}

TEST(uptake_test, the_next_answer_begins_anew) {
    uptake client;
    client.saw(1000);
    client.waited(24h);
    ASSERT_TRUE(client.is_too_slow(only_idle));

    client.reset();

    EXPECT_FALSE(client.is_too_slow(only_idle));
    EXPECT_FALSE(client.has_seen_any());
}

/// The client of a connection takes nothing, whatever the time.
class patience_test : public testing::backend_test {
protected:
    void SetUp() override {
        loop_options options;
        options.clock = &clock_;
        remake_loop(options);
    }
    /// Waits for `part` with patience, and returns how long that took.
    template <class Part>
    task<std::chrono::nanoseconds> wait_for(Part part) {
        const auto before = clock_.elapsed();
        patience waiting{ends_.first.get(), limits_, client_, patience::start::at_once};
        auto limited = waiting.of(std::move(part));
        const result<> ended = co_await std::move(limited);
        EXPECT_EQ(!ended, waiting.must_end());
        co_return clock_.elapsed() - before;
    }

    testing::manual_clock clock_;
    std::pair<unique_fd, unique_fd> ends_ = testing::tcp_ends();
    limits limits_ = only_idle;
    uptake client_;
};

TEST_P(patience_test, ends_when_nothing_was_taken_within_the_limit) {
    run([&]() -> task<> {
        const auto took = co_await wait_for(async_sleep(1h));
        EXPECT_GE(took, 60s);
        EXPECT_LE(took, 61s);
    });
}

TEST_P(patience_test, the_time_that_a_disk_takes_is_not_the_clients) {
    run([&]() -> task<> {
        auto read = [this]() -> task<result<>> {
            clock_.advance(10min); // the loop stands still
            co_return co_await async_sleep(30s);
        };
        const auto took = co_await wait_for(read());
        EXPECT_GE(took, 10min + 30s);
    });
}

// As when a write ends in the moment at which the limit passes.
TEST_P(patience_test, a_limit_that_has_passed_ends_the_next_wait_at_once) {
    run([&]() -> task<> {
        EXPECT_LT(co_await wait_for(async_sleep(59s)), 60s);
        client_.waited(1s);

        EXPECT_LT(co_await wait_for(async_sleep(1h)), 10ms);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, patience_test, testing::all_backends, testing::backend_name);

} // namespace
} // namespace simplenet::v0::http::detail
