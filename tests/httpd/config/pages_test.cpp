// The configurations in the pages of the documentation, and the example that is installed.

#include "httpd/config/documents.hpp"
#include "httpd/config/nginx_words.hpp"

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string content_of(const std::filesystem::path& file) {
    std::ostringstream text;
    text << std::ifstream{file}.rdbuf();
    return text.str();
}

// The text of each block of TOML.
std::vector<std::string> blocks_of(std::string_view page) {
    constexpr std::string_view opening = "\n```toml\n";
    std::vector<std::string> blocks;
    for (std::size_t at = 0; (at = page.find(opening, at)) != std::string_view::npos;) {
        at += opening.size();
        const std::size_t end = page.find("\n```\n", at);
        blocks.emplace_back(page.substr(at, end - at + 1));
        at = end;
    }
    return blocks;
}

// A page shows a part of a file. What the file has to have is added.
std::string completed(std::string block) {
    const std::string site = "[[site]]\nroot = \"/\"\n";
    if (!block.contains("[[site]]"))
        block = block.contains("[[site.route]]") ? site + block : block + '\n' + site;
    if (!block.contains("[[listen]]")) block += "\n[[listen]]\naddress = \"127.0.0.1:0\"\n";
    return block;
}

// What is commented out, too.
std::string uncommented(const std::string& text) {
    return std::regex_replace(text, std::regex{R"(\n#(\[\[|\w+ = ))"}, "\n$1");
}

std::vector<std::string> problems_of_blocks(const std::filesystem::path& page) {
    std::vector<std::string> found;
    for (const std::string& block : blocks_of(content_of(page))) {
        const std::string problems =
            httpd_tests::problems_of(httpd_tests::read(completed(block)), page.filename().string());
        if (!problems.empty()) found.push_back(problems + block);
    }
    return found;
}

std::vector<std::filesystem::path> pages() {
    std::vector<std::filesystem::path> found;
    for (const auto& each : std::filesystem::directory_iterator{HTTPD_PAGES})
        if (each.path().filename().string().starts_with("httpd-") &&
            each.path().extension() == ".md")
            found.push_back(each.path());
    return found;
}

TEST(httpd_pages_test, every_configuration_of_the_pages_is_correct) {
    std::size_t blocks = 0;
    for (const std::filesystem::path& page : pages()) {
        blocks += blocks_of(content_of(page)).size();

        EXPECT_THAT(problems_of_blocks(page), IsEmpty());
    }

    EXPECT_GE(blocks, 10U) << "or the blocks are not found";
}

TEST(httpd_pages_test, blocks_are_found_and_completed) {
    const auto blocks =
        blocks_of("Text\n\n```toml\na = 1\n```\n```sh\nb\n```\n\n```toml\nc\nd\n```\n");

    EXPECT_THAT(blocks, ElementsAre("a = 1\n", "c\nd\n"));
    EXPECT_THAT(httpd_tests::problems_of(httpd_tests::read(completed("workers = 2\n"))), "");
    EXPECT_THAT(httpd_tests::problems_of(httpd_tests::read(completed("worker = 2\n"))),
                HasSubstr("`worker` is not a key"));
}

TEST(httpd_pages_test, the_example_is_correct_with_and_without_what_is_commented_out) {
    const std::string example = content_of(HTTPD_EXAMPLE);
    const std::string whole = uncommented(example);

    EXPECT_EQ(httpd_tests::problems_of(httpd_tests::read(example)), "");
    EXPECT_EQ(httpd_tests::problems_of(httpd_tests::read(whole)), "");
    EXPECT_THAT(whole, HasSubstr("\n[[site.route]]\nmatch = \"*.php\"\nfastcgi = "));
}

TEST(httpd_pages_test, directives_that_are_recognised_are_on_the_page) {
    const std::string page =
        content_of(std::filesystem::path{HTTPD_PAGES} / "httpd-coming-from-nginx.md");

    for (const std::string_view directive : httpd::directives_with_counterpart())
        EXPECT_THAT(page, HasSubstr(directive));
    for (const std::string_view directive : httpd::directives_without_counterpart())
        EXPECT_THAT(page, HasSubstr(directive));
}

} // namespace
