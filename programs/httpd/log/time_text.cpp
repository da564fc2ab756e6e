#include "httpd/log/time_text.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <string_view>

namespace httpd {

namespace {

constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";

constexpr auto two_digits = [] {
    std::array<char, 200> all{};
    for (unsigned value = 0; value < 100; ++value) {
        all[2 * value] = static_cast<char>('0' + value / 10);
        all[2 * value + 1] = static_cast<char>('0' + value % 10);
    }
    return all;
}();

void put_two(char* to, unsigned value) noexcept {
    std::memcpy(to, &two_digits[std::size_t{2} * value], 2);
}

void put_year(char* to, int since_1900) noexcept {
    const auto year = static_cast<unsigned>(since_1900 + 1900);
    put_two(to, year / 100 % 100);
    put_two(to + 2, year % 100);
}

/// The beginning of the quarter of an hour of `seconds`, which may be before 1970.
std::int64_t beginning_of(std::int64_t seconds, std::int64_t quarter) noexcept {
    const std::int64_t rest = seconds % quarter;
    return seconds - (rest < 0 ? rest + quarter : rest);
}

} // namespace

char* time_text::append_apache(char* to, std::chrono::system_clock::time_point at) noexcept {
    const std::int64_t seconds =
        std::chrono::floor<std::chrono::seconds>(at).time_since_epoch().count();
    // Unsigned: a time before the quarter is far behind it.
    auto within = static_cast<std::uint64_t>(seconds - apache_from_);
    if (within >= static_cast<std::uint64_t>(quarter)) {
        apache_from_ = beginning_of(seconds, quarter);
        within = static_cast<std::uint64_t>(seconds - apache_from_);
        const std::time_t begin = apache_from_;
        std::tm parts{};
        ::localtime_r(&begin, &parts);
        std::memcpy(apache_, "[DD/Mon/YYYY:HH:MM:SS +ZZZZ]", apache_size);
        put_two(apache_ + 1, static_cast<unsigned>(parts.tm_mday));
        std::memcpy(apache_ + 4, months.data() + std::ptrdiff_t{3} * parts.tm_mon, 3);
        put_year(apache_ + 8, parts.tm_year);
        put_two(apache_ + 13, static_cast<unsigned>(parts.tm_hour));
        apache_minute_ = static_cast<unsigned>(parts.tm_min);
        const long offset = parts.tm_gmtoff / 60;
        const auto minutes = static_cast<unsigned>(offset < 0 ? -offset : offset);
        apache_[22] = offset < 0 ? '-' : '+';
        put_two(apache_ + 23, minutes / 60);
        put_two(apache_ + 25, minutes % 60);
    }
    const auto rest = static_cast<unsigned>(within);
    std::memcpy(to, apache_, apache_size);
    put_two(to + 16, apache_minute_ + rest / 60);
    put_two(to + 19, rest % 60);
    return to + apache_size;
}

char* time_text::append_iso(char* to, std::chrono::system_clock::time_point at) noexcept {
    const auto whole = std::chrono::floor<std::chrono::seconds>(at);
    const std::int64_t seconds = whole.time_since_epoch().count();
    auto within = static_cast<std::uint64_t>(seconds - iso_from_);
    if (within >= static_cast<std::uint64_t>(quarter)) {
        iso_from_ = beginning_of(seconds, quarter);
        within = static_cast<std::uint64_t>(seconds - iso_from_);
        const std::time_t begin = iso_from_;
        std::tm parts{};
        ::gmtime_r(&begin, &parts);
        std::memcpy(iso_, "YYYY-MM-DDTHH:MM:SS.mmmZ", iso_size);
        put_year(iso_, parts.tm_year);
        put_two(iso_ + 5, static_cast<unsigned>(parts.tm_mon) + 1);
        put_two(iso_ + 8, static_cast<unsigned>(parts.tm_mday));
        put_two(iso_ + 11, static_cast<unsigned>(parts.tm_hour));
        iso_minute_ = static_cast<unsigned>(parts.tm_min);
    }
    const auto rest = static_cast<unsigned>(within);
    const auto milliseconds =
        static_cast<unsigned>(std::chrono::floor<std::chrono::milliseconds>(at - whole).count());
    std::memcpy(to, iso_, iso_size);
    put_two(to + 14, iso_minute_ + rest / 60);
    put_two(to + 17, rest % 60);
    to[20] = static_cast<char>('0' + milliseconds / 100);
    put_two(to + 21, milliseconds % 100);
    return to + iso_size;
}

} // namespace httpd
