#include "http/codec/base64.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace simplenet::v0::http::detail {
namespace {

std::string encoded(std::string_view bytes) {
    std::string text(base64_size(bytes.size()), '\0');
    encode_base64(bytes, text);
    return text;
}

std::optional<std::string> decoded(std::string_view text) {
    std::array<std::byte, 300> bytes{};
    const auto size = decode_base64(text, bytes);
    if (!size) return std::nullopt;
    return std::string{reinterpret_cast<const char*>(bytes.data()), *size};
}

// RFC 4648, 10.
TEST(base64_test, encodes_the_examples_of_its_specification) {
    EXPECT_EQ(encoded(""), "");
    EXPECT_EQ(encoded("f"), "Zg==");
    EXPECT_EQ(encoded("fo"), "Zm8=");
    EXPECT_EQ(encoded("foo"), "Zm9v");
    EXPECT_EQ(encoded("foob"), "Zm9vYg==");
    EXPECT_EQ(encoded("fooba"), "Zm9vYmE=");
    EXPECT_EQ(encoded("foobar"), "Zm9vYmFy");
}

TEST(base64_test, decodes_what_it_has_encoded) {
    std::string bytes;
    for (unsigned size = 0; size < 200; ++size) {
        EXPECT_EQ(decoded(encoded(bytes)), bytes);
        bytes += static_cast<char>(size * 89 + 7);
    }
    EXPECT_EQ(decoded("+/+/"), "\xfb\xff\xbf");
}

TEST(base64_test, refuses_what_it_would_not_have_written) {
    for (const std::string_view wrong :
         {"Z", "Zg", "Zg=", "Zg===", "====", "=", "==", "Zg==Zg==", "Zm8=Zm8=", "Z===", "Zm9v\n",
          " Zm9v", "Zm 9v", "Zh==", "Zm9=", "Zm-_", "Zm9\x80", "Zg=a"}) {
        EXPECT_EQ(decoded(wrong), std::nullopt) << wrong;
    }
    EXPECT_EQ(decoded(std::string_view{"Zm9\0", 4}), std::nullopt);
}

TEST(base64_test, refuses_text_for_more_bytes_than_there_is_room_for) {
    std::array<std::byte, 3> room{};

    EXPECT_EQ(decode_base64("Zm9v", room), 3U);
    EXPECT_EQ(decode_base64("Zm9vYg==", room), std::nullopt);
}

} // namespace
} // namespace simplenet::v0::http::detail
