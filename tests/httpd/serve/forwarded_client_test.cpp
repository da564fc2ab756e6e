#include "httpd/serve/forwarded_client.hpp"

#include "support/error_of.hpp"

#include <array>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpd {
namespace {

using simplenet::http::fields;

/// "address[ s| p]": the client, and what is known of TLS; "-": nobody was told.
std::string told_by(const std::vector<std::pair<std::string_view, std::string_view>>& lines) {
    constexpr std::array<std::string_view, 2> trusted{"10.0.0.0/8", "fd00::/8"};
    fields asked;
    for (const auto& [name, value] : lines)
        asked.add(name, value);
    const auto told =
        forwarded_client::of(asked, simplenet::or_throw(simplenet::address_set::parse(trusted)));
    std::string text = told.peer ? told.peer->address().to_string() : "-";
    if (told.secure) text += *told.secure ? " s" : " p";
    return text;
}

TEST(forwarded_client_test, the_last_address_that_is_not_trusted_is_the_client) {
    EXPECT_EQ(told_by({{"X-Forwarded-For", "192.0.2.1"}}), "192.0.2.1");
    EXPECT_EQ(told_by({{"X-Forwarded-For", "198.51.100.9, 192.0.2.1"}}), "192.0.2.1");
    EXPECT_EQ(told_by({{"X-Forwarded-For", "198.51.100.9, 192.0.2.1, 10.1.1.1, 10.2.2.2"}}),
              "192.0.2.1");
    EXPECT_EQ(told_by({{"X-Forwarded-For", "198.51.100.9"}, {"X-Forwarded-For", "192.0.2.1"}}),
              "192.0.2.1");
    EXPECT_EQ(told_by({{"X-Forwarded-For", "10.3.3.3, 10.1.1.1"}}), "10.3.3.3");
}

TEST(forwarded_client_test, addresses_have_ports_and_brackets_or_not) {
    EXPECT_EQ(told_by({{"X-Forwarded-For", "192.0.2.1:8080"}}), "192.0.2.1");
    EXPECT_EQ(told_by({{"X-Forwarded-For", "2001:db8::1"}}), "2001:db8::1");
    EXPECT_EQ(told_by({{"X-Forwarded-For", "[2001:db8::1]"}}), "2001:db8::1");
    EXPECT_EQ(told_by({{"Forwarded", "for=\"[2001:db8::1]:80\""}}), "2001:db8::1");
}

TEST(forwarded_client_test, what_is_no_address_ends_the_search) {
    EXPECT_EQ(told_by({{"X-Forwarded-For", "192.0.2.1, unknown"}}), "-");
    EXPECT_EQ(told_by({{"X-Forwarded-For", "192.0.2.1, unknown, 10.1.1.1"}}), "10.1.1.1");
    EXPECT_EQ(told_by({{"Forwarded", "for=_hidden"}}), "-");
    EXPECT_EQ(told_by({{"X-Forwarded-For", ""}}), "-");
    EXPECT_EQ(told_by({}), "-");
}

TEST(forwarded_client_test, forwarded_is_read_by_its_grammar) {
    EXPECT_EQ(told_by({{"Forwarded", "for=192.0.2.1;proto=https;by=10.0.0.1"}}), "192.0.2.1 s");
    EXPECT_EQ(told_by({{"Forwarded", "host=\"a,for=198.51.100.9\"; For = 192.0.2.1"}}), "-");
    EXPECT_EQ(told_by({{"Forwarded", "host=\"a\\\",for=198.51.100.9\";FOR=192.0.2.1"}}),
              "192.0.2.1");
    EXPECT_EQ(told_by({{"Forwarded", "for=198.51.100.9, for=192.0.2.1;proto=http, for=10.1.1.1"}}),
              "192.0.2.1 p");
}

TEST(forwarded_client_test, a_forwarded_that_a_proxy_may_have_passed_on_does_not_count) {
    EXPECT_EQ(told_by({{"Forwarded", "for=198.51.100.9;proto=https"},
                       {"X-Forwarded-For", "192.0.2.1"},
                       {"X-Forwarded-Proto", "http"}}),
              "192.0.2.1 p");
    EXPECT_EQ(
        told_by({{"Forwarded", "for=198.51.100.9;proto=https"}, {"X-Forwarded-For", "192.0.2.1"}}),
        "192.0.2.1");
}

TEST(forwarded_client_test, an_open_quote_of_the_client_hides_nothing_that_a_proxy_appends) {
    EXPECT_EQ(told_by({{"X-Forwarded-For", "\", 192.0.2.1"}}), "192.0.2.1");
    EXPECT_EQ(told_by({{"X-Forwarded-For", "198.51.100.9, \"\\, 192.0.2.1"}}), "192.0.2.1");
    EXPECT_EQ(told_by({{"X-Forwarded-Proto", "\", http"}}), "- p");
    EXPECT_EQ(told_by({{"Forwarded", "for=\"198.51.100.9, for=192.0.2.1"}}), "192.0.2.1");
    EXPECT_EQ(told_by({{"Forwarded", "for=198.51.100.9;x=\", for=\"192.0.2.1:80\""}}), "192.0.2.1");
    EXPECT_EQ(told_by({{"Forwarded", "for=198.51.100.9;x=\"\\, for=192.0.2.1, for=10.1.1.1"}}),
              "192.0.2.1");
}

TEST(forwarded_client_test, the_protocol_is_that_of_the_hop_from_the_client) {
    EXPECT_EQ(told_by({{"X-Forwarded-For", "192.0.2.1"}, {"X-Forwarded-Proto", "https"}}),
              "192.0.2.1 s");
    EXPECT_EQ(
        told_by({{"X-Forwarded-For", "192.0.2.1, 10.1.1.1"}, {"X-Forwarded-Proto", "https, http"}}),
        "192.0.2.1 s");
    EXPECT_EQ(told_by({{"X-Forwarded-Proto", "HTTPS"}}), "- s");
    EXPECT_EQ(told_by({{"X-Forwarded-Proto", "gopher"}}), "-");
}

// The usual front of nginx. The client used to be taken for the proxy.
TEST(forwarded_client_test, a_protocol_alone_does_not_hide_the_real_ip) {
    EXPECT_EQ(told_by({{"X-Real-IP", "192.0.2.1"}, {"X-Forwarded-Proto", "https"}}), "192.0.2.1 s");
    EXPECT_EQ(told_by({{"X-Real-IP", "192.0.2.1"},
                       {"X-Forwarded-Proto", "https"},
                       {"Forwarded", "for=198.51.100.9;proto=http"}}),
              "192.0.2.1 s");
}

TEST(forwarded_client_test, the_real_ip_counts_alone) {
    EXPECT_EQ(told_by({{"X-Real-IP", "192.0.2.1"}}), "192.0.2.1");
    EXPECT_EQ(told_by({{"X-Real-IP", "192.0.2.1"}, {"X-Forwarded-For", "198.51.100.9"}}),
              "198.51.100.9");
    EXPECT_EQ(told_by({{"X-Real-IP", "nonsense"}}), "-");
}

} // namespace
} // namespace httpd
