#pragma once
// Classes of bytes, and searches for the first byte outside of one. Layer http/codec, private: the
// inner loops of the parsers. Sixteen bytes at a time with SSE2 or NEON, and a scalar twin.

#include <simplenet/core/abi.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__AARCH64EL__)
#include <arm_neon.h>
#endif

namespace simplenet::v0::http::detail {

/// A class of bytes, as bits of `byte_classes`.
enum byte_class : std::uint8_t {
    token_byte = 1,  // tchar, RFC 9110 section 5.6.2
    value_byte = 2,  // field-vchar, SP and HTAB, RFC 9110 section 5.5: includes obs-text
    target_byte = 4, // 0x21 to 0x7e: everything visible in ASCII
};

inline constexpr std::array<std::uint8_t, 256> byte_classes = [] {
    std::array<std::uint8_t, 256> classes{};
    constexpr const char* token_bytes =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~";
    for (const char* at = token_bytes; *at != '\0'; ++at)
        classes[static_cast<unsigned char>(*at)] = token_byte;
    for (unsigned byte = 0; byte < 256; ++byte) {
        unsigned is = classes[byte];
        if ((byte >= 0x20 && byte != 0x7f) || byte == '\t') is |= value_byte;
        if (byte > 0x20 && byte < 0x7f) is |= target_byte;
        classes[byte] = static_cast<std::uint8_t>(is);
    }
    return classes;
}();

[[nodiscard]] constexpr bool is_in(byte_class which, char byte) noexcept {
    return (byte_classes[static_cast<unsigned char>(byte)] & which) != 0;
}

/// The first byte of [at, end) that is not in `which`; `end` if there is none.
[[nodiscard]] constexpr const char* scan_bytes(byte_class which, const char* at,
                                               const char* end) noexcept {
    while (at != end && is_in(which, *at))
        ++at;
    return at;
}

#if defined(__SSE2__)

#define SIMPLENET_HTTP_VECTORS 1

namespace scanning {

using block = __m128i;

inline block load(const char* at) noexcept {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

/// Bytes outside of the class are all ones.
inline block outside_of_values(block bytes) noexcept {
    // Unsigned x <= 0x1f, written as min(x, 0x1f) == x: SSE2 compares signed bytes only.
    const block controls = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
    const block tabs = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t'));
    return _mm_or_si128(_mm_andnot_si128(tabs, controls),
                        _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f)));
}

inline block outside_of_targets(block bytes) noexcept {
    // As signed bytes, 0x80 to 0xff are below 0x21, too.
    return _mm_or_si128(_mm_cmplt_epi8(bytes, _mm_set1_epi8(0x21)),
                        _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f)));
}

inline bool any(block outside) noexcept {
    return _mm_movemask_epi8(outside) != 0;
}

/// The index of the first byte that is all ones. @pre any(outside).
inline unsigned first(block outside) noexcept {
    return static_cast<unsigned>(
        std::countr_zero(static_cast<unsigned>(_mm_movemask_epi8(outside))));
}

} // namespace scanning

#elif defined(__ARM_NEON) && defined(__AARCH64EL__)

#define SIMPLENET_HTTP_VECTORS 1

namespace scanning {

using block = uint8x16_t;

inline block load(const char* at) noexcept {
    return vld1q_u8(reinterpret_cast<const std::uint8_t*>(at));
}

/// Bytes outside of the class are all ones.
inline block outside_of_values(block bytes) noexcept {
    const block controls = vcltq_u8(bytes, vdupq_n_u8(0x20));
    const block tabs = vceqq_u8(bytes, vdupq_n_u8('\t'));
    return vorrq_u8(vbicq_u8(controls, tabs), vceqq_u8(bytes, vdupq_n_u8(0x7f)));
}

inline block outside_of_targets(block bytes) noexcept {
    return vorrq_u8(vcltq_u8(bytes, vdupq_n_u8(0x21)), vcgeq_u8(bytes, vdupq_n_u8(0x7f)));
}

/// Four bits for each byte, the first byte lowest: NEON has no movemask.
inline std::uint64_t nibbles(block outside) noexcept {
    return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(outside), 4)), 0);
}

inline bool any(block outside) noexcept {
    return nibbles(outside) != 0;
}

/// The index of the first byte that is all ones. @pre any(outside).
inline unsigned first(block outside) noexcept {
    return static_cast<unsigned>(std::countr_zero(nibbles(outside))) / 4;
}

} // namespace scanning

#else

#define SIMPLENET_HTTP_VECTORS 0

#endif

/// The same as scan_bytes(), 16 bytes at a time. Reads nothing outside of [at, end).
template <byte_class which>
    requires(which == value_byte || which == target_byte)
[[nodiscard]] inline const char* scan(const char* at, const char* end) noexcept {
#if SIMPLENET_HTTP_VECTORS
    for (; end - at >= 16; at += 16) {
        const scanning::block bytes = scanning::load(at);
        scanning::block outside;
        if constexpr (which == value_byte)
            outside = scanning::outside_of_values(bytes);
        else
            outside = scanning::outside_of_targets(bytes);
        if (scanning::any(outside)) return at + scanning::first(outside);
    }
#endif
    return scan_bytes(which, at, end);
}

} // namespace simplenet::v0::http::detail
