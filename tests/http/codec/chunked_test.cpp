#include "http/codec/chunked.hpp"

#include "http/codec/decoded_body.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using http::detail::write_chunk_head;

std::vector<std::size_t> every_byte(std::string_view text) {
    std::vector<std::size_t> ends;
    for (std::size_t end = 1; end < text.size(); ++end)
        ends.push_back(end);
    return ends;
}

void expect_same_in_pieces(std::string_view text, const chunked_limits& limits) {
    const decoded_body whole = decode(text, {}, limits);
    EXPECT_EQ(decode(text, every_byte(text), limits), whole) << text;
    for (std::size_t at = 1; at < text.size(); ++at)
        EXPECT_EQ(decode(text, {at}, limits), whole) << text << "\ncut at " << at;
}

struct good_body {
    std::string_view text;
    std::string_view data;
    field_list trailers = {};
    std::size_t beyond = 0; // bytes behind the body
};

const std::vector<good_body> good_bodies{
    {"0\r\n\r\n", ""},
    {"0000000000000000\r\n\r\nGET /", "", {}, 5},
    {"5\r\nhello\r\n0\r\n\r\n", "hello"},
    {"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world"},
    {"000000000000000A\r\n0123456789\r\n00\r\n\r\n", "0123456789"},
    {"1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n", "abcdefghijklmnopqrstuvwxyz"},
    {"2\r\n\r\n\r\n0\r\n\r\n\r\n", "\r\n", {}, 2},
    // extensions
    {"1;a\r\nx\r\n0;b=c\r\n\r\n", "x"},
    {"1;\r\nx\r\n0\r\n\r\n", "x"},
    {"1;a=b;c = d ;\te\r\nx\r\n0\r\n\r\n", "x"},
    {"1;a=\"b;c,(\\\" \\\\\xe4\t\"\r\nx\r\n0\r\n\r\n", "x"},
    // trailers
    {"0\r\nA: 1\r\n\r\n", "", {{"A", "1"}}},
    {"1\r\nx\r\n0\r\nA: 1\r\nB:  \xe4 \r\n\r\nHTTP", "x", {{"A", "1"}, {"B", "\xe4"}}, 4},
};

const std::vector<std::string_view> bad_bodies{
    // sizes
    "\r\n"sv, "x"sv, " 1\r\n"sv, "+1\r\n"sv, "-1\r\n"sv, "0x1\r\n"sv, "1h\r\n"sv, "1 \r\n"sv,
    "1 ;a\r\n"sv, "1\t;a\r\n"sv, "1_0\r\n"sv, "1.\r\n"sv, ";a\r\n"sv, "00000000000000000\r\n"sv,
    "10000000000000000\r\n"sv, "8000000000000000\r\n"sv, "ffffffffffffffff\r\n"sv, "\n"sv,
    "1\r\nx\r\n7fffffffffffffff\r\n"sv, "1,1\r\n"sv, "\xef\xbc\x91\r\n"sv, "1\0\r\n"sv,
    // ends of lines
    "1\nx\r\n"sv, "1\rx"sv, "1\r\r\n"sv, "1\r\nx\n"sv, "1\r\nx\rx"sv, "1\r\nxy\r\n"sv,
    "1\r\nx1\r\ny\r\n"sv, "1\r\nx\r\r\n"sv, "1\r\nx \r\n"sv, "1\r\nx\r\n\r\n"sv, "0\n\r\n"sv,
    "0\r\n\n"sv, "0\r\n\rx"sv, "1\r\nx0\r\n\r\n"sv,
    // extensions
    "1;a\nx\r\n"sv, "1;a\rb\r\n"sv, "1;\0\r\n"sv, "1;a=\x7f\r\n"sv, "1;a=(\r\n"sv, "1;a,b\r\n"sv,
    "1;a=\"b\r\nx\r\n0\r\n\r\n"sv, "1;a=\"\\\r\n"sv, "1;a=\"\n\"\r\n"sv, "1;\xe4\r\n"sv,
    "1;a=\"\x01\"\r\n"sv,
    // trailers
    "0\r\nA\r\n\r\n"sv, "0\r\nA : 1\r\n\r\n"sv, "0\r\n A: 1\r\n\r\n"sv, "0\r\nA: 1\r\n 2\r\n\r\n"sv,
    "0\r\nA: 1\n\r\n"sv, "0\r\nA: \0\r\n\r\n"sv, "0\r\nA: 1\r\n\rx"sv, "0\r\nGET / HTTP/1.1\r\n"sv,
    "0\r\nContent-Length: 3\r\n\r\n"sv, "0\r\nA: 1\r\nTransfer-encoding: chunked\r\n\r\n"sv,
    "0\r\nhost: a\r\n\r\n"sv, "0\r\nTrailer: A\r\n\r\n"sv, "0\r\nAuthorization: x\r\n\r\n"sv};

