#include "http/files/media_types.hpp"

#include "support/counted_allocations.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace simplenet::v0::testing {
namespace {

using namespace std::string_view_literals;
using http::detail::media_type_of;
using http::detail::media_type_table;

TEST(media_types_test, the_type_follows_from_the_last_extension) {
    EXPECT_EQ(media_type_of("index.html"), "text/html; charset=utf-8");
    EXPECT_EQ(media_type_of("/a.b/INDEX.HTML"), "text/html; charset=utf-8");
    EXPECT_EQ(media_type_of("app.js"), "text/javascript; charset=utf-8");
    EXPECT_EQ(media_type_of("app.min.css"), "text/css; charset=utf-8");
    EXPECT_EQ(media_type_of("data.json"), "application/json");
    EXPECT_EQ(media_type_of("a.tar.gz"), "application/gzip");
    EXPECT_EQ(media_type_of("a/b.wasm"), "application/wasm");
}

TEST(media_types_test, a_name_without_a_known_extension_is_a_sequence_of_bytes) {
    for (const std::string_view name :
         {""sv, "a"sv, "a."sv, "."sv, ".."sv, ".html"sv, "a/.html"sv, "a.html/b"sv, "html"sv,
          "a.no-such-extension"sv, "a.html "sv, "a.html\0"sv})
        EXPECT_EQ(media_type_of(name), "application/octet-stream") << name;
    EXPECT_EQ(media_type_of("a." + std::string(100'000, 'x')), "application/octet-stream");
}

TEST(media_types_test, a_file_of_types_adds_to_the_table) {
    const media_type_table table{"# a comment\n"
                                 "application/x-one\t\tone ONE2\n"
                                 "  text/x-two two # three\r\n"
                                 "\n"
                                 "application/x-none\n"
                                 "application/x-last last"};

    EXPECT_EQ(table.find("one"), "application/x-one");
    EXPECT_EQ(table.find("one2"), "application/x-one");
    EXPECT_EQ(table.find("TWO"), "text/x-two; charset=utf-8");
    EXPECT_EQ(table.find("three"), "");
    EXPECT_EQ(table.find("last"), "application/x-last");
    EXPECT_EQ(table.find("html"), "text/html; charset=utf-8");
    EXPECT_EQ(table.find(""), "");
}

TEST(media_types_test, what_is_built_in_and_what_comes_first_wins) {
    const media_type_table table{"application/x-javascript js\na/first both\na/second both"};

    EXPECT_EQ(table.find("js"), "text/javascript; charset=utf-8");
    EXPECT_EQ(table.find("both"), "a/first");
}

TEST(media_types_test, a_line_that_would_break_a_head_is_skipped) {
    const media_type_table table{"text e1\n/x e2\ntext/ e3\na/b/c e4\na\x01/b e5\na/b;c=d e6\n"
                                 "\"a\"/b e7\na/b " +
                                 std::string(33, 'e')};

    for (const std::string_view extension : {"e1", "e2", "e3", "e4", "e5", "e6", "e7"})
        EXPECT_EQ(table.find(extension), "") << extension;
    EXPECT_EQ(table.find(std::string(33, 'e')), "");
}

TEST(media_types_test, a_lookup_does_not_allocate) {
    ASSERT_FALSE(media_type_of("a.html").empty());
    const std::string name(1000, 'a');

    const auto before = allocations.load();
    (void)media_type_of("a/b/c.html");
    (void)media_type_of(name);
    EXPECT_EQ(allocations.load(), before);
}

} // namespace
} // namespace simplenet::v0::testing
