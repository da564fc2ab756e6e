// Every key of the table, so that one that is added is tested by itself.

#include "httpd/config/documents.hpp"
#include "httpd/config/keys.hpp"
#include "httpd/config/nginx_words.hpp"
#include "httpd/config/reader.hpp"
#include "httpd/config/text.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

namespace {

using namespace httpd;
using httpd_tests::document_with;
using httpd_tests::problems_of;
using httpd_tests::required_lines;
using ::testing::HasSubstr;

struct place {
    const httpd::section* section;
    const httpd::key* key;
};

void PrintTo(const place& place, std::ostream* out) {
    *out << place.section->name << ' ' << place.key->name;
}

bool any(const key&) {
    return true;
}

std::vector<place> keys_that(bool (*wanted)(const key&)) {
    std::vector<place> all;
    for (const section* section : all_sections())
        for (const key& key : section->keys)
            if (wanted(key)) all.push_back({section, &key});
    return all;
}

std::string name_of_case(const ::testing::TestParamInfo<place>& info) {
    std::string name{info.param.section->name};
    std::erase_if(name, [](char each) { return each == '[' || each == ']'; });
    for (char& each : name)
        if (each == '.') each = '_';
    return (name.empty() ? "top" : name) + '_' + std::string{info.param.key->name};
}

class httpd_keys_test : public ::testing::TestWithParam<place> {
protected:
    const section& its_section() const { return *GetParam().section; }
    const key& its_key() const { return *GetParam().key; }
    std::string name() const { return std::string{its_key().name}; }

