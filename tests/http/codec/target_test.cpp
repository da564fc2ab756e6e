#include "http/codec/target.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::string_view_literals;
using form = http::detail::target_parts::form;
using http::detail::decoded_parameter;
using http::detail::has_encoded_slash;
using http::detail::needs_normalising;
using http::detail::parse_target;
using http::detail::percent_decode;
using http::detail::percent_encode_path;

std::optional<std::string> normalised(std::string_view raw) {
    std::vector<char> out(raw.size());
    const auto size = http::detail::normalise_path(raw, out.data());
    if (!size) return std::nullopt;
    return std::string{out.data(), *size};
}

struct accepted_target {
    std::string_view method;
    std::string_view target;
    form is;
    std::string_view authority;
    std::string_view path;
    std::string_view query;
};

// RFC 9112, section 3.2, and its corners.
constexpr accepted_target accepted_targets[] = {
    {"GET", "/", form::origin, "", "/", ""},
    {"GET", "/where?q=now", form::origin, "", "/where", "q=now"},
    {"GET", "//a//b/", form::origin, "", "//a//b/", ""},
    {"GET", "/a?b?c/d", form::origin, "", "/a", "b?c/d"},
    {"GET", "/a%20b?%c3%A4", form::origin, "", "/a%20b", "%c3%A4"},
    {"GET", "/-._~!$&'()*+,;=:@", form::origin, "", "/-._~!$&'()*+,;=:@", ""},
    {"GET", "/list?off=50%&on=%zz", form::origin, "", "/list", "off=50%&on=%zz"},
    {"GET", "/?a=%2", form::origin, "", "/", "a=%2"},
    {"GET", "/list?sort[]=name&f={a|b}", form::origin, "", "/list", "sort[]=name&f={a|b}"},
    {"GET", "/a[1]|b^c", form::origin, "", "/a[1]|b^c", ""},
    {"OPTIONS", "/", form::origin, "", "/", ""},
    {"GET", "http://example.org/pub/x.html", form::absolute, "example.org", "/pub/x.html", ""},
    {"GET", "HTTPS://example.org:8001?q", form::absolute, "example.org:8001", "/", "q"},
    {"GET", "http://[::1]:80", form::absolute, "[::1]:80", "/", ""},
    {"OPTIONS", "http://example.org:8001", form::absolute, "example.org:8001", "", ""},
    {"OPTIONS", "http://example.org:8001/", form::absolute, "example.org:8001", "/", ""},
    {"OPTIONS", "http://example.org:8001?", form::absolute, "example.org:8001", "/", ""},
    {"OPTIONS", "*", form::asterisk, "", "", ""},
    {"CONNECT", "example.org:80", form::authority, "example.org:80", "", ""},
    {"CONNECT", "[::1]:443", form::authority, "[::1]:443", "", ""},
};

TEST(target_test, a_target_of_any_form_is_taken_apart) {
    for (const auto& each : accepted_targets) {
        const auto parts = parse_target(each.method, each.target);

        ASSERT_TRUE(parts) << each.method << ' ' << each.target;
        EXPECT_EQ(parts->is, each.is) << each.target;
        EXPECT_EQ(parts->authority, each.authority) << each.target;
        EXPECT_EQ(parts->path, each.path) << each.target;
        EXPECT_EQ(parts->query, each.query) << each.target;
        EXPECT_EQ(parts->has_query, each.target.contains('?')) << each.target;
        EXPECT_EQ(parts->https, each.target.starts_with("HTTPS")) << each.target;
    }
}

TEST(target_test, a_form_that_the_method_does_not_have_is_refused) {
    for (const std::string_view target : {"*", "example.org:80", "example.org", "a/b", "?q", ""})
        EXPECT_FALSE(parse_target("GET", target)) << target;
    for (const std::string_view target : {"**", "*/", "*?q", "a"})
        EXPECT_FALSE(parse_target("OPTIONS", target)) << target;
    for (const std::string_view target : {"/", "*", "example.org", "example.org:", "http://h:1/",
                                          "h:1/", "u@h:1", ":1", "h:99999", ""})
        EXPECT_FALSE(parse_target("CONNECT", target)) << target;
    EXPECT_FALSE(parse_target("options", "*")); // methods are case-sensitive
}

