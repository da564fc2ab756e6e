// The fields of an answer.

#include "http/server/field_block.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace simplenet::v0::http::detail {
namespace {

TEST(field_block_test, set_replaces_all_of_a_name_in_any_case) {
    field_block block;
    block.add("Vary", "a");
    block.add("X-One", "1");
    block.add("vary", "b");
    block.set("VARY", "c");

    EXPECT_EQ(block.lines(), "X-One: 1\r\nVARY: c\r\n");
}

TEST(field_block_test, names_that_are_alike_in_size_and_first_letter_are_distinguished) {
    field_block block;
    block.add("X-One", "1");

    EXPECT_EQ(block.find("X-Two"), std::nullopt);
    EXPECT_FALSE(block.lists("X-Two", "1"));
    block.remove("X-Two");
    block.set("X-Two", "2");
    EXPECT_EQ(block.lines(), "X-One: 1\r\nX-Two: 2\r\n");
}

TEST(field_block_test, a_removed_or_cleared_field_is_not_found) {
    field_block block;
    block.add("ETag", "\"1\"");
    block.remove("etag");
    EXPECT_EQ(block.find("ETag"), std::nullopt);
    block.add("ETag", "\"2\"");
    block.clear();

    EXPECT_EQ(block.find("ETag"), std::nullopt);
    EXPECT_TRUE(block.empty());
}

TEST(field_block_test, a_large_block_keeps_all) {
    field_block block;
    std::string expected;
    for (int each = 0; each < 100; ++each) {
        const std::string name = "X-" + std::to_string(each);
        block.add(name, "value");
        expected += name + ": value\r\n";
    }

    EXPECT_EQ(block.lines(), expected);
    EXPECT_EQ(block.find("x-99"), "value");
}

TEST(field_block_test, lines_that_are_ready_are_added_once) {
    constexpr std::uint64_t names = field_block::names_of({"ETag", "Last-Modified"});
    constexpr std::string_view lines = "ETag: \"1\"\r\nLast-Modified: now\r\n";
    field_block block;
    block.add("X-One", "1");
    EXPECT_TRUE(block.add_new_lines(lines, names));
    EXPECT_FALSE(block.add_new_lines(lines, names));

    EXPECT_EQ(block.lines(), "X-One: 1\r\n" + std::string{lines});
    EXPECT_EQ(block.find("last-modified"), "now");
    block.set("etag", "\"2\"");
    EXPECT_EQ(block.lines(), "X-One: 1\r\nLast-Modified: now\r\netag: \"2\"\r\n");
}

TEST(field_block_test, lines_that_are_ready_leave_a_field_of_the_same_name) {
    field_block block;
    block.add("etag", "\"1\"");
    EXPECT_FALSE(block.add_new_lines("ETag: \"2\"\r\n", field_block::names_of({"ETag"})));

    EXPECT_EQ(block.lines(), "etag: \"1\"\r\n");
}

TEST(field_block_test, lines_that_are_ready_let_a_block_grow) {
    const std::string value(1000, 'v');
    field_block block;
    block.add("X-One", "1");
    EXPECT_TRUE(
        block.add_new_lines("Padding: " + value + "\r\n", field_block::names_of({"Padding"})));

    EXPECT_EQ(block.lines(), "X-One: 1\r\nPadding: " + value + "\r\n");
}

TEST(field_block_test, a_value_of_the_block_can_be_given_to_another_field) {
    field_block block;
    block.add("Padding", std::string(100, 'p'));
    block.add("X-From", "the value");
    block.set("Padding", *block.find("X-From"));
    block.set("X-From", *block.find("X-From"));
    for (int each = 0; each < 100; ++each) // the block grows meanwhile
        block.add("X-To", *block.find("X-From"));

    EXPECT_EQ(block.find("Padding"), "the value");
    EXPECT_EQ(block.find("X-From"), "the value");
    EXPECT_EQ(block.find("X-To"), "the value");
    EXPECT_TRUE(block.lines().ends_with("X-To: the value\r\n"));
}

} // namespace
} // namespace simplenet::v0::http::detail
