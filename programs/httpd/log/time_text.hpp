#pragma once
// The times in the logs, as text. Used by the formats.

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace httpd {

/// Turns times into text. Keeps the text of a quarter of an hour, in which no time zone changes:
/// the rest is two divisions. One thread.
class time_text {
public:
    static constexpr std::size_t apache_size = 28; ///< "[10/Oct/2000:13:55:36 -0700]"
    static constexpr std::size_t iso_size = 24;    ///< "2000-10-10T20:55:36.123Z"

    /// In the local time zone. Writes apache_size bytes; returns the end.
    char* append_apache(char* to, std::chrono::system_clock::time_point at) noexcept;
    /// In UTC, with milliseconds. Writes iso_size bytes; returns the end.
    char* append_iso(char* to, std::chrono::system_clock::time_point at) noexcept;

private:
    static constexpr std::int64_t quarter = 900;

    // Beginnings of the quarters whose texts are here, in seconds since 1970.
    std::int64_t apache_from_ = -quarter - 1;
    std::int64_t iso_from_ = -quarter - 1;
    unsigned apache_minute_ = 0; // at the beginning of the quarter
    unsigned iso_minute_ = 0;
    char apache_[apache_size] = {};
    char iso_[iso_size] = {};
};

} // namespace httpd
