#include "http/codec/websocket_frame.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0::http::detail {
namespace {

using progress = frame_parser::progress;
using namespace std::string_view_literals;

constexpr websocket_mask some_mask{std::byte{0x37}, std::byte{0xfa}, std::byte{0x21},
                                   std::byte{0x3d}};

/// Bytes of `heads` until the parser finds one wrong; all of them if it does not. Payloads are not
/// part of `heads`.
std::size_t accepted_bytes(std::string_view heads, bool masked = false) {
    frame_parser parser{masked};
    for (std::size_t at = 0; at < heads.size(); ++at) {
        const_buffer piece{heads.substr(at, 1)};
        if (parser.parse(piece) == progress::wrong) return at;
        EXPECT_TRUE(piece.empty());
    }
    return heads.size();
}

std::string written_head(const frame_head& head) {
    std::array<std::byte, frame_head_limit> bytes{};
    const std::size_t size = write_frame_head(head, bytes);
    return {reinterpret_cast<const char*>(bytes.data()), size};
}

TEST(websocket_frame_test, refuses_wrong_heads_at_their_first_wrong_byte) {
    struct {
        std::string_view heads;
        std::size_t accepted;
        const char* why;
    } const cases[] = {
        {"\xc1"sv, 0, "the first reserved bit"},
        {"\xa1"sv, 0, "the second reserved bit"},
        {"\x91"sv, 0, "the third reserved bit"},
        {"\x83"sv, 0, "a reserved opcode"},
        {"\x87"sv, 0, "a reserved opcode"},
        {"\x8b"sv, 0, "a reserved control opcode"},
        {"\x8f"sv, 0, "a reserved control opcode"},
        {"\x09"sv, 0, "a ping in fragments"},
        {"\x0a"sv, 0, "a pong in fragments"},
        {"\x08"sv, 0, "a close in fragments"},
        {"\x80"sv, 0, "a continuation of nothing"},
        {"\x00"sv, 0, "a continuation of nothing that continues"},
        {"\x81\x80"sv, 1, "a mask of a server"},
        {"\x89\x7e"sv, 1, "a ping of more than 125 bytes"},
        {"\x88\x7f"sv, 1, "a close of more than 125 bytes"},
        {"\x81\x7e\x00\x7d"sv, 3, "125 in two bytes"},
        {"\x81\x7f\x00\x00\x00\x00\x00\x00\xff\xff"sv, 9, "65535 in eight bytes"},
        {"\x81\x7f\x80"sv, 2, "more than 63 bits"},
        {"\x01\x00\x01"sv, 2, "a message inside of a message"},
        {"\x01\x00\x82"sv, 2, "a binary message inside of a text"},
        {"\x01\x00\x80\x00\x80"sv, 4, "a continuation of a message that has ended"},
    };
    for (const auto& each : cases)
        EXPECT_EQ(accepted_bytes(each.heads), each.accepted) << each.why;
    EXPECT_EQ(accepted_bytes("\x81\x00"sv, true), 1U) << "no mask of a client";
}

TEST(websocket_frame_test, accepts_control_frames_between_the_frames_of_a_message) {
    constexpr auto heads = "\x01\x00\x89\x00\x00\x00\x8a\x00\x80\x00\x88\x00"sv;

    EXPECT_EQ(accepted_bytes(heads), heads.size());
}

TEST(websocket_frame_test, reads_what_it_writes_in_every_division) {
    for (const std::uint64_t size : std::vector<std::uint64_t>{
             0, 1, 125, 126, 127, 65535, 65536, 0x1'0000'0000, 0x7fff'ffff'ffff'ffff}) {
        for (const bool masked : {false, true}) {
            frame_head head{.opcode = websocket_opcode::binary, .is_final = true, .size = size};
            if (masked) head.mask = some_mask;
            const std::string bytes = written_head(head) + "payload";
            for (std::size_t cut = 0; cut < bytes.size() - 7; ++cut) {
                frame_parser parser{masked};
                const_buffer first{std::string_view{bytes}.substr(0, cut)};
                const_buffer rest{std::string_view{bytes}.substr(cut)};
                EXPECT_EQ(parser.parse(first), progress::incomplete);
                EXPECT_EQ(parser.in_head(), cut != 0);
                EXPECT_EQ(parser.parse(rest), progress::complete);
                EXPECT_EQ(rest.size(), 7U);
                EXPECT_EQ(parser.head().size, size);
                EXPECT_EQ(parser.head().mask, head.mask);
                EXPECT_TRUE(parser.head().is_final);
            }
        }
    }
}

// RFC 6455, 5.7.
TEST(websocket_frame_test, writes_the_heads_of_the_examples_of_its_specification) {
    const auto of = [](websocket_opcode code, bool is_final, std::uint64_t size) {
        return written_head({.opcode = code, .is_final = is_final, .size = size});
    };

    EXPECT_EQ(of(websocket_opcode::text, true, 5), "\x81\x05"sv);
    EXPECT_EQ(of(websocket_opcode::text, false, 3), "\x01\x03"sv);
    EXPECT_EQ(of(websocket_opcode::continuation, true, 2), "\x80\x02"sv);
    EXPECT_EQ(of(websocket_opcode::ping, true, 5), "\x89\x05"sv);
    EXPECT_EQ(of(websocket_opcode::binary, true, 256), "\x82\x7e\x01\x00"sv);
    EXPECT_EQ(of(websocket_opcode::binary, true, 65536), "\x82\x7f\0\0\0\0\0\x01\0\0"sv);
}

TEST(websocket_frame_test, masks_at_every_offset_and_size_as_byte_by_byte) {
    for (std::size_t offset = 0; offset < 5; ++offset) {
        for (std::size_t size = 0; size < 70; ++size) {
            std::string from(size, '\0');
            std::string expected(size, '\0');
            for (std::size_t at = 0; at < size; ++at) {
                from[at] = static_cast<char>(at * 37 + 11);
                expected[at] =
                    static_cast<char>(static_cast<unsigned char>(from[at]) ^
                                      std::to_integer<unsigned>(some_mask[(offset + at) % 4]));
            }
            std::string to(size, '\0');
            apply_mask(some_mask, offset, from, reinterpret_cast<std::byte*>(to.data()));
            EXPECT_EQ(to, expected);
            apply_mask(some_mask, offset, to, reinterpret_cast<std::byte*>(to.data()));
            EXPECT_EQ(to, from);
        }
    }
}

// RFC 6455, 5.7.
TEST(websocket_frame_test, masks_the_example_of_its_specification) {
    std::string hello = "Hello";

    apply_mask(some_mask, 0, hello, reinterpret_cast<std::byte*>(hello.data()));

    EXPECT_EQ(hello, "\x7f\x9f\x4d\x51\x58");
}

TEST(websocket_frame_test, accepts_only_codes_that_a_close_frame_may_have) {
    for (const int code : {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014,
                           3000, 3999, 4000, 4999}) {
        EXPECT_TRUE(is_close_code(static_cast<std::uint16_t>(code))) << code;
    }
    for (const int code :
         {0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535}) {
        EXPECT_FALSE(is_close_code(static_cast<std::uint16_t>(code))) << code;
    }
}

TEST(websocket_frame_test, reads_the_payload_of_a_close_frame) {
    EXPECT_EQ(parse_close_payload("")->code, close_codes::none_received);
    EXPECT_EQ(parse_close_payload("\x03\xe8"sv)->code, 1000);
    EXPECT_EQ(parse_close_payload("\x0b\xb8why"sv)->reason, "why");
    EXPECT_EQ(parse_close_payload("\x03").error(), close_codes::protocol_error);
    EXPECT_EQ(parse_close_payload("\x03\xed"sv).error(), close_codes::protocol_error);
    EXPECT_EQ(parse_close_payload("\x03\xe8\xff"sv).error(), close_codes::bad_text);
    EXPECT_EQ(parse_close_payload("\x03\xe8\xc3"sv).error(), close_codes::bad_text);
}

TEST(websocket_frame_test, writes_the_payload_of_a_close_frame) {
    std::array<std::byte, control_limit> bytes{};

    EXPECT_EQ(write_close_payload(close_codes::none_received, {}, bytes), 0U);
    EXPECT_EQ(write_close_payload(1001, std::string(123, 'x'), bytes), 125U);
    const std::string_view text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    EXPECT_EQ(text, "\x03\xe9" + std::string(123, 'x'));
}

} // namespace
} // namespace simplenet::v0::http::detail
