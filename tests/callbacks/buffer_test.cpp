#include <simplenet/callbacks/buffer.hpp>

#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace std::string_view_literals;
using callbacks::buffer;

/// Counts the bytes that a buffer moves: content that is found at a different place after a call
/// that adds bytes.
class observed {
public:
    void append(std::string_view bytes) {
        watch([&] { of.append(bytes); }, 0);
    }
    void prepend(std::string_view bytes) {
        watch([&] { of.prepend(bytes); }, bytes.size());
    }
    buffer of;
    std::size_t moved = 0;
    std::size_t added = 0;

private:
    template <class Call>
    void watch(Call call, std::size_t in_front) {
        const char* const before = of.peek();
        const std::size_t held = of.readable();
        call();
        if (held != 0 && of.peek() + in_front != before) moved += held;
        added += of.readable() - held;
    }
};

// --- content -------------------------------------------------------------------------------------

TEST(buffer_test, an_empty_buffer_has_nothing_and_no_memory) {
    const buffer empty;
    EXPECT_EQ(empty.readable(), 0U);
    EXPECT_EQ(empty.peek(), nullptr);
    EXPECT_EQ(empty.text(), "");
    EXPECT_EQ(empty.find('x'), nullptr);
    EXPECT_EQ(empty.find_crlf(), nullptr);
}

TEST(buffer_test, what_was_appended_is_retrieved_from_the_front) {
    buffer bytes;
    bytes.append("hello ");
    bytes.append(std::string{"world"});
    EXPECT_EQ(bytes.readable(), 11U);
    EXPECT_EQ(std::string_view(bytes.peek(), bytes.readable()), "hello world");
    bytes.retrieve(6);
    EXPECT_EQ(bytes.text(), "world");
    EXPECT_EQ(bytes.retrieve_as_string(2), "wo");
    EXPECT_EQ(bytes.retrieve_all_as_string(), "rld");
    EXPECT_EQ(bytes.readable(), 0U);
    EXPECT_EQ(bytes.retrieve_all_as_string(), "");

    bytes.append("more");
    bytes.retrieve_all();
    EXPECT_EQ(bytes.readable(), 0U);
}

TEST(buffer_test, bytes_of_every_value_are_kept) {
    buffer bytes;
    bytes.append("\0\r\n\xff\x80"sv);
    EXPECT_EQ(bytes.text(), "\0\r\n\xff\x80"sv);
}

TEST(buffer_test, a_length_is_prepended_without_moving_the_message) {
    observed bytes;
    bytes.append("message");
    bytes.prepend("1234567890123456"sv); // the whole reserve
    EXPECT_EQ(bytes.moved, 0U);
    EXPECT_EQ(bytes.of.text(), "1234567890123456message");
    bytes.prepend("x");
    EXPECT_EQ(bytes.of.text(), "x1234567890123456message");
}

TEST(buffer_test, the_reserve_is_there_again_when_the_content_was_retrieved) {
    observed bytes;
    bytes.prepend("0123456789abcdef"sv);
    bytes.append("content");
    bytes.of.retrieve_all();
    bytes.append("content");
    bytes.prepend("0123456789abcdef"sv);
    EXPECT_EQ(bytes.moved, 0U);
}

TEST(buffer_test, a_part_of_the_buffer_can_be_added_to_it) {
    buffer bytes;
    std::string expected = "0123456789";
    bytes.append(expected);
    for (int each = 0; each < 12; ++each) { // through several reallocations
        bytes.append(bytes.text().substr(3));
        expected += expected.substr(3);
        bytes.prepend(bytes.text().substr(1, 5));
        expected = expected.substr(1, 5) + expected;
        bytes.retrieve(2);
        expected.erase(0, 2);
        EXPECT_EQ(bytes.text(), expected);
    }
    bytes.append(bytes);
    EXPECT_EQ(bytes.text(), expected + expected);
}

TEST(buffer_test, nothing_can_be_added) {
    buffer bytes;
    bytes.append("");
    bytes.prepend("");
    EXPECT_EQ(bytes.peek(), nullptr);
}

// --- searching -----------------------------------------------------------------------------------

