#include "http/codec/authority.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace simplenet::v0::testing {
namespace {

using namespace std::string_view_literals;
using http::detail::split_authority;
using http::detail::valid_authority;

TEST(authority_test, a_name_or_an_address_and_perhaps_a_port_is_accepted) {
    for (const std::string_view text :
         {"example.org", "example.org:80", "EXAMPLE.org", "localhost:", "127.0.0.1:8080", "a_b",
          "a-b.c~d", "a!$&'()*+,;=b", "%41.example", "[::1]", "[::1]:443", "[::1]:", "[2001:db8::]",
          "[::ffff:192.0.2.1]", "h:0", "h:65535", "h:0000080"})
        EXPECT_TRUE(valid_authority(text)) << text;
}

TEST(authority_test, what_is_no_host_is_refused) {
    for (const std::string_view text : {""sv,       ":80"sv,   "a b"sv,    " a"sv,
                                        "a\t"sv,    "a/b"sv,   "a?b"sv,    "a#b"sv,
                                        "a@b"sv,    "u:p@h"sv, "a\\b"sv,   "a\"b"sv,
                                        "a<b"sv,    "a\0b"sv,  "a\r\nb"sv, "\xc3\xa4.example"sv,
                                        "%"sv,      "%4"sv,    "%4g"sv,    "%%41"sv,
                                        "a[::1]"sv, "::1"sv,   "a\x7f"sv})
        EXPECT_FALSE(valid_authority(text)) << text;
}

TEST(authority_test, a_port_that_is_no_number_up_to_65535_is_refused) {
    for (const std::string_view text : {"h:65536", "h:99999", "h:99999999999", "h:-1", "h:+1",
                                        "h: 1", "h:1 ", "h:http", "h:0x50", "h:80:80", "[::1]:a"})
        EXPECT_FALSE(valid_authority(text)) << text;
}

TEST(authority_test, a_broken_literal_is_refused) {
    for (const std::string_view text :
         {"["sv, "[]"sv, "[::1"sv, "[::1]x"sv, "[::1]]"sv, "[::1%25eth0]"sv, "[::1%eth0]"sv,
          "[1.2.3.4]"sv, "[::g]"sv, "[1:2:3:4:5:6:7:8:9]"sv, "[::1\0]"sv, "[v1.fe80::a+en1]"sv,
          "[v.a]"sv, "[v1.]"sv, "[::ffff:1.2.3.256]"sv, "[ ::1]"sv})
        EXPECT_FALSE(valid_authority(text)) << text;
}

TEST(authority_test, a_long_literal_is_refused_without_being_copied) {
    EXPECT_FALSE(valid_authority("[" + std::string(100'000, '1') + "]"));
}

TEST(authority_test, the_parts_are_told_apart) {
    const auto name = split_authority("example.org:8080");
    const auto literal = split_authority("[::1]");
    const auto empty_port = split_authority("h:");

    ASSERT_TRUE(name && literal && empty_port);
    EXPECT_EQ(name->host, "example.org");
    EXPECT_EQ(name->port, 8080);
    EXPECT_FALSE(name->is_v6);
    EXPECT_EQ(literal->host, "::1");
    EXPECT_TRUE(literal->is_v6);
    EXPECT_FALSE(literal->port);
    EXPECT_FALSE(empty_port->port);
}

} // namespace
} // namespace simplenet::v0::testing
