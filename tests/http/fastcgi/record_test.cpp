#include "http/fastcgi/record.hpp"

#include "read_records.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::string_literals;
using namespace http::detail::fastcgi;
using kind = read_answer::kind;

// Byte by byte from the specification, section 8.
const std::string said = "\1\6\0\1\0\3\2\0abc\0\0"s;
const std::string warned = "\1\7\0\1\0\4\0\0oops"s;
const std::string no_more = "\1\6\0\1\0\0\0\0"s;
const std::string ended = "\1\3\0\1\0\10\1\0\0\0\0\7\0\0\0\0\0"s;

TEST(record_test, an_answer_has_its_records_in_any_pieces) {
    const std::string text = warned + said + said + no_more + warned + ended + "behind";
    const read_answer whole = read_records(text);

    EXPECT_EQ(whole.end, kind::end);
    EXPECT_EQ(whole.out, "abcabc");
    EXPECT_EQ(whole.err, "oopsoops");
    EXPECT_EQ(whole.consumed, text.size() - 6);
    for (std::size_t one = 0; one <= text.size(); ++one) {
        for (std::size_t two = one; two <= text.size(); ++two)
            EXPECT_EQ(read_records(text, {one, two}), whole) << one << ' ' << two;
    }
    EXPECT_EQ(read_records(text, {}, 1), whole);
}

TEST(record_test, an_answer_without_its_last_byte_is_not_complete) {
    const std::string text = said + ended;
    for (std::size_t size = 0; size < text.size(); ++size)
        EXPECT_EQ(read_records(text.substr(0, size)).end, kind::need_more) << size;
}

TEST(record_test, the_verdict_of_the_backend_is_told) {
    for (unsigned each = 0; each < 4; ++each) {
        std::string text = ended;
        text[12] = static_cast<char>(each);
        EXPECT_EQ(read_records(text).status, each);
    }
}

TEST(record_test, what_nobody_asked_for_is_refused) {
    const auto with = [](std::string text, std::size_t at, char byte) {
        text[at] = byte;
        return text;
    };
    const std::vector<std::string> bad{
        with(said, 0, 0),   with(said, 0, 2),  with(said, 2, 1),     with(said, 3, 0),
        with(said, 3, 2),   with(said, 1, 0),  with(said, 1, 1),     with(said, 1, 5),
        with(said, 1, 9),   with(said, 1, 11), with(ended, 5, 7),    with(ended, 5, 9),
        with(ended, 12, 4), no_more + said,    "HTTP/1.1 200 OK\r\n"};
    for (const std::string& each : bad)
        EXPECT_EQ(read_records(each + ended).end, kind::refused) << ::testing::PrintToString(each);
}

TEST(record_test, a_reader_that_has_refused_goes_on_refusing) {
    answer_reader reader;
    EXPECT_EQ(reader.next("HTTP/1.1").is, kind::refused);
    EXPECT_EQ(reader.next(ended).is, kind::refused);
}

TEST(record_test, requests_are_written_as_the_specification_says) {
    std::array<char, 8> bytes;
    EXPECT_EQ(write_header(bytes.data(), record_type::params, 0x1234), bytes.data() + 8);
    EXPECT_EQ((std::string{bytes.data(), 8}), "\1\4\0\1\x12\x34\0\0"s);
    const auto begin = begin_request(true);
    EXPECT_EQ((std::string{begin.data(), begin.size()}), "\1\1\0\1\0\10\0\0\0\1\1\0\0\0\0\0"s);
    EXPECT_EQ(begin_request(false)[10], 0);
    EXPECT_EQ(write_param_lengths(bytes.data(), 127, 128), bytes.data() + 5);
    EXPECT_EQ((std::string{bytes.data(), 5}), "\x7f\x80\0\0\x80"s);
    EXPECT_EQ(param_size(127, 128), 1U + 4U + 127U + 128U);
}

} // namespace
} // namespace simplenet::v0::testing
