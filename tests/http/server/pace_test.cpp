#include "http/server/pace.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace simplenet::v0::http::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t rate = 240; // bytes a second
constexpr auto no_limit = pace::nanoseconds::max();

TEST(pace_test, a_peer_that_has_moved_nothing_may_take_thirty_seconds) {
    const pace peer;

    EXPECT_EQ(peer.allowance(0ns, rate), 30s);
}

TEST(pace_test, bytes_earn_time_and_waiting_spends_it) {
    pace peer;
    peer.moved(rate * 100);
    peer.waited(90s);

    EXPECT_EQ(peer.allowance(0ns, rate), 40s);
}

TEST(pace_test, a_peer_that_is_too_slow_has_no_time_left) {
    pace peer;
    for (int second = 0; second < 60; ++second) {
        peer.moved(1);
        peer.waited(1s);
    }

    EXPECT_EQ(peer.allowance(20s, rate), 1ns);
}

TEST(pace_test, a_pause_that_is_allowed_is_not_slow) {
    pace peer;
    peer.waited(59s);

    EXPECT_EQ(peer.allowance(60s, rate), 1s);
}

TEST(pace_test, the_shorter_of_both_limits_holds) {
    pace peer;
    EXPECT_EQ(peer.allowance(10s, rate), 10s);

    peer.waited(25s);

    EXPECT_EQ(peer.allowance(10s, rate), 5s);
}

TEST(pace_test, a_limit_of_zero_is_none) {
    pace peer;
    peer.waited(24h);

    EXPECT_EQ(peer.allowance(0ns, 0), no_limit);
    EXPECT_EQ(peer.allowance(10s, 0), 10s);
}

TEST(pace_test, the_largest_body_does_not_overflow) {
    pace peer;
    peer.moved(std::uint64_t{1} << 63U);

    EXPECT_GT(peer.allowance(0ns, 1), 24h * 364);
}

TEST(pace_test, the_next_body_begins_anew) {
    pace peer;
    peer.waited(29s);

    peer.reset();

    EXPECT_EQ(peer.allowance(0ns, rate), 30s);
}

} // namespace
} // namespace simplenet::v0::http::detail
