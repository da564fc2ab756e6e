#include "http/codec/head.hpp"

#include "http/codec/parsed_heads.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

parsed_head refused_head(unsigned status) {
    return {head_state::refused, status, 0, {}, {}};
}

parsed_head request(std::string_view text, const head_limits& limits = {}) {
    return head_reader<request_parser>{limits}.parse(text);
}

// --- requests ------------------------------------------------------------------------------------

struct good_head {
    std::string_view text;
    std::vector<std::string> line;
    field_list fields = {};
    std::size_t beyond = 0; // bytes behind the head
};

const std::vector<good_head> good_requests{
    {"GET / HTTP/1.1\r\n\r\n", {"GET", "/", "11"}},
    {"GET / HTTP/1.0\r\n\r\n", {"GET", "/", "10"}},
    {"GET / HTTP/1.2\r\n\r\n", {"GET", "/", "11"}},
    {"GET / HTTP/1.9\r\n\r\n", {"GET", "/", "11"}},
    {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", {"OPTIONS", "*", "11"}, {{"Host", "a"}}},
    {"\r\nGET / HTTP/1.1\r\n\r\n", {"GET", "/", "11"}},
    {"\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n\r\n", {"GET", "/", "11"}},
    {"M-SEARCH !#$%&'()*+,-./:;<=>?@[]^_`{|}~\" HTTP/1.1\r\n\r\n",
     {"M-SEARCH", "!#$%&'()*+,-./:;<=>?@[]^_`{|}~\"", "11"}},
    {"ABCDEFGHIJKLMNOPQRSTUVWXYZ012345 / HTTP/1.1\r\n\r\n",
     {"ABCDEFGHIJKLMNOPQRSTUVWXYZ012345", "/", "11"}},
    {"GET /0123456789abcdef0123456789abcdef HTTP/1.1\r\nA: 1\r\n\r\nGET /",
     {"GET", "/0123456789abcdef0123456789abcdef", "11"},
     {{"A", "1"}},
     5},
    {"GET / HTTP/1.1\r\nA:\r\nB: \r\nC:\t \tx y\t \r\nD::\r\n\r\n",
     {"GET", "/", "11"},
     {{"A", ""}, {"B", ""}, {"C", "x y"}, {"D", ":"}}},
    {"GET / HTTP/1.1\r\nA: \x80\xff\xe4\r\na: b\tc\r\n\r\n",
     {"GET", "/", "11"},
     {{"A", "\x80\xff\xe4"}, {"a", "b\tc"}}},
    {"GET / HTTP/1.1\r\n!#$%&'*+-.^_`|~: 1\r\n\r\n\r\n",
     {"GET", "/", "11"},
     {{"!#$%&'*+-.^_`|~", "1"}},
     2},
    {"GET / HTTP/1.1\r\n1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n7:\r\n8:\r\n\r\n",
     {"GET", "/", "11"},
     {{"1", ""}, {"2", ""}, {"3", ""}, {"4", ""}, {"5", ""}, {"6", ""}, {"7", ""}, {"8", ""}}},
};

struct bad_head {
    std::string_view text;
    unsigned status = 400;
};

const std::vector<bad_head> bad_requests{
    // what cannot begin a request
    {" GET / HTTP/1.1\r\n\r\n"sv},
    {"\nGET / HTTP/1.1\r\n\r\n"sv},
    {"\r\n\nGET / HTTP/1.1\r\n\r\n"sv},
    {"\rGET / HTTP/1.1\r\n\r\n"sv},
    {"\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n\r\n"sv},
    {"\x16\x03\x01\x02"sv},
    {"\0"sv},
    {":"sv},
    {"\x80"sv},
    // methods
    {"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456 / HTTP/1.1\r\n\r\n"sv},
    {"G(T / HTTP/1.1\r\n\r\n"sv},
    {"G\x80T / HTTP/1.1\r\n\r\n"sv},
    {"GET\t/ HTTP/1.1\r\n\r\n"sv},
    {"GET\r\n\r\n"sv},
    // targets
    {"GET\r\n / HTTP/1.1\r\n\r\n"sv},
    {"GET  / HTTP/1.1\r\n\r\n"sv},
    {"GET  HTTP/1.1\r\n\r\n"sv},
    {"GET /\r\n\r\n"sv},
    {"GET / \r\n\r\n"sv},
    {"GET /a\tb HTTP/1.1\r\n\r\n"sv},
    {"GET /\x80 HTTP/1.1\r\n\r\n"sv},
    {"GET /\x7f HTTP/1.1\r\n\r\n"sv},
    {"GET /\0 HTTP/1.1\r\n\r\n"sv},
    {"GET /0123456789abcdef\x01 HTTP/1.1\r\n\r\n"sv},
    {"GET /a b HTTP/1.1\r\n\r\n"sv},
    // versions
    {"GET /  HTTP/1.1\r\n\r\n"sv},
    {"GET / HTTP/1.1 \r\n\r\n"sv},
    {"GET / http/1.1\r\n\r\n"sv},
    {"GET / HTTP/1\r\n\r\n"sv},
    {"GET / HTTP/1.\r\n\r\n"sv},
    {"GET / HTTP/1.11\r\n\r\n"sv},
    {"GET / HTTP/01.1\r\n\r\n"sv},
    {"GET / HTTP/+1.1\r\n\r\n"sv},
    {"GET / HTTP/1,1\r\n\r\n"sv},
    {"GET / HTTP/x.1\r\n\r\n"sv},
    {"GET / HTTP/1.x\r\n\r\n"sv},
    {"GET / HTCPCP/1.0\r\n\r\n"sv},
    {"GET / HTTP/2.0\r\n\r\n"sv, 505},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"sv, 505},
    {"GET / HTTP/0.9\r\n\r\n"sv, 505},
    {"GET / HTTP/3.1\r\n\r\n"sv, 505},
    // ends of lines
    {"GET / HTTP/1.1\n\r\n"sv},
    {"GET / HTTP/1.1\n\n"sv},
    {"GET / HTTP/1.1\r\r\n\r\n"sv},
    {"GET / HTTP/1.1\r\nA: 1\n\r\n"sv},
    {"GET / HTTP/1.1\r\nA: 1\r\r\n\r\n"sv},
    {"GET / HTTP/1.1\r\nA: 1\rB: 2\r\n\r\n"sv},
    {"GET / HTTP/1.1\r\nA: 1\r\n\n"sv},
    {"GET / HTTP/1.1\r\nA: 1\r\n\rX"sv},
    // names
    {"GET / HTTP/1.1\r\nA : 1\r\n\r\n"sv},
    {"GET / HTTP/1.1\r\nA\t: 1\r\n\r\n"sv},
    {"GET / HTTP/1.1\r\n: 1\r\n\r\n"sv},
    {"GET / HTTP/1.1\r\nA\r\n\r\n"sv},
    {"GET / HTTP/1.1\r\nA B: 1\r\n\r\n"sv},
    {"GET / HTTP/1.1\r\nA(: 1\r\n\r\n"sv},
    {"GET / HTTP/1.1\r\n\x80: 1\r\n\r\n"sv},
    {"GET / HTTP/1.1\r\nA\0: 1\r\n\r\n"sv},
    // continuations (obs-fold), and a blank in front of the first field
    {"GET / HTTP/1.1\r\nA: 1\r\n 2\r\n\r\n"sv},
    {"GET / HTTP/1.1\r\nA: 1\r\n\t2\r\n\r\n"sv},
    {"GET / HTTP/1.1\r\n A: 1\r\n\r\n"sv},
    {"GET / HTTP/1.1\r\nA: 1\r\n \r\n\r\n"sv},
    // values
    {"GET / HTTP/1.1\r\nA: \0\r\n\r\n"sv},
    {"GET / HTTP/1.1\r\nA: \x7f\r\n\r\n"sv},
    {"GET / HTTP/1.1\r\nA: \x0b\r\n\r\n"sv},
    {"GET / HTTP/1.1\r\nA: 0123456789abcdef\x1b[0m\r\n\r\n"sv},
    // the ninth of eight
    {"GET / HTTP/1.1\r\n1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n7:\r\n8:\r\n9:\r\n\r\n"sv, 431},
};

template <class Parser>
void expect_taken_apart(const std::vector<good_head>& heads) {
    for (const good_head& each : heads) {
        const parsed_head expected{head_state::complete, 0, each.text.size() - each.beyond,
                                   each.line, each.fields};
        EXPECT_EQ(head_reader<Parser>{}.parse(each.text), expected) << each.text;
    }
}

template <class Parser>
void expect_refused(const std::vector<bad_head>& heads) {
    for (const bad_head& each : heads)
        EXPECT_EQ(head_reader<Parser>{}.parse(each.text), refused_head(each.status)) << each.text;
}

TEST(request_parser_test, good_heads_are_taken_apart) {
    expect_taken_apart<request_parser>(good_requests);
}

TEST(request_parser_test, bad_heads_are_refused) {
    expect_refused<request_parser>(bad_requests);
}

template <class Parser>
void expect_same_in_pieces(std::string_view text, const head_limits& limits = {}) {
    head_reader<Parser> reader{limits};
    const parsed_head whole = reader.parse(text);
    EXPECT_EQ(reader.parse_bytewise(text), whole) << text;
    for (std::size_t at = 0; at <= text.size(); ++at)
        EXPECT_EQ(reader.parse(text, {at}), whole) << text << "\ncut at " << at;
}

TEST(request_parser_test, every_cut_gives_the_same_result) {
    for (const good_head& each : good_requests)
        expect_same_in_pieces<request_parser>(each.text);
    for (const bad_head& each : bad_requests)
        expect_same_in_pieces<request_parser>(each.text);
}

TEST(request_parser_test, no_proper_prefix_of_a_head_is_complete) {
    for (const good_head& each : good_requests) {
        const std::string_view head = each.text.substr(0, each.text.size() - each.beyond);
        for (std::size_t size = 0; size < head.size(); ++size)
            EXPECT_EQ(request(head.substr(0, size)).state, head_state::incomplete) << head;
    }
}

TEST(request_parser_test, what_cannot_be_http_is_refused_at_its_first_byte) {
    EXPECT_EQ(request("\x16"), refused_head(400)); // a TLS hello
    EXPECT_EQ(request("\r\n\x16"), refused_head(400));
    EXPECT_EQ(request("\r\n\r\n\r\n\r\n\r"), refused_head(400));
    EXPECT_EQ(request("\rG"), refused_head(400));
}

TEST(request_parser_test, a_line_may_be_as_long_as_the_limit) {
    const head_limits limits{.line = 20, .fields = 100};

    EXPECT_EQ(request("GET /234567 HTTP/1.1\r\n\r\n", limits).size, 24U);
    EXPECT_EQ(request("GET /2345678 HTTP/1.1\r\n\r\n", limits), refused_head(414));
    EXPECT_EQ(request("GET /234567890123456", limits).state, head_state::incomplete);
    EXPECT_EQ(request("GET /2345678901234567", limits), refused_head(414));
}

TEST(request_parser_test, empty_lines_are_no_part_of_the_line) {
    const head_limits limits{.line = 14, .fields = 100};

    EXPECT_EQ(request("\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n\r\n", limits).size, 26U);
}

TEST(request_parser_test, fields_may_be_as_large_as_the_limit) {
    const head_limits limits{.line = 100, .fields = 8};

    EXPECT_EQ(request("GET / HTTP/1.1\r\nA: 1\r\n\r\n", limits).size, 24U);
    EXPECT_EQ(request("GET / HTTP/1.1\r\nA: 12\r\n\r\n", limits), refused_head(431));
    EXPECT_EQ(request("GET / HTTP/1.1\r\nA: 1\r\nB", limits), refused_head(431));
    EXPECT_EQ(request("GET / HTTP/1.1\r\nA: 12", limits).state, head_state::incomplete);
    EXPECT_EQ(request("GET / HTTP/1.1\r\nA: 1234", limits), refused_head(431));
}

TEST(request_parser_test, limits_hold_in_pieces) {
    for (std::size_t limit = 0; limit < 40; ++limit) {
        for (const good_head& each : good_requests) {
            expect_same_in_pieces<request_parser>(each.text, {.line = limit, .fields = 100});
            expect_same_in_pieces<request_parser>(each.text, {.line = 100, .fields = limit});
        }
    }
}

TEST(request_parser_test, the_first_byte_that_decides_wins) {
    const head_limits limits{.line = 20, .fields = 8};

    EXPECT_EQ(request("GET /\x01 much longer than that HTTP/1.1\r\n\r\n", limits),
              refused_head(400));
    EXPECT_EQ(request("GET /much/longer/than\x01that HTTP/1.1\r\n\r\n", limits), refused_head(414));
    EXPECT_EQ(request("GET / HTTP/2.0\r\nA: much longer\r\n\r\n", limits), refused_head(505));
}

TEST(request_parser_test, limits_without_end_are_limits) {
    const head_limits endless{.line = ~std::size_t{0}, .fields = ~std::size_t{0}};
    const std::string text = "GET /" + std::string(100'000, 'a') +
                             " HTTP/1.1\r\nA: " + std::string(100'000, 'b') + "\r\n\r\n";

    EXPECT_EQ(request(text, endless).size, text.size());
}

TEST(request_parser_test, a_parser_serves_one_head_after_another) {
    std::array<field_entry, 4> entries{};
    request_parser parser{{}, entries};
    constexpr std::string_view first = "GET /a HTTP/1.0\r\nA: 1\r\nB: 2\r\n\r\n";
    constexpr std::string_view second = "\r\nPUT /b HTTP/1.1\r\nC: 3\r\n\r\n";

    EXPECT_EQ(parser.parse(first), head_state::complete);
    EXPECT_EQ(parser.parse(first), head_state::complete);
    parser.reset();
    EXPECT_EQ(parser.parse(second.substr(0, 5)), head_state::incomplete);
    EXPECT_EQ(parser.parse(second), head_state::complete);

    EXPECT_EQ(listed(parser.fields(), second.data()), (field_list{{"C", "3"}}));
    EXPECT_EQ(parser.method(second.data()), "PUT");
    EXPECT_EQ(parser.version(), 11U);
}

TEST(request_parser_test, once_refused_it_stays_refused) {
    std::array<field_entry, 4> entries{};
    request_parser parser{{}, entries};

    EXPECT_EQ(parser.parse("\n"), head_state::refused);
    EXPECT_EQ(parser.parse("\nGET / HTTP/1.1\r\n\r\n"), head_state::refused);
    EXPECT_EQ(parser.status(), 400U);
    parser.reset();
    EXPECT_EQ(parser.parse("GET / HTTP/1.1\r\n\r\n"), head_state::complete);
}

// --- responses -----------------------------------------------------------------------------------

const std::vector<good_head> good_responses{
    {"HTTP/1.1 200 OK\r\n\r\n", {"11", "200", "OK"}},
    {"HTTP/1.0 404 Not Found\r\nA: b\r\n\r\nbody", {"10", "404", "Not Found"}, {{"A", "b"}}, 4},
    {"HTTP/1.1 200 \r\n\r\n", {"11", "200", ""}},
    {"HTTP/1.1 200\r\n\r\n", {"11", "200", ""}},
    {"HTTP/1.7 101  a\tb \xe4\r\n\r\n", {"11", "101", " a\tb \xe4"}},
    {"\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
     {"11", "100", "Continue"},
     {},
     19},
    {"HTTP/1.1 599 \r\n\r\n", {"11", "599", ""}},
    {"HTTP/1.1 999 \r\n\r\n", {"11", "999", ""}},
};

const std::vector<bad_head> bad_responses{
    {"h"sv},
    {"ICY 200 OK\r\n\r\n"sv},
    {"<html>"sv},
    {"\n"sv},
    {"HTTP/2.0 200 OK\r\n\r\n"sv, 505},
    {"HTTP/2 200 OK\r\n\r\n"sv},
    {"HTTP/1.1\r\n\r\n"sv},
    {"HTTP/1.1 \r\n\r\n"sv},
    {"HTTP/1.1 20\r\n\r\n"sv},
    {"HTTP/1.1 20 OK\r\n\r\n"sv},
    {"HTTP/1.1 2000 OK\r\n\r\n"sv},
    {"HTTP/1.1 200OK\r\n\r\n"sv},
    {"HTTP/1.1 200\tOK\r\n\r\n"sv},
    {"HTTP/1.1  200 OK\r\n\r\n"sv},
    {"HTTP/1.1\t200 OK\r\n\r\n"sv},
    {"HTTP/1.1 099 OK\r\n\r\n"sv},
    {"HTTP/1.1 000 OK\r\n\r\n"sv},
    {"HTTP/1.1 2x0 OK\r\n\r\n"sv},
    {"HTTP/1.1 -20 OK\r\n\r\n"sv},
    {"HTTP/1.1 200 O\0K\r\n\r\n"sv},
    {"HTTP/1.1 200 OK\n\r\n"sv},
    {"HTTP/1.1 200 OK\r\nA : b\r\n\r\n"sv},
    {"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n"sv},
    {"HTTP/1.1 200 OK\r\n1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n7:\r\n8:\r\n9:\r\n\r\n"sv, 431},
};

TEST(response_parser_test, good_heads_are_taken_apart) {
    expect_taken_apart<response_parser>(good_responses);
}

TEST(response_parser_test, bad_heads_are_refused) {
    expect_refused<response_parser>(bad_responses);
}

TEST(response_parser_test, every_cut_gives_the_same_result) {
    for (const good_head& each : good_responses)
        expect_same_in_pieces<response_parser>(each.text);
    for (const bad_head& each : bad_responses)
        expect_same_in_pieces<response_parser>(each.text);
}

TEST(response_parser_test, a_line_that_is_too_long_is_too_large) {
    head_reader<response_parser> reader{{.line = 15, .fields = 100}};

    EXPECT_EQ(reader.parse("HTTP/1.1 200 OK\r\n\r\n").size, 19U);
    EXPECT_EQ(reader.parse("HTTP/1.1 200 Fine\r\n\r\n"), refused_head(431));
}

// --- trailers ------------------------------------------------------------------------------------

TEST(trailer_parser_test, trailers_are_fields_without_a_start_line) {
    head_reader<trailer_parser> reader;

    EXPECT_EQ(reader.parse("\r\n").size, 2U);
    EXPECT_EQ(reader.parse("A: 1\r\nB:2\r\n\r\nGET").fields, (field_list{{"A", "1"}, {"B", "2"}}));
    EXPECT_EQ(reader.parse("A: 1\r\n"), parsed_head{});
    EXPECT_EQ(reader.parse("A\r\n"), refused_head(400));
}

} // namespace
} // namespace simplenet::v0::testing
