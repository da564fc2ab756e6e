#pragma once
// The classes of characters of RFC 3986, as one table. Layer http/codec, private.

#include "http/codec/ascii.hpp"

#include <simplenet/core/abi.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace simplenet::v0::http::detail::uri {

enum character_class : std::uint8_t {
    reg_name = 1,    // unreserved and sub-delims
    path = 2,        // pchar without its "%", and "/"
    query = 4,       // as path, and "?"; a fragment has the same
    sent_path = 8,   // as path, and what browsers do not encode there: see target.hpp
    sent_query = 16, // "%" too
};

[[nodiscard]] constexpr std::array<std::uint8_t, 256> classes_of_characters() noexcept {
    std::array<std::uint8_t, 256> table{};
    const auto add = [&table](std::string_view characters, unsigned classes) {
        for (const char each : characters) {
            auto& entry = table[static_cast<unsigned char>(each)];
            entry = static_cast<std::uint8_t>(entry | classes);
        }
    };
    constexpr unsigned everywhere = path | query | sent_path | sent_query;
    add("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", reg_name | everywhere);
    add("0123456789-._~", reg_name | everywhere); // with the letters: unreserved
    add("!$&'()*+,;=", reg_name | everywhere);    // sub-delims
    add(":@/", everywhere);
    add("?", query | sent_query);
    add("[]|^", sent_path | sent_query);
    add("%{}`\\", sent_query);
    return table;
}
inline constexpr std::array<std::uint8_t, 256> character_classes = classes_of_characters();

[[nodiscard]] constexpr bool is(character_class wanted, char c) noexcept {
    return (character_classes[static_cast<unsigned char>(c)] & wanted) != 0;
}

/// The byte that the percent encoding at `at` stands for; -1 if that is none.
///
/// @pre `text[at]` is a percent sign.
[[nodiscard]] constexpr int encoded_byte(std::string_view text, std::size_t at) noexcept {
    if (text.size() - at < 3) return -1;
    const int high = ascii::hex_value(text[at + 1]);
    const int low = ascii::hex_value(text[at + 2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/// How many bytes at the front of `text` are characters of this class and percent encodings.
[[nodiscard]] constexpr std::size_t count_of(std::string_view text,
                                             character_class wanted) noexcept {
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    for (const char* at = begin;; at += 3) {
        while (at != end && is(wanted, *at))
            ++at;
        const auto count = static_cast<std::size_t>(at - begin);
        if (at == end || *at != '%' || encoded_byte(text, count) < 0) return count;
    }
}

/// Whether `text` consists of characters of this class and of percent encodings.
[[nodiscard]] constexpr bool consists_of(std::string_view text, character_class wanted) noexcept {
    return count_of(text, wanted) == text.size();
}

} // namespace simplenet::v0::http::detail::uri