TEST(target_test, another_scheme_user_information_and_fragments_are_refused) {
    for (const std::string_view target :
         {"ftp://h/", "http:/a", "http:a", "http://", "http:///a", "http://?q", "http://u@h/",
          "http://u:p@h/", "http://h:x/", "http://h/#f", "http://h#f", "/a#b", "/#", "/?a#b",
          "javascript:alert(1)", "ws://h/"})
        EXPECT_FALSE(parse_target("GET", target)) << target;
}

TEST(target_test, a_character_that_a_target_cannot_have_is_refused) {
    for (int byte = 0; byte < 256; ++byte) {
        const char c = static_cast<char>(byte);
        const bool visible = byte > 0x20 && byte < 0x7f;
        const bool in_path = visible && !"\"#%<>\\`{}"sv.contains(c);
        const bool in_query = visible && !"\"#<>"sv.contains(c);

        EXPECT_EQ(parse_target("GET", std::string{"/a"} + c + "b").has_value(), in_path) << byte;
        EXPECT_EQ(parse_target("GET", std::string{"/?"} + c + "b").has_value(), in_query) << byte;
    }
}

TEST(target_test, a_malformed_percent_encoding_is_refused) {
    for (const std::string_view target :
         {"/%", "/%4", "/%4g", "/%g4", "/%%41", "http://h/%", "/%u0041"})
        EXPECT_FALSE(parse_target("GET", target)) << target;
}

struct path_case {
    std::string_view raw;
    std::string_view expected;
};

TEST(target_test, a_path_has_one_normal_form) {
    constexpr path_case cases[] = {
        {"/", "/"},
        {"/a/b", "/a/b"},
        {"/a/b/", "/a/b/"},
        {"/%61%62", "/ab"},
        {"/a%20b", "/a b"},
        {"/%c3%a4", "/\xc3\xa4"},
        {"/a+b", "/a+b"},
        {"/a%3Fb%23c", "/a?b#c"},
        {"/%0d%0a", "/\r\n"},
        // Empty segments.
        {"//", "/"},
        {"///a", "/a"},
        {"/a//b///c//", "/a/b/c/"},
        // Dot segments, of one, two and three dots, encoded and not.
        {"/.", "/"},
        {"/./", "/"},
        {"/a/.", "/a/"},
        {"/a/./b", "/a/b"},
        {"/a/..", "/"},
        {"/a/../", "/"},
        {"/a/b/..", "/a/"},
        {"/a/b/../c", "/a/c"},
        {"/a//../b", "/b"},
        {"/a/%2e%2e/b", "/b"},
        {"/a/.%2E/b", "/b"},
        {"/a/%2e/b", "/a/b"},
        {"/...", "/..."},
        {"/..a/.b", "/..a/.b"},
        {"/a/b/../../c", "/c"},
        {"/a\\..\\b", "/a\\..\\b"},
    };
    for (const auto& each : cases)
        EXPECT_EQ(normalised(each.raw), each.expected) << each.raw;
}

TEST(target_test, a_path_that_leads_above_the_root_is_refused) {
    for (const std::string_view raw : {"/..", "/../", "/../a", "/a/../..", "/a/../../b", "/%2e%2e",
                                       "/%2E./a", "//..", "/./..", "/a/b/../../../c"})
        EXPECT_FALSE(normalised(raw)) << raw;
}

TEST(target_test, a_path_with_a_null_or_without_a_beginning_is_refused) {
    for (const std::string_view raw :
         {""sv, "a"sv, "%2Fa"sv, "/%00"sv, "/a%00.txt"sv, "/a\0b"sv, "/%"sv, "/a%2"sv, "/%gg"sv})
        EXPECT_FALSE(normalised(raw)) << raw;
}

