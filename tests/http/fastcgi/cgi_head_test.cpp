#include "http/fastcgi/cgi_head.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0::http::detail {
namespace {

using namespace std::string_literals;
using state = cgi_head::state;

/// The fields as "name=value;".
std::string fields_of(const cgi_head& head, std::string_view text) {
    std::string all;
    for (const field_entry& each : head.fields())
        all.append(each.name(text.data())).append("=").append(each.value(text.data())) += ';';
    return all;
}

TEST(cgi_head_test, heads_end_their_lines_with_lf_or_crlf) {
    for (const std::string_view text :
         {"Status: 201 Made\nX: a b\n\n", "Status: 201 Made\r\nX:\ta b \r\n\r\n",
          "Status: 201 Made\nX: a b\r\n\n"}) {
        cgi_head head;
        EXPECT_EQ(head.parse(std::string{text} + "body"), state::complete);
        EXPECT_EQ(head.size(), text.size());
        EXPECT_EQ(head.status(), 201U);
        EXPECT_EQ(fields_of(head, text), "Status=201 Made;X=a b;");
    }
}

TEST(cgi_head_test, pieces_change_nothing) {
    for (const std::string_view text :
         {"A: b\r\nContent-Length: 12\r\n\r\n", "A: b\r\nbad\r\n\r\n"}) {
        cgi_head whole;
        const state verdict = whole.parse(text);
        for (std::size_t cut = 0; cut < text.size(); ++cut) {
            cgi_head head;
            EXPECT_EQ(head.parse(text.substr(0, cut)), state::incomplete) << cut;
            EXPECT_EQ(head.parse(text), verdict) << cut;
            EXPECT_EQ(head.size(), whole.size()) << cut;
        }
    }
}

TEST(cgi_head_test, the_status_follows_from_the_fields) {
    const auto status_of = [](std::string_view fields) {
        cgi_head head;
        EXPECT_EQ(head.parse(std::string{fields} + "\n\n"), state::complete) << fields;
        return head.status();
    };
    EXPECT_EQ(status_of("Content-Type: a/b"), 200U);
    EXPECT_EQ(status_of("location: /x"), 302U);
    EXPECT_EQ(status_of("Location: /x\nstatus: 301"), 301U);
    EXPECT_EQ(status_of("Status: 599"), 599U);
}

TEST(cgi_head_test, a_length_is_a_number) {
    cgi_head head;
    EXPECT_EQ(head.parse("Content-Length: 0012\n\n"), state::complete);
    EXPECT_EQ(head.content_length(), 12U);
}

TEST(cgi_head_test, bad_heads_are_refused) {
    for (const std::string& bad : {"\n"s,
                                   "\r\n"s,
                                   "x\n\n"s,
                                   ": x\n\n"s,
                                   "a b: x\n\n"s,
                                   "a : x\n\n"s,
                                   "A: x\0y\n\n"s,
                                   "A: x\ry\n\n"s,
                                   "A: b\n c\n\n"s,
                                   "A: \x7f\n\n"s,
                                   "Status: 199\n\n"s,
                                   "Status: 600\n\n"s,
                                   "Status: 2000\n\n"s,
                                   "Status:\n\n"s,
                                   "Status: 200\nStatus: 200\n\n"s,
                                   "Location: \n\n"s,
                                   "Location: a\nLocation: b\n\n"s,
                                   "Content-Length: \n\n"s,
                                   "Content-Length: +1\n\n"s,
                                   "Content-Length: 9223372036854775808\n\n"s,
                                   "Content-Length: 1\nContent-Length: 1\n\n"s,
                                   "Content-Type: a\nContent-Type: a\n\n"s}) {
        cgi_head head;
        EXPECT_EQ(head.parse(bad), state::refused) << ::testing::PrintToString(bad);
    }
}

TEST(cgi_head_test, limits_bound_bytes_and_fields) {
    const cgi_limits limits{.bytes = 20, .fields = 2};
    const auto verdict = [&](std::string_view text) { return cgi_head{limits}.parse(text); };

    EXPECT_EQ(verdict("A: 1\nB: 2\n\n"), state::complete);
    EXPECT_EQ(verdict("A: 1\nB: 2\nC: 3\n\n"), state::refused);
    EXPECT_EQ(verdict("A: 45678901234567\n\n"), state::complete);
    EXPECT_EQ(verdict("A: 4567890123456789\n\n"), state::refused);
    EXPECT_EQ(verdict(std::string(20, 'x')), state::incomplete);
    EXPECT_EQ(verdict(std::string(21, 'x')), state::refused);
}

TEST(cgi_head_test, fields_for_the_gateway_are_not_for_the_client) {
    for (const std::string_view name : {"status", "Connection", "x-accel-redirect", "X-SENDFILE"})
        EXPECT_TRUE(is_for_gateway(name)) << name;
    for (const std::string_view name : {"Content-Type", "Set-Cookie", "Date", "Location"})
        EXPECT_FALSE(is_for_gateway(name)) << name;
}

} // namespace
} // namespace simplenet::v0::http::detail
