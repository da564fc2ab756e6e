#pragma once
// Dates of HTTP, which are in English and in UTC whatever the locale. Layer http/codec, private.

#include <simplenet/core/abi.hpp>

#include <cstddef>
#include <ctime>
#include <optional>
#include <string_view>

namespace simplenet::v0::http::detail {

inline constexpr std::size_t date_size = 29; // "Sun, 06 Nov 1994 08:49:37 GMT"

/// Writes an IMF-fixdate (RFC 9110, section 5.6.7). The form has four digits for the year: times
/// before the year 1 or after 9999 are written as the first or the last second of these.
void format_date(std::time_t time, char (&out)[date_size]) noexcept;

/// Seconds since 1970, behind the exact time by a tick of the kernel, at most 10 ms. No system
/// call. Any thread.
[[nodiscard]] std::time_t now_seconds() noexcept;

/// The time as an IMF-fixdate, written once a second and thread. Valid until the thread's next
/// call. Any thread.
[[nodiscard]] std::string_view date_now() noexcept;

/// Reads the three forms of RFC 9110, section 5.6.7: IMF-fixdate, that of RFC 850, and that of
/// asctime(3). The name of the day must be one, and is otherwise ignored. Second 60 is a leap
/// second, which POSIX time counts as the first second of the next minute.
///
/// @param now  A year of two digits is the one that is at most 50 years after `now`.
/// @return Nothing if `text` is not exactly a date.
[[nodiscard]] std::optional<std::time_t> parse_date(std::string_view text,
                                                    std::time_t now = now_seconds()) noexcept;

} // namespace simplenet::v0::http::detail
