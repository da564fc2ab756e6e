#include "http/codec/sha1.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

namespace simplenet::v0::http::detail {

namespace {

using sha1_state = std::array<std::uint32_t, 5>;
constexpr std::size_t sha1_block = 64; // bytes

std::uint32_t big_endian_word(const std::byte* at) noexcept {
    std::uint32_t word = 0;
    for (std::size_t byte = 0; byte < 4; ++byte)
        word = word << 8U | std::to_integer<std::uint32_t>(at[byte]);
    return word;
}

void big_endian_bytes(std::uint64_t number, std::span<std::byte> to) noexcept {
    for (std::size_t at = to.size(); at-- > 0; number >>= 8U)
        to[at] = static_cast<std::byte>(number & 0xffU);
}

/// FIPS 180-4, 6.1.2.
void mix_block(sha1_state& state, const std::byte* block) noexcept {
    std::array<std::uint32_t, 80> words; // NOLINT(*-member-init): filled below
    for (std::size_t at = 0; at < 16; ++at)
        words[at] = big_endian_word(block + 4 * at);
    for (std::size_t at = 16; at < 80; ++at)
        words[at] = std::rotl(words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16], 1);

    auto [a, b, c, d, e] = state;
    for (std::size_t round = 0; round < 80; ++round) {
        std::uint32_t mixed = 0;
        switch (round / 20) {
        case 0:
            mixed = ((b & c) | (~b & d)) + 0x5a827999U;
            break;
        case 1:
            mixed = (b ^ c ^ d) + 0x6ed9eba1U;
            break;
        case 2:
            mixed = ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcU;
            break;
        default:
            mixed = (b ^ c ^ d) + 0xca62c1d6U;
            break;
        }
        mixed += std::rotl(a, 5) + e + words[round];
        e = d;
        d = c;
        c = std::rotl(b, 30);
        b = a;
        a = mixed;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

} // namespace

std::array<std::byte, 20> sha1(const_buffer bytes) noexcept {
    sha1_state state{0x67452301U, 0xefcdab89U, 0x98badcfeU, 0x10325476U, 0xc3d2e1f0U};
    const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
    for (; bytes.size() >= sha1_block; bytes = bytes.subspan(sha1_block))
        mix_block(state, bytes.data());

    // The rest, a bit that marks the end, zeros, and the length in bits, in one or two blocks.
    std::array<std::byte, 2 * sha1_block> tail{};
    if (!bytes.empty()) std::memcpy(tail.data(), bytes.data(), bytes.size());
    tail[bytes.size()] = std::byte{0x80};
    const std::size_t size = bytes.size() + 1 + 8 <= sha1_block ? sha1_block : 2 * sha1_block;
    big_endian_bytes(bits, std::span{tail}.subspan(size - 8, 8));
    for (std::size_t at = 0; at < size; at += sha1_block)
        mix_block(state, tail.data() + at);

    std::array<std::byte, 20> digest; // NOLINT(*-member-init): filled below
    for (std::size_t at = 0; at < state.size(); ++at)
        big_endian_bytes(state[at], std::span{digest}.subspan(4 * at, 4));
    return digest;
}

} // namespace simplenet::v0::http::detail
