#include "insight/metrics_page.hpp"

#include "support/promtool.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace simplenet::v0::testing {
namespace {

using detail::metric;
using detail::metric_kind;
using detail::metrics_page;
using namespace std::string_view_literals;

constexpr metric requests{"test_requests_total", "Requests.", metric_kind::counter};
constexpr metric open{"test_open", "Open connections.", metric_kind::gauge};
constexpr metric age{"test_age_seconds", "Age.", metric_kind::gauge};

std::string label_text(std::string_view value) {
    metrics_page page;
    page.add(open, {{"name", value}}, 1);
    const std::string text = page.text();
    const std::size_t begin = text.find("name=\"") + 6;
    return text.substr(begin, text.rfind('"') - begin);
}

std::string number_text(double value) {
    metrics_page page;
    page.add(age, {}, value);
    const std::string text = page.text();
    const std::size_t begin = text.rfind(' ') + 1;
    return text.substr(begin, text.size() - begin - 1);
}

TEST(metrics_page_test, an_empty_page_has_no_text) {
    EXPECT_EQ(metrics_page{}.text(), "");
}

TEST(metrics_page_test, a_family_has_its_help_and_type_once) {
    metrics_page page;
    page.add(requests, {{"server", "a"}, {"loop", "0"}}, 3);
    page.add(open, {{"server", "a"}}, -1);
    page.add(requests, {{"server", "b"}, {"loop", "1"}}, 4);
    page.add(age, {}, 0.5);

    EXPECT_EQ(page.text(), "# HELP test_requests_total Requests.\n"
                           "# TYPE test_requests_total counter\n"
                           "test_requests_total{server=\"a\",loop=\"0\"} 3\n"
                           "test_requests_total{server=\"b\",loop=\"1\"} 4\n"
                           "# HELP test_open Open connections.\n"
                           "# TYPE test_open gauge\n"
                           "test_open{server=\"a\"} -1\n"
                           "# HELP test_age_seconds Age.\n"
                           "# TYPE test_age_seconds gauge\n"
                           "test_age_seconds 0.5\n");
}

TEST(metrics_page_test, labels_are_escaped) {
    EXPECT_EQ(label_text("plain [::1]:80 {}=,"), "plain [::1]:80 {}=,");
    EXPECT_EQ(label_text("a\"b"), "a\\\"b");
    EXPECT_EQ(label_text("a\\b"), "a\\\\b");
    EXPECT_EQ(label_text("a\nb"), "a\\nb");
    EXPECT_EQ(label_text("\\n"), "\\\\n");
    EXPECT_EQ(label_text(""), "");
}

TEST(metrics_page_test, utf_8_is_kept_and_everything_else_is_replaced) {
    for (const std::string_view good :
         {"\xc2\x80", "\xc3\xa4", "\xdf\xbf", "\xe0\xa0\x80", "\xe2\x82\xac", "\xed\x9f\xbf",
          "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
        EXPECT_EQ(label_text(good), good);
        EXPECT_EQ(label_text(std::string{good} + "x"), std::string{good} + "x");
    }
    constexpr std::string_view replaced = "\xef\xbf\xbd";
    EXPECT_EQ(label_text("a\xff"
                         "b"),
              std::string{"a"} + std::string{replaced} + "b");
    for (const std::string_view bad :
         {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3x", "\xe0\x80\x80", "\xe0\x9f\xbf",
          "\xe2\x82", "\xe2\x82x", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x80\x80\x80",
          "\xf0\x9f\x98", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xfe", "\xff"}) {
        const std::string text = label_text(bad);
        EXPECT_TRUE(text.starts_with(replaced)) << text;
    }
}

TEST(metrics_page_test, the_help_is_escaped_except_for_quotes) {
    metrics_page page;
    page.add(metric{"test_help", "a \"b\" \\ c\nd", metric_kind::gauge}, {}, 1);
    EXPECT_TRUE(page.text().starts_with("# HELP test_help a \"b\" \\\\ c\\nd\n"));
}

TEST(metrics_page_test, numbers_keep_their_value) {
    EXPECT_EQ(number_text(0), "0");
    EXPECT_EQ(number_text(0.1), "0.1");
    EXPECT_EQ(number_text(-2.5), "-2.5");
    EXPECT_EQ(number_text(1e300), "1e+300");
    EXPECT_EQ(number_text(std::numeric_limits<double>::denorm_min()), "5e-324");
    EXPECT_EQ(number_text(std::numeric_limits<double>::infinity()), "+Inf");
    EXPECT_EQ(number_text(-std::numeric_limits<double>::infinity()), "-Inf");
    EXPECT_EQ(number_text(std::numeric_limits<double>::quiet_NaN()), "NaN");

    metrics_page page;
    page.add(requests, {}, std::numeric_limits<std::uint64_t>::max());
    EXPECT_TRUE(page.text().ends_with("test_requests_total 18446744073709551615\n"));
}

TEST(metrics_page_test, prometheus_accepts_every_text) {
    if (!has_promtool()) GTEST_SKIP() << "without promtool";
    metrics_page page;
    for (const std::string_view value :
         {"plain"sv, "a\"b\\c\nd"sv, "\xff\xfe"sv, "\xe2\x82\xac"sv, ""sv, "\0\x01\x1f\x7f"sv}) {
        page.add(requests, {{"name", value}}, 1);
        page.add(open, {{"name", value}, {"other", "x"}}, -1);
    }
    page.add(age, {{"of", "a"}}, 0.1);
    page.add(age, {{"of", "b"}}, std::numeric_limits<double>::infinity());
    page.add(age, {{"of", "c"}}, std::numeric_limits<double>::quiet_NaN());
    page.add(age, {{"of", "d"}}, 5e-324);
    expect_good_metrics(page.text());
}

TEST(metrics_page_death_test, the_names_of_counters_are_checked) {
    const metric counter{"test_requests", "Requests.", metric_kind::counter};
    const metric gauge{"test_open_total", "Open.", metric_kind::gauge};
    metrics_page page;
    EXPECT_DEATH(page.add(counter, {}, 1), "end in _total");
    EXPECT_DEATH(page.add(gauge, {}, 1), "end in _total");
}

} // namespace
} // namespace simplenet::v0::testing
