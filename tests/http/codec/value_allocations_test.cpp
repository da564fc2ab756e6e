// Functions that a server calls for every request do not allocate.

#include "http/codec/conditions.hpp"
#include "http/codec/date.hpp"
#include "http/codec/negotiate.hpp"
#include "http/codec/ranges.hpp"
#include "http/codec/target.hpp"

#include "http/codec/placed_fields.hpp"
#include "support/counted_allocations.hpp"

#include <gtest/gtest.h>

#include <array>

namespace simplenet::v0::testing {
namespace {

using namespace http::detail;

TEST(value_allocations_test, reading_the_values_of_a_request_does_not_allocate) {
    const placed_fields fields{{"If-None-Match", "\"a\", W/\"b\""},
                               {"If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"},
                               {"Accept-Encoding", "gzip, deflate, br;q=0.5"},
                               {"Range", "bytes=0-1, 4-5"}};
    std::array<char, 100> path{};
    const auto before = allocations.load();

    const auto target = parse_target("GET", "http://[::1]:80/a%2fb/../c//d?e");
    const auto size = normalise_path(target->path, path.data());
    const auto outcome = evaluate("GET", fields.entries, fields.text(), {.entity_tag = "\"c\""});
    const auto range = range_to_apply("GET", fields.entries, fields.text(), {});
    const auto ranges = parse_ranges(*range, 10);
    const auto codings = read_accept_encoding(fields.entries, fields.text());
    const auto date = date_now();

    EXPECT_EQ(allocations.load(), before);
    EXPECT_TRUE(size && outcome == verdict::proceed && ranges.count == 2);
    EXPECT_TRUE(codings.br == 500 && date.size() == date_size);
}

} // namespace
} // namespace simplenet::v0::testing
