#pragma once
// Escaping of what comes from outside, for the logs. In a header: it is most of the cost of a line.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace httpd {

/// How a byte is written that may not stand in a line: `"`, `\`, below 0x20 or above 0x7e.
enum class escapes : std::uint8_t {
    hex,  ///< `\x22`
    json, ///< `\u0022`; quotes and backslashes as `\"` and `\\`
};

/// The most bytes that one byte becomes.
template <escapes How>
inline constexpr std::size_t longest_escape = How == escapes::json ? 6 : 4;

/// What append_escaped() may need for `size` bytes.
template <escapes How>
[[nodiscard]] constexpr std::size_t escaped_room(std::size_t size) noexcept {
    return size * longest_escape<How> + 16;
}

[[nodiscard]] constexpr bool needs_escape(char byte) noexcept {
    const auto value = static_cast<unsigned char>(byte);
    return value < 0x20 || value > 0x7e || byte == '"' || byte == '\\';
}

template <escapes How>
char* append_escape(char* to, char byte) noexcept {
    constexpr std::string_view digits = "0123456789abcdef";
    const auto value = static_cast<unsigned char>(byte);
    *to++ = '\\';
    if constexpr (How == escapes::json) {
        if (byte == '"' || byte == '\\') {
            *to++ = byte;
            return to;
        }
        *to++ = 'u';
        *to++ = '0';
        *to++ = '0';
    } else {
        *to++ = 'x';
    }
    *to++ = digits[value >> 4U];
    *to++ = digits[value & 0xfU];
    return to;
}

namespace detail {

[[nodiscard]] constexpr std::uint64_t repeated(unsigned char byte) noexcept {
    return 0x0101010101010101U * byte;
}

/// Whether any of eight bytes needs an escape. A borrow or carry into a neighbour only happens
/// beside a byte that needs one.
[[nodiscard]] constexpr bool any_needs_escape(std::uint64_t bytes) noexcept {
    const std::uint64_t below = bytes - repeated(0x20);
    const std::uint64_t above = bytes | (bytes + repeated(1));
    const std::uint64_t quote = (bytes ^ repeated('"')) - repeated(1);
    const std::uint64_t backslash = (bytes ^ repeated('\\')) - repeated(1);
    return ((below | above | quote | backslash) & repeated(0x80)) != 0;
}

template <class Word>
[[nodiscard]] Word load(const char* from) noexcept {
    Word word;
    std::memcpy(&word, from, sizeof word);
    return word;
}

template <escapes How>
char* append_bytewise(char* to, const char* from, const char* end) noexcept {
    for (; from != end; ++from) {
        if (needs_escape(*from))
            to = append_escape<How>(to, *from);
        else
            *to++ = *from;
    }
    return to;
}

/// Fewer than 16 bytes.
template <escapes How>
char* append_short(char* to, const char* from, std::size_t size) noexcept {
    if (size >= 8) {
        const auto first = load<std::uint64_t>(from);
        const auto last = load<std::uint64_t>(from + size - 8);
        if (!any_needs_escape(first) && !any_needs_escape(last)) [[likely]] {
            std::memcpy(to, &first, 8);
            std::memcpy(to + size - 8, &last, 8);
            return to + size;
        }
    } else if (size >= 4) {
        const auto first = load<std::uint32_t>(from);
        const auto last = load<std::uint32_t>(from + size - 4);
        if (!any_needs_escape(std::uint64_t{last} << 32U | first)) [[likely]] {
            std::memcpy(to, &first, 4);
            std::memcpy(to + size - 4, &last, 4);
            return to + size;
        }
    } else if (size > 0) {
        // All of up to three bytes: some of them twice.
        const std::array<char, 4> bytes{from[0], from[size / 2], from[size - 1], ' '};
        if (!any_needs_escape(repeated(' ') << 32U | std::bit_cast<std::uint32_t>(bytes)))
            [[likely]] {
            to[0] = bytes[0];
            to[size / 2] = bytes[1];
            to[size - 1] = bytes[2];
            return to + size;
        }
    }
    return append_bytewise<How>(to, from, from + size);
}

#if defined(__SSE2__)
/// Which of 16 bytes need an escape, as bits.
[[nodiscard]] inline unsigned needing_escape(__m128i bytes) noexcept {
    // Plus one, and signed: below 0x21 are those below 0x20, and above 0x7e.
    const __m128i outside =
        _mm_cmplt_epi8(_mm_add_epi8(bytes, _mm_set1_epi8(1)), _mm_set1_epi8(0x21));
    const __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    const __m128i backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    return static_cast<unsigned>(
        _mm_movemask_epi8(_mm_or_si128(outside, _mm_or_si128(quote, backslash))));
}

/// At least 16 bytes, of which most need no escape.
template <escapes How>
char* append_long(char* to, const char* from, std::size_t size) noexcept {
    const char* const last = from + size - 16;
    const auto copy = [](char* there, const char* here) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(here));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(there), bytes);
        return needing_escape(bytes);
    };
    const char* plain = from; // behind the latest escape
    for (;;) {
        unsigned found = 0;
        while (from <= last && (found = copy(to, from)) == 0) {
            from += 16;
            to += 16;
        }
        if (found == 0) {
            // The last piece overlaps those before it, where they are copies.
            const auto behind = from - last;
            if (behind == 16) return to;
            if (behind > 16 || from - plain < behind)
                return append_bytewise<How>(to, from, last + 16);
            found = copy(to - behind, last);
            if (found == 0) return to - behind + 16;
            from -= behind;
            to -= behind;
        }
        const auto before = std::countr_zero(found);
        from += before;
        to = append_escape<How>(to + before, *from++);
        plain = from;
    }
}
#endif

} // namespace detail

/// Writes `text` to `to`, which has escaped_room() bytes. Returns the end.
template <escapes How>
char* append_escaped(char* to, std::string_view text) noexcept {
#if defined(__SSE2__)
    if (text.size() >= 16) return detail::append_long<How>(to, text.data(), text.size());
#else
    while (text.size() >= 16) {
        const auto bytes = detail::load<std::uint64_t>(text.data());
        if (!detail::any_needs_escape(bytes)) [[likely]] {
            std::memcpy(to, &bytes, 8);
            to += 8;
        } else {
            to = detail::append_bytewise<How>(to, text.data(), text.data() + 8);
        }
        text.remove_prefix(8);
    }
#endif
    return detail::append_short<How>(to, text.data(), text.size());
}

/// Copies text of ours, which is short.
inline char* append(char* to, std::string_view text) noexcept {
    std::memcpy(to, text.data(), text.size());
    return to + text.size();
}

} // namespace httpd
