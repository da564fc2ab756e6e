#include <simplenet/ip/address_set.hpp>

#include "support/error_of.hpp"

#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace simplenet::v0::testing {
namespace {

address_set set_of(std::initializer_list<std::string_view> texts) {
    return or_throw(address_set::parse(std::vector<std::string_view>{texts}));
}

bool contains(const address_set& set, std::string_view address) {
    return set.contains(or_throw(ip_address::parse(address)));
}

TEST(address_set_test, an_empty_one_contains_nothing) {
    for (const std::string_view each : {"192.0.2.1", "::1", "fe80::1%3", "::ffff:10.0.0.1"}) {
        EXPECT_FALSE(contains(address_set{}, each));
        EXPECT_FALSE(contains(set_of({}), each));
    }
}

TEST(address_set_test, an_address_is_itself_alone) {
    const auto set = set_of({"192.0.2.1", "2001:db8::1"});
    EXPECT_TRUE(contains(set, "192.0.2.1"));
    EXPECT_TRUE(contains(set, "2001:db8::1"));
    EXPECT_FALSE(contains(set, "192.0.2.2"));
    EXPECT_FALSE(contains(set, "2001:db8::2"));
    EXPECT_FALSE(contains(set, "::1"));
}

TEST(address_set_test, a_prefix_contains_what_begins_with_it) {
    struct {
        std::string_view prefix, first, last, before, behind;
    } const cases[] = {
        {"10.0.0.0/8", "10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"},
        {"10.0.0.128/25", "10.0.0.128", "10.0.0.255", "10.0.0.127", "10.0.1.0"},
        {"172.16.0.0/12", "172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0"},
        {"192.0.2.4/31", "192.0.2.4", "192.0.2.5", "192.0.2.3", "192.0.2.6"},
        {"192.0.2.4/32", "192.0.2.4", "192.0.2.4", "192.0.2.3", "192.0.2.5"},
        {"128.0.0.0/1", "128.0.0.0", "255.255.255.255", "127.255.255.255", "::"},
        {"2001:db8::/32", "2001:db8::", "2001:db8:ffff::1", "2001:db7:ffff::", "2001:db9::"},
        {"2001:db8::8/125", "2001:db8::8", "2001:db8::f", "2001:db8::7", "2001:db8::10"},
        {"::1/128", "::1", "::1", "::", "::2"},
        {"0.0.0.0/0", "0.0.0.0", "255.255.255.255", "::", "::1"},
        {"::/0", "::", "ffff::", "0.0.0.0", "255.255.255.255"},
    };
    for (const auto& each : cases) {
        const auto set = set_of({each.prefix});
        EXPECT_TRUE(contains(set, each.first)) << each.prefix;
        EXPECT_TRUE(contains(set, each.last)) << each.prefix;
        EXPECT_FALSE(contains(set, each.before)) << each.prefix;
        EXPECT_FALSE(contains(set, each.behind)) << each.prefix;
    }
}

TEST(address_set_test, bits_behind_the_prefix_are_ignored) {
    EXPECT_TRUE(contains(set_of({"10.1.2.3/8"}), "10.200.0.1"));
    EXPECT_TRUE(contains(set_of({"2001:db8::1/64"}), "2001:db8::2"));
}

TEST(address_set_test, mapped_addresses_are_ipv4_addresses) {
    EXPECT_TRUE(contains(set_of({"10.0.0.0/8"}), "::ffff:10.1.2.3"));
    EXPECT_FALSE(contains(set_of({"10.0.0.0/8"}), "::ffff:11.1.2.3"));
    EXPECT_TRUE(contains(set_of({"::ffff:10.0.0.0/104"}), "10.1.2.3"));
    EXPECT_TRUE(contains(set_of({"::ffff:10.0.0.0/104"}), "::ffff:10.1.2.3"));
    EXPECT_FALSE(contains(set_of({"::ffff:10.0.0.0/104"}), "11.1.2.3"));
    EXPECT_TRUE(contains(set_of({"::ffff:10.1.2.3"}), "10.1.2.3"));
    EXPECT_FALSE(contains(set_of({"::/0"}), "::ffff:10.1.2.3"));
}

TEST(address_set_test, a_scope_counts_if_the_text_has_one) {
    EXPECT_TRUE(contains(set_of({"fe80::/10"}), "fe80::1%3"));
    EXPECT_TRUE(contains(set_of({"fe80::%3/10"}), "fe80::1%3"));
    EXPECT_FALSE(contains(set_of({"fe80::%3/10"}), "fe80::1%4"));
}

TEST(address_set_test, one_match_of_several_is_enough) {
    const auto set = set_of({"10.0.0.0/8", "::1", "192.0.2.0/24"});
    EXPECT_TRUE(contains(set, "10.1.1.1"));
    EXPECT_TRUE(contains(set, "192.0.2.7"));
    EXPECT_TRUE(contains(set, "::1"));
    EXPECT_FALSE(contains(set, "192.0.3.7"));
}

TEST(address_set_test, any_other_text_is_refused) {
    for (const std::string_view bad : {"",
                                       "/",
                                       "/8",
                                       "10.0.0.0/",
                                       "10.0.0.0/33",
                                       "10.0.0.0/08",
                                       "10.0.0.0/+8",
                                       "10.0.0.0/8/8",
                                       "10.0.0.0/ 8",
                                       " 10.0.0.0/8",
                                       "10/8",
                                       "10.0.0/8",
                                       "::/129",
                                       "::1/-1",
                                       "localhost",
                                       "*",
                                       "10.0.0.0/255.0.0.0",
                                       "10.0.0.0-10.0.0.9",
                                       "[::1]",
                                       "10.0.0.1:80",
                                       "fe80::%lo/10"}) {
        const std::array<std::string_view, 2> texts{"10.0.0.0/8", bad};
        EXPECT_EQ(error_of(address_set::parse(texts)), std::errc::invalid_argument) << bad;
    }
}

} // namespace
} // namespace simplenet::v0::testing
