#include <simplenet/core/buffer.hpp>

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <list>
#include <memory>
#include <vector>

namespace {

using namespace simplenet;

template <class From, class To>
concept becomes = std::is_convertible_v<From, To>;

// const_buffer accepts every contiguous range of bytes, constant or not, temporary or not,
static_assert(becomes<std::span<const std::byte>, const_buffer>);
static_assert(becomes<std::span<std::byte>, const_buffer>);
static_assert(becomes<std::span<const std::byte, 4>, const_buffer>);
static_assert(becomes<std::string_view, const_buffer>);
static_assert(becomes<std::string&, const_buffer>);
static_assert(becomes<const std::string&, const_buffer>);
static_assert(becomes<std::string, const_buffer>);
static_assert(becomes<std::vector<std::byte>&, const_buffer>);
static_assert(becomes<const std::vector<unsigned char>&, const_buffer>);
static_assert(becomes<std::array<char, 3>&, const_buffer>);
static_assert(becomes<const std::array<std::byte, 3>&, const_buffer>);
static_assert(becomes<std::byte (&)[3], const_buffer>);
static_assert(becomes<const unsigned char (&)[3], const_buffer>);
static_assert(becomes<mutable_buffer, const_buffer>);

// but no pointers without a length, no elements other than bytes, no ranges that are not
// contiguous.
static_assert(!becomes<const char*, const_buffer>);
static_assert(!becomes<std::nullptr_t, const_buffer>);
static_assert(!becomes<void*, const_buffer>);
static_assert(!becomes<std::vector<int>&, const_buffer>);
static_assert(!becomes<std::span<const char16_t>, const_buffer>);
static_assert(!becomes<std::u8string&, const_buffer>);
static_assert(!becomes<std::vector<bool>&, const_buffer>);
static_assert(!becomes<std::deque<char>&, const_buffer>);
static_assert(!becomes<std::list<std::byte>&, const_buffer>);
static_assert(!becomes<char (&)[3], const_buffer>);
static_assert(!becomes<int (&)[3], const_buffer>);
static_assert(!becomes<int, const_buffer>);

// mutable_buffer accepts the same ranges if they are writable and not temporary.
static_assert(becomes<std::span<std::byte>, mutable_buffer>);
static_assert(becomes<std::span<char>, mutable_buffer>);
static_assert(becomes<std::span<unsigned char, 4>&, mutable_buffer>);
static_assert(becomes<std::string&, mutable_buffer>);
static_assert(becomes<std::vector<std::byte>&, mutable_buffer>);
static_assert(becomes<std::array<char, 3>&, mutable_buffer>);
static_assert(becomes<std::byte (&)[3], mutable_buffer>);
static_assert(becomes<unsigned char (&)[3], mutable_buffer>);

static_assert(!becomes<std::string, mutable_buffer>);
static_assert(!becomes<std::vector<std::byte>, mutable_buffer>);
static_assert(!becomes<std::array<std::byte, 3>, mutable_buffer>);
static_assert(!becomes<const std::string&, mutable_buffer>);
static_assert(!becomes<const std::vector<std::byte>&, mutable_buffer>);
static_assert(!becomes<std::span<const std::byte>, mutable_buffer>);
static_assert(!becomes<std::string_view, mutable_buffer>);
static_assert(!becomes<const std::byte (&)[3], mutable_buffer>);
static_assert(!becomes<const char (&)[3], mutable_buffer>);
static_assert(!becomes<char (&)[3], mutable_buffer>);
static_assert(!becomes<const_buffer, mutable_buffer>);
static_assert(!becomes<std::vector<int>&, mutable_buffer>);
static_assert(!becomes<std::deque<char>&, mutable_buffer>);
static_assert(!becomes<char*, mutable_buffer>);

// Conversions back to the types of programs.
static_assert(becomes<const_buffer, std::span<const std::byte>>);
static_assert(becomes<mutable_buffer, std::span<std::byte>>);
static_assert(!becomes<const_buffer, std::span<std::byte>>);

// Awaitables and options store buffers, so they are trivial.
static_assert(std::is_trivially_copyable_v<const_buffer>);
static_assert(std::is_trivially_copyable_v<mutable_buffer>);
static_assert(std::is_trivially_destructible_v<const_buffer>);
static_assert(std::is_nothrow_default_constructible_v<mutable_buffer>);

constexpr char text_with_nul[] = "abc";
constexpr char letters_only[] = {'a', 'b', 'c'};

template <const auto& Array>
concept taken_whole = requires { typename std::bool_constant<(const_buffer{Array}, true)>; };
static_assert(taken_whole<text_with_nul>);
// Treated as a literal, the array would lose its last letter.
static_assert(!taken_whole<letters_only>);

std::string_view text_of(const_buffer buffer) {
    return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

TEST(buffer_test, a_default_buffer_is_empty) {
    EXPECT_TRUE(const_buffer{}.empty());
    EXPECT_EQ(const_buffer{}.data(), nullptr);
    EXPECT_TRUE(mutable_buffer{}.empty());
    EXPECT_EQ(mutable_buffer{}.size(), 0U);
}

TEST(buffer_test, a_literal_is_its_text_without_the_nul) {
    EXPECT_EQ(text_of("GET /"), "GET /");
    EXPECT_EQ(text_of("a\0b"), (std::string_view{"a\0b", 3}));
    EXPECT_TRUE(const_buffer{""}.empty());
}

TEST(buffer_test, a_constexpr_text_is_like_a_literal) {
    EXPECT_EQ(text_of(text_with_nul), "abc");
}

TEST(buffer_test, a_buffer_can_be_made_at_compile_time) {
    static constexpr const_buffer greeting{"hello"};

    static_assert(greeting.size() == 5);
    EXPECT_EQ(text_of(greeting), "hello");
}

TEST(buffer_test, an_array_of_bytes_is_taken_whole) {
    const unsigned char octets[] = {'a', 'b', 0};
    std::byte bytes[7]{};

    EXPECT_EQ(const_buffer{octets}.size(), 3U);
    EXPECT_EQ(mutable_buffer{bytes}.size(), 7U);
    EXPECT_EQ(mutable_buffer{bytes}.data(), bytes);
}

TEST(buffer_test, an_array_of_char_is_taken_through_a_span) {
    char letters[] = {'a', 'b'};

    EXPECT_EQ(const_buffer{std::span{letters}}.size(), 2U);
    EXPECT_EQ(mutable_buffer{std::span{letters}}.size(), 2U);
}

TEST(buffer_test, a_container_is_viewed_in_place) {
    std::string text{"text"};
    std::vector<std::byte> bytes(9);
    std::array<unsigned char, 2> octets{};

    EXPECT_EQ(static_cast<const void*>(const_buffer{text}.data()), text.data());
    EXPECT_EQ(mutable_buffer{text}.size(), 4U);
    EXPECT_EQ(mutable_buffer{bytes}.data(), bytes.data());
    EXPECT_EQ(mutable_buffer{octets}.size(), 2U);
}

TEST(buffer_test, a_pointer_needs_a_size) {
    const std::string text{"pointer"};

    EXPECT_EQ(text_of({text.data(), 5}), "point");
}

TEST(buffer_test, writes_through_a_mutable_buffer_reach_the_memory) {
    std::string text{"abc"};
    const mutable_buffer buffer{text};

    buffer.data()[1] = std::byte{'X'};

    EXPECT_EQ(text, "aXc");
}

TEST(buffer_test, a_mutable_buffer_can_be_read_from) {
    std::string text{"abc"};
    const const_buffer readable = mutable_buffer{text};

    EXPECT_EQ(text_of(readable), "abc");
}

TEST(buffer_test, a_buffer_is_a_span_of_bytes) {
    std::string text{"abc"};
    const std::span<const std::byte> readable = const_buffer{text};
    const std::span<std::byte> writable = mutable_buffer{text};

    EXPECT_EQ(readable.size(), 3U);
    EXPECT_EQ(static_cast<void*>(writable.data()), text.data());
}

TEST(buffer_test, first_keeps_the_front) {
    std::string text{"abcdef"};

    EXPECT_EQ(text_of(const_buffer{text}.first(2)), "ab");
    EXPECT_EQ(text_of(const_buffer{text}.first(6)), "abcdef");
    EXPECT_EQ(text_of(mutable_buffer{text}.first(0)), "");
}

TEST(buffer_test, subspan_drops_the_front) {
    std::string text{"abcdef"};

    EXPECT_EQ(text_of(const_buffer{text}.subspan(2)), "cdef");
    EXPECT_EQ(text_of(mutable_buffer{text}.subspan(0)), "abcdef");
    EXPECT_TRUE(mutable_buffer{text}.subspan(6).empty());
    EXPECT_TRUE(const_buffer{}.subspan(0).empty());
}

TEST(buffer_test, reaching_past_the_buffer_stops_the_program) {
    std::string text{"abc"};

    EXPECT_DEATH((void)const_buffer{text}.first(4), "first\\(\\) reaches past the buffer");
    EXPECT_DEATH((void)const_buffer{text}.subspan(4), "subspan\\(\\) starts past the buffer");
    EXPECT_DEATH((void)mutable_buffer{text}.first(4), "first\\(\\) reaches past the buffer");
    EXPECT_DEATH((void)mutable_buffer{text}.subspan(4), "subspan\\(\\) starts past the buffer");
}

} // namespace
