#include "http/codec/utf8.hpp"

#include <cstring>

namespace simplenet::v0::http::detail {

namespace {

/// Skips whole groups of 16 bytes that are ASCII.
// Two words make one comparison with a mask. Every compiler turns that into a few instructions, so
// SSE2 or NEON need no code of their own.
const unsigned char* skip_ascii(const unsigned char* at, const unsigned char* end) noexcept {
    constexpr std::uint64_t high_bits = 0x8080'8080'8080'8080U;
    while (end - at >= 16) {
        std::uint64_t first = 0;
        std::uint64_t second = 0;
        std::memcpy(&first, at, sizeof first);
        std::memcpy(&second, at + 8, sizeof second);
        if (((first | second) & high_bits) != 0) break;
        at += 16;
    }
    return at;
}

} // namespace

bool utf8_validator::feed(const_buffer piece) noexcept {
    const auto* at = reinterpret_cast<const unsigned char*>(piece.data());
    const auto* const end = at + piece.size();
    while (at != end) {
        if (missing_ != 0) {
            const unsigned char next = *at++;
            if (next < lowest_ || next > highest_) return false;
            lowest_ = 0x80;
            highest_ = 0xbf;
            --missing_;
            continue;
        }
        at = skip_ascii(at, end);
        // At most 15 more bytes of ASCII, up to a character of several bytes.
        while (at != end && *at < 0x80)
            ++at;
        if (at == end) break;

        // The table of RFC 3629, 4, by the first byte.
        const unsigned char first = *at++;
        if (first < 0xc2 || first > 0xf4)
            return false; // a continuation, an overlong form, no UTF-8
        missing_ = static_cast<std::uint8_t>(first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3);
        if (first == 0xe0) lowest_ = 0xa0;  // else overlong
        if (first == 0xed) highest_ = 0x9f; // else a surrogate
        if (first == 0xf0) lowest_ = 0x90;  // else overlong
        if (first == 0xf4) highest_ = 0x8f; // else above U+10FFFF
    }
    return true;
}

} // namespace simplenet::v0::http::detail
