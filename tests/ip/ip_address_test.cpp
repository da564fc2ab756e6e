#include <simplenet/ip/ip_address.hpp>

#include "ip/random_address.hpp"
#include "support/error_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <set>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include <arpa/inet.h>

namespace {

using namespace simplenet;

static_assert(std::is_trivially_copyable_v<ip_address>);
static_assert(std::is_trivially_destructible_v<ip_address>);
static_assert(sizeof(ip_address) == 24);
static_assert(ip_address{} == ip_address::any_v4());
static_assert(ip_address::loopback_v6().bytes().size() == 16);

constexpr int rounds = 20'000;

ip_address address_of(std::string_view text) {
    return ip_address::parse(text).value();
}

std::string canonical(std::string_view text) {
    return address_of(text).to_string();
}

void expect_no_address(std::initializer_list<std::string_view> texts) {
    for (const std::string_view text : texts)
        EXPECT_EQ(error_of(ip_address::parse(text)), std::errc::invalid_argument) << text;
}

TEST(ip_address_test, a_default_address_is_any_v4) {
    EXPECT_TRUE(ip_address{}.is_v4());
    EXPECT_TRUE(ip_address{}.is_any());
    EXPECT_EQ(ip_address{}.to_string(), "0.0.0.0");
}

TEST(ip_address_test, the_factories_have_the_usual_texts) {
    EXPECT_EQ(ip_address::any_v4().to_string(), "0.0.0.0");
    EXPECT_EQ(ip_address::any_v6().to_string(), "::");
    EXPECT_EQ(ip_address::loopback_v4().to_string(), "127.0.0.1");
    EXPECT_EQ(ip_address::loopback_v6().to_string(), "::1");
}

TEST(ip_address_test, from_bytes_takes_network_order) {
    constexpr std::array four{std::byte{192}, std::byte{0}, std::byte{2}, std::byte{1}};
    std::array<std::byte, 16> sixteen{std::byte{0x20}, std::byte{0x01}, std::byte{0x0d}};
    sixteen[15] = std::byte{7};

    EXPECT_EQ(ip_address::from_bytes(four).to_string(), "192.0.2.1");
    EXPECT_EQ(ip_address::from_bytes(sixteen).to_string(), "2001:d00::7");
    EXPECT_EQ(ip_address::from_bytes(sixteen, 3).scope_id(), 3U);
}

TEST(ip_address_test, bytes_returns_the_argument_of_from_bytes) {
    constexpr std::array four{std::byte{192}, std::byte{0}, std::byte{2}, std::byte{1}};
    constexpr ip_address address = ip_address::from_bytes(four);

    EXPECT_TRUE(std::ranges::equal(address.bytes(), four));
    static_assert(address.bytes()[0] == std::byte{192});
}

TEST(ip_address_test, parse_reads_dotted_decimal) {
    EXPECT_EQ(canonical("0.0.0.0"), "0.0.0.0");
    EXPECT_EQ(canonical("192.0.2.1"), "192.0.2.1");
    EXPECT_EQ(canonical("255.255.255.255"), "255.255.255.255");
}

TEST(ip_address_test, parse_refuses_v4_octets_with_ambiguous_meaning) {
    expect_no_address({"192.0.2.01", "192.0.2.001", "00.0.0.0", "0x7f.0.0.1", "0177.0.0.1", "127.1",
                       "127.0.1", "2130706433", "1.2.3.256", "1.2.3.1000", "1.2.3.4294967297"});
}

TEST(ip_address_test, parse_refuses_malformed_v4) {
    expect_no_address({"", ".", "...", "1", "1.2.3", "1.2.3.", ".1.2.3", "1..2.3", "1.2.3.4.",
                       "1.2.3.4.5", "1.2.3.+4", "1.2.3.-4", "1.2.3.a", "1.2.3.4x", "localhost"});
}

TEST(ip_address_test, parse_refuses_anything_around_the_address) {
    using namespace std::string_view_literals;

    expect_no_address({" 1.2.3.4", "1.2.3.4 ", "1. 2.3.4", "1.2.3.4\n", "1.2.3.4\0"sv, " ::1",
                       "::1 ", ":: 1", "::1\0"sv, "[::1]", "::1]", "1.2.3.4:80", "1.2.3.4/8",
                       "::/0"});
}

TEST(ip_address_test, parse_reads_every_form_of_v6) {
    EXPECT_EQ(canonical("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2:3:4:5:6");
    EXPECT_EQ(canonical("::"), "::");
    EXPECT_EQ(canonical("::1"), "::1");
    EXPECT_EQ(canonical("1::"), "1::");
    EXPECT_EQ(canonical("2001:db8::8:800:200c:417a"), "2001:db8::8:800:200c:417a");
    EXPECT_EQ(canonical("FF01:0:0:0:0:0:0:101"), "ff01::101");
    EXPECT_EQ(canonical("0001:0002:0003:0004:0005:0006:0007:0008"), "1:2:3:4:5:6:7:8");
}

TEST(ip_address_test, two_colons_stand_for_one_group_or_more) {
    EXPECT_EQ(canonical("1:2:3:4:5:6:7::"), "1:2:3:4:5:6:7:0");
    EXPECT_EQ(canonical("::2:3:4:5:6:7:8"), "0:2:3:4:5:6:7:8");
    EXPECT_EQ(canonical("1:2:3::5:6:7:8"), "1:2:3:0:5:6:7:8");
    expect_no_address({"1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", "1:2:3:4::5:6:7:8"});
}

TEST(ip_address_test, parse_reads_a_dotted_tail) {
    EXPECT_EQ(canonical("::ffff:192.0.2.1"), "::ffff:192.0.2.1");
    EXPECT_EQ(canonical("0:0:0:0:0:0:13.1.68.3"), "::d01:4403");
    EXPECT_EQ(canonical("::13.1.68.3"), "::d01:4403");
    EXPECT_EQ(canonical("64:ff9b::192.0.2.33"), "64:ff9b::c000:221");
    EXPECT_EQ(canonical("1:2:3:4:5:6:1.2.3.4"), "1:2:3:4:5:6:102:304");
}

TEST(ip_address_test, parse_refuses_a_dotted_part_before_the_tail) {
    expect_no_address({"1.2.3.4::", "1.2.3.4::1", "::1.2.3.4:1", "1:2:3:4:5:6:7:1.2.3.4",
                       "1:2:3:4:5:1.2.3.4", "::1.2.3", "::1.2.3.04", "::ffff:1.2.3.256",
                       "1:2:3:4:5:6::1.2.3.4", "::1.2.3.4.5", "::a.2.3.4"});
}

TEST(ip_address_test, parse_refuses_malformed_v6) {
    expect_no_address({":",
                       ":::",
                       "1",
                       "1:2",
                       "1:2:3:4:5:6:7",
                       "1:2:3:4:5:6:7:8:9",
                       "1::2::3",
                       "::1::",
                       ":1",
                       "1:",
                       ":1:2:3:4:5:6:7:8",
                       "1:2:3:4:5:6:7:8:",
                       "1:2:3:4:5:6:7:",
                       "::12345",
                       "::00001",
                       "::g",
                       "::-1",
                       "::+1",
                       "::0x1",
                       "1:::2",
                       "::1:"});
}

TEST(ip_address_test, parse_reads_a_numeric_zone) {
    EXPECT_EQ(address_of("fe80::1%3").scope_id(), 3U);
    EXPECT_EQ(address_of("fe80::1%4294967295").scope_id(), 4294967295U);
    EXPECT_EQ(address_of("fe80::1%3").to_string(), "fe80::1%3");
    EXPECT_EQ(address_of("::ffff:1.2.3.4%7").to_string(), "::ffff:1.2.3.4%7");
}

TEST(ip_address_test, zone_zero_means_no_zone) {
    EXPECT_EQ(address_of("fe80::1%0"), address_of("fe80::1"));
    EXPECT_EQ(canonical("fe80::1%0"), "fe80::1");
}

TEST(ip_address_test, parse_refuses_a_zone_that_is_not_a_number) {
    expect_no_address({"fe80::1%", "fe80::1%eth0", "fe80::1%03", "fe80::1%+3", "fe80::1%4294967296",
                       "fe80::1%18446744073709551617", "fe80::1%3%4", "%3", "1.2.3.4%3",
                       "fe80::1% 3"});
}

TEST(ip_address_test, text_is_canonical_as_in_rfc_5952) {
    EXPECT_EQ(canonical("2001:0DB8::0001"), "2001:db8::1");
    EXPECT_EQ(canonical("2001:db8:0:0:0:0:2:1"), "2001:db8::2:1");
    EXPECT_EQ(canonical("2001:db8::1:1:1:1:1"), "2001:db8:0:1:1:1:1:1") << "one group is not a run";
    EXPECT_EQ(canonical("2001:0:0:1:0:0:0:1"), "2001:0:0:1::1") << "the longest run";
    EXPECT_EQ(canonical("2001:db8:0:0:1:0:0:1"), "2001:db8::1:0:0:1") << "the first of equal runs";
    EXPECT_EQ(canonical("1:0:0:0:0:0:0:0"), "1::");
    EXPECT_EQ(canonical("0:0:0:0:0:0:0:a"), "::a");
}

TEST(ip_address_test, the_longest_texts_fit) {
    EXPECT_EQ(canonical("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255%4294967295"),
              "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295");
    EXPECT_EQ(canonical("::ffff:255.255.255.255%4294967295"), "::ffff:255.255.255.255%4294967295");
}

TEST(ip_address_test, every_address_survives_a_round_trip_through_text) {
    random_addresses random;
    for (int round = 0; round < rounds; ++round) {
        for (const ip_address& address : {random.v4(), random.v6(), random.v6(random.number())})
            ASSERT_EQ(address_of(address.to_string()), address) << address.to_string();
    }
}

TEST(ip_address_test, text_equals_that_of_inet_ntop) {
    random_addresses random;
    char expected[INET6_ADDRSTRLEN];
    for (int round = 0; round < rounds; ++round) {
        const ip_address v4 = random.v4();
        const ip_address v6 = random.v6();

        ASSERT_EQ(v4.to_string(),
                  ::inet_ntop(AF_INET, v4.bytes().data(), expected, sizeof expected));
        // The C library writes ::1.2.3.4 for addresses that RFC 4291 section 2.5.5.1 deprecates.
        const std::string theirs =
            ::inet_ntop(AF_INET6, v6.bytes().data(), expected, sizeof expected);
        if (theirs.contains('.') && !v6.is_v4_mapped()) continue;
        ASSERT_EQ(v6.to_string(), theirs);
    }
}

std::optional<ip_address> c_library_parse(const std::string& text) {
    std::array<std::byte, 4> four;
    std::array<std::byte, 16> sixteen;
    if (::inet_pton(AF_INET, text.c_str(), four.data()) == 1) return ip_address::from_bytes(four);
    if (::inet_pton(AF_INET6, text.c_str(), sixteen.data()) == 1)
        return ip_address::from_bytes(sixteen);
    return std::nullopt;
}

TEST(ip_address_test, parse_accepts_exactly_what_inet_pton_accepts) {
    random_addresses random;
    int accepted = 0;
    int refused = 0;
    for (int round = 0; round < rounds; ++round) {
        for (const ip_address& address : {random.v4(), random.v6()}) {
            const std::string text = random.damaged(address.to_string());
            const auto ours = ip_address::parse(text);
            const auto theirs = c_library_parse(text);

            ASSERT_EQ(ours.has_value(), theirs.has_value()) << text;
            if (theirs) {
                ASSERT_EQ(*ours, *theirs) << text;
            }
            ++(theirs ? accepted : refused);
        }
    }
    EXPECT_GT(accepted, rounds / 10) << "the test compares too few valid texts";
    EXPECT_GT(refused, rounds / 10) << "the test compares too few invalid texts";
}

TEST(ip_address_test, loopback_is_a_network_in_v4_and_an_address_in_v6) {
    EXPECT_TRUE(address_of("127.0.0.1").is_loopback());
    EXPECT_TRUE(address_of("127.255.255.255").is_loopback());
    EXPECT_TRUE(address_of("::1").is_loopback());
    EXPECT_FALSE(address_of("128.0.0.1").is_loopback());
    EXPECT_FALSE(address_of("::2").is_loopback());
    EXPECT_FALSE(address_of("7f00::1").is_loopback());
}

TEST(ip_address_test, any_is_all_zeros) {
    EXPECT_TRUE(address_of("0.0.0.0").is_any());
    EXPECT_TRUE(address_of("::").is_any());
    EXPECT_FALSE(address_of("0.0.0.1").is_any());
    EXPECT_FALSE(address_of("::1").is_any());
}

TEST(ip_address_test, multicast_is_recognized_by_its_first_bits) {
    EXPECT_TRUE(address_of("224.0.0.0").is_multicast());
    EXPECT_TRUE(address_of("239.255.255.255").is_multicast());
    EXPECT_TRUE(address_of("ff02::1").is_multicast());
    EXPECT_FALSE(address_of("223.255.255.255").is_multicast());
    EXPECT_FALSE(address_of("240.0.0.0").is_multicast());
    EXPECT_FALSE(address_of("fe00::1").is_multicast());
}

TEST(ip_address_test, link_local_is_recognized_by_its_prefix) {
    EXPECT_TRUE(address_of("169.254.0.1").is_link_local());
    EXPECT_TRUE(address_of("fe80::1").is_link_local());
    EXPECT_TRUE(address_of("febf::1").is_link_local());
    EXPECT_FALSE(address_of("169.255.0.1").is_link_local());
    EXPECT_FALSE(address_of("fec0::1").is_link_local());
    EXPECT_FALSE(address_of("fe7f::1").is_link_local());
}

TEST(ip_address_test, v4_mapped_is_recognized_by_its_prefix) {
    EXPECT_TRUE(address_of("::ffff:1.2.3.4").is_v4_mapped());
    EXPECT_TRUE(address_of("::ffff:0:0").is_v4_mapped());
    EXPECT_FALSE(address_of("1.2.3.4").is_v4_mapped());
    EXPECT_FALSE(address_of("::1.2.3.4").is_v4_mapped());
    EXPECT_FALSE(address_of("::1:ffff:1.2.3.4").is_v4_mapped());
    EXPECT_FALSE(address_of("255.255.255.255").is_v4_mapped());
}

TEST(ip_address_test, predicates_treat_a_mapped_address_as_ipv6) {
    EXPECT_FALSE(address_of("::ffff:127.0.0.1").is_loopback());
    EXPECT_TRUE(address_of("::ffff:127.0.0.1").unmapped().is_loopback());
}

TEST(ip_address_test, unmapped_changes_only_mapped_addresses) {
    EXPECT_EQ(address_of("::ffff:192.0.2.1").unmapped(), address_of("192.0.2.1"));
    EXPECT_EQ(address_of("::192.0.2.1").unmapped(), address_of("::192.0.2.1"));
    EXPECT_EQ(address_of("192.0.2.1").unmapped(), address_of("192.0.2.1"));
    EXPECT_EQ(address_of("fe80::1%3").unmapped(), address_of("fe80::1%3"));
}

TEST(ip_address_test, addresses_differ_by_family_bytes_and_scope) {
    EXPECT_NE(ip_address::any_v4(), ip_address::any_v6());
    EXPECT_NE(address_of("::ffff:1.2.3.4"), address_of("1.2.3.4"));
    EXPECT_NE(address_of("1.2.3.4"), address_of("1.2.3.5"));
    EXPECT_NE(address_of("fe80::1%1"), address_of("fe80::1%2"));
    EXPECT_EQ(address_of("fe80::1%1"), address_of("FE80:0::1%1"));
}

TEST(ip_address_test, addresses_are_ordered_by_family_then_bytes_then_scope) {
    const std::vector ascending{
        address_of("0.0.0.0"),  address_of("9.0.0.0"),   address_of("10.0.0.0"),
        address_of("10.0.0.1"), address_of("::"),        address_of("::1"),
        address_of("fe80::1"),  address_of("fe80::1%1"), address_of("fe80::1%2")};

    EXPECT_TRUE(std::ranges::is_sorted(ascending));
    EXPECT_EQ(std::ranges::adjacent_find(ascending), ascending.end());
}

TEST(ip_address_test, equal_addresses_have_equal_hashes) {
    EXPECT_EQ(std::hash<ip_address>{}(address_of("2001:DB8::1")),
              std::hash<ip_address>{}(address_of("2001:db8:0::1")));
}

TEST(ip_address_test, hashes_spread) {
    random_addresses random;
    std::set<ip_address> addresses{address_of("0.0.0.0"), address_of("::"), address_of("::%1"),
                                   address_of("::%2")};
    for (int round = 0; round < rounds; ++round)
        addresses.insert({random.v4(), random.v6(), random.v6(random.number() % 8)});

    std::unordered_set<std::size_t> hashes;
    for (const ip_address& address : addresses)
        hashes.insert(std::hash<ip_address>{}(address));

    EXPECT_EQ(hashes.size(), addresses.size());
}

} // namespace
