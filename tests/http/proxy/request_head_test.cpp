// What a backend gets of a request, byte by byte.

#include "http/proxy/request_head.hpp"

#include "http/codec/target.hpp"
#include "http/gateway/field_rules.hpp"

#include <simplenet/http/fields.hpp>
#include <simplenet/ip/ip_address.hpp>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

using namespace http::detail;

http::fields fields_of(std::initializer_list<http::field> all) {
    http::fields made;
    for (const http::field& each : all)
        made.add(each.name, each.value);
    return made;
}

ip_address address(std::string_view text) {
    return *ip_address::parse(text);
}

/// A GET of "/" from 192.0.2.1 to example.org.
passed_request asked_with(const http::fields& fields) {
    return {.method = "GET",
            .path = "/",
            .target = "/",
            .host = "example.org",
            .fields = &fields,
            .peer = address("192.0.2.1"),
            .client = address("192.0.2.1")};
}

const head_rules plain_rules{.host = {}, .via = "gate", .set = {}};

constexpr std::string_view own_fields = "Via: 1.1 gate\r\n"
                                        "Forwarded: for=192.0.2.1;host=example.org;proto=http\r\n"
                                        "X-Forwarded-For: 192.0.2.1\r\n"
                                        "X-Real-IP: 192.0.2.1\r\n"
                                        "X-Forwarded-Proto: http\r\n"
                                        "X-Forwarded-Host: example.org\r\n";

/// The fields that are passed on, without Host and those that the proxy adds.
std::string passed_of(const http::fields& fields, const head_rules& rules = plain_rules) {
    const std::string head = write_request_head(asked_with(fields), rules, "backend");
    const std::string_view begin = "GET / HTTP/1.1\r\nHost: example.org\r\n";
    const std::string end = std::string{own_fields} + "\r\n";
    EXPECT_TRUE(head.starts_with(begin)) << head;
    EXPECT_TRUE(head.ends_with(end)) << head;
    return head.substr(begin.size(), head.size() - begin.size() - end.size());
}

bool has_line(std::string_view head, std::string_view line) {
    return head.find("\r\n" + std::string{line} + "\r\n") != std::string_view::npos;
}

// --- fields --------------------------------------------------------------------------------------

TEST(request_head_test, a_request_is_passed_on_with_what_the_proxy_knows) {
    const http::fields fields = fields_of({{"Host", "example.org"}, {"Accept", "*/*"}});
    EXPECT_EQ(write_request_head(asked_with(fields), plain_rules, "backend"),
              "GET / HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\n" + std::string{own_fields} +
                  "\r\n");
}

TEST(request_head_test, fields_for_the_next_recipient_are_removed) {
    for (const std::string_view name :
         {"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization",
          "Proxy-Authenticate", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
          "HTTP2-Settings", "Content-Length", "Host", "Proxy", "pROXY", "te"}) {
        EXPECT_EQ(passed_of(fields_of({{name, "a"}, {"Accept", "b"}})), "Accept: b\r\n") << name;
    }
}

TEST(request_head_test, fields_that_connection_names_are_removed) {
    EXPECT_EQ(passed_of(fields_of({{"A", "1"}, {"Connection", "close, a , B"}, {"b", "2"}})), "");
    EXPECT_EQ(passed_of(fields_of({{"Connection", "a"}, {"A", "1"}, {"Connection", "b"}})), "");
}

TEST(request_head_test, connection_removes_nothing_that_has_another_meaning) {
    const http::fields all = fields_of({{"Connection", "Host, Content-Length, Authorization"},
                                        {"connection", "X-Forwarded-For, Forwarded, X-Real-IP"},
                                        {"Connection", "Via, X-Forwarded-Proto"},
                                        {"Authorization", "Basic eA=="}});
    EXPECT_EQ(passed_of(all), "Authorization: Basic eA==\r\n");
}

TEST(request_head_test, what_a_client_says_about_itself_is_dropped) {
    for (const std::string_view name :
         {"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
          "X-Forwarded-Port", "X-Forwarded-Server", "X-Forwarded-Anything", "X-Real-IP",
          "x-forwarded-for", "X-FORWARDED-PREFIX"}) {
        EXPECT_EQ(passed_of(fields_of({{name, "10.0.0.1"}})), "") << name;
    }
}

