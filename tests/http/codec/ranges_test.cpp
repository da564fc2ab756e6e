#include "http/codec/ranges.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using http::detail::byte_range;
using http::detail::max_content_range;
using http::detail::parse_ranges;
using http::detail::requested_ranges;
using range_verdict = requested_ranges::verdict;

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

std::vector<byte_range> ranges_in(const requested_ranges& ranges) {
    return {ranges.list().begin(), ranges.list().end()};
}

struct satisfiable_case {
    std::string_view value;
    std::uint64_t size;
    std::vector<byte_range> expected;
};

TEST(ranges_test, the_bytes_that_are_asked_for_are_found) {
    const satisfiable_case cases[] = {
        // RFC 9110, section 14.1.2.
        {"bytes=0-499", 10'000, {{0, 500}}},
        {"bytes=500-999", 10'000, {{500, 500}}},
        {"bytes=-500", 10'000, {{9500, 500}}},
        {"bytes=9500-", 10'000, {{9500, 500}}},
        {"bytes=0-0,-1", 10'000, {{0, 1}, {9999, 1}}},
        {"bytes= 0-999, 4500-5499, -1000", 10'000, {{0, 1000}, {4500, 1000}, {9000, 1000}}},
        {"bytes=500-600,601-999", 10'000, {{500, 101}, {601, 399}}},
        // At and behind the end.
        {"bytes=0-", 1, {{0, 1}}},
        {"bytes=0-9", 10, {{0, 10}}},
        {"bytes=0-10", 10, {{0, 10}}},
        {"bytes=9-99", 10, {{9, 1}}},
        {"bytes=-11", 10, {{0, 10}}},
        {"bytes=0-99999999999999999999999999", 10, {{0, 10}}},
        {"bytes=-99999999999999999999999999", 10, {{0, 10}}},
        {"bytes=0-18446744073709551615", most, {{0, most}}},
        {"bytes=20-29,3-4,-0", 10, {{3, 2}}},
        {"bytes=5-5,99999999999999999999-", 10, {{5, 1}}},
        // In the order of the request, with empty elements and blanks.
        {"bytes=8-9,0-1", 10, {{8, 2}, {0, 2}}},
        {"BYTES=0-1", 10, {{0, 2}}},
        {"bytes=,0-1,,\t 3-4 ,", 10, {{0, 2}, {3, 2}}},
        {"bytes=007-008", 10, {{7, 2}}},
    };
    for (const auto& each : cases) {
        const auto ranges = parse_ranges(each.value, each.size);

        EXPECT_EQ(ranges.is, range_verdict::satisfiable) << each.value;
        EXPECT_EQ(ranges_in(ranges), each.expected) << each.value;
    }
}

TEST(ranges_test, ranges_that_begin_behind_the_end_are_unsatisfiable) {
    for (const std::string_view value :
         {"bytes=10-", "bytes=10-20", "bytes=-0", "bytes=10-,20-30", "bytes=10-,-0",
          "bytes=18446744073709551615-", "bytes=18446744073709551616-18446744073709551616"}) {
        const auto ranges = parse_ranges(value, 10);

        EXPECT_EQ(ranges.is, range_verdict::unsatisfiable) << value;
        EXPECT_TRUE(ranges.list().empty()) << value;
    }
    EXPECT_EQ(parse_ranges("bytes=0-", 0).is, range_verdict::unsatisfiable);
}

TEST(ranges_test, what_is_malformed_or_of_another_unit_is_ignored) {
    for (const std::string_view value : {"",
                                         "bytes",
                                         "bytes=",
                                         "bytes= ",
                                         "bytes=,",
                                         "=0-1",
                                         "bytes=-",
                                         "bytes=1",
                                         "bytes=a-b",
                                         "bytes=0-1x",
                                         "bytes=x0-1",
                                         "bytes=1-0",
                                         "bytes=0 -1",
                                         "bytes=0- 1",
                                         "bytes=--1",
                                         "bytes=0--1",
                                         "bytes=-1-2",
                                         "bytes=+1-2",
                                         "bytes=0-+2",
                                         "bytes=0x0-1",
                                         "bytes=0-1;2-3",
                                         "bytes=0-1 3-4",
                                         "bytes =0-1",
                                         " bytes=0-1",
                                         "bytes:0-1",
                                         "lines=0-1",
                                         "byte=0-1",
                                         "bytes=0-1,x",
                                         "bytes=0-1,\"",
                                         "bytes=0-1,5-4",
                                         "none",
                                         "bytes=0-1=2",
                                         "bytes=18446744073709551616-0"})
        EXPECT_EQ(parse_ranges(value, 10).is, range_verdict::ignore) << value;
}

TEST(ranges_test, a_suffix_of_nothing_is_ignored) {
    EXPECT_EQ(parse_ranges("bytes=-5", 0).is, range_verdict::ignore);
}

TEST(ranges_test, overlapping_ranges_are_ignored) {
    for (const std::string_view value : {"bytes=0-5,5-9", "bytes=5-9,0-5", "bytes=0-,-1",
                                         "bytes=0-0,0-0", "bytes=0-9,3-4", "bytes=3-4,1-1,0-9"})
        EXPECT_EQ(parse_ranges(value, 10).is, range_verdict::ignore) << value;
}

TEST(ranges_test, at_most_sixteen_are_served) {
    std::string value = "bytes=0-0";
    for (int at = 1; at < 16; ++at)
        value += "," + std::to_string(2 * at) + "-" + std::to_string(2 * at);

    EXPECT_EQ(parse_ranges(value, 100).count, 16);
    EXPECT_EQ(parse_ranges(value + ",50-50", 100).is, range_verdict::ignore);
    EXPECT_EQ(parse_ranges(value + ",500-", 100).is, range_verdict::ignore);
}

TEST(ranges_test, a_content_range_says_what_is_sent) {
    std::array<char, max_content_range> buffer{};
    const auto written = [&](byte_range range, std::uint64_t size) {
        return std::string{http::detail::write_content_range(buffer, range, size)};
    };

    EXPECT_EQ(written({0, 500}, 1234), "bytes 0-499/1234");
    EXPECT_EQ(written({1233, 1}, 1234), "bytes 1233-1233/1234");
    EXPECT_EQ(written({most - 1, 1}, most),
              "bytes 18446744073709551614-18446744073709551614/18446744073709551615");
    EXPECT_EQ(http::detail::write_unsatisfied_range(buffer, 1234), "bytes */1234");
}

} // namespace
} // namespace simplenet::v0::testing
