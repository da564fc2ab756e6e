// What is said about wrong configurations: cases/NAME.toml, and cases/NAME.txt with every line.
// With SIMPLENET_WRITE_GOLDEN=1 the expected texts are written anew, for a person to read.

#include "httpd/config/documents.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace {

using namespace httpd;

std::vector<std::string> all_cases() {
    std::vector<std::string> names;
    for (const auto& each : std::filesystem::directory_iterator{HTTPD_CASES})
        if (each.path().extension() == ".toml") names.push_back(each.path().stem().string());
    std::ranges::sort(names);
    return names;
}

std::string content_of(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream{path}.rdbuf();
    return text.str();
}

class httpd_golden_test : public ::testing::TestWithParam<std::string> {};

TEST_P(httpd_golden_test, everything_that_is_wrong_is_said) {
    const std::filesystem::path file = std::filesystem::path{HTTPD_CASES} / (GetParam() + ".toml");
    std::filesystem::path expected = file;
    expected.replace_extension(".txt");
    const std::string told =
        httpd_tests::problems_of(httpd_tests::read(content_of(file)), GetParam() + ".toml");

    if (std::getenv("SIMPLENET_WRITE_GOLDEN") != nullptr) std::ofstream{expected} << told;
    EXPECT_EQ(told, content_of(expected));
    EXPECT_NE(told, "");
}

INSTANTIATE_TEST_SUITE_P(cases, httpd_golden_test, ::testing::ValuesIn(all_cases()),
                         [](const auto& each) { return each.param; });

} // namespace
