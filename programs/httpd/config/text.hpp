#pragma once
// How durations and sizes are written in a configuration, and what helps to say what is wrong with
// a text. Used by the reader and by --print-config.

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace httpd {

/// As in ASCII; other characters stay.
[[nodiscard]] constexpr char lower(char each) noexcept {
    return each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a') : each;
}

/// Whether two names of fields, of hosts, or two words of a protocol are the same.
[[nodiscard]] bool equal_without_case(std::string_view left, std::string_view right) noexcept;

/// A whole number and a unit: `ms`, `s`, `m` or `h`. Nothing if it is something else, or more than
/// can be counted.
[[nodiscard]] std::optional<std::chrono::nanoseconds>
parse_duration(std::string_view text) noexcept;

/// In the largest unit that leaves a whole number; at least milliseconds, rounded up.
[[nodiscard]] std::string format_duration(std::chrono::nanoseconds duration);

/// A whole number of bytes, or one with the unit `KiB`, `MiB` or `GiB`. Nothing if it is something
/// else, or above 2^63-1.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text) noexcept;

/// A number, or in the largest unit that leaves a whole number.
[[nodiscard]] std::string format_size(std::uint64_t bytes);

/// The word that was probably meant: the one that needs the fewest characters inserted, removed,
/// replaced or swapped with their neighbour. If that is more than a third of the word: one that
/// begins with it, or nothing.
[[nodiscard]] std::string_view closest(std::string_view word,
                                       std::span<const std::string_view> known);

/// The text as TOML writes it, in quotation marks. Bytes that are not UTF-8 or cannot be shown are
/// escaped, so that it is safe to print.
[[nodiscard]] std::string quote(std::string_view text);

/// "a, b or c", for `last` "or" and texts as `format` makes them.
[[nodiscard]] std::string joined(std::span<const std::string_view> texts, std::string_view last,
                                 std::string (*format)(std::string_view));

/// The prefix that `text` means if there are bits behind it: 10.0.0.0/8 for 10.0.0.1/8.
///
/// @pre `text` is an address or a prefix.
[[nodiscard]] std::optional<std::string> without_bits_behind(std::string_view text);

} // namespace httpd