TEST(chunked_decoder_test, good_bodies_are_decoded) {
    for (const good_body& each : good_bodies) {
        const decoded_body expected{step_kind::end, 0, each.text.size() - each.beyond,
                                    std::string{each.data}, each.trailers};
        EXPECT_EQ(decode(each.text), expected) << each.text;
    }
}

TEST(chunked_decoder_test, bad_bodies_are_refused) {
    for (const std::string_view each : bad_bodies) {
        const decoded_body body = decode(each);
        EXPECT_EQ(body.end, step_kind::refused) << each;
        EXPECT_EQ(body.status, 400U) << each;
    }
}

TEST(chunked_decoder_test, every_cut_gives_the_same_result) {
    for (const good_body& each : good_bodies)
        expect_same_in_pieces(each.text, {});
    for (const std::string_view each : bad_bodies)
        expect_same_in_pieces(each, {});
}

TEST(chunked_decoder_test, limits_hold_in_pieces) {
    for (std::size_t limit = 0; limit < 25; ++limit) {
        for (const good_body& each : good_bodies) {
            expect_same_in_pieces(each.text, {.extensions = limit, .trailers = 100});
            expect_same_in_pieces(each.text, {.extensions = 100, .trailers = limit});
        }
    }
}

TEST(chunked_decoder_test, no_proper_prefix_of_a_body_is_complete) {
    for (const good_body& each : good_bodies) {
        for (std::size_t size = 0; size + each.beyond < each.text.size(); ++size) {
            const decoded_body body = decode(each.text.substr(0, size));
            EXPECT_EQ(body.end, step_kind::need_more) << each.text;
            EXPECT_EQ(body.consumed, size) << each.text;
        }
    }
}

TEST(chunked_decoder_test, data_is_a_part_of_the_input) {
    constexpr std::string_view text = "5\r\nhello\r\n";
    chunked_decoder decoder;

    const auto step = decoder.next(text);

    EXPECT_EQ(step.data.data(), text.data() + 3);
    EXPECT_EQ(step.data, "hello");
    EXPECT_EQ(step.consumed, 8U);
}

TEST(chunked_decoder_test, data_may_be_read_past_the_decoder) {
    chunked_decoder decoder;

    EXPECT_EQ(decoder.rest_of_chunk(), 0U);
    EXPECT_EQ(decoder.next("5\r\nhe").data, "he");
    EXPECT_EQ(decoder.rest_of_chunk(), 3U);
    decoder.skip(3);

    EXPECT_EQ(decoder.rest_of_chunk(), 0U);
    EXPECT_EQ(decoder.decoded(), 5U);
    EXPECT_EQ(decoder.next("\r\n0\r\n\r\n").kind, step_kind::end);
}

TEST(chunked_decoder_test, the_extensions_of_a_chunk_have_a_limit) {
    const chunked_limits limits{.extensions = 10};

    EXPECT_EQ(decode("1;" + std::string(10, 'a') + "\r\nx\r\n0\r\n\r\n", {}, limits).data, "x");
    EXPECT_EQ(decode("1;" + std::string(11, 'a'), {}, limits).status, 400U);
}

TEST(chunked_decoder_test, all_extensions_together_have_a_limit) {
    // Each chunk has a byte of data and 1000 of extensions: the body pays for 1 of them.
    std::string text;
    for (int chunk = 0; chunk < 16; ++chunk)
        text += "1;" + std::string(1000, 'a') + "\r\nx\r\n";

    EXPECT_EQ(decode(text).data.size(), 16U);
    EXPECT_EQ(decode(text + "1;" + std::string(400, 'a')).end, step_kind::need_more);
    EXPECT_EQ(decode(text + "1;" + std::string(401, 'a')).status, 400U);
}

