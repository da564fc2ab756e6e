#include "http/codec/url.hpp"

#include "http/codec/authority.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace simplenet::v0::testing {
namespace {

using namespace std::string_view_literals;
using http::detail::authority_of;
using http::detail::origin_of;
using http::detail::parse_url;
using http::detail::parse_websocket_url;
using http::detail::resolve;
using http::detail::text_of;
using http::detail::url;

struct url_case {
    std::string_view text;
    std::string_view expected;
};

std::string normal_text(std::string_view text) {
    const auto read = parse_url(text);
    return read ? text_of(*read) : "refused";
}

TEST(url_test, the_parts_are_where_to_connect_and_what_to_ask_for) {
    const auto read = parse_url("https://Example.ORG:8443/a%20b?c=d#e");

    ASSERT_TRUE(read);
    EXPECT_TRUE(read->secure);
    EXPECT_EQ(read->host, "example.org");
    EXPECT_EQ(read->port, 8443);
    EXPECT_EQ(read->target, "/a%20b?c=d");
}

TEST(url_test, a_url_has_one_text) {
    constexpr url_case cases[] = {
        {"http://h", "http://h/"},
        {"HTTP://H/A", "http://h/A"},
        {"http://h:80/", "http://h/"},
        {"http://h:/", "http://h/"},
        {"http://h:0080/", "http://h/"},
        {"https://h:443", "https://h/"},
        {"https://h:80", "https://h:80/"},
        {"http://h?q", "http://h/?q"},
        {"http://h?", "http://h/?"},
        {"http://h#f", "http://h/"},
        {"http://h/?a/../b", "http://h/?a/../b"},
        {"http://h/a/./b/../c", "http://h/a/c"},
        {"http://h/../a", "http://h/a"},
        {"http://h/a/..", "http://h/"},
        {"http://h//a//b", "http://h//a//b"},
        {"http://h//..", "http://h/"},
        {"http://h/%2e%2e/%7ea", "http://h/%2e%2e/%7ea"},
        {"http://[::1]", "http://[::1]/"},
        {"http://[2001:DB8:0:0::0001]:8080/", "http://[2001:db8::1]:8080/"},
        {"http://[::ffff:192.0.2.1]/", "http://[::ffff:192.0.2.1]/"},
        {"http://127.0.0.1/", "http://127.0.0.1/"},
    };
    for (const auto& each : cases) {
        EXPECT_EQ(normal_text(each.text), each.expected) << each.text;
        EXPECT_EQ(normal_text(each.expected), each.expected);
    }
}

TEST(url_test, what_is_no_url_of_this_client_is_refused) {
    for (const std::string_view text : {"",
                                        "h",
                                        "/a",
                                        "//h/",
                                        "http",
                                        "http:",
                                        "http:/h",
                                        "http://",
                                        "http:///a",
                                        "http://:80/",
                                        "ftp://h/",
                                        "ws://h/",
                                        "file:///etc/passwd",
                                        "httpx://h/",
                                        " http://h/",
                                        "1http://h/",
                                        "http://u@h/",
                                        "http://u:p@h/",
                                        "http://@h/",
                                        "http://h:0/",
                                        "http://h:65536/",
                                        "http://h:x/",
                                        "http://h:80:80/",
                                        "http://[::1",
                                        "http://[::1%25lo]/",
                                        "http://[v1.a]/",
                                        "http://%41/",
                                        "http://h\\a/",
                                        "http://a b/"})
        EXPECT_FALSE(parse_url(text)) << text;
}

TEST(url_test, a_byte_that_urls_do_not_have_is_refused_everywhere) {
    for (const std::string_view text :
         {"http://h|/a?b#c", "http://h/|a?b#c", "http://h/a?|b#c", "http://h/a?b#|c"}) {
        for (const std::string_view bad :
             {" "sv, "\r"sv, "\n"sv, "\t"sv, "\0"sv, "\x7f"sv, "\xc3\xa4"sv, "\""sv, "<"sv, ">"sv,
              "\\"sv, "^"sv, "`"sv, "{"sv, "|"sv, "}"sv, "%"sv, "%g0"sv}) {
            std::string with_bad{text};
            with_bad.replace(text.find('|'), 1, bad);
            EXPECT_FALSE(parse_url(with_bad)) << with_bad;
        }
    }
}

TEST(url_test, ports_and_brackets_are_written_where_they_are_needed) {
    EXPECT_EQ(authority_of(*parse_url("http://h:80")), "h");
    EXPECT_EQ(authority_of(*parse_url("http://h:443")), "h:443");
    EXPECT_EQ(authority_of(*parse_url("https://[::1]:80")), "[::1]:80");
    EXPECT_EQ(origin_of(*parse_url("https://[::1]:443/a")), "https://[::1]");
    EXPECT_NE(origin_of(*parse_url("http://h:443")), origin_of(*parse_url("https://h:443")));
}

TEST(url_test, a_websocket_has_schemes_of_its_own_and_no_fragment) {
    const auto plain = parse_websocket_url("ws://h/chat?a");
    const auto secure = parse_websocket_url("WSS://h");

    ASSERT_TRUE(plain && secure);
    EXPECT_EQ(text_of(*plain), "http://h/chat?a");
    EXPECT_EQ(text_of(*secure), "https://h/");
    for (const std::string_view text : {"http://h/", "ws://h/#f", "ws://h/#", "ws:h", "ws://u@h/"})
        EXPECT_FALSE(parse_websocket_url(text)) << text;
}

// RFC 3986, sections 5.4.1 and 5.4.2, without fragments. Of "g:h" and "http:g" the one is another
// scheme, and the other a URL without a host.
constexpr url_case resolved_references[] = {
    {"g:h", "refused"},
    {"g", "http://a/b/c/g"},
    {"./g", "http://a/b/c/g"},
    {"g/", "http://a/b/c/g/"},
    {"/g", "http://a/g"},
    {"//g", "http://g/"},
    {"?y", "http://a/b/c/d;p?y"},
    {"g?y", "http://a/b/c/g?y"},
    {"#s", "http://a/b/c/d;p?q"},
    {"g#s", "http://a/b/c/g"},
    {"g?y#s", "http://a/b/c/g?y"},
    {";x", "http://a/b/c/;x"},
    {"g;x", "http://a/b/c/g;x"},
    {"g;x?y#s", "http://a/b/c/g;x?y"},
    {"", "http://a/b/c/d;p?q"},
    {".", "http://a/b/c/"},
    {"./", "http://a/b/c/"},
    {"..", "http://a/b/"},
    {"../", "http://a/b/"},
    {"../g", "http://a/b/g"},
    {"../..", "http://a/"},
    {"../../", "http://a/"},
    {"../../g", "http://a/g"},
    {"../../../g", "http://a/g"},
    {"../../../../g", "http://a/g"},
    {"/./g", "http://a/g"},
    {"/../g", "http://a/g"},
    {"g.", "http://a/b/c/g."},
    {".g", "http://a/b/c/.g"},
    {"g..", "http://a/b/c/g.."},
    {"..g", "http://a/b/c/..g"},
    {"./../g", "http://a/b/g"},
    {"./g/.", "http://a/b/c/g/"},
    {"g/./h", "http://a/b/c/g/h"},
    {"g/../h", "http://a/b/c/h"},
    {"g;x=1/./y", "http://a/b/c/g;x=1/y"},
    {"g;x=1/../y", "http://a/b/c/y"},
    {"g?y/./x", "http://a/b/c/g?y/./x"},
    {"g?y/../x", "http://a/b/c/g?y/../x"},
    {"g#s/../x", "http://a/b/c/g"},
    {"http:g", "refused"},
};

TEST(url_test, references_are_resolved_as_the_rfc_shows) {
    const url base = *parse_url("http://a/b/c/d;p?q");
    for (const auto& each : resolved_references) {
        const auto resolved = resolve(base, each.text);

        EXPECT_EQ(resolved ? text_of(*resolved) : "refused", each.expected) << each.text;
        if (!resolved) continue;
        EXPECT_EQ(parse_url(text_of(*resolved)), resolved);
    }
}

TEST(url_test, a_reference_keeps_the_origin_unless_it_names_another) {
    const url base = *parse_url("https://h:8443/a/b?c");

    EXPECT_EQ(text_of(*resolve(base, "x")), "https://h:8443/a/x");
    EXPECT_EQ(text_of(*resolve(base, "?")), "https://h:8443/a/b?");
    EXPECT_EQ(text_of(*resolve(base, "//g")), "https://g/");
    EXPECT_EQ(text_of(*resolve(base, "http://h:8443/")), "http://h:8443/");
    EXPECT_EQ(text_of(*resolve(base, "/.//g")), "https://h:8443//g");
}

TEST(url_test, a_reference_that_would_not_be_a_url_is_refused) {
    const url base = *parse_url("http://h/a");
    for (const std::string_view text :
         {"//u@g/", "///x", "//", "a b", "x\r\nHost: g", "\xc3\xa4", "/%", "?%g", "#\n", "a:b", ":",
          "javascript:alert(1)", "//g:0/", "/a|b"})
        EXPECT_FALSE(resolve(base, text)) << text;
}

TEST(url_test, the_authority_may_be_sent_as_host) {
    for (const std::string_view text :
         {"http://h", "https://h:1/", "http://[::1]:2", "http://a!$&'()*+,;=b"})
        EXPECT_TRUE(http::detail::valid_authority(authority_of(*parse_url(text)))) << text;
}

} // namespace
} // namespace simplenet::v0::testing
