#include "http/codec/utf8.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace simplenet::v0::http::detail {
namespace {

/// The number of bytes up to the first with which no text can continue, fed one by one.
std::size_t accepted_prefix(std::string_view text) {
    utf8_validator check;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (!check.feed(text.substr(at, 1))) return at;
    }
    return text.size();
}

std::string encoded_character(std::uint32_t code) {
    if (code < 0x80) return {static_cast<char>(code)};
    std::string bytes;
    int more = code < 0x800 ? 1 : code < 0x1'0000 ? 2 : 3;
    const std::uint32_t lead = more == 1 ? 0xc0 : more == 2 ? 0xe0 : 0xf0;
    bytes += static_cast<char>(lead | code >> (6 * more));
    while (more-- > 0)
        bytes += static_cast<char>(0x80 | (code >> (6 * more) & 0x3f));
    return bytes;
}

TEST(utf8_test, accepts_every_character_but_surrogates) {
    for (std::uint32_t code = 0; code < 0x12'0000; ++code) {
        const bool is_surrogate = code >= 0xd800 && code < 0xe000;
        const bool is_character = code <= 0x10'ffff && !is_surrogate;
        ASSERT_EQ(is_utf8(encoded_character(code)), is_character) << code;
    }
}

TEST(utf8_test, fails_at_the_first_byte_with_which_no_text_can_continue) {
    struct {
        std::string_view text;
        std::size_t accepted;
    } const cases[] = {
        {"\x80", 0},             // a continuation of nothing
        {"\xbf", 0},             //
        {"\xc0\x80", 0},         // overlong
        {"\xc1\xbf", 0},         //
        {"\xe0\x9f\xbf", 1},     //
        {"\xf0\x8f\xbf\xbf", 1}, //
        {"\xed\xa0\x80", 1},     // a surrogate
        {"\xed\xbf\xbf", 1},     //
        {"\xf4\x90\x80\x80", 1}, // above U+10FFFF
        {"\xf5", 0},             //
        {"\xfe", 0},             //
        {"\xff", 0},             //
        {"\xc3(", 1},            // a character that ends too early
        {"\xe2\x82(", 2},        //
        {"\xf0\x9f\x98(", 3},    //
        {"\xe2\xc3\xa9", 1},     //
    };
    for (const auto& each : cases) {
        EXPECT_EQ(accepted_prefix(each.text), each.accepted) << each.text;
        EXPECT_FALSE(is_utf8(each.text)) << each.text;
    }
}

TEST(utf8_test, is_complete_only_at_the_end_of_a_character) {
    for (const std::string_view text : {"\xc3", "\xe2\x82", "\xf0\x9f\x98", "a\xf0"}) {
        utf8_validator check;
        EXPECT_TRUE(check.feed(text));
        EXPECT_FALSE(check.is_complete());
        EXPECT_FALSE(is_utf8(text));
    }
}

TEST(utf8_test, finds_a_wrong_byte_anywhere_and_in_any_division) {
    std::string text =
        "sixteen bytes of ASCII, twice and a bit more: \xf0\x9f\x98\x80 \xc3\xa9 and ASCII";
    for (std::size_t wrong = 0; wrong < text.size(); ++wrong) {
        std::string copy = text;
        copy[wrong] = '\xff';
        for (std::size_t cut = 0; cut <= text.size(); ++cut) {
            utf8_validator whole;
            EXPECT_TRUE(whole.feed(std::string_view{text}.substr(0, cut)) &&
                        whole.feed(std::string_view{text}.substr(cut)) && whole.is_complete());
            utf8_validator broken;
            EXPECT_FALSE(broken.feed(std::string_view{copy}.substr(0, cut)) &&
                         broken.feed(std::string_view{copy}.substr(cut)));
        }
    }
}

} // namespace
} // namespace simplenet::v0::http::detail
