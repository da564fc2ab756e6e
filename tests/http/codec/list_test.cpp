#include "http/codec/list.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::string_view_literals;
using namespace http::detail;

struct split_list {
    bool complete = false;
    std::vector<std::string> elements;

    friend bool operator==(const split_list&, const split_list&) = default;
};

split_list split(std::string_view list) {
    split_list result;
    result.complete = for_each_element(list, [&result](std::string_view element) {
        result.elements.emplace_back(element);
        return true;
    });
    return result;
}

TEST(list_test, elements_are_separated_by_commas_and_lose_their_blanks) {
    EXPECT_EQ(split("a, b\t,c d"), (split_list{true, {"a", "b", "c d"}}));
}

TEST(list_test, empty_elements_are_passed_on) {
    EXPECT_EQ(split(""), (split_list{true, {""}}));
    EXPECT_EQ(split(", ,a"), (split_list{true, {"", "", "a"}}));
}

TEST(list_test, a_comma_in_a_quoted_string_separates_nothing) {
    EXPECT_EQ(split(R"(a="x,y", b)"), (split_list{true, {R"(a="x,y")", "b"}}));
    EXPECT_EQ(split(R"("\",", b)"), (split_list{true, {R"("\",")", "b"}}));
    EXPECT_EQ(split(R"("\\",b)"), (split_list{true, {R"("\\")", "b"}}));
}

TEST(list_test, a_backslash_outside_of_a_string_quotes_nothing) {
    EXPECT_EQ(split(R"(a\,b)"), (split_list{true, {R"(a\)", "b"}}));
}

TEST(list_test, a_string_that_does_not_end_is_reported) {
    EXPECT_EQ(split(R"(a, "b, c)"), (split_list{false, {"a"}}));
    EXPECT_EQ(split(R"("a\")"), (split_list{false, {}}));
    EXPECT_EQ(split(R"("a\)"), (split_list{false, {}}));
}

TEST(list_test, the_caller_can_end_the_loop) {
    int count = 0;

    EXPECT_FALSE(for_each_element("a,b,c", [&count](std::string_view) { return ++count < 2; }));
    EXPECT_EQ(count, 2);
}

TEST(list_test, case_is_ignored_in_ascii_only) {
    EXPECT_TRUE(iequals("Content-LENGTH", "content-length"));
    EXPECT_TRUE(iequals("", ""));
    EXPECT_FALSE(iequals("a", "ab"));
    EXPECT_FALSE(iequals("[", "{"));
    EXPECT_FALSE(iequals("\xc4", "\xe4"));
}

TEST(list_test, a_token_is_neither_empty_nor_has_delimiters) {
    for (const std::string_view good : {"a"sv, "!#$%&'*+-.^_`|~09AZaz"sv})
        EXPECT_TRUE(is_token(good)) << good;
    for (const std::string_view bad :
         {""sv, "a b"sv, "a:"sv, "\"a\""sv, "a\x80"sv, "a\0"sv, "a/b"sv})
        EXPECT_FALSE(is_token(bad)) << bad;
}

TEST(list_test, a_value_has_no_controls) {
    for (const std::string_view good : {""sv, " a\tb "sv, "\x80\xff"sv, "a, \"b\""sv})
        EXPECT_TRUE(valid_field_value(good)) << good;
    for (const std::string_view bad :
         {"a\r"sv, "a\nb"sv, "a\0"sv, "\x7f"sv, "\x1f"sv, "0123456789abcdef\r\nSet-Cookie: a"sv})
        EXPECT_FALSE(valid_field_value(bad)) << bad;
}

TEST(list_test, blanks_are_trimmed_at_both_ends) {
    EXPECT_EQ(trim_blanks(" \t a b\t "), "a b");
    EXPECT_EQ(trim_blanks(" \t"), "");
    EXPECT_EQ(trim_blanks("\xa0"), "\xa0");
}

} // namespace
} // namespace simplenet::v0::testing
