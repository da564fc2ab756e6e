#include "http/codec/scan.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace http::detail;

template <byte_class which>
void expect_same(const char* begin, const char* end) {
    ASSERT_EQ(scan<which>(begin, end) - begin, scan_bytes(which, begin, end) - begin);
}

/// `size` good bytes with `byte` at `at`, in memory that ends with them.
std::vector<char> text_with(std::size_t size, std::size_t at, unsigned byte) {
    std::vector<char> text(size, 'a');
    text[at] = static_cast<char>(byte);
    return text;
}

TEST(scan_test, vectors_and_the_scalar_twin_agree_on_every_byte_at_every_place) {
    for (std::size_t size = 1; size <= 50; ++size) {
        for (std::size_t at = 0; at < size; ++at) {
            for (unsigned byte = 0; byte < 256; ++byte) {
                const std::vector<char> text = text_with(size, at, byte);
                expect_same<value_byte>(text.data(), text.data() + size);
                expect_same<target_byte>(text.data(), text.data() + size);
            }
        }
    }
}

TEST(scan_test, vectors_and_the_scalar_twin_agree_at_every_alignment) {
    for (unsigned byte = 0; byte < 256; ++byte) {
        const std::vector<char> text = text_with(80, 60, byte);
        for (std::size_t begin = 0; begin < 33; ++begin) {
            expect_same<value_byte>(text.data() + begin, text.data() + text.size());
            expect_same<target_byte>(text.data() + begin, text.data() + text.size());
        }
    }
}

TEST(scan_test, the_first_of_several_bytes_is_found) {
    const std::string_view text = "0123456789abcdef0\x01"
                                  "2\x02";

    EXPECT_EQ(scan<value_byte>(text.data(), text.data() + text.size()) - text.data(), 17);
}

TEST(scan_test, values_may_contain_tabs_and_text_that_is_not_ascii) {
    for (unsigned byte = 0; byte < 256; ++byte) {
        const bool good = byte == '\t' || (byte >= 0x20 && byte != 0x7f);
        EXPECT_EQ(is_in(value_byte, static_cast<char>(byte)), good) << byte;
    }
}

TEST(scan_test, targets_consist_of_visible_ascii) {
    for (unsigned byte = 0; byte < 256; ++byte)
        EXPECT_EQ(is_in(target_byte, static_cast<char>(byte)), byte > 0x20 && byte < 0x7f) << byte;
}

TEST(scan_test, tokens_have_no_delimiters) {
    constexpr std::string_view delimiters = "\"(),/:;<=>?@[\\]{}";
    for (unsigned byte = 0; byte < 256; ++byte) {
        const auto each = static_cast<char>(byte);
        const bool good = byte > 0x20 && byte < 0x7f && !delimiters.contains(each);
        EXPECT_EQ(is_in(token_byte, each), good) << byte;
    }
}

} // namespace
} // namespace simplenet::v0::testing
