#include "http/codec/framing.hpp"

#include "http/codec/parsed_heads.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::string_view_literals;
using http::detail::forbidden_in_trailers;
using http::detail::frame_request;
using http::detail::frame_response;
using http::detail::framing;

/// A framing as text: "none close", "chunked keep 100 upgrade", "length 5 keep", or a status.
std::string described(const framing& is, unsigned refused) {
    static constexpr std::array kinds{"none", "length", "chunked", "until_close"};
    if (refused != 0) return std::to_string(refused);
    std::string text = kinds.at(static_cast<std::size_t>(is.kind));
    if (is.kind == framing::kind::length) text += ' ' + std::to_string(is.length);
    text += is.keep_alive ? " keep" : " close";
    if (is.expects_continue) text += " 100";
    if (is.upgrade) text += " upgrade";
    return text;
}

/// The fields of `lines`, whose ends are "|".
class framed_lines {
public:
    explicit framed_lines(std::string_view lines) {
        for (const char each : lines)
            text_ += each == '|' ? "\r\n" : std::string(1, each);
        text_ += lines.empty() ? "\r\n" : "\r\n\r\n";
        EXPECT_EQ(parser_.parse(text_), head_state::complete) << text_;
    }
    [[nodiscard]] std::span<const field_entry> fields() const { return parser_.fields(); }
    [[nodiscard]] const char* text() const { return text_.data(); }

private:
    std::string text_;
    std::array<field_entry, 16> entries_{};
    trailer_parser parser_{{}, entries_};
};

struct case_of_fields {
    std::string_view fields;
    std::string_view expected;
};

std::string framed_request(unsigned version, std::string_view fields) {
    const framed_lines lines{fields};
    framing is;
    const unsigned refused = frame_request(version, lines.fields(), lines.text(), is);
    return described(is, refused);
}

std::string framed_response(std::string_view fields, unsigned code = 200,
                            std::string_view method = "GET", unsigned version = 11) {
    const framed_lines lines{fields};
    framing is;
    const unsigned refused =
        frame_response(version, code, method, lines.fields(), lines.text(), is);
    return described(is, refused);
}

// --- requests ------------------------------------------------------------------------------------