    // A document with the key, and what it needs beside it. Tables are written in a line.
    std::string with(const std::string& value) const {
        return document_with(its_section(),
                             name() + " = " + value + '\n' +
                                 required_lines(its_section(), its_key().name) +
                                 httpd_tests::needed_lines(its_section(), its_key()));
    }
};

// What is written behind `name =`.
bool is_value(const key& key) {
    return key.type != value_type::table && key.type != value_type::tables;
}
bool is_no_list_of_tables(const key& key) {
    return key.type != value_type::tables;
}

// Values just outside of the range.
std::vector<std::string> out_of_range(const key& key) {
    std::vector<std::string> values;
    const auto add = [&](std::uint64_t number) {
        const std::chrono::nanoseconds time{static_cast<std::int64_t>(number)};
        values.push_back(key.type == value_type::duration ? quote(format_duration(time))
                                                          : std::to_string(number));
    };
    const std::uint64_t step = key.type == value_type::duration ? 1'000'000 : 1;
    if (key.minimum > 0) add(key.minimum - step);
    if (key.maximum != 0 && key.maximum != std::numeric_limits<std::int64_t>::max())
        add(key.maximum + step);
    if (key.type == value_type::integer || key.type == value_type::size) values.emplace_back("-1");
    return values;
}
bool has_range(const key& key) {
    return !out_of_range(key).empty();
}

class httpd_example_test : public httpd_keys_test {};
class httpd_type_test : public httpd_keys_test {};
class httpd_range_test : public httpd_keys_test {};

TEST_P(httpd_example_test, the_example_is_correct) {
    const auto read = httpd_tests::read(with(example_of(its_key())));

    EXPECT_TRUE(read.problems.can_start()) << problems_of(read);
}

TEST_P(httpd_type_test, a_value_of_another_type_is_refused_with_what_was_expected) {
    for (const std::string_view value : {"1979-05-27", "1.5", "[[1]]"}) {
        const std::string told = problems_of(httpd_tests::read(with(std::string{value})));

        EXPECT_THAT(told, HasSubstr('`' + name() + '`')) << value;
        EXPECT_THAT(told, HasSubstr("expected")) << value;
        EXPECT_THAT(told, ::testing::StartsWith("site.toml:")) << value;
    }
}

TEST_P(httpd_range_test, a_value_out_of_range_is_refused_with_the_range) {
    for (const std::string& value : out_of_range(its_key())) {
        const std::string told = problems_of(httpd_tests::read(with(value)));

        EXPECT_THAT(told, HasSubstr('`' + name() + "` is " + (value[0] == '"' ? "" : value)));
        EXPECT_THAT(told, HasSubstr("expected")) << value;
    }
}

TEST_P(httpd_keys_test, one_that_is_misspelt_is_recognised) {
    const std::string lines =
        name() + "s = 1\n" + required_lines(its_section(), its_key().required ? "" : "none");
    const std::string told = problems_of(httpd_tests::read(document_with(its_section(), lines)));

    EXPECT_THAT(told, HasSubstr('`' + name() + "s` is not a key of "));
    EXPECT_THAT(told, HasSubstr("did you mean `" + name() + "`"));
}

TEST_P(httpd_keys_test, one_that_is_missing_is_told_only_if_it_is_required) {
    const std::string lines = required_lines(its_section(), its_key().name) + "\n";
    std::string document = document_with(its_section(), lines);
    if (its_key().type == value_type::tables && its_key().required)
        document = name() == "site" ? "[[listen]]\naddress = \"127.0.0.1:0\"\n"
                                    : "[[site]]\nroot = \"/\"\n";
    const std::string told = problems_of(httpd_tests::read(document));

    if (!its_key().required)
        EXPECT_EQ(told, "");
    else if (its_key().type == value_type::tables)
        EXPECT_EQ(told, "site.toml: there is no [[" + name() + "]]; at least one was expected\n");
    else
        EXPECT_THAT(told, HasSubstr(" has no `" + name() + "`; "));
}

TEST_P(httpd_type_test, one_that_is_given_twice_is_told) {
    const std::string twice = name() + " = 1\n" + name() + " = 1\n";
    const std::string told = problems_of(httpd_tests::read(document_with(its_section(), twice)));

    EXPECT_THAT(told, HasSubstr(":1: given twice: "));
    EXPECT_THAT(told, HasSubstr(name()));
}

TEST_P(httpd_keys_test, the_reference_has_whole_sentences_about_it) {
    const std::string_view text = its_key().description;

    ASSERT_FALSE(text.empty());
    EXPECT_TRUE(text.ends_with('.')) << text;
    EXPECT_EQ(text.find('|'), std::string_view::npos) << "would end the cell of the table";
}

INSTANTIATE_TEST_SUITE_P(all, httpd_keys_test, ::testing::ValuesIn(keys_that(any)), name_of_case);
INSTANTIATE_TEST_SUITE_P(all, httpd_example_test, ::testing::ValuesIn(keys_that(is_value)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(all, httpd_type_test, ::testing::ValuesIn(keys_that(is_no_list_of_tables)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(all, httpd_range_test, ::testing::ValuesIn(keys_that(has_range)),
                         name_of_case);

TEST(httpd_key_table_test, no_section_has_a_key_twice) {
    for (const section* section : all_sections()) {
        std::set<std::string_view> names;
        for (const key& key : section->keys)
            EXPECT_TRUE(names.insert(key.name).second) << section->name << ' ' << key.name;
    }
}

TEST(httpd_key_table_test, every_section_but_the_top_is_the_value_of_a_key) {
    std::set<const section*> reached{&top_section};
    for (const place& each : keys_that(any))
        reached.insert(each.key->sub);

    for (const section* section : all_sections())
        EXPECT_TRUE(reached.contains(section)) << section->name;
}

TEST(httpd_nginx_words_test, every_directive_leads_to_a_key) {
    for (const std::string_view directive : directives_with_counterpart()) {
        const std::optional<counterpart> here = counterpart_of(directive);
        ASSERT_TRUE(here) << directive;
        const auto all = all_sections();
        const auto found = std::ranges::find(all, here->section, &section::name);
        ASSERT_NE(found, all.end()) << directive;
        EXPECT_NE((*found)->find(here->key), nullptr) << directive;
    }
    EXPECT_FALSE(counterpart_of("match"));
}

TEST(httpd_nginx_words_test, a_directive_without_a_counterpart_is_no_key) {
    for (const std::string_view directive : directives_without_counterpart()) {
        EXPECT_FALSE(why_absent(directive).empty()) << directive;
        EXPECT_FALSE(counterpart_of(directive)) << directive;
        for (const section* section : all_sections())
            EXPECT_EQ(section->find(directive), nullptr) << directive << ' ' << section->name;
    }
    EXPECT_EQ(why_absent("match"), "");
}

} // namespace
