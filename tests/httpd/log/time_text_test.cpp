#include "httpd/log/time_text.hpp"

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <string>

#include <gtest/gtest.h>

namespace httpd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::system_clock;

/// Sets the time zone for a test. The other threads of the test program use none.
class time_text_test : public ::testing::Test {
protected:
    static void set_zone(const char* name) {
        ::setenv("TZ", name, 1); // NOLINT(concurrency-mt-unsafe)
        ::tzset();
    }
    void TearDown() override { set_zone("UTC0"); }

    [[nodiscard]] std::string apache(std::chrono::nanoseconds since_1970) {
        char text[time_text::apache_size];
        texts_.append_apache(text, at(since_1970));
        return {text, sizeof text};
    }
    [[nodiscard]] std::string iso(std::chrono::nanoseconds since_1970) {
        char text[time_text::iso_size];
        texts_.append_iso(text, at(since_1970));
        return {text, sizeof text};
    }

private:
    static system_clock::time_point at(std::chrono::nanoseconds since_1970) {
        return system_clock::time_point{
            std::chrono::duration_cast<system_clock::duration>(since_1970)};
    }

    time_text texts_;
};

constexpr seconds example{971'211'336}; // in the documentation of Apache's mod_log_config

TEST_F(time_text_test, apache_writes_the_time_with_its_zone) {
    set_zone("PST8PDT,M4.1.0,M10.5.0");

    EXPECT_EQ(apache(example), "[10/Oct/2000:13:55:36 -0700]");
}

TEST_F(time_text_test, zones_to_the_east_and_between_hours_are_written) {
    set_zone("NPT-5:45");

    EXPECT_EQ(apache(example), "[11/Oct/2000:02:40:36 +0545]");
}

TEST_F(time_text_test, the_change_to_winter_time_is_seen) {
    set_zone("CET-1CEST,M3.5.0,M10.5.0/3");
    constexpr seconds change{1'729'990'800}; // 27 October 2024, 01:00 UTC

    EXPECT_EQ(apache(change - seconds{1}), "[27/Oct/2024:02:59:59 +0200]");
    EXPECT_EQ(apache(change), "[27/Oct/2024:02:00:00 +0100]");
    EXPECT_EQ(apache(change - seconds{1}), "[27/Oct/2024:02:59:59 +0200]");
}

TEST_F(time_text_test, iso_has_milliseconds_and_is_in_utc) {
    set_zone("NPT-5:45");

    EXPECT_EQ(iso(example + milliseconds{7}), "2000-10-10T20:55:36.007Z");
    EXPECT_EQ(iso(example + milliseconds{999}), "2000-10-10T20:55:36.999Z");
    EXPECT_EQ(iso(-milliseconds{1}), "1969-12-31T23:59:59.999Z");
}

TEST_F(time_text_test, every_second_of_two_days_is_what_the_c_library_says) {
    set_zone("CET-1CEST,M3.5.0,M10.5.0/3");

    for (seconds each{1'711'756'800}; each < seconds{1'711'929'600}; each += seconds{7}) {
        const std::time_t time = each.count();
        std::tm parts{};
        ::localtime_r(&time, &parts);
        char wanted[64];
        ASSERT_NE(std::strftime(wanted, sizeof wanted, "[%d/%b/%Y:%H:%M:%S %z]", &parts), 0U);
        ASSERT_EQ(apache(each), wanted);
    }
}

} // namespace
} // namespace httpd