const std::vector<case_of_fields> requests{
    {"Host: a", "none keep"},
    {"hOST: a", "none keep"},
    {"Host: a|X: Content-Length: 5", "none keep"},
    {"Host: a|Content_Length: 5", "none keep"},
    {"Host: a|Content-Lengths: 5", "none keep"},
    {"Host: a|Transfer-Encodinh: chunked", "none keep"},
    // lengths
    {"Host: a|Content-Length: 0", "length 0 keep"},
    {"Host: a|content-length:5", "length 5 keep"},
    {"Host: a|Content-Length: 005", "length 5 keep"},
    {"Host: a|Content-Length: 9223372036854775807", "length 9223372036854775807 keep"},
    {"Host: a|Content-Length: 9223372036854775808", "400"},
    {"Host: a|Content-Length: 18446744073709551615", "400"},
    {"Host: a|Content-Length: 18446744073709551617", "400"},
    {"Host: a|Content-Length: 99999999999999999999999999999999", "400"},
    {"Host: a|Content-Length:", "400"},
    {"Host: a|Content-Length: +5", "400"},
    {"Host: a|Content-Length: -5", "400"},
    {"Host: a|Content-Length: -0", "400"},
    {"Host: a|Content-Length: 5.0", "400"},
    {"Host: a|Content-Length: 0x5", "400"},
    {"Host: a|Content-Length: 5 5", "400"},
    {"Host: a|Content-Length: 5,", "400"},
    {"Host: a|Content-Length: a", "400"},
    {"Host: a|Content-Length: 5a", "400"},
    {"Host: a|Content-Length: \"5\"", "400"},
    {"Host: a|Content-Length: 3, 3", "400"},
    {"Host: a|Content-Length: 3, 4", "400"},
    {"Host: a|Content-Length: 3|Content-Length: 3", "400"},
    {"Host: a|Content-Length: 3|Content-Length: 4", "400"},
    {"Host: a|Content-Length: 3|content-length:", "400"},
    {"Host: a|Content-Length: 1_0", "400"},
    {"Host: a|Content-Length: \xb2", "400"},
    // codings
    {"Host: a|Transfer-Encoding: chunked", "chunked keep"},
    {"Host: a|transfer-encoding:\t CHUNKED \t", "chunked keep"},
    {"Host: a|Transfer-Encoding:", "400"},
    {"Host: a|Transfer-Encoding: ,", "400"},
    {"Host: a|Transfer-Encoding: chunked,", "400"},
    {"Host: a|Transfer-Encoding: ,chunked", "400"},
    {"Host: a|Transfer-Encoding: identity", "400"},
    {"Host: a|Transfer-Encoding: gzip", "400"},
    {"Host: a|Transfer-Encoding: xchunked", "400"},
    {"Host: a|Transfer-Encoding: chunkedx", "400"},
    {"Host: a|Transfer-Encoding: \"chunked\"", "400"},
    {"Host: a|Transfer-Encoding: 'chunked'", "400"},
    {"Host: a|Transfer-Encoding: chunked;q=1", "400"},
    {"Host: a|Transfer-Encoding: chunked;", "400"},
    {"Host: a|Transfer-Encoding: chunked chunked", "400"},
    {"Host: a|Transfer-Encoding: chunked, chunked", "400"},
    {"Host: a|Transfer-Encoding: chunked;a=b, chunked", "400"},
    {"Host: a|Transfer-Encoding: chunked, identity", "400"},
    {"Host: a|Transfer-Encoding: chunked, gzip", "400"},
    {"Host: a|Transfer-Encoding: chunked, gzip, chunked", "400"},
    {"Host: a|Transfer-Encoding: gzip, chunked", "501"},
    {"Host: a|Transfer-Encoding: identity, chunked", "501"},
    {"Host: a|Transfer-Encoding: a;b=\",\", chunked", "501"},
    {"Host: a|Transfer-Encoding: gzip;q=1, deflate , chunked", "501"},
    {"Host: a|Transfer-Encoding: gz ip, chunked", "400"},
    {"Host: a|Transfer-Encoding: gzip/x, chunked", "400"},
    {"Host: a|Transfer-Encoding: \"a, chunked", "400"},
    {"Host: a|Transfer-Encoding: \xa0"
     "chunked",
     "400"},
    {"Host: a|Transfer-Encoding: gzip|Transfer-Encoding: chunked", "400"},
    {"Host: a|Transfer-Encoding: chunked|Transfer-Encoding: chunked", "400"},
    {"Host: a|Transfer-Encoding: chunked|Transfer-Encoding: identity", "400"},
    {"Host: a|Transfer-Encoding: chunked|Transfer-Encoding:", "400"},
    // both
    {"Host: a|Content-Length: 5|Transfer-Encoding: chunked", "400"},
    {"Host: a|Transfer-Encoding: chunked|Content-Length: 5", "400"},
    {"Host: a|Transfer-Encoding: gzip, chunked|Content-Length: 5", "400"},
    {"Host: a|Transfer-Encoding:|Content-Length: 5", "400"},
    {"Host: a|Transfer-Encoding: identity|Content-Length: 5", "400"},
    // hosts
    {"", "400"},
    {"X: a", "400"},
    {"Host:", "400"},
    {"Host: a|Host: a", "400"},
    {"Host: a|Host: b", "400"},
    {"Host: a|Host:", "400"},
    {"Host: a, b", "400"},
    {"Host: a,b", "none keep"}, // commas are sub-delims
    {"Host: example.org:8080", "none keep"},
    {"Host: example.org:", "none keep"},
    {"Host: example.org:65536", "400"},
    {"Host: example.org:80a", "400"},
    {"Host: example.org:80:80", "400"},
    {"Host: :80", "400"},
    {"Host: 127.0.0.1:80", "none keep"},
    {"Host: [::1]", "none keep"},
    {"Host: [2001:db8::1]:443", "none keep"},
    {"Host: [::ffff:1.2.3.4]", "none keep"},
    {"Host: [::1", "400"},
    {"Host: ::1", "400"},
    {"Host: []", "400"},
    {"Host: [::1]x", "400"},
    {"Host: [fe80::1%25eth0]", "400"},
    {"Host: [1.2.3.4]", "400"},
    {"Host: a b", "400"},
    {"Host: a/b", "400"},
    {"Host: a?b", "400"},
    {"Host: a#b", "400"},
    {"Host: user@a", "400"},
    {"Host: http://a", "400"},
    {"Host: a\\b", "400"},
    {"Host: a%zz", "400"},
    {"Host: a%41", "none keep"},
    {"Host: a%4", "400"},
    {"Host: \xe4", "400"},
    {"Host: a_b~c!$&'()*+;=", "none keep"},
    {"Host: <a>", "400"},
    // the order: framing, Host, expectation
    {"Transfer-Encoding: gzip, chunked", "501"},
    {"Host: a|Host: b|Transfer-Encoding: gzip, chunked", "501"},
    {"Expect: x", "400"},
    {"Host: a|Expect: x|Content-Length: x", "400"},
    // expectations
    {"Host: a|Expect: 100-continue", "none keep 100"},
    {"Host: a|Expect: 100-CONTINUE|Content-Length: 5", "length 5 keep 100"},
    {"Host: a|Expect: 100-continue, 100-continue", "none keep 100"},
    {"Host: a|Expect:", "none keep"},
    {"Host: a|Expect: 200-ok", "417"},
    {"Host: a|Expect: 100-continue, x", "417"},
    {"Host: a|Expect: 100-continue|Expect: x", "417"},
    {"Host: a|Expect: 100-continue;q", "417"},
    {"Host: a|Expect: \"", "417"},
    // connections
    {"Host: a|Connection: close", "none close"},
    {"Host: a|Connection: Close", "none close"},
    {"Host: a|Connection: keep-alive, x, close", "none close"},
    {"Host: a|Connection: keep-alive|Connection: close", "none close"},
    {"Host: a|Connection: keep-alive", "none keep"},
    {"Host: a|Connection: closed", "none keep"},
    {"Host: a|Connection: \"close\"", "none keep"},
    {"Host: a|Connection: ,close", "none close"},
    {"Host: a|Connection:", "none keep"},
    {"Host: a|Connection: Upgrade|Upgrade: websocket", "none keep upgrade"},
    {"Host: a|Connection: keep-alive, upgrade|Upgrade: h2c", "none keep upgrade"},
    {"Host: a|Connection: Upgrade", "none keep"},
    {"Host: a|Upgrade: websocket", "none keep"},
    {"Host: a|Connection: Upgrade|Upgrade:", "none keep"},
};