TEST(request_head_test, a_trusted_peer_is_believed_and_the_lists_go_on) {
    const http::fields fields = fields_of({{"X-Forwarded-For", "203.0.113.9"},
                                           {"Forwarded", "for=203.0.113.9"},
                                           {"X-Forwarded-For", "198.51.100.2"},
                                           {"X-Forwarded-Proto", "https"},
                                           {"X-Forwarded-Host", "shop.example"},
                                           {"X-Forwarded-Port", "443"},
                                           {"X-Real-IP", "203.0.113.9"},
                                           {"Via", "1.0 front"}});
    passed_request asked = asked_with(fields);
    asked.trusted = true;
    EXPECT_EQ(write_request_head(asked, plain_rules, "backend"),
              "GET / HTTP/1.1\r\nHost: example.org\r\nX-Forwarded-Proto: https\r\n"
              "X-Forwarded-Host: shop.example\r\nX-Forwarded-Port: 443\r\n"
              "X-Real-IP: 203.0.113.9\r\nVia: 1.0 front, 1.1 gate\r\n"
              "Forwarded: for=203.0.113.9, for=192.0.2.1;host=example.org;proto=http\r\n"
              "X-Forwarded-For: 203.0.113.9, 198.51.100.2, 192.0.2.1\r\n\r\n");
}

TEST(request_head_test, a_forwarded_that_would_swallow_what_follows_is_replaced) {
    for (const std::string_view bad :
         {R"(for="203.0.113.9)", R"(for="203.0.113.9\")", R"(for=203.0.113.9")", R"(for=\"a")",
          R"(for="a"b)", R"(for=a;by="b, for=c)"}) {
        const http::fields fields =
            fields_of({{"Forwarded", "for=198.51.100.2"}, {"Forwarded", bad}});
        passed_request asked = asked_with(fields);
        asked.trusted = true;
        EXPECT_TRUE(has_line(write_request_head(asked, plain_rules, "backend"),
                             "Forwarded: for=192.0.2.1;host=example.org;proto=http"))
            << bad;
    }
    // Not well-formed without quotes, and understood by all.
    for (const std::string_view good :
         {R"(for="[2001:db8::1]:4711" , for=x)", R"(for="a\"b";by=c)", "for=[2001:db8::1]"}) {
        const http::fields fields = fields_of({{"Forwarded", good}});
        passed_request asked = asked_with(fields);
        asked.trusted = true;
        EXPECT_TRUE(has_line(write_request_head(asked, plain_rules, "backend"),
                             "Forwarded: " + std::string{good} +
                                 ", for=192.0.2.1;host=example.org;proto=http"));
    }
}

// A proxy that sets X-Forwarded-For and no X-Real-IP passes on the one of its client.
TEST(request_head_test, the_client_that_the_program_knows_is_the_only_real_one) {
    const http::fields fields = fields_of(
        {{"X-Forwarded-For", "203.0.113.9"}, {"X-Real-IP", "10.0.0.1"}, {"x-real-ip", "10.0.0.2"}});
    passed_request asked = asked_with(fields);
    asked.trusted = true;
    asked.client = address("203.0.113.9");
    asked.client_is_told = true;
    const std::string head = write_request_head(asked, plain_rules, "backend");
    EXPECT_TRUE(has_line(head, "X-Real-IP: 203.0.113.9"));
    EXPECT_EQ(head.find("10.0.0."), std::string::npos) << head;
}

TEST(request_head_test, a_client_with_the_address_of_the_proxy_has_no_other) {
    const http::fields fields = fields_of({{"X-Real-IP", "10.0.0.1"}});
    passed_request asked = asked_with(fields);
    asked.trusted = asked.client_is_told = true;
    const std::string head = write_request_head(asked, plain_rules, "backend");
    EXPECT_TRUE(has_line(head, "X-Real-IP: 192.0.2.1"));
    EXPECT_EQ(head.find("10.0.0."), std::string::npos) << head;
}

// A backend that reads X-Forwarded-For would take the proxy for the client.
TEST(request_head_test, a_client_that_is_told_is_in_both_lists) {
    const http::fields only_real_ip = fields_of({{"X-Real-IP", "2001:db8::9"}});
    passed_request asked = asked_with(only_real_ip);
    asked.trusted = asked.client_is_told = true;
    asked.client = address("2001:db8::9");
    std::string head = write_request_head(asked, plain_rules, "backend");
    EXPECT_TRUE(has_line(head, "X-Forwarded-For: 2001:db8::9, 192.0.2.1"));
    EXPECT_TRUE(has_line(head, "Forwarded: for=\"[2001:db8::9]\", "
                               "for=192.0.2.1;host=example.org;proto=http"));

    const http::fields forwarded = fields_of({{"Forwarded", "for=203.0.113.9"}});
    asked.fields = &forwarded;
    asked.client = address("203.0.113.9");
    head = write_request_head(asked, plain_rules, "backend");
    EXPECT_TRUE(has_line(head, "X-Forwarded-For: 203.0.113.9, 192.0.2.1"));
    EXPECT_TRUE(has_line(head, "Forwarded: for=203.0.113.9, "
                               "for=192.0.2.1;host=example.org;proto=http"));
}

