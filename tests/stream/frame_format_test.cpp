#include <simplenet/stream/frame_format.hpp>

#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace std::string_view_literals;
using state = detail::found_prefix::state;

constexpr frame_format every_format[] = {
    {.prefix = frame_prefix::u8},
    {.prefix = frame_prefix::u16},
    {.prefix = frame_prefix::u32},
    {.prefix = frame_prefix::u64},
    {.prefix = frame_prefix::u16, .order = std::endian::little},
    {.prefix = frame_prefix::u32, .order = std::endian::little},
    {.prefix = frame_prefix::u64, .order = std::endian::little},
    {.prefix = frame_prefix::varint},
};

std::string encoded(std::uint64_t length, frame_format format) {
    const detail::frame_head head = detail::encode_prefix(length, format);
    return {reinterpret_cast<const char*>(head.bytes.data()), head.size};
}

detail::found_prefix found(std::string_view bytes, frame_format format) {
    return detail::find_prefix(std::as_bytes(std::span{bytes}), format);
}

TEST(frame_format_test, the_default_is_four_bytes_in_network_order) {
    EXPECT_EQ(encoded(0x0102, {}), "\0\0\1\2"sv);
}

TEST(frame_format_test, fixed_prefixes_have_both_orders) {
    EXPECT_EQ(encoded(0x12, {.prefix = frame_prefix::u8}), "\x12"sv);
    EXPECT_EQ(encoded(0x1234, {.prefix = frame_prefix::u16}), "\x12\x34"sv);
    EXPECT_EQ(encoded(0x1234, {.prefix = frame_prefix::u16, .order = std::endian::little}),
              "\x34\x12"sv);
    EXPECT_EQ(encoded(0x0102030405060708, {.prefix = frame_prefix::u64}), "\1\2\3\4\5\6\7\x8"sv);
    EXPECT_EQ(
        encoded(0x0102030405060708, {.prefix = frame_prefix::u64, .order = std::endian::little}),
        "\x8\7\6\5\4\3\2\1"sv);
}

TEST(frame_format_test, a_varint_has_seven_bits_in_each_byte) {
    constexpr frame_format varint{.prefix = frame_prefix::varint};
    EXPECT_EQ(encoded(0, varint), "\0"sv);
    EXPECT_EQ(encoded(127, varint), "\x7f"sv);
    EXPECT_EQ(encoded(128, varint), "\x80\x01"sv);
    EXPECT_EQ(encoded(300, varint), "\xac\x02"sv);
    EXPECT_EQ(encoded(std::numeric_limits<std::uint64_t>::max(), varint),
              "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv);
}

TEST(frame_format_test, each_length_is_found_again_but_not_in_a_part_of_its_prefix) {
    for (const frame_format format : every_format) {
        for (unsigned bit = 0; bit < 64; ++bit) {
            for (const std::uint64_t length : {(1ULL << bit) - 1, 1ULL << bit, ~0ULL >> bit}) {
                if (length > detail::longest_frame(format.prefix)) continue;
                const std::string bytes = encoded(length, format);
                const auto whole = found(bytes + "body", format);
                EXPECT_EQ(whole.is, state::complete);
                EXPECT_EQ(whole.length, length);
                EXPECT_EQ(whole.bytes, bytes.size());
                for (std::size_t part = 0; part < bytes.size(); ++part) {
                    const auto cut = found(std::string_view{bytes}.substr(0, part), format);
                    EXPECT_EQ(cut.is, state::incomplete);
                    EXPECT_TRUE(cut.bytes > part && cut.bytes <= bytes.size());
                }
            }
        }
    }
}

TEST(frame_format_test, a_padded_varint_is_read) {
    constexpr frame_format varint{.prefix = frame_prefix::varint};
    EXPECT_EQ(found("\x80\0"sv, varint).length, 0U);
    EXPECT_EQ(found("\x80\0"sv, varint).bytes, 2);
    EXPECT_EQ(found("\x85\x80\x80\x80\x80\x80\x80\x80\x80\0"sv, varint).length, 5U);
    EXPECT_EQ(found("\x85\x80\x80\x80\x80\x80\x80\x80\x80\0"sv, varint).bytes, 10);
}

TEST(frame_format_test, a_varint_of_more_than_ten_bytes_or_64_bits_is_malformed) {
    constexpr frame_format varint{.prefix = frame_prefix::varint};
    EXPECT_EQ(found("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"sv, varint).is, state::malformed);
    EXPECT_EQ(found("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"sv, varint).is, state::malformed);
    EXPECT_EQ(found("\xff\xff\xff\xff\xff\xff\xff\xff\xff"sv, varint).is, state::incomplete);
}

} // namespace
} // namespace simplenet::v0
