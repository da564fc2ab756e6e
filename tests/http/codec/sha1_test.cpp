#include "http/codec/sha1.hpp"

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace simplenet::v0::http::detail {
namespace {

std::string hex_sha1(std::string_view text) {
    std::string digits;
    for (const std::byte each : sha1(text)) {
        constexpr std::string_view hex = "0123456789abcdef";
        digits += hex[std::to_integer<unsigned>(each) >> 4U];
        digits += hex[std::to_integer<unsigned>(each) & 15U];
    }
    return digits;
}

// Inputs of RFC 3174, 7.3; the digests of the others are those of sha1sum(1).
TEST(sha1_test, hashes_the_examples_of_its_specification) {
    EXPECT_EQ(hex_sha1("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    EXPECT_EQ(hex_sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    EXPECT_EQ(hex_sha1(std::string(1'000'000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST(sha1_test, pads_inputs_of_every_length_around_a_block) {
    EXPECT_EQ(hex_sha1(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    EXPECT_EQ(hex_sha1(std::string(55, 'a')), "c1c8bbdc22796e28c0e15163d20899b65621d65a");
    EXPECT_EQ(hex_sha1(std::string(56, 'a')), "c2db330f6083854c99d4b5bfb6e8f29f201be699");
    EXPECT_EQ(hex_sha1(std::string(63, 'a')), "03f09f5b158a7a8cdad920bddc29b81c18a551f5");
    EXPECT_EQ(hex_sha1(std::string(64, 'a')), "0098ba824b5c16427bd7a1122a5a442a25ec644d");
    EXPECT_EQ(hex_sha1(std::string(65, 'a')), "11655326c708d70319be2610e8a57d9a5b959d3b");
}

} // namespace
} // namespace simplenet::v0::http::detail