TEST(chunked_decoder_test, a_large_body_may_have_many_extensions) {
    std::string text;
    for (int chunk = 0; chunk < 100; ++chunk)
        text += "400;" + std::string(1000, 'a') + "\r\n" + std::string(1024, 'x') + "\r\n";

    EXPECT_EQ(decode(text + "0\r\n\r\n").data.size(), 102'400U);
}

TEST(chunked_decoder_test, trailers_have_limits) {
    const chunked_limits limits{.trailers = 8, .trailer_count = 2};

    EXPECT_EQ(decode("0\r\nA: 1\r\n\r\n", {}, limits).trailers.size(), 1U);
    EXPECT_EQ(decode("0\r\nA: 12\r\n\r\n", {}, limits).status, 431U);
    EXPECT_EQ(decode("0\r\nA:\r\nB:\r\nC:\r\n\r\n", {}, {.trailer_count = 2}).status, 431U);
    EXPECT_EQ(decode("0\r\n" + std::string(8, 'A'), {}, limits).status, 431U);
}

TEST(chunked_decoder_test, the_end_and_a_refusal_repeat) {
    chunked_decoder ended;
    chunked_decoder refused;
    EXPECT_EQ(ended.next("0\r\n\r\n").kind, step_kind::end);
    EXPECT_EQ(refused.next("x").kind, step_kind::refused);

    const auto again = ended.next("1\r\nx");
    EXPECT_EQ(again.kind, step_kind::end);
    EXPECT_EQ(again.consumed, 0U);
    EXPECT_EQ(refused.next("1\r\nx").kind, step_kind::refused);
}

TEST(chunked_decoder_test, no_more_data_are_taken_than_fit) {
    chunked_decoder decoder;
    std::array<char, 3> into{};
    std::string_view left = "5\r\nhello\r\n0\r\n\r\n";
    std::string got;
    while (true) {
        const auto step = decoder.next_into(left, into);
        left.remove_prefix(step.consumed);
        got.append(into.data(), step.data.size());
        if (step.kind == step_kind::end) break;
        ASSERT_NE(step.kind, step_kind::refused);
        ASSERT_NE(step.consumed, 0U);
    }
    EXPECT_EQ(got, "hello");
    EXPECT_EQ(left, "");
}

TEST(chunked_decoder_test, a_decoder_serves_one_body_after_another) {
    chunked_decoder decoder;
    EXPECT_EQ(decoder.next("0\r\nA: 1\r\n\r\n").kind, step_kind::end);
    decoder.reset();

    EXPECT_TRUE(decoder.trailers().empty());
    EXPECT_EQ(decoder.next("1\r\nx").data, "x");
    EXPECT_EQ(decoder.next("\r\n0\r\n\r\n").kind, step_kind::end);
    EXPECT_TRUE(decoder.trailers().empty());
}

// --- encoding ------------------------------------------------------------------------------------

TEST(write_chunk_head_test, the_size_is_hexadecimal) {
    std::array<char, http::detail::longest_chunk_head> line{};
    const auto written = [&line](std::uint64_t size) {
        return std::string{line.data(), write_chunk_head(line.data(), size)};
    };

    EXPECT_EQ(written(1), "1\r\n");
    EXPECT_EQ(written(15), "f\r\n");
    EXPECT_EQ(written(16), "10\r\n");
    EXPECT_EQ(written(0xabc0), "abc0\r\n");
    EXPECT_EQ(written(~std::uint64_t{0}), "ffffffffffffffff\r\n");
}

TEST(write_chunk_head_test, what_is_encoded_is_decoded) {
    std::string text;
    std::string data;
    for (std::size_t size = 1; size < 300; size += 7) {
        std::array<char, http::detail::longest_chunk_head> line{};
        text.append(line.data(), write_chunk_head(line.data(), size));
        text += std::string(size, 'x').append(http::detail::chunk_end);
        data.append(size, 'x');
    }

    EXPECT_EQ(decode(text.append(http::detail::last_chunk)).data, data);
}

} // namespace
} // namespace simplenet::v0::testing
