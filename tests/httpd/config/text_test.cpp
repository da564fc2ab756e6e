#include "httpd/config/text.hpp"

#include <array>
#include <string_view>

#include <gmock/gmock.h>

namespace {

using namespace httpd;
using namespace std::chrono_literals;

TEST(httpd_text_test, durations_are_a_whole_number_and_a_unit) {
    EXPECT_EQ(parse_duration("250ms"), 250ms);
    EXPECT_EQ(parse_duration("10s"), 10s);
    EXPECT_EQ(parse_duration("5m"), 5min);
    EXPECT_EQ(parse_duration("1h"), 1h);
    EXPECT_EQ(parse_duration("0s"), 0s);
}

TEST(httpd_text_test, other_texts_are_not_durations) {
    for (const std::string_view text : {"", "s", "10", "1.5s", "-1s", "+1s", "1 s", "1s ", "1d",
                                        "1S", "9999999999999h", "18446744073709551616s"})
        EXPECT_EQ(parse_duration(text), std::nullopt) << text;
}

TEST(httpd_text_test, sizes_are_a_whole_number_with_or_without_a_unit) {
    EXPECT_EQ(parse_size("4096"), 4096U);
    EXPECT_EQ(parse_size("8KiB"), 8192U);
    EXPECT_EQ(parse_size("1MiB"), 1048576U);
    EXPECT_EQ(parse_size("2GiB"), 2147483648U);
}

TEST(httpd_text_test, other_texts_are_not_sizes) {
    for (const std::string_view text :
         {"", "KiB", "8KB", "8kib", "8K", "-1", "1.5MiB", "8 KiB", "9223372036854775808"})
        EXPECT_EQ(parse_size(text), std::nullopt) << text;
}

TEST(httpd_text_test, what_is_formatted_can_be_parsed_to_the_same) {
    for (const auto duration : {0ms, 1ms, 999ms, 1000ms, 1500ms, 60000ms, 90000ms, 3600000ms})
        EXPECT_EQ(parse_duration(format_duration(duration)), duration);
    for (const std::uint64_t size : {0U, 1U, 1023U, 1024U, 1025U, 1048576U, 3221225472U})
        EXPECT_EQ(parse_size(format_size(size)), size);
    EXPECT_EQ(format_duration(90s), "90s");
    EXPECT_EQ(format_size(1536), "1536");
}

TEST(httpd_text_test, the_closest_word_is_one_that_could_have_been_meant) {
    constexpr std::array<std::string_view, 4> known{"keep_connections", "match", "root",
                                                    "streamed"};

    EXPECT_EQ(closest("keep_conections", known), "keep_connections");
    EXPECT_EQ(closest("keepConnections", known), "keep_connections");
    EXPECT_EQ(closest("amtch", known), "match");
    EXPECT_EQ(closest("rot", known), "root");
    EXPECT_EQ(closest("colour", known), "");
    EXPECT_EQ(closest("", known), "");
}

TEST(httpd_text_test, quoting_escapes_what_cannot_be_shown) {
    EXPECT_EQ(quote("a\"b\\c\n\t"), R"("a\"b\\c\n\t")");
    EXPECT_EQ(quote("\x1b[31m\x7f"), R"("\u001b[31m\u007f")");
    EXPECT_EQ(quote("caf\xc3\xa9"), "\"caf\xc3\xa9\"");
    EXPECT_EQ(quote("\xff\xc3"), R"("\u00ff\u00c3")");
    EXPECT_EQ(quote("\xed\xa0\x80"), R"("\u00ed\u00a0\u0080")");
}

} // namespace
