#include "httpd/guard/rate_limiter.hpp"

#include "support/error_of.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace httpd {
namespace {

using namespace std::chrono_literals;
using clock = rate_limiter::clock;

simplenet::ip_address address(std::string_view text) {
    return simplenet::or_throw(simplenet::ip_address::parse(text));
}

class rate_limiter_test : public ::testing::Test {
protected:
    bool takes(rate_limiter& limiter, std::string_view from) {
        return !limiter.take(address(from), now_).has_value();
    }
    clock::time_point now_{std::chrono::hours{1}};
};

TEST_F(rate_limiter_test, a_burst_is_taken_at_once_and_then_the_rate_holds) {
    rate_limiter limiter{10, 1s, 4};
    for (int each = 0; each < 5; ++each)
        EXPECT_TRUE(takes(limiter, "192.0.2.1"));

    EXPECT_EQ(limiter.take(address("192.0.2.1"), now_), 100ms);
    now_ += 99ms;
    EXPECT_EQ(limiter.take(address("192.0.2.1"), now_), 1ms);
    now_ += 1ms;
    EXPECT_TRUE(takes(limiter, "192.0.2.1"));
    EXPECT_FALSE(takes(limiter, "192.0.2.1"));
}

TEST_F(rate_limiter_test, a_bucket_is_never_more_than_full) {
    rate_limiter limiter{10, 1s, 1};
    EXPECT_TRUE(takes(limiter, "192.0.2.1"));
    now_ += 1h;

    EXPECT_TRUE(takes(limiter, "192.0.2.1"));
    EXPECT_TRUE(takes(limiter, "192.0.2.1"));
    EXPECT_FALSE(takes(limiter, "192.0.2.1"));
}

TEST_F(rate_limiter_test, addresses_have_buckets_of_their_own) {
    rate_limiter limiter{1, 1h, 0};
    EXPECT_TRUE(takes(limiter, "192.0.2.1"));
    EXPECT_TRUE(takes(limiter, "192.0.2.2"));
    EXPECT_FALSE(takes(limiter, "192.0.2.1"));
    EXPECT_FALSE(takes(limiter, "::ffff:192.0.2.2")); // the same client at a dual-stack listener
}

TEST_F(rate_limiter_test, an_ipv6_network_of_64_bits_is_one_client) {
    rate_limiter limiter{1, 1h, 0};
    EXPECT_TRUE(takes(limiter, "2001:db8::1"));
    EXPECT_FALSE(takes(limiter, "2001:db8::ffff:2"));
    EXPECT_TRUE(takes(limiter, "2001:db8:0:1::1"));
}

// Whoever has many addresses must not be able to push the bucket out that it has emptied.
TEST_F(rate_limiter_test, a_crowd_frees_nobody_who_is_far_beyond_the_limit) {
    rate_limiter limiter{1, 1s, 100};
    while (takes(limiter, "192.0.2.1")) {
    }

    for (unsigned each = 0; each < 300'000; ++each) {
        const auto text = "10." + std::to_string(each >> 16) + '.' +
                          std::to_string(each >> 8 & 255) + '.' + std::to_string(each & 255);
        EXPECT_TRUE(takes(limiter, text));
    }

    EXPECT_FALSE(takes(limiter, "192.0.2.1"));
}

TEST_F(rate_limiter_test, extreme_rates_do_not_overflow) {
    rate_limiter fast{UINT64_MAX, 1ns, UINT64_MAX};
    rate_limiter slow{1, std::chrono::hours{24 * 365 * 100}, 1'000'000};
    for (int each = 0; each < 1000; ++each) {
        EXPECT_TRUE(takes(fast, "192.0.2.1"));
    }
    EXPECT_TRUE(takes(slow, "192.0.2.1"));
}

} // namespace
} // namespace httpd