TEST(request_head_test, a_trusted_peer_cannot_be_made_to_forget_the_client) {
    const http::fields fields =
        fields_of({{"Connection", "X-Forwarded-For"}, {"X-Forwarded-For", "203.0.113.9"}});
    passed_request asked = asked_with(fields);
    asked.trusted = true;
    EXPECT_TRUE(has_line(write_request_head(asked, plain_rules, "backend"),
                         "X-Forwarded-For: 203.0.113.9, 192.0.2.1"));
}

TEST(request_head_test, ipv6_addresses_are_written_as_each_field_wants_them) {
    const http::fields none;
    passed_request asked = asked_with(none);
    asked.peer = asked.client = address("2001:db8::7");
    asked.host = "[2001:db8::1]:8080";
    asked.secure = true;
    const std::string head = write_request_head(asked, plain_rules, "backend");
    EXPECT_TRUE(
        has_line(head, R"(Forwarded: for="[2001:db8::7]";host="[2001:db8::1]:8080";proto=https)"));
    EXPECT_TRUE(has_line(head, "X-Forwarded-For: 2001:db8::7"));
    EXPECT_TRUE(has_line(head, "X-Forwarded-Proto: https"));
}

TEST(request_head_test, mapped_and_scoped_addresses_are_written_without_that) {
    const http::fields none;
    passed_request asked = asked_with(none);
    asked.peer = asked.client = address("::ffff:192.0.2.7");
    EXPECT_TRUE(has_line(write_request_head(asked, plain_rules, "b"), "X-Real-IP: 192.0.2.7"));
    asked.peer = asked.client = address("fe80::1%1");
    EXPECT_TRUE(has_line(write_request_head(asked, plain_rules, "b"), "X-Real-IP: fe80::1"));
}

TEST(request_head_test, names_with_underscores_are_dropped_unless_the_program_wants_them) {
    const http::fields fields = fields_of({{"api_key", "1"}, {"X_Forwarded_For", "10.0.0.1"}});
    EXPECT_EQ(passed_of(fields), "");
    head_rules rules = plain_rules;
    rules.underscores = true;
    EXPECT_EQ(passed_of(fields, rules), "api_key: 1\r\n");
}

TEST(request_head_test, no_spelling_of_a_field_of_the_proxy_gets_through) {
    head_rules rules = plain_rules;
    rules.underscores = true;
    for (const std::string_view name :
         {"X_Forwarded_For", "x-forwarded_for", "X_Real_IP", "Content_Length", "Transfer_Encoding",
          "transfer-encoding_", "X_Forwarded_Anything_at_all", "Proxy_Connection",
          "X_Forwarded-Host", "Max_Forwards"}) {
        const std::string passed = passed_of(fields_of({{name, "a"}}), rules);
        if (name.ends_with('_')) {
            EXPECT_EQ(passed, "transfer-encoding_: a\r\n");
        } else {
            EXPECT_EQ(passed, "") << name;
        }
    }
}

TEST(request_head_test, fields_that_the_program_sets_replace_those_of_the_client) {
    head_rules rules = plain_rules;
    rules.set.add("X-User", "ada").add("Authorization", "Bearer b");
    rules.underscores = true;
    const http::fields fields = fields_of(
        {{"x-user", "root"}, {"X_User", "root"}, {"Authorization", "Basic a"}, {"B", "1"}});
    const std::string head = write_request_head(asked_with(fields), rules, "backend");
    EXPECT_EQ(head, "GET / HTTP/1.1\r\nHost: example.org\r\nB: 1\r\n" + std::string{own_fields} +
                        "X-User: ada\r\nAuthorization: Bearer b\r\n\r\n");
}

TEST(request_head_test, a_connection_option_does_not_reach_what_the_program_sets) {
    head_rules rules = plain_rules;
    rules.set.add("X-User", "ada");
    const http::fields fields = fields_of({{"Connection", "X-User"}});
    EXPECT_TRUE(has_line(write_request_head(asked_with(fields), rules, "b"), "X-User: ada"));
}