const std::vector<case_of_fields> requests_of_1_0{
    {"", "none close"},
    {"Host: a", "none close"},
    {"Connection: keep-alive", "none keep"},
    {"Connection: Keep-Alive|Content-Length: 3", "length 3 keep"},
    {"Connection: keep-alive, close", "none close"},
    {"Keep-Alive: 5", "none close"},
    {"Transfer-Encoding: chunked", "400"},
    {"Transfer-Encoding: gzip, chunked", "400"},
    {"Transfer-Encoding:", "400"},
    {"Content-Length: x", "400"},
    {"Host:", "400"},
    {"Host: a|Host: a", "400"},
    {"Host: a b", "400"},
    {"Expect: 100-continue", "none close"}, // ignored, RFC 9110 section 10.1.1
    {"Expect: x", "417"},
    {"Connection: upgrade|Upgrade: websocket", "none close"},
};

TEST(request_framing_test, fields_of_http_1_1_have_one_meaning) {
    for (const case_of_fields& each : requests)
        EXPECT_EQ(framed_request(11, each.fields), each.expected) << each.fields;
}

TEST(request_framing_test, fields_of_http_1_0_have_one_meaning) {
    for (const case_of_fields& each : requests_of_1_0)
        EXPECT_EQ(framed_request(10, each.fields), each.expected) << each.fields;
}

