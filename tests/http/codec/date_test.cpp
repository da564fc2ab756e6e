#include "http/codec/date.hpp"

#include <gtest/gtest.h>

#include <array>
#include <ctime>
#include <limits>
#include <random>
#include <string>
#include <string_view>

namespace simplenet::v0::testing {
namespace {

using http::detail::date_now;
using http::detail::date_size;
using http::detail::now_seconds;
using http::detail::parse_date;

constexpr std::time_t example = 784'111'777; // of RFC 9110, section 5.6.7
constexpr std::time_t year_1994 = 757'382'400;

std::string formatted(std::time_t time) {
    char text[date_size];
    http::detail::format_date(time, text);
    return {text, date_size};
}

/// An independent answer: the C library's, in the "C" locale.
std::string formatted_by_c(std::time_t time) {
    std::tm parts{};
    ::gmtime_r(&time, &parts);
    std::array<char, 64> text{};
    const auto size = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    return {text.data(), size};
}

TEST(date_test, a_time_is_written_as_the_rfc_shows) {
    EXPECT_EQ(formatted(example), "Sun, 06 Nov 1994 08:49:37 GMT");
    EXPECT_EQ(formatted(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    EXPECT_EQ(formatted(-1), "Wed, 31 Dec 1969 23:59:59 GMT");
    EXPECT_EQ(formatted(951'782'400), "Tue, 29 Feb 2000 00:00:00 GMT");
    EXPECT_EQ(formatted(2'147'483'648), "Tue, 19 Jan 2038 03:14:08 GMT");
}

TEST(date_test, a_year_without_four_digits_is_written_as_the_nearest_that_has_them) {
    EXPECT_EQ(formatted(std::numeric_limits<std::time_t>::max()), "Fri, 31 Dec 9999 23:59:59 GMT");
    EXPECT_EQ(formatted(std::numeric_limits<std::time_t>::min()), "Mon, 01 Jan 0001 00:00:00 GMT");
}

TEST(date_test, the_text_agrees_with_the_c_library_and_can_be_read_again) {
    std::mt19937_64 random{1};
    std::uniform_int_distribution<std::time_t> times{-30'000'000'000, 253'402'300'799};
    for (int round = 0; round < 20'000; ++round) {
        const std::time_t time = times(random);
        const std::string text = formatted(time);

        ASSERT_EQ(text, formatted_by_c(time));
        ASSERT_EQ(parse_date(text), time) << text;
    }
}

TEST(date_test, all_three_forms_are_read) {
    for (const std::string_view text :
         {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
          "Sun Nov  6 08:49:37 1994"})
        EXPECT_EQ(parse_date(text), example) << text;
    EXPECT_EQ(parse_date("Wed Nov 16 08:49:37 1994"), example + 10 * 86'400);
}

TEST(date_test, a_leap_second_is_the_first_of_the_next_minute) {
    EXPECT_EQ(parse_date("Fri, 30 Jun 1972 23:59:60 GMT"),
              parse_date("Sat, 01 Jul 1972 00:00:00 GMT"));
    EXPECT_EQ(formatted(*parse_date("Fri, 31 Dec 9999 23:59:60 GMT")),
              "Fri, 31 Dec 9999 23:59:59 GMT");
}

TEST(date_test, a_year_of_two_digits_is_at_most_fifty_years_ahead) {
    struct century {
        std::string_view text;
        std::string_view expected;
    };
    constexpr century cases[] = {
        {"Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"},
        {"Monday, 01-Jan-43 00:00:00 GMT", "Thu, 01 Jan 2043 00:00:00 GMT"},
        {"Friday, 01-Jan-45 00:00:00 GMT", "Mon, 01 Jan 1945 00:00:00 GMT"},
        // 1994-01-01 is the first day of the year: only its very beginning is not further away.
        {"Friday, 01-Jan-44 00:00:00 GMT", "Fri, 01 Jan 2044 00:00:00 GMT"},
        {"Friday, 01-Jan-44 00:00:01 GMT", "Sat, 01 Jan 1944 00:00:01 GMT"},
    };
    for (const auto& each : cases) {
        const auto read = parse_date(each.text, year_1994);
        ASSERT_TRUE(read) << each.text;
        EXPECT_EQ(formatted(*read), each.expected) << each.text;
    }
}

TEST(date_test, a_clock_that_was_never_set_is_taken_for_1970) {
    EXPECT_EQ(parse_date("Sunday, 06-Nov-94 08:49:37 GMT", std::numeric_limits<std::time_t>::min()),
              example);
}

TEST(date_test, what_is_not_exactly_a_date_is_refused) {
    for (const std::string_view text : {"",
                                        "0",
                                        "Sun",
                                        "Sun,",
                                        "Sunday",
                                        "Sun, 06 Nov 1994 08:49:37",
                                        "Sun, 06 Nov 1994 08:49:37 GMT ",
                                        " Sun, 06 Nov 1994 08:49:37 GMT",
                                        "sun, 06 Nov 1994 08:49:37 GMT",
                                        "Sun, 06 nov 1994 08:49:37 GMT",
                                        "Sun, 06 Nov 1994 08:49:37 gmt",
                                        "Sun, 06 Nov 1994 08:49:37 UTC",
                                        "Sun, 06 Nov 1994 08:49:37 +0000",
                                        "Sun, 6 Nov 1994 08:49:37 GMT",
                                        "Sun,  6 Nov 1994 08:49:37 GMT",
                                        "Sun, 06 Nov 94 08:49:37 GMT",
                                        "Sun, 06 Nov 01994 08:49:37 GMT",
                                        "Sun, 06-Nov-1994 08:49:37 GMT",
                                        "Sun, 06 Nov 1994  08:49:37 GMT",
                                        "Sun, 06 Nov 1994 8:49:37 GMT",
                                        "Sun, 06 Nov 1994 08:49 GMT",
                                        "Sux, 06 Nov 1994 08:49:37 GMT",
                                        "Sun, 06 Nov -994 08:49:37 GMT",
                                        "Sun, +6 Nov 1994 08:49:37 GMT",
                                        "Sun 06 Nov 1994 08:49:37 GMT",
                                        "Sunday, 06 Nov 1994 08:49:37 GMT",
                                        "Sun, 06-Nov-94 08:49:37 GMT",
                                        "Sunday, 06-Nov-1994 08:49:37 GMT",
                                        "Sun Nov  6 08:49:37 1994 GMT",
                                        "Sun Nov 6 08:49:37 1994",
                                        "Sun Nov   6 08:49:37 1994",
                                        "Sunday Nov  6 08:49:37 1994",
                                        "Sun Nov  6 08:49:37 94"})
        EXPECT_FALSE(parse_date(text)) << text;
}

TEST(date_test, a_day_or_a_time_that_does_not_exist_is_refused) {
    for (const std::string_view text :
         {"Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT",
          "Sun, 29 Feb 1994 08:49:37 GMT", "Sun, 29 Feb 1900 08:49:37 GMT",
          "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:00 GMT",
          "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06 Nov 0000 08:49:37 GMT",
          "Sun Nov  0 08:49:37 1994", "Sun Nov 32 08:49:37 1994"})
        EXPECT_FALSE(parse_date(text)) << text;
    EXPECT_TRUE(parse_date("Tue, 29 Feb 2000 00:00:00 GMT"));
}

TEST(date_test, the_name_of_the_day_is_not_compared_with_the_date) {
    EXPECT_EQ(parse_date("Mon, 06 Nov 1994 08:49:37 GMT"), example);
}

TEST(date_test, the_present_is_written_as_a_date) {
    const std::time_t before = now_seconds();
    const auto written = parse_date(date_now());
    const std::time_t after = now_seconds();

    ASSERT_TRUE(written);
    EXPECT_LE(before, *written);
    EXPECT_LE(*written, after);
    EXPECT_LE(std::time(nullptr) - after, 1);
}

} // namespace
} // namespace simplenet::v0::testing