TEST(request_head_test, the_host_is_that_of_the_client_of_the_program_or_of_the_backend) {
    const http::fields none;
    passed_request asked = asked_with(none);
    head_rules rules = plain_rules;
    rules.host = "inner";
    EXPECT_TRUE(has_line(write_request_head(asked, rules, "backend"), "Host: inner"));
    asked.host = {}; // HTTP/1.0
    const std::string head = write_request_head(asked, plain_rules, "backend");
    EXPECT_TRUE(has_line(head, "Host: backend"));
    EXPECT_TRUE(has_line(head, "Forwarded: for=192.0.2.1;proto=http"));
    EXPECT_EQ(head.find("X-Forwarded-Host"), std::string::npos);
}

TEST(request_head_test, via_tells_the_version_that_was_received) {
    const http::fields none;
    passed_request asked = asked_with(none);
    asked.version = 10;
    EXPECT_TRUE(has_line(write_request_head(asked, plain_rules, "b"), "Via: 1.0 gate"));
    const std::string head = write_request_head(asked, {.host = {}, .via = {}, .set = {}}, "b");
    EXPECT_EQ(head.find("Via"), std::string::npos);
}

// --- framing -------------------------------------------------------------------------------------

TEST(request_head_test, framing_is_that_of_the_proxy) {
    const http::fields fields =
        fields_of({{"Content-Length", "5"}, {"Transfer-Encoding", "chunked"}});
    passed_request asked = asked_with(fields);
    EXPECT_EQ(write_request_head(asked, plain_rules, "b").find("Content-Length"),
              std::string::npos);
    asked.has_body = true;
    asked.length = 7;
    std::string head = write_request_head(asked, plain_rules, "b");
    EXPECT_TRUE(head.ends_with("\r\nContent-Length: 7\r\n\r\n"));
    EXPECT_EQ(head.find("Transfer-Encoding"), std::string::npos);
    asked.length.reset();
    head = write_request_head(asked, plain_rules, "b");
    EXPECT_TRUE(head.ends_with("\r\nTransfer-Encoding: chunked\r\n\r\n"));
    EXPECT_EQ(head.find("Content-Length"), std::string::npos);
}