TEST(buffer_test, find_returns_the_first_place_or_null) {
    buffer bytes;
    bytes.append("skip one\r\ntwo\rthree\nfour\r\n");
    bytes.retrieve(5);
    const char* const crlf = bytes.find_crlf();
    EXPECT_EQ(std::string_view(bytes.peek(), crlf), "one");
    EXPECT_EQ(bytes.find('\n'), crlf + 1);
    EXPECT_EQ(bytes.find('e'), bytes.peek() + 2);
    EXPECT_EQ(bytes.find('x'), nullptr);

    bytes.retrieve_until(crlf + 2);
    EXPECT_EQ(std::string_view(bytes.peek(), bytes.find_crlf()), "two\rthree\nfour");
    EXPECT_EQ(bytes.find('t', bytes.peek() + 1), bytes.peek() + 4);
    EXPECT_EQ(bytes.find_crlf(bytes.find_crlf() + 1), nullptr);
    EXPECT_EQ(bytes.find('\n', bytes.peek() + bytes.readable()), nullptr);
}

TEST(buffer_test, a_line_end_that_arrives_in_two_parts_is_found) {
    buffer bytes;
    bytes.append("line\r");
    EXPECT_EQ(bytes.find_crlf(), nullptr);
    bytes.append("\n");
    EXPECT_EQ(bytes.find_crlf(), bytes.peek() + 4);
}

// --- integers ------------------------------------------------------------------------------------

TEST(buffer_test, integers_are_in_network_order) {
    buffer bytes;
    bytes.append_u16(0x0102);
    bytes.append_u32(0x03040506);
    bytes.append_u64(0x0708090a0b0c0d0e);
    EXPECT_EQ(bytes.text(), "\1\2\3\4\5\6\7\x8\x9\xa\xb\xc\xd\xe"sv);
    EXPECT_EQ(bytes.peek_u16(), 0x0102);
    EXPECT_EQ(bytes.peek_u32(), 0x01020304U);
    EXPECT_EQ(bytes.peek_u64(), 0x0102030405060708U);
    EXPECT_EQ(bytes.read_u16(), 0x0102);
    EXPECT_EQ(bytes.read_u32(), 0x03040506U);
    EXPECT_EQ(bytes.read_u64(), 0x0708090a0b0c0d0eU);
    EXPECT_EQ(bytes.readable(), 0U);

    bytes.prepend_u64(0xffffffffffffffff);
    bytes.prepend_u32(0x80000000);
    bytes.prepend_u16(0xfffe);
    EXPECT_EQ(bytes.read_u16(), 0xfffe);
    EXPECT_EQ(bytes.read_u32(), 0x80000000U);
    EXPECT_EQ(bytes.read_u64(), 0xffffffffffffffffU);
}

// --- memory --------------------------------------------------------------------------------------

TEST(buffer_test, space_can_be_written_directly) {
    buffer bytes;
    bytes.append("head ");
    const mutable_buffer space = bytes.prepare(3000);
    EXPECT_GE(space.size(), 3000U);
    std::memset(space.data(), 'x', 3000);
    EXPECT_EQ(bytes.readable(), 5U);
    bytes.commit(3000);
    EXPECT_EQ(bytes.text(), "head " + std::string(3000, 'x'));
    bytes.commit(0);
}