TEST(target_test, an_encoded_slash_and_an_encoded_percent_sign_cannot_be_confused) {
    constexpr path_case cases[] = {
        {"/a%2fb", "/a%2Fb"},
        {"/a%2Fb", "/a%2Fb"},
        {"/..%2f..%2fetc", "/..%2F..%2Fetc"},
        {"/%25", "/%"},
        {"/100%25", "/100%"},
        {"/%2541", "/%41"},
        {"/%252e%252e/a", "/%2e%2e/a"},
        {"/%252F", "/%252F"},
        {"/%252f", "/%252f"},
        {"/%25%32%46", "/%252F"},
        {"/%2525", "/%2525"},
        {"/%25252F", "/%25252F"},
        {"/%25%2F", "/%%2F"},
        {"/%25/2F", "/%/2F"},
        {"/%2500", "/%00"},
    };
    for (const auto& each : cases) {
        const auto path = normalised(each.raw);

        EXPECT_EQ(path, each.expected) << each.raw;
        EXPECT_EQ(has_encoded_slash(*path), each.expected.contains("%2F") &&
                                                !each.expected.contains("%252F") &&
                                                !each.expected.contains("%25252F"))
            << each.raw;
    }
}

TEST(target_test, a_parameter_is_the_text_that_the_client_encoded) {
    constexpr path_case cases[] = {
        {"/a%2Fb", "/a/b"},     {"/%252F", "/%2F"}, {"/%252f", "/%2f"}, {"/%2525", "/%25"},
        {"/%25252F", "/%252F"}, {"/%25", "/%"},     {"/%25%2F", "/%/"}, {"/%2541", "/%41"},
    };
    for (const auto& each : cases) {
        EXPECT_EQ(decoded_parameter(*normalised(each.raw)), each.expected) << each.raw;
        EXPECT_EQ(percent_decode(each.raw), each.expected) << each.raw;
    }
}

TEST(target_test, an_encoded_path_normalises_to_itself) {
    for (const std::string_view raw : {"/", "/a b/", "/%ff%0d%0a%7f", "/a%2fb", "/%252F", "/%2525",
                                       "/100%25/x", "/%25%2F", "/%25zz", "/a?b#c", "/[x]"}) {
        const auto path = normalised(raw);
        ASSERT_TRUE(path) << raw;
        const std::string encoded = percent_encode_path(*path);

        EXPECT_EQ(normalised(encoded), path) << raw;
        EXPECT_TRUE(parse_target("GET", encoded)) << encoded;
    }
}

TEST(target_test, every_byte_survives_encoding_and_normalising) {
    for (int byte = 1; byte < 256; ++byte) {
        if (byte == '/') continue;
        const std::string path = std::string{"/a"} + static_cast<char>(byte) + "b";

        EXPECT_EQ(normalised(percent_encode_path(path)), path) << byte;
    }
}

TEST(target_test, a_path_that_needs_no_normalising_is_normal) {
    for (const std::string_view raw : {"/", "/a", "/a/b.html", "/a.b/c-d/", "/a...b/c."}) {
        EXPECT_FALSE(needs_normalising(raw)) << raw;
        EXPECT_EQ(normalised(raw), raw);
    }
    for (const std::string_view raw :
         {"//", "/a//b", "/%61", "/.", "/..", "/a/./b", "/a/..", "/.a"})
        EXPECT_TRUE(needs_normalising(raw)) << raw;
}

TEST(target_test, percent_decoding_happens_once_and_completely) {
    EXPECT_EQ(percent_decode("a%2Bb+c"), "a+b+c");
    EXPECT_EQ(percent_decode("%2541"), "%41");
    EXPECT_EQ(percent_decode("%00"), std::string(1, '\0'));
    EXPECT_EQ(percent_decode(""), "");
    for (const std::string_view text : {"%", "a%", "%4", "%4x", "%%", "%-1"})
        EXPECT_FALSE(percent_decode(text)) << text;
}

} // namespace
} // namespace simplenet::v0::testing
