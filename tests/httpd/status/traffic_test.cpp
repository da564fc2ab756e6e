#include "httpd/status/traffic.hpp"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace httpd {
namespace {

using namespace std::chrono_literals;

TEST(traffic_test, requests_are_counted_by_the_class_of_their_status) {
    traffic counted;
    for (const unsigned status : {101U, 200U, 204U, 301U, 404U, 503U, 0U, 999U})
        counted.count({.status = status});

    EXPECT_EQ(counted.figures().requests, (status_classes{2, 1, 2, 1, 1, 1}));
}

TEST(traffic_test, bytes_cuts_and_tls_are_counted) {
    traffic counted;
    counted.count({.status = 200, .body_bytes = 7, .complete = true, .secure = true});
    counted.count({.status = 200, .body_bytes = 8, .complete = false});
    counted.count({.status = 0, .complete = false});

    const auto found = counted.figures();

    EXPECT_EQ(found.bytes, 15U);
    EXPECT_EQ(found.secure, 1U);
    EXPECT_EQ(found.incomplete, 1U);
}

TEST(traffic_test, durations_are_those_of_answers) {
    traffic counted;
    counted.count({.status = 200, .duration = 5ms});
    counted.count({.status = 500, .duration = 7ms});
    counted.count({.status = 0, .duration = 1h});
    counted.count({.status = 200, .duration = -1ns});

    const auto found = counted.figures();

    EXPECT_EQ(found.duration_sum, 12ms);
    EXPECT_EQ(found.durations[duration_buckets::index_of(5ms)], 1U);
    EXPECT_EQ(found.durations[duration_buckets::index_of(7ms)], 1U);
    EXPECT_EQ(found.durations[0], 1U);
}

TEST(traffic_test, sites_are_counted_by_name) {
    traffic counted;
    for (const std::string name : {"a", "b", "a"}) // each text is gone after the call
        counted.count({.status = 200, .body_bytes = 10, .site = name});
    counted.count({.status = 404});

    const auto sites = counted.figures().sites;

    ASSERT_EQ(sites.size(), 2U);
    EXPECT_EQ(sites.at("a").requests, (status_classes{0, 0, 2, 0, 0, 0}));
    EXPECT_EQ(sites.at("a").bytes, 20U);
    EXPECT_EQ(sites.at("b").bytes, 10U);
}

TEST(traffic_test, there_is_a_limit_for_sites) {
    traffic counted;
    for (int number = 0; number < 3000; ++number)
        counted.count({.status = 200, .site = std::to_string(number)});

    EXPECT_EQ(counted.figures().sites.size(), 1024U);
    EXPECT_EQ(counted.figures().requests[2], 3000U);
}

TEST(traffic_test, threads_count_while_others_read) {
    traffic counted;
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&] {
            for (int number = 0; number < 10'000; ++number)
                counted.count({.status = 200, .site = std::to_string(number % 10)});
        });
    }
    std::uint64_t before = 0;
    while (before < 40'000) {
        const auto found = counted.figures().requests[2];
        ASSERT_GE(found, before);
        before = found;
    }
    threads.clear();

    EXPECT_EQ(counted.figures().sites.at("3").requests[2], 4000U);
}

TEST(traffic_test, several_do_not_mix) {
    traffic first;
    traffic second;
    for (int number = 0; number < 10; ++number) {
        first.count({.status = 200});
        second.count({.status = 404});
    }

    EXPECT_EQ(first.figures().requests, (status_classes{0, 0, 10, 0, 0, 0}));
    EXPECT_EQ(second.figures().requests, (status_classes{0, 0, 0, 0, 10, 0}));
}

} // namespace
} // namespace httpd