TEST(buffer_test, shrink_keeps_the_content_and_frees_the_rest) {
    buffer bytes;
    bytes.append(std::string(100'000, 'x'));
    bytes.retrieve(99'995);
    bytes.shrink();
    EXPECT_EQ(bytes.text(), "xxxxx");
    const char* const at = bytes.peek();
    bytes.prepend("0123456789abcdef"sv);
    EXPECT_EQ(bytes.peek() + 16, at);
    bytes.retrieve_all();
    bytes.shrink();
    EXPECT_EQ(bytes.peek(), nullptr);
    bytes.append("again");
    EXPECT_EQ(bytes.text(), "again");
}

TEST(buffer_test, a_buffer_that_was_moved_from_is_empty_and_usable) {
    buffer bytes;
    bytes.append("content");
    buffer moved{std::move(bytes)};
    EXPECT_EQ(moved.text(), "content");
    EXPECT_EQ(bytes.readable(), 0U); // NOLINT(bugprone-use-after-move): promised
    bytes.append("new");
    moved = std::move(bytes);
    EXPECT_EQ(moved.text(), "new");
    std::swap(moved, bytes);
    EXPECT_EQ(bytes.text(), "new");
}

// --- content that was lent -----------------------------------------------------------------------

TEST(buffer_test, lent_content_is_not_copied_until_something_is_added) {
    std::string lent = "hello world";
    buffer bytes;
    bytes.lend(lent);
    EXPECT_EQ(bytes.peek(), lent.data());
    EXPECT_EQ(bytes.text(), "hello world");
    EXPECT_EQ(bytes.find('w'), lent.data() + 6);
    bytes.retrieve(6);
    bytes.commit(0);
    EXPECT_EQ(bytes.peek(), lent.data() + 6);

    bytes.append("!");
    lent.assign(lent.size(), '?');
    EXPECT_EQ(bytes.text(), "world!");
}

TEST(buffer_test, lent_content_that_was_retrieved_leaves_a_usable_buffer_without_memory) {
    std::string lent = "hello";
    buffer bytes;
    bytes.lend(lent);
    EXPECT_EQ(bytes.retrieve_all_as_string(), "hello");
    EXPECT_EQ(bytes.text(), "");
    bytes.prepend("new ");
    bytes.append_u16(0x2121);
    EXPECT_EQ(bytes.text(), "new !!");
    EXPECT_EQ(lent, "hello");

    bytes.retrieve_all();
    bytes.lend(lent);
    bytes.retrieve_all();
    bytes.own();
    EXPECT_EQ(bytes.peek(), nullptr);
}

TEST(buffer_test, every_call_that_adds_leaves_lent_memory_as_it_is) {
    const std::string lent = "0123456789012345678901234567890123456789";
    const auto changed = [&](auto call) {
        std::string memory = lent;
        buffer bytes;
        bytes.lend(memory);
        bytes.retrieve(20); // more than the reserve is free in front
        call(bytes);
        EXPECT_EQ(memory, lent);
        memory.assign(memory.size(), '?');
        return std::string{bytes.text()};
    };
    const std::string rest = lent.substr(20);
    EXPECT_EQ(changed([](buffer& of) { of.append("x"); }), rest + "x");
    EXPECT_EQ(changed([](buffer& of) { of.prepend("x"); }), "x" + rest);
    EXPECT_EQ(changed([](buffer& of) { of.prepend_u32(0x78787878); }), "xxxx" + rest);
    EXPECT_EQ(changed([](buffer& of) { of.append(of); }), rest + rest);
    EXPECT_EQ(changed([](buffer& of) { of.prepend(of.text().substr(2, 3)); }), "234" + rest);
    EXPECT_EQ(changed([](buffer& of) { static_cast<void>(of.prepare(1)); }), rest);
    EXPECT_EQ(changed([](buffer& of) { of.shrink(); }), rest);
    EXPECT_EQ(changed([](buffer& of) { of.own(); }), rest);
}

TEST(buffer_test, a_buffer_that_takes_lent_content_owns_it) {
    std::string lent = "hello";
    buffer bytes;
    bytes.lend(lent);
    buffer moved{std::move(bytes)};
    EXPECT_EQ(bytes.readable(), 0U); // NOLINT(bugprone-use-after-move): promised
    bytes.lend(lent);
    buffer swapped;
    swapped.append("mine");
    std::swap(swapped, bytes);
    lent.assign(lent.size(), '?');
    EXPECT_EQ(moved.text(), "hello");
    EXPECT_EQ(swapped.text(), "hello");
    EXPECT_EQ(bytes.text(), "mine");

    bytes.retrieve_all();
    bytes.lend(lent);
    bytes = std::move(moved);
    EXPECT_EQ(bytes.text(), "hello");
}

TEST(buffer_test, impossible_sizes_are_refused_and_nothing_is_lost) {
    buffer bytes;
    bytes.append("content");
    EXPECT_THROW(static_cast<void>(bytes.prepare(SIZE_MAX)), std::bad_alloc);
    EXPECT_THROW(static_cast<void>(bytes.prepare(SIZE_MAX / 2)), std::bad_alloc);
    EXPECT_EQ(bytes.text(), "content");
}

// --- cost ----------------------------------------------------------------------------------------

TEST(buffer_test, consuming_a_byte_at_a_time_while_appending_is_linear) {
    observed bytes;
    bytes.append(std::string(100'000, 'x')); // never empty
    for (int each = 0; each < 1'000'000; ++each) {
        bytes.append("y");
        bytes.of.retrieve(1);
    }
    EXPECT_LE(bytes.moved, 2 * bytes.added);
    EXPECT_EQ(bytes.of.readable(), 100'000U);
}

TEST(buffer_test, appending_a_byte_at_a_time_is_linear) {
    observed bytes;
    for (int each = 0; each < 1'000'000; ++each)
        bytes.append("y");
    EXPECT_LE(bytes.moved, 2 * bytes.added);
}

TEST(buffer_test, prepending_a_byte_at_a_time_and_in_turn_with_appending_is_linear) {
    observed front;
    observed both;
    for (int each = 0; each < 300'000; ++each) {
        front.prepend("y");
        both.prepend("y");
        both.append("z");
    }
    EXPECT_LE(front.moved, 2 * front.added);
    EXPECT_LE(both.moved, 3 * both.added);

    // More than the reserve at once.
    observed blocks;
    for (int each = 0; each < 30'000; ++each) {
        blocks.prepend("more than the reserve");
        blocks.append("z");
        if (each % 3 == 0) blocks.of.retrieve(21);
    }
    EXPECT_LE(blocks.moved, 3 * blocks.added);
}

TEST(buffer_test, pieces_that_are_lent_or_appended_are_moved_in_linear_time) {
    // A message in many pieces, as a connection does it: the first is lent, the others are
    // appended.
    observed bytes;
    const std::string piece(1000, 'x');
    for (int message = 0; message < 10; ++message) {
        bytes.of.lend(piece);
        bytes.added += piece.size();
        for (int each = 0; each < 1000; ++each) {
            if (each != 0) bytes.append(piece);
            const char* const before = bytes.of.peek();
            bytes.of.own();
            if (bytes.of.peek() != before) bytes.moved += bytes.of.readable();
        }
        bytes.of.retrieve_all();
    }
    EXPECT_LE(bytes.moved, 2 * bytes.added);
}

TEST(buffer_test, random_calls_equal_a_simple_model_in_linear_time) {
    std::minstd_rand random{1};
    for (int round = 0; round < 200; ++round) {
        std::string lent; // lives longer than the buffer
        observed bytes;
        std::string model;
        std::size_t retrieved = 0;
        for (int call = 0; call < 500; ++call) {
            const std::string text(random() % (random() % 10 == 0 ? 5000 : 30),
                                   static_cast<char>('a' + random() % 26));
            switch (random() % 6) {
            case 0:
            case 1:
                bytes.append(text);
                model += text;
                break;
            case 2:
                bytes.prepend(text);
                model.insert(0, text);
                break;
            case 3:
            case 4: {
                const std::size_t count = std::min<std::size_t>(text.size() * 2, model.size());
                bytes.of.retrieve(count);
                retrieved += count;
                model.erase(0, count);
                break;
            }
            default:
                if (random() % 20 == 0) bytes.of.shrink();
                if (!model.empty() && random() % 20 == 0) {
                    bytes.of.retrieve_all();
                    retrieved += model.size();
                    model.clear();
                }
                if (!model.empty()) break;
                lent = text;
                model = text;
                bytes.of.lend(lent);
                bytes.added += text.size();
            }
            ASSERT_EQ(bytes.of.text(), model);
        }
        EXPECT_LE(bytes.moved, 4 * (bytes.added + retrieved) + 100'000);
    }
}

// --- mistakes ------------------------------------------------------------------------------------

TEST(buffer_death_test, a_mistake_of_the_caller_is_a_violation) {
    buffer bytes;
    bytes.append("x");
    EXPECT_DEATH(bytes.retrieve(2), "retrieve\\(\\) of more bytes than are readable");
    EXPECT_DEATH(static_cast<void>(bytes.retrieve_as_string(2)), "more bytes than are readable");
    EXPECT_DEATH(static_cast<void>(bytes.peek_u16()), "fewer than 2 bytes");
    EXPECT_DEATH(static_cast<void>(bytes.read_u16()), "fewer than 2 bytes");
    EXPECT_DEATH(static_cast<void>(bytes.peek_u32()), "fewer than 4 bytes");
    EXPECT_DEATH(static_cast<void>(bytes.read_u64()), "fewer than 8 bytes");
    EXPECT_DEATH(bytes.commit(10'000), "more bytes than were prepared");
    EXPECT_DEATH(static_cast<void>(bytes.prepare(0)), "prepare\\(\\) of no space");
    EXPECT_DEATH(bytes.lend("y"), "lent to a buffer with content");
    buffer lent;
    lent.lend("lent");
    EXPECT_DEATH(lent.commit(1), "more bytes than were prepared");
    EXPECT_DEATH(bytes.retrieve_until(bytes.peek() + 2), "not in the buffer");
    EXPECT_DEATH(static_cast<void>(bytes.find('x', bytes.peek() + 2)), "not in the buffer");
}

} // namespace
} // namespace simplenet::v0
