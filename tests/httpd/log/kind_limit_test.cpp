#include "httpd/log/kind_limit.hpp"

#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace httpd {
namespace {

using suppressed = std::vector<std::pair<std::string_view, std::uint64_t>>;

suppressed taken(kind_limit& from) {
    suppressed all;
    from.take_suppressed(
        [&](std::string_view kind, std::uint64_t count) { all.emplace_back(kind, count); });
    return all;
}

constexpr std::string_view first = "first";
constexpr std::string_view second = "second";

TEST(kind_limit_test, admits_so_many_in_a_second_and_counts_the_others) {
    kind_limit limit{2};

    EXPECT_TRUE(limit.admit(first, 7));
    EXPECT_TRUE(limit.admit(first, 7));
    EXPECT_FALSE(limit.admit(first, 7));
    EXPECT_FALSE(limit.admit(first, 7));
    EXPECT_TRUE(limit.admit(first, 8));

    EXPECT_EQ(taken(limit), (suppressed{{first, 2}}));
    EXPECT_EQ(taken(limit), suppressed{});
}

TEST(kind_limit_test, kinds_do_not_count_for_each_other) {
    kind_limit limit{1};

    EXPECT_TRUE(limit.admit(first, 7));
    EXPECT_TRUE(limit.admit(second, 7));
    EXPECT_FALSE(limit.admit(second, 7));

    EXPECT_EQ(taken(limit), (suppressed{{second, 1}}));
}

TEST(kind_limit_test, zero_is_no_limit) {
    kind_limit limit{0};

    for (int count = 0; count < 1000; ++count)
        EXPECT_TRUE(limit.admit(first, 7));
}

TEST(kind_limit_test, threads_together_have_one_limit) {
    kind_limit limit{100};
    std::atomic<int> admitted = 0;
    {
        std::vector<std::jthread> threads;
        for (int number = 0; number < 4; ++number) {
            threads.emplace_back([&] {
                for (int count = 0; count < 1000; ++count)
                    if (limit.admit(first, 7)) ++admitted;
            });
        }
    }

    EXPECT_EQ(admitted, 100);
    EXPECT_EQ(taken(limit), (suppressed{{first, 3900}}));
}

} // namespace
} // namespace httpd
