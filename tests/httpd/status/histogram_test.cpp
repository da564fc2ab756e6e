#include "httpd/status/histogram.hpp"

#include <chrono>
#include <cstdint>

#include <gtest/gtest.h>

namespace httpd {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

TEST(histogram_test, each_bucket_begins_where_the_one_before_ends) {
    for (std::size_t index = 0; index + 1 < duration_buckets::count; ++index) {
        const auto end = duration_buckets::end_of(index);

        ASSERT_EQ(duration_buckets::index_of(end - 1ns), index);
        ASSERT_EQ(duration_buckets::index_of(end), index + 1);
    }
}

TEST(histogram_test, buckets_are_no_wider_than_a_sixteenth) {
    for (std::size_t index = 1; index + 1 < duration_buckets::count; ++index) {
        const auto begin = duration_buckets::end_of(index - 1);

        ASSERT_LE(duration_buckets::end_of(index) - begin, begin / 16);
    }
}

TEST(histogram_test, the_first_and_the_last_bucket_take_the_rest) {
    EXPECT_EQ(duration_buckets::index_of(0ns), 0U);
    EXPECT_EQ(duration_buckets::index_of(-5ns), 0U);
    EXPECT_EQ(duration_buckets::index_of(nanoseconds::max()), duration_buckets::count - 1);
    EXPECT_EQ(duration_buckets::end_of(duration_buckets::count - 2), nanoseconds{1LL << 37});
}

TEST(histogram_test, percentiles_are_right_to_a_bucket) {
    duration_counts counts{};
    for (int milliseconds = 1; milliseconds <= 1000; ++milliseconds)
        ++counts[duration_buckets::index_of(std::chrono::milliseconds{milliseconds})];

    for (const double q : {0.5, 0.9, 0.99, 0.999}) {
        const auto found = std::chrono::duration<double, std::milli>{percentile(counts, q)}.count();

        EXPECT_GE(found, 1000 * q);
        EXPECT_LE(found, 1000 * q * 17 / 16 + 1);
    }
}

TEST(histogram_test, percentiles_of_nothing_are_zero) {
    EXPECT_EQ(percentile(duration_counts{}, 0.5), 0ns);
}

} // namespace
} // namespace httpd