TEST(request_head_test, only_a_websocket_is_an_upgrade) {
    const http::fields fields = fields_of({{"Connection", "Upgrade, HTTP2-Settings"},
                                           {"Upgrade", "h2c"},
                                           {"HTTP2-Settings", "AAMAAABkAAQCAAAAAAIAAAAA"},
                                           {"Sec-WebSocket-Key", "k"}});
    EXPECT_EQ(passed_of(fields), "Sec-WebSocket-Key: k\r\n");
    passed_request asked = asked_with(fields);
    asked.upgrades = true;
    EXPECT_TRUE(write_request_head(asked, plain_rules, "b")
                    .ends_with("\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
}

TEST(request_head_test, forwards_are_counted_down_for_trace_and_options) {
    const http::fields fields = fields_of({{"Max-Forwards", "10"}});
    passed_request asked = asked_with(fields);
    asked.method = "OPTIONS";
    EXPECT_TRUE(has_line(write_request_head(asked, plain_rules, "b"), "Max-Forwards: 9"));
    asked.method = "GET";
    EXPECT_TRUE(has_line(write_request_head(asked, plain_rules, "b"), "Max-Forwards: 10"));
}

TEST(request_head_test, forwards_that_are_used_up_or_malformed_are_noticed) {
    const auto judged = [](std::string_view method, std::initializer_list<http::field> all) {
        return judge_forwards(method, fields_of(all));
    };
    EXPECT_EQ(judged("TRACE", {{"Max-Forwards", "0"}}), forwards::exhausted);
    EXPECT_EQ(judged("OPTIONS", {{"Max-Forwards", "00"}}), forwards::exhausted);
    EXPECT_EQ(judged("OPTIONS", {{"Max-Forwards", "99999999999999999999999"}}), forwards::allowed);
    EXPECT_EQ(judged("OPTIONS", {}), forwards::allowed);
    EXPECT_EQ(judged("GET", {{"Max-Forwards", "0"}}), forwards::allowed);
    for (const std::string_view bad : {"", "-1", "+1", "1 2", "x"})
        EXPECT_EQ(judged("TRACE", {{"Max-Forwards", bad}}), forwards::malformed) << bad;
    EXPECT_EQ(judged("TRACE", {{"Max-Forwards", "1"}, {"Max-Forwards", "2"}}), forwards::malformed);
}

// --- targets -------------------------------------------------------------------------------------

/// The target that a backend gets for one of a client.
std::string sent_for(std::string_view target) {
    const auto parts = parse_target("GET", target);
    if (!parts) return "refused";
    std::string path(parts->path.size(), '\0');
    const auto size = normalise_path(parts->path, path.data());
    if (!size) return "refused";
    path.resize(*size);
    std::string sent = backend_target("GET", path, target);
    // The backend comes to the same path.
    const std::string raw = sent.substr(0, sent.find('?'));
    std::string again(raw.size(), '\0');
    again.resize(normalise_path(raw, again.data()).value_or(0));
    EXPECT_EQ(again, path) << target;
    return sent;
}

struct target_case {
    std::string_view from;
    std::string_view sent;
};

TEST(request_head_test, targets_are_normalised_and_mean_the_same) {
    constexpr target_case cases[]{
        {"/", "/"},
        {"/a/b.c?d=e", "/a/b.c?d=e"},
        {"/a?", "/a?"},
        {"/a?b?c", "/a?b?c"},
        {"/a?/../b", "/a?/../b"},
        {"/a?%zz{}|^`", "/a?%zz{}|^`"},
        {"/a?{}|^`\\", "/a?{}|^`\\"},
        {"//a///b//", "/a/b/"},
        {"/a/./b/../c", "/a/c"},
        {"/a/b/..", "/a/"},
        {"/a/b/.", "/a/b/"},
        {"/a/%2e%2E/b", "/b"},
        {"/a/%2e/b", "/a/b"},
        {"/../a", "refused"},
        {"/a%00", "refused"},
        {"/a%2Fb", "/a%2Fb"},
        {"/a%2fb", "/a%2Fb"},
        {"/a%252Fb", "/a%252Fb"},
        {"/a%25zz", "/a%25zz"},
        {"/%252e%252e/a", "/%252e%252e/a"},
        {"/a%20b", "/a%20b"},
        {"/a%3Fb?c", "/a%3Fb?c"},
        {"/a%23b", "/a%23b"},
        {"/%61%7E", "/a~"},
        {"/a[b]|^", "/a%5Bb%5D%7C%5E"},
        {"/%c3%a4", "/%C3%A4"},
        {"/a%0D%0AHost:b", "/a%0D%0AHost:b"},
        {"/a%5C..%5Cb", "/a%5C..%5Cb"},
        {"/a;b=c", "/a;b=c"},
        {"/a%3Bb", "/a%3Bb"},
        {"/a%26b&c", "/a%26b&c"},
        {"/a/..;/b", "/a/..%3B/b"},
        {"/a/..;x=1/b", "/a/..%3Bx=1/b"},
        {"/a/%2e%2e;/b", "/a/..%3B/b"},
        {"/a/.;/b", "/a/.%3B/b"},
        {"/a/;/b", "/a/%3B/b"},
        {"/a/..%3B/b", "/a/..%3B/b"},
        {"http://example.org/a/../b?c", "/b?c"},
        {"http://example.org", "/"},
        {"http://example.org?a", "/?a"},
        {"HTTPS://example.org:443/a", "/a"},
    };
    for (const target_case& each : cases)
        EXPECT_EQ(sent_for(each.from), each.sent) << each.from;
}

TEST(request_head_test, a_path_that_the_program_has_chosen_is_sent_with_the_query_of_the_client) {
    EXPECT_EQ(backend_target("GET", "/other", "/a?b"), "/other?b");
    EXPECT_EQ(backend_target("GET", "/a b/\xc3\xa4", "/a"), "/a%20b/%C3%A4");
    EXPECT_EQ(backend_target("GET", "/a/..;/b", "/x"), "/a/..%3B/b");
    EXPECT_EQ(backend_target("GET", "/a?b#c%2Fd", "/x?y"), "/a%3Fb%23c%2Fd?y");
    EXPECT_EQ(backend_target("OPTIONS", "*", "*"), "*");
}

TEST(request_head_test, every_byte_of_a_path_survives) {
    for (int byte = 1; byte < 256; ++byte) {
        const std::string path{'/', 'a', static_cast<char>(byte), 'b'};
        if (byte == '/') continue;
        const std::string sent = backend_target("GET", path, "/other");
        std::string again(sent.size(), '\0');
        again.resize(normalise_path(sent, again.data()).value_or(0));
        EXPECT_EQ(again, path) << byte;
        for (const char each : sent)
            EXPECT_TRUE(each > ' ' && each < 127);
    }
}

} // namespace
} // namespace simplenet::v0::testing
