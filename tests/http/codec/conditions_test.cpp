#include "http/codec/conditions.hpp"

#include "http/codec/date.hpp"
#include "http/codec/placed_fields.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace simplenet::v0::testing {
namespace {

using http::detail::current_representation;
using http::detail::evaluate;
using http::detail::is_entity_tag;
using http::detail::parse_date;
using http::detail::range_to_apply;
using http::detail::strongly_equal;
using http::detail::verdict;
using http::detail::weakly_equal;

constexpr std::string_view earlier = "Sat, 29 Oct 1994 19:43:30 GMT";
constexpr std::string_view changed = "Sat, 29 Oct 1994 19:43:31 GMT";
constexpr std::string_view later = "Sat, 29 Oct 1994 19:43:32 GMT";

current_representation tagged(std::string_view tag) {
    return {.entity_tag = tag, .last_modified = parse_date(changed)};
}

verdict answer(std::string_view method, const placed_fields& fields,
               const current_representation& current = tagged("\"a\"")) {
    return evaluate(method, fields.entries, fields.text(), current);
}

bool range_applies(const placed_fields& fields,
                   const current_representation& current = tagged("\"a\"")) {
    const auto range = range_to_apply("GET", fields.entries, fields.text(), current);
    return range == "bytes=0-1";
}

struct comparison {
    std::string_view left;
    std::string_view right;
    bool strong;
    bool weak;
};

TEST(conditions_test, tags_are_compared_as_the_rfc_shows) {
    // RFC 9110, section 8.8.3.2.
    constexpr comparison cases[] = {
        {"W/\"1\"", "W/\"1\"", false, true},
        {"W/\"1\"", "W/\"2\"", false, false},
        {"W/\"1\"", "\"1\"", false, true},
        {"\"1\"", "\"1\"", true, true},
    };
    for (const auto& [left, right, strong, weak] : cases) {
        EXPECT_EQ(strongly_equal(left, right), strong) << left << ' ' << right;
        EXPECT_EQ(strongly_equal(right, left), strong) << left << ' ' << right;
        EXPECT_EQ(weakly_equal(left, right), weak) << left << ' ' << right;
        EXPECT_EQ(weakly_equal(right, left), weak) << left << ' ' << right;
    }
}

TEST(conditions_test, a_tag_is_quoted_text_without_blanks) {
    for (const std::string_view tag : {"\"\"", "\"a\"", "W/\"\"", "\"a,b\"", "\"a\\\"", "\"\xe4\""})
        EXPECT_TRUE(is_entity_tag(tag)) << tag;
    for (const std::string_view tag :
         {"", "a", "\"", "\"a", "a\"", "w/\"a\"", "W/a", "W/", "W\"a\"", "W/ \"a\"", "\"a b\"",
          "\"a\"b\"", "\"a\"x", "*", "\"\x7f\""})
        EXPECT_FALSE(is_entity_tag(tag)) << tag;
}

TEST(conditions_test, a_request_without_conditions_proceeds) {
    for (const std::string_view method : {"GET", "HEAD", "PUT", "DELETE"})
        EXPECT_EQ(answer(method, {{"Host", "a"}, {"If-Unknown", "\"a\""}}), verdict::proceed);
}

struct list_case {
    std::string_view list;
    std::string_view current;
    bool listed;
};

TEST(conditions_test, if_match_needs_a_strongly_equal_tag) {
    constexpr list_case cases[] = {
        {"\"a\"", "\"a\"", true},
        {"\"b\", \"a\"", "\"a\"", true},
        {"\"b\" ,\t\"c\"", "\"a\"", false},
        {",, \"a\" ,", "\"a\"", true},
        {"*", "\"a\"", true},
        {"*", "", true},
        {"\"a\"", "", false},
        {"\"\"", "", false},
        {"W/\"a\"", "\"a\"", false},
        {"\"a\"", "W/\"a\"", false},
        {"W/\"a\"", "W/\"a\"", false},
        {"\"x,y\"", "\"x,y\"", true},
        {"\"A\"", "\"a\"", false},
        {"", "\"a\"", false},
        // Lists that cannot be read match nothing.
        {"a", "\"a\"", false},
        {"\"a\", b", "\"a\"", false},
        {"\"a\" \"b\"", "\"a\"", false},
        {"\"a\", *", "\"a\"", false},
        {"*, \"a\"", "\"a\"", false},
        {"\"a", "\"a\"", false},
    };
    for (const auto& [list, current, listed] : cases) {
        for (const std::string_view method : {"GET", "PUT"})
            EXPECT_EQ(answer(method, {{"If-Match", list}}, tagged(current)),
                      listed ? verdict::proceed : verdict::precondition_failed)
                << list << ' ' << current;
    }
}

TEST(conditions_test, if_none_match_compares_weakly) {
    constexpr list_case cases[] = {
        {"\"a\"", "\"a\"", true},
        {"W/\"a\"", "\"a\"", true},
        {"\"a\"", "W/\"a\"", true},
        {"W/\"a\"", "W/\"a\"", true},
        {"\"b\",W/\"a\"", "\"a\"", true},
        {"\"b\"", "\"a\"", false},
        {"*", "\"a\"", true},
        {"*", "", true},
        {"\"a\"", "", false},
        {"", "\"a\"", false},
    };
    for (const auto& [list, current, listed] : cases) {
        const placed_fields fields{{"if-none-match", list}};

        EXPECT_EQ(answer("GET", fields, tagged(current)),
                  listed ? verdict::not_modified : verdict::proceed)
            << list << ' ' << current;
        EXPECT_EQ(answer("HEAD", fields, tagged(current)), answer("GET", fields, tagged(current)));
        EXPECT_EQ(answer("PUT", fields, tagged(current)),
                  listed ? verdict::precondition_failed : verdict::proceed)
            << list << ' ' << current;
    }
}

TEST(conditions_test, an_unreadable_if_none_match_gives_the_whole_answer_but_lets_nothing_change) {
    for (const std::string_view list : {"a", "\"a", "\"a\" \"b\"", "*, \"a\"", "\"a\", *", "W/a"}) {
        EXPECT_EQ(answer("GET", {{"If-None-Match", list}}), verdict::proceed) << list;
        EXPECT_EQ(answer("PUT", {{"If-None-Match", list}}), verdict::precondition_failed) << list;
    }
}

TEST(conditions_test, several_fields_are_one_list) {
    EXPECT_EQ(answer("PUT", {{"If-Match", "\"b\""}, {"If-Match", "\"a\""}}), verdict::proceed);
    EXPECT_EQ(answer("PUT", {{"If-Match", "\"a\""}, {"If-Match", "\"b\""}}), verdict::proceed);
    EXPECT_EQ(answer("GET", {{"If-None-Match", "\"b\""}, {"IF-NONE-MATCH", "\"a\""}}),
              verdict::not_modified);
    EXPECT_EQ(answer("PUT", {{"If-Match", "*"}, {"If-Match", "\"a\""}}),
              verdict::precondition_failed);
    EXPECT_EQ(answer("PUT", {{"If-Match", "\"a\""}, {"If-Match", "*"}}),
              verdict::precondition_failed);
}

TEST(conditions_test, an_asterisk_asks_whether_anything_exists) {
    const current_representation nothing{.exists = false, .entity_tag = {}, .last_modified = {}};

    EXPECT_EQ(answer("PUT", {{"If-Match", "*"}}, nothing), verdict::precondition_failed);
    EXPECT_EQ(answer("PUT", {{"If-None-Match", "*"}}, nothing), verdict::proceed);
    EXPECT_EQ(answer("PUT", {{"If-None-Match", "*"}}), verdict::precondition_failed);
}

TEST(conditions_test, if_modified_since_is_for_reading) {
    EXPECT_EQ(answer("GET", {{"If-Modified-Since", earlier}}), verdict::proceed);
    EXPECT_EQ(answer("GET", {{"If-Modified-Since", changed}}), verdict::not_modified);
    EXPECT_EQ(answer("HEAD", {{"If-Modified-Since", later}}), verdict::not_modified);
    EXPECT_EQ(answer("PUT", {{"If-Modified-Since", later}}), verdict::proceed);
}

TEST(conditions_test, if_unmodified_since_is_for_every_method) {
    for (const std::string_view method : {"GET", "PUT"}) {
        EXPECT_EQ(answer(method, {{"If-Unmodified-Since", earlier}}), verdict::precondition_failed);
        EXPECT_EQ(answer(method, {{"If-Unmodified-Since", changed}}), verdict::proceed);
        EXPECT_EQ(answer(method, {{"If-Unmodified-Since", later}}), verdict::proceed);
    }
}

TEST(conditions_test, a_date_that_is_none_or_not_alone_is_ignored) {
    EXPECT_EQ(answer("GET", {{"If-Modified-Since", "tomorrow"}}), verdict::proceed);
    EXPECT_EQ(answer("GET", {{"If-Unmodified-Since", "yesterday"}}), verdict::proceed);
    EXPECT_EQ(answer("GET", {{"If-Modified-Since", later}, {"If-Modified-Since", later}}),
              verdict::proceed);
    EXPECT_EQ(answer("GET", {{"If-Modified-Since", later}}, {.entity_tag = "\"a\""}),
              verdict::proceed);
}

TEST(conditions_test, tags_are_preferred_to_dates) {
    // RFC 9110, sections 13.1.3, 13.1.4 and 13.2.2.
    EXPECT_EQ(answer("GET", {{"If-None-Match", "\"b\""}, {"If-Modified-Since", later}}),
              verdict::proceed);
    EXPECT_EQ(answer("GET", {{"If-None-Match", "\"a\""}, {"If-Modified-Since", earlier}}),
              verdict::not_modified);
    EXPECT_EQ(answer("GET", {{"If-None-Match", "a"}, {"If-Modified-Since", later}}),
              verdict::proceed);
    EXPECT_EQ(answer("PUT", {{"If-Match", "\"a\""}, {"If-Unmodified-Since", earlier}}),
              verdict::proceed);
}

TEST(conditions_test, what_must_match_is_asked_before_what_must_not) {
    EXPECT_EQ(answer("GET", {{"If-None-Match", "\"a\""}, {"If-Match", "\"b\""}}),
              verdict::precondition_failed);
    EXPECT_EQ(answer("GET", {{"If-None-Match", "\"a\""}, {"If-Match", "\"a\""}}),
              verdict::not_modified);
    EXPECT_EQ(answer("GET", {{"If-Modified-Since", later}, {"If-Unmodified-Since", earlier}}),
              verdict::precondition_failed);
}

TEST(conditions_test, a_range_applies_if_the_client_has_the_same_representation) {
    EXPECT_TRUE(range_applies({{"Range", "bytes=0-1"}}));
    EXPECT_TRUE(range_applies({{"Range", "bytes=0-1"}, {"If-Range", "\"a\""}}));
    EXPECT_TRUE(range_applies({{"Range", "bytes=0-1"}, {"If-Range", changed}}));
    for (const std::string_view condition :
         {"\"b\"", "W/\"a\"", "a", "", "*", "\"a\", \"b\"", "Sat, 29 Oct 1994 19:43:30 GMT",
          "Sat, 29 Oct 1994 19:43:32 GMT"})
        EXPECT_FALSE(range_applies({{"Range", "bytes=0-1"}, {"If-Range", condition}})) << condition;
}

TEST(conditions_test, a_weak_or_missing_validator_makes_no_range_apply) {
    const placed_fields by_tag{{"Range", "bytes=0-1"}, {"If-Range", "W/\"a\""}};
    const placed_fields by_date{{"Range", "bytes=0-1"}, {"If-Range", changed}};

    EXPECT_FALSE(range_applies(by_tag, tagged("W/\"a\"")));
    EXPECT_FALSE(range_applies(by_tag, {}));
    EXPECT_FALSE(range_applies(by_date, {.entity_tag = "\"a\""}));
}

TEST(conditions_test, ranges_are_for_get_and_stand_alone) {
    const placed_fields one{{"Range", "bytes=0-1"}};

    EXPECT_FALSE(range_to_apply("HEAD", one.entries, one.text(), {}));
    EXPECT_FALSE(range_applies({{"Range", "bytes=0-1"}, {"Range", "bytes=0-1"}}));
    EXPECT_FALSE(
        range_applies({{"Range", "bytes=0-1"}, {"If-Range", "\"a\""}, {"If-Range", "\"a\""}}));
    EXPECT_FALSE(range_applies({{"If-Range", "\"a\""}}));
}

} // namespace
} // namespace simplenet::v0::testing
