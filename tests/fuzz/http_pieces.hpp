#pragma once
// Common parts of the fuzzers of heads and bodies: texts in pieces, and lines and fields as a
// reader finds them who has the whole text and splits it.

#include "fuzz/fuzz.hpp"
#include "http/codec/parsed_heads.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::fuzz {

/// Calls `check(ends)` with several ways to cut `size` bytes: each byte alone, and in two at every
/// place of a short text, at some of a long one.
template <class Check>
void for_each_cutting(std::size_t size, Check check) {
    std::vector<std::size_t> all;
    for (std::size_t end = 0; end < size; ++end)
        all.push_back(end);
    check(all);
    const std::size_t stride = std::max<std::size_t>(1, size / 40);
    for (std::size_t end = 0; end < size; end += stride)
        check(std::vector<std::size_t>{end});
}

inline constexpr std::string_view letters_and_digits =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

inline bool consists_of(std::string_view text, std::string_view allowed) {
    return text.find_first_not_of(allowed) == text.npos;
}

inline bool is_name(std::string_view text) {
    return !text.empty() && consists_of(text, std::string{letters_and_digits} + "!#$%&'*+-.^_`|~");
}

inline bool has_controls(std::string_view text) {
    return std::ranges::any_of(text, [](char each) {
        const auto byte = static_cast<unsigned char>(each);
        return (byte < 0x20 && each != '\t') || byte == 0x7f;
    });
}

/// Removes a line from `text`, if it has one. Its end is the first CRLF.
inline std::optional<std::string_view> take_line(std::string_view& text) {
    const std::size_t end = text.find("\r\n");
    if (end == text.npos) return {};
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 2);
    return line;
}

/// Removes fields and their empty line from `text`; nothing if they are bad or not complete.
inline std::optional<testing::field_list> take_fields(std::string_view& text, std::size_t most) {
    testing::field_list fields;
    for (;;) {
        const auto line = take_line(text);
        if (!line || has_controls(*line)) return {};
        if (line->empty()) return fields;
        const std::size_t colon = line->find(':');
        if (colon == line->npos || !is_name(line->substr(0, colon))) return {};
        if (fields.size() == most) return {};
        std::string_view value = line->substr(colon + 1);
        const std::size_t first = value.find_first_not_of(" \t");
        value = first == value.npos ? std::string_view{} : value.substr(first);
        value = value.substr(0, value.find_last_not_of(" \t") + 1);
        fields.emplace_back(line->substr(0, colon), value);
    }
}

inline std::string written(const testing::field_list& fields) {
    std::string text;
    for (const auto& [name, value] : fields)
        text.append(name).append(": ").append(value).append("\r\n");
    return text.append("\r\n");
}

/// The same as head_reader::parse() in one piece, but by splitting; nothing unless the head is
/// complete. `split_line` returns the parts of a start line, or nothing.
template <class SplitLine>
std::optional<testing::parsed_head> split_head(std::string_view text, std::size_t most_fields,
                                               SplitLine split_line) {
    std::string_view rest = text;
    for (int skipped = 0; skipped < 4 && rest.starts_with("\r\n"); ++skipped)
        rest.remove_prefix(2);
    const auto line = take_line(rest);
    if (!line || has_controls(*line)) return {};
    auto parts = split_line(*line);
    if (!parts) return {};
    auto fields = take_fields(rest, most_fields);
    if (!fields) return {};
    return testing::parsed_head{http::detail::head_state::complete, 0, text.size() - rest.size(),
                                *std::move(parts), *std::move(fields)};
}

/// Whether pieces change nothing, with the usual limits and with some that `text` may reach.
template <class Parser>
testing::parsed_head parse_in_pieces(std::string_view text) {
    const testing::head_limits narrow{.line = 24, .fields = 60};
    testing::head_reader<Parser, 12> with_narrow{narrow};
    testing::head_reader<Parser, 12> reader;
    const testing::parsed_head whole = reader.parse(text);
    const testing::parsed_head whole_of_narrow = with_narrow.parse(text);
    for_each_cutting(text.size(), [&](const std::vector<std::size_t>& ends) {
        FUZZ_CHECK(reader.parse(text, ends) == whole);
        FUZZ_CHECK(with_narrow.parse(text, ends) == whole_of_narrow);
    });
    if (whole_of_narrow.state == http::detail::head_state::complete)
        FUZZ_CHECK(whole_of_narrow == whole);
    return whole;
}

} // namespace simplenet::v0::fuzz
