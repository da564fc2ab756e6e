#pragma once
// Pieces of syntax that fields share: tokens, values, comparison without case, comma-separated
// lists. Layer http/codec, private: for the parsers and for everyone who reads a field.

#include "http/codec/scan.hpp"

#include <simplenet/core/abi.hpp>

#include <cstddef>
#include <string_view>

namespace simplenet::v0::http::detail {

/// ASCII only, whatever the locale.
[[nodiscard]] constexpr char to_lower(char byte) noexcept {
    return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + ('a' - 'A')) : byte;
}

/// Whether both are the same text, without regard to the case of ASCII letters.
[[nodiscard]] constexpr bool iequals(std::string_view left, std::string_view right) noexcept {
    if (left.size() != right.size()) return false;
    for (std::size_t at = 0; at < left.size(); ++at)
        if (to_lower(left[at]) != to_lower(right[at])) return false;
    return true;
}

/// Whether `text` is a token of RFC 9110 section 5.6.2: methods, names of fields, codings.
[[nodiscard]] constexpr bool is_token(std::string_view text) noexcept {
    const char* const end = text.data() + text.size();
    return !text.empty() && scan_bytes(token_byte, text.data(), end) == end;
}

/// Whether `text` can be sent as the value of a field: no control but HTAB, no DEL. Bytes above
/// 0x7f are obs-text and may be there. Blanks at the ends are no part of a value, but no danger.
[[nodiscard]] inline bool valid_field_value(std::string_view text) noexcept {
    const char* const end = text.data() + text.size();
    return scan<value_byte>(text.data(), end) == end;
}

/// `text` without the spaces and tabs (OWS) at its ends.
[[nodiscard]] constexpr std::string_view trim_blanks(std::string_view text) noexcept {
    const auto blank = [](char byte) { return byte == ' ' || byte == '\t'; };
    while (!text.empty() && blank(text.front()))
        text.remove_prefix(1);
    while (!text.empty() && blank(text.back()))
        text.remove_suffix(1);
    return text;
}

/// Calls `each(element)` for the elements of a comma-separated list (RFC 9110 section 5.6.1), until
/// it returns false. Elements come without blanks at their ends; empty ones come too, so an empty
/// list is one empty element. A comma in a quoted string separates nothing.
///
/// @return Whether every element was passed on. False, too, if a quoted string does not end; the
///         elements before it have been passed on.
template <class Each>
constexpr bool for_each_element(std::string_view list, Each each) {
    std::size_t begin = 0;
    bool quoted = false;
    for (std::size_t at = 0; at < list.size(); ++at) {
        const char byte = list[at];
        if (quoted && byte == '\\') {
            ++at; // a quoted-pair
        } else if (byte == '"') {
            quoted = !quoted;
        } else if (byte == ',' && !quoted) {
            if (!each(trim_blanks(list.substr(begin, at - begin)))) return false;
            begin = at + 1;
        }
    }
    if (quoted) return false;
    return each(trim_blanks(list.substr(begin)));
}

} // namespace simplenet::v0::http::detail
