#include "httpd/process/crowd_watch.hpp"

#include <gtest/gtest.h>

#include <cstddef>

namespace httpd {

namespace {

constexpr std::size_t crowd = crowd_watch::smallest_crowd;

TEST(crowd_watch_test, a_crowd_that_stays_has_not_left) {
    crowd_watch watch;
    EXPECT_FALSE(watch.has_crowd_left(0));
    EXPECT_FALSE(watch.has_crowd_left(crowd));
    EXPECT_FALSE(watch.has_crowd_left(crowd * 2));
    EXPECT_FALSE(watch.has_crowd_left(crowd + 1));
}

TEST(crowd_watch_test, each_half_that_leaves_is_told_once) {
    crowd_watch watch;
    EXPECT_FALSE(watch.has_crowd_left(crowd * 4));
    EXPECT_TRUE(watch.has_crowd_left(crowd * 2));
    EXPECT_FALSE(watch.has_crowd_left(crowd * 2));
    EXPECT_FALSE(watch.has_crowd_left(crowd + 1));
    EXPECT_TRUE(watch.has_crowd_left(crowd));
    EXPECT_TRUE(watch.has_crowd_left(0));
    EXPECT_FALSE(watch.has_crowd_left(0));
}

TEST(crowd_watch_test, a_few_are_no_crowd) {
    crowd_watch watch;
    EXPECT_FALSE(watch.has_crowd_left(crowd - 1));
    EXPECT_FALSE(watch.has_crowd_left(0));
}

TEST(crowd_watch_test, another_crowd_is_told_as_well) {
    crowd_watch watch;
    for (int round = 0; round < 3; ++round) {
        EXPECT_FALSE(watch.has_crowd_left(crowd)) << round;
        EXPECT_TRUE(watch.has_crowd_left(1)) << round;
    }
}

} // namespace

} // namespace httpd
