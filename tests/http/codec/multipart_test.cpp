#include "http/codec/multipart.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace simplenet::v0::testing {
namespace {

using http::detail::multipart_ranges;
using http::detail::parse_ranges;

/// The whole body, for a representation of which every byte is an x.
std::string body_of(const multipart_ranges& parts) {
    std::string body;
    for (std::size_t index = 0; index < parts.list().size(); ++index) {
        body += parts.part_head(index);
        body.append(parts.list()[index].size, 'x');
    }
    return body + parts.tail();
}

TEST(multipart_test, the_ranges_stand_between_heads_and_a_tail) {
    const multipart_ranges parts{
        parse_ranges("bytes=0-1,-3", 10), 10, "text/plain", {0x0123'4567'89ab'cdef, 1}};

    EXPECT_EQ(parts.content_type(),
              "multipart/byteranges; boundary=fedcba98765432101000000000000000");
    EXPECT_EQ(body_of(parts), "--fedcba98765432101000000000000000\r\n"
                              "Content-Type: text/plain\r\n"
                              "Content-Range: bytes 0-1/10\r\n"
                              "\r\n"
                              "xx\r\n"
                              "--fedcba98765432101000000000000000\r\n"
                              "Content-Type: text/plain\r\n"
                              "Content-Range: bytes 7-9/10\r\n"
                              "\r\n"
                              "xxx\r\n"
                              "--fedcba98765432101000000000000000--\r\n");
}

TEST(multipart_test, an_unknown_type_is_not_said) {
    const multipart_ranges parts{parse_ranges("bytes=0-1,4-5", 10), 10, "", {1, 2}};

    EXPECT_EQ(body_of(parts).find("Content-Type"), std::string::npos);
    EXPECT_EQ(parts.total_size(), body_of(parts).size());
}

TEST(multipart_test, the_total_is_exactly_what_is_sent) {
    for (const std::string_view value :
         {"bytes=0-0,2-2", "bytes=9-10,99-100,999-1000", "bytes=5-,0-0",
          "bytes=0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14,16-16,18-18,20-20,22-22,24-24,26-26,28-28,"
          "1000-1009"}) {
        const multipart_ranges parts{parse_ranges(value, 1010), 1010, "a/b; c=d", {3, 4}};

        EXPECT_EQ(parts.total_size(), body_of(parts).size()) << value;
    }
}

TEST(multipart_test, the_total_of_the_largest_file_does_not_overflow) {
    constexpr auto size = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const multipart_ranges parts{parse_ranges("bytes=0-0,1-", size), size, "", {1, 2}};

    EXPECT_GT(parts.total_size(), size);
}

} // namespace
} // namespace simplenet::v0::testing
