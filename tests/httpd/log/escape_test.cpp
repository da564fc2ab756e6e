#include "httpd/log/escape.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace httpd {
namespace {

template <escapes How>
std::string escaped(std::string_view text) {
    // Exactly as much memory as the function asks for, so that a sanitizer sees a write beyond it.
    std::vector<char> room(escaped_room<How>(text.size()));
    const std::vector<char> exact(text.begin(), text.end());
    const char* const end =
        append_escaped<How>(room.data(), std::string_view{exact.data(), exact.size()});
    return {room.data(), static_cast<std::size_t>(end - room.data())};
}

/// One byte after the other, by the rule and nothing else.
std::string expected(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string made;
    for (const char each : text) {
        const auto value = static_cast<unsigned char>(each);
        if (value >= 0x20 && value <= 0x7e && each != '"' && each != '\\') {
            made += each;
        } else {
            made += "\\x";
            made += digits[value / 16];
            made += digits[value % 16];
        }
    }
    return made;
}

TEST(escape_test, every_byte_is_escaped_if_it_has_to_be) {
    for (int byte = 0; byte < 256; ++byte) {
        const std::string text(1, static_cast<char>(byte));

        EXPECT_EQ(escaped<escapes::hex>(text), expected(text)) << byte;
    }
}

TEST(escape_test, a_byte_is_found_at_every_place_of_a_text_of_every_length) {
    for (const char hostile : {'"', '\\', '\n', '\0', '\x1f', '\x7f', '\x80', '\xff'}) {
        for (std::size_t size = 1; size <= 50; ++size) {
            for (std::size_t place = 0; place < size; ++place) {
                std::string text(size, '~');
                text[place] = hostile;

                ASSERT_EQ(escaped<escapes::hex>(text), expected(text)) << size << ' ' << place;
            }
        }
    }
}

TEST(escape_test, texts_that_need_no_escape_stay) {
    std::string all;
    for (char each = 0x20; each < 0x7f; ++each)
        if (each != '"' && each != '\\') all += each;

    for (std::size_t size = 0; size <= all.size(); ++size)
        ASSERT_EQ(escaped<escapes::hex>(all.substr(0, size)), all.substr(0, size));
}

TEST(escape_test, everything_hostile_fits_into_the_room) {
    const std::string quotes(100, '"');

    EXPECT_EQ(escaped<escapes::hex>(quotes), expected(quotes));
}

TEST(escape_test, json_has_escapes_of_its_own) {
    EXPECT_EQ(escaped<escapes::json>("a\"b\\c\nd\x7f\xe4"), R"(a\"b\\c\u000ad\u007f\u00e4)");
    EXPECT_EQ(escaped<escapes::json>(std::string(20, '\1')).size(), 120U);
}

} // namespace
} // namespace httpd
