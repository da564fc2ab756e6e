#include "http/server/uptake.hpp"

#include <chrono>

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

} // namespace
} // namespace simplenet::v0::http::detail
