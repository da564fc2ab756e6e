#include <simplenet/ip/endpoint.hpp>

#include "ip/random_address.hpp"
#include "support/error_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <type_traits>
#include <unordered_set>
#include <vector>

namespace {

using namespace simplenet;

static_assert(std::is_trivially_copyable_v<endpoint>);
static_assert(std::is_trivially_destructible_v<endpoint>);
static_assert(sizeof(endpoint) <= 32);
static_assert(endpoint::loopback(80).address().is_loopback());
static_assert(endpoint{} == endpoint::any(0));

endpoint parsed(std::string_view text) {
    return endpoint::parse(text).value();
}

void expect_refused(std::initializer_list<std::string_view> texts) {
    for (const std::string_view text : texts)
        EXPECT_EQ(error_of(endpoint::parse(text)), std::errc::invalid_argument) << text;
}

TEST(endpoint_test, a_default_endpoint_is_any_v4_with_port_zero) {
    EXPECT_EQ(endpoint{}.to_string(), "0.0.0.0:0");
}

TEST(endpoint_test, an_endpoint_has_its_address_and_port) {
    const endpoint made{ip_address::loopback_v6(), 8080};

    EXPECT_EQ(made.address(), ip_address::loopback_v6());
    EXPECT_EQ(made.port(), 8080);
}

TEST(endpoint_test, loopback_and_any_are_v4) {
    EXPECT_EQ(endpoint::loopback(80).to_string(), "127.0.0.1:80");
    EXPECT_EQ(endpoint::any(65535).to_string(), "0.0.0.0:65535");
}

TEST(endpoint_test, v6_is_written_in_brackets) {
    EXPECT_EQ((endpoint{ip_address::loopback_v6(), 80}.to_string()), "[::1]:80");
}

TEST(endpoint_test, parse_reads_v4_and_port) {
    EXPECT_EQ(parsed("192.0.2.1:80"), (endpoint{ip_address::parse("192.0.2.1").value(), 80}));
    EXPECT_EQ(parsed("0.0.0.0:0"), endpoint::any(0));
    EXPECT_EQ(parsed("127.0.0.1:65535"), endpoint::loopback(65535));
}

TEST(endpoint_test, parse_reads_bracketed_v6_and_port) {
    EXPECT_EQ(parsed("[::1]:80"), (endpoint{ip_address::loopback_v6(), 80}));
    EXPECT_EQ(parsed("[2001:DB8::1]:443").to_string(), "[2001:db8::1]:443");
    EXPECT_EQ(parsed("[::ffff:1.2.3.4]:1").to_string(), "[::ffff:1.2.3.4]:1");
}

TEST(endpoint_test, parse_reads_a_zone_inside_the_brackets) {
    EXPECT_EQ(parsed("[fe80::1%3]:80").address().scope_id(), 3U);
    expect_refused({"[fe80::1]%3:80", "[fe80::1%eth0]:80", "[fe80::1%]:80"});
}

TEST(endpoint_test, parse_refuses_ports_that_are_not_plain_decimal) {
    expect_refused({"1.2.3.4:", "1.2.3.4:+80", "1.2.3.4:-1", "1.2.3.4: 80", "1.2.3.4:80 ",
                    "1.2.3.4:080", "1.2.3.4:00", "1.2.3.4:0x50", "1.2.3.4:http", "1.2.3.4:8o",
                    "[::1]:", "[::1]:+80"});
}

TEST(endpoint_test, parse_refuses_ports_out_of_range) {
    expect_refused(
        {"1.2.3.4:65536", "1.2.3.4:4294967376", "1.2.3.4:18446744073709551696", "[::1]:65536"});
}

TEST(endpoint_test, parse_refuses_v6_without_brackets) {
    expect_refused({"::1:80", "::1", "2001:db8::1:80", "::", "1:2:3:4:5:6:7:8:80"});
}

TEST(endpoint_test, parse_refuses_brackets_around_v4) {
    expect_refused({"[1.2.3.4]:80", "[127.0.0.1]:0"});
}

TEST(endpoint_test, parse_refuses_incomplete_text) {
    expect_refused({"", ":", ":80", "[", "]", "[]", "[]:80", "[::1]", "[::1", "[::1:80", "::1]:80",
                    "[::1]80", "[::1]]:80", "[[::1]]:80", "1.2.3.4", "1.2.3.4:80:80",
                    "localhost:80", "*:80"});
}

TEST(endpoint_test, every_endpoint_survives_a_round_trip_through_text) {
    random_addresses random;
    for (int round = 0; round < 20'000; ++round) {
        const auto port = static_cast<std::uint16_t>(random.number());
        for (const ip_address& address : {random.v4(), random.v6(), random.v6(random.number())}) {
            const endpoint made{address, port};
            ASSERT_EQ(parsed(made.to_string()), made) << made.to_string();
        }
    }
}

TEST(endpoint_test, damaged_text_is_refused_or_parsed_literally) {
    random_addresses random;
    for (int round = 0; round < 20'000; ++round) {
        const endpoint made{random.v6(), static_cast<std::uint16_t>(random.number())};
        const std::string text = random.damaged(made.to_string());
        const auto outcome = endpoint::parse(text);

        if (!outcome) {
            ASSERT_EQ(outcome.error(), std::errc::invalid_argument) << text;
            continue;
        }
        ASSERT_TRUE(text.ends_with("]:" + std::to_string(outcome->port()))) << text;
        ASSERT_EQ(parsed(outcome->to_string()), *outcome) << text;
    }
}

TEST(endpoint_test, the_longest_text_fits) {
    const std::string_view longest = "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535";

    EXPECT_EQ(parsed(longest).to_string(), longest);
}

TEST(endpoint_test, endpoints_differ_by_address_and_port) {
    EXPECT_EQ(endpoint::loopback(80), endpoint::loopback(80));
    EXPECT_NE(endpoint::loopback(80), endpoint::loopback(81));
    EXPECT_NE(endpoint::loopback(80), endpoint::any(80));
}

TEST(endpoint_test, endpoints_are_ordered_by_address_then_port) {
    const std::vector ascending{parsed("1.2.3.4:80"), parsed("1.2.3.4:443"), parsed("1.2.3.5:1"),
                                parsed("[::]:0"), parsed("[::1]:0")};

    EXPECT_TRUE(std::ranges::is_sorted(ascending));
}

TEST(endpoint_test, hashes_spread_over_ports_of_one_address) {
    std::unordered_set<std::size_t> hashes;
    for (unsigned port = 0; port <= 65535; ++port)
        hashes.insert(std::hash<endpoint>{}(endpoint::loopback(static_cast<std::uint16_t>(port))));

    EXPECT_EQ(hashes.size(), 65536U);
}

TEST(endpoint_test, an_endpoint_can_be_a_key) {
    std::unordered_set<endpoint> peers{endpoint::loopback(1), endpoint::loopback(2)};

    EXPECT_TRUE(peers.contains(endpoint::loopback(1)));
    EXPECT_FALSE(peers.contains(endpoint::loopback(3)));
}

} // namespace
