// Whatever is in a file, reading it ends, and either says what is wrong or gives a configuration
// that can be printed and read again.

#include "httpd/config/check.hpp"
#include "httpd/config/documents.hpp"
#include "httpd/config/print.hpp"

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace {

using namespace httpd;

std::vector<std::string> seeds() {
    std::vector<std::string> texts;
    for (const section* section : all_sections())
        for (const key& key : section->keys) {
            const std::string value = key.type == value_type::tables ? "[{}]" : example_of(key);
            texts.push_back(httpd_tests::document_with(
                *section, std::string{key.name} + " = " + value + '\n' +
                              httpd_tests::required_lines(*section, key.name)));
        }
    return texts;
}

std::string mutated(std::string text, std::mt19937_64& random) {
    const auto below = [&](std::size_t bound) { return bound == 0 ? 0 : random() % bound; };
    constexpr std::string_view pieces[]{
        "[",    "]", "[[", "]]",      "{",    "}",   "\"",  "'''",
        "\n",   "=", ".",  ",",       "-",    "#",   "1e9", "9223372036854775808",
        "true", "*", "/",  "\\u0000", "\xff", "nan", "0x",  "1979-05-27",
        "key"};
    for (std::size_t count = 1 + below(4); count > 0; --count) {
        const std::size_t at = below(text.size() + 1);
        switch (below(5)) {
        case 0:
            text.erase(at, 1 + below(8));
            break;
        case 1:
            text.insert(at, pieces[below(std::size(pieces))]);
            break;
        case 2:
            text.insert(at, text.substr(below(text.size() + 1), below(40)));
            break;
        case 3:
            text.resize(at);
            break;
        default:
            if (at < text.size()) text[at] = static_cast<char>(random());
        }
    }
    return text;
}

TEST(httpd_mutation_test, wrong_files_are_told_and_correct_ones_can_be_printed) {
    const std::vector<std::string> texts = seeds();
    std::mt19937_64 random{20261126};
    int correct = 0;
    for (int round = 0; round < 3000; ++round) {
        const std::string text = mutated(texts[random() % texts.size()], random);
        const reading_result read = httpd_tests::read(text);
        problems of_files; // which are looked at in any case
        check_files(read.configuration, of_files);
        if (!read.problems.can_start()) {
            EXPECT_NE(httpd_tests::problems_of(read), "");
            continue;
        }
        ++correct;
        const std::string printed = print_configuration(read.configuration);
        const reading_result again = httpd_tests::read(printed);
        ASSERT_TRUE(again.problems.can_start()) << text << httpd_tests::problems_of(again);
        ASSERT_EQ(print_configuration(again.configuration), printed) << text;
    }
    EXPECT_GT(correct, 0);
}

TEST(httpd_mutation_test, deep_and_long_files_end) {
    const std::string deep(100'000, '[');
    const std::string twice = [] {
        std::string text;
        for (int i = 0; i < 10'000; ++i)
            text += "a = 1\n";
        return text;
    }();

    EXPECT_FALSE(httpd_tests::read("x = " + deep).problems.can_start());
    EXPECT_FALSE(httpd_tests::read(twice).problems.can_start());
    EXPECT_FALSE(httpd_tests::read(std::string(100'000, 'a') + " = 1").problems.can_start());
}

} // namespace