TEST(request_framing_test, the_host_is_that_of_the_field) {
    const framed_lines named{"X: y|Host:  example.org:80 "};
    const framed_lines unnamed{"X: y"};

    framing is;

    EXPECT_EQ(frame_request(11, named.fields(), named.text(), is), 0U);
    EXPECT_EQ(is.host, "example.org:80");
    EXPECT_EQ(frame_request(10, unnamed.fields(), unnamed.text(), is), 0U);
    EXPECT_EQ(is.host, "");
}

// --- responses -----------------------------------------------------------------------------------

const std::vector<case_of_fields> responses{
    {"", "until_close close"},
    {"Connection: keep-alive", "until_close close"},
    {"Content-Length: 0", "length 0 keep"},
    {"Content-Length: 5", "length 5 keep"},
    {"Content-Length: 5|Connection: close", "length 5 close"},
    {"Content-Length: 5, 5", "400"},
    {"Content-Length: 5|Content-Length: 5", "400"},
    {"Content-Length: x", "400"},
    {"Content-Length: 9223372036854775808", "400"},
    {"Transfer-Encoding: chunked", "chunked keep"},
    {"Transfer-Encoding: chunked|Content-Length: 5", "400"},
    {"Transfer-Encoding: gzip", "400"},
    {"Transfer-Encoding: identity", "400"},
    {"Transfer-Encoding: gzip, chunked", "501"},
    {"Transfer-Encoding:", "400"},
    {"Host: a|Host: b|Expect: x|Content-Length: 1", "length 1 keep"},
};

TEST(response_framing_test, fields_have_one_meaning) {
    for (const case_of_fields& each : responses)
        EXPECT_EQ(framed_response(each.fields), each.expected) << each.fields;
}

TEST(response_framing_test, http_1_0_is_kept_alive_only_by_its_field) {
    EXPECT_EQ(framed_response("Content-Length: 5", 200, "GET", 10), "length 5 close");
    EXPECT_EQ(framed_response("Content-Length: 5|Connection: keep-alive", 200, "GET", 10),
              "length 5 keep");
    EXPECT_EQ(framed_response("Transfer-Encoding: chunked", 200, "GET", 10), "400");
}

TEST(response_framing_test, some_responses_have_no_body_whatever_their_fields_say) {
    for (const std::string_view fields :
         {""sv, "Content-Length: 5"sv, "Content-Length: 5|Transfer-Encoding: chunked"sv,
          "Content-Length: x"sv, "Transfer-Encoding: gzip"sv}) {
        for (const unsigned code : {100U, 101U, 199U, 204U, 304U})
            EXPECT_EQ(framed_response(fields, code), "none keep") << code << fields;
        EXPECT_EQ(framed_response(fields, 200, "HEAD"), "none keep") << fields;
        EXPECT_EQ(framed_response(fields, 404, "HEAD"), "none keep") << fields;
    }
}

TEST(response_framing_test, methods_have_a_case) {
    EXPECT_EQ(framed_response("Content-Length: 5", 200, "head"), "length 5 keep");
}

TEST(response_framing_test, behind_a_successful_answer_to_connect_is_a_tunnel) {
    EXPECT_EQ(framed_response("Content-Length: 5", 200, "CONNECT"), "none close");
    EXPECT_EQ(framed_response("Content-Length: 5", 299, "CONNECT"), "none close");
    EXPECT_EQ(framed_response("Content-Length: 5", 407, "CONNECT"), "length 5 keep");
}

TEST(response_framing_test, a_switch_of_protocols_is_recognised) {
    EXPECT_EQ(framed_response("Connection: upgrade|Upgrade: websocket", 101), "none keep upgrade");
}

TEST(forbidden_in_trailers_test, fields_of_framing_and_routing_are_forbidden) {
    for (const std::string_view name : {"Content-Length", "transfer-encoding", "HOST", "Trailer",
                                        "Connection", "Authorization", "Content-Type"})
        EXPECT_TRUE(forbidden_in_trailers(name)) << name;
    for (const std::string_view name : {"X-Checksum", "Digest", "ETag", "Server-Timing", "Hosts"})
        EXPECT_FALSE(forbidden_in_trailers(name)) << name;
}

} // namespace
} // namespace simplenet::v0::testing
