#include "http/codec/date.hpp"

#include "http/codec/ascii.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include <time.h>

namespace simplenet::v0::http::detail {

namespace {

namespace chrono = std::chrono;

constexpr std::time_t first_second = -62'135'596'800; // 0001-01-01 00:00:00
constexpr std::time_t last_second = 253'402'300'799;  // 9999-12-31 23:59:59
constexpr std::time_t seconds_of_day = 86'400;

constexpr std::array<std::string_view, 7> day_names{"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                    "Thursday", "Friday", "Saturday"};
constexpr std::string_view month_names = "JanFebMarAprMayJunJulAugSepOctNovDec";

char* write_padded(char* to, unsigned number, unsigned digits) noexcept {
    for (unsigned at = digits; at > 0; --at) {
        to[at - 1] = static_cast<char>('0' + number % 10);
        number /= 10;
    }
    return to + digits;
}

char* write_text(char* to, std::string_view text) noexcept {
    return std::ranges::copy(text, to).out;
}

/// Takes a date apart from its front. A call that does not find what it expects makes all later
/// ones fail too, so that only succeeded() has to be asked, at the end.
class date_reader {
public:
    explicit date_reader(std::string_view text) noexcept
        : left_{text} {}

    void text(std::string_view expected) noexcept {
        if (!left_.starts_with(expected)) return fail_all();
        left_.remove_prefix(expected.size());
    }
    unsigned number(std::size_t digits) noexcept {
        unsigned number = 0;
        for (; digits > 0; --digits) {
            if (left_.empty() || !ascii::is_digit(left_.front())) {
                fail_all();
                return 0;
            }
            number = number * 10 + static_cast<unsigned>(left_.front() - '0');
            left_.remove_prefix(1);
        }
        return number;
    }
    /// The day of asctime(3): two digits, or a blank and one.
    unsigned padded_number() noexcept {
        if (!left_.starts_with(' ')) return number(2);
        left_.remove_prefix(1);
        return number(1);
    }
    /// 1 to 12.
    unsigned month() noexcept {
        for (unsigned month = 0; month < 12; ++month) {
            if (!left_.starts_with(month_names.substr(month * 3, 3))) continue;
            left_.remove_prefix(3);
            return month + 1;
        }
        fail_all();
        return 0;
    }
    /// Whole, or its first three letters.
    bool day_name(bool whole) noexcept {
        for (const std::string_view name : day_names) {
            const std::string_view written = whole ? name : name.substr(0, 3);
            if (!left_.starts_with(written)) continue;
            left_.remove_prefix(written.size());
            return true;
        }
        return false;
    }
    /// hh:mm:ss, in seconds of the day.
    std::time_t time_of_day() noexcept {
        const unsigned hours = number(2);
        text(":");
        const unsigned minutes = number(2);
        text(":");
        const unsigned seconds = number(2);
        if (hours > 23 || minutes > 59 || seconds > 60) fail_all();
        return std::time_t{hours} * 3600 + std::time_t{minutes} * 60 + std::time_t{seconds};
    }

    [[nodiscard]] bool succeeded() const noexcept { return !failed_ && left_.empty(); }

private:
    void fail_all() noexcept {
        failed_ = true;
        left_ = {};
    }

    std::string_view left_;
    bool failed_ = false;
};

std::optional<std::time_t> time_at(unsigned year, unsigned month, unsigned day,
                                   std::time_t of_day) noexcept {
    const chrono::year_month_day date{chrono::year{static_cast<int>(year)}, chrono::month{month},
                                      chrono::day{day}};
    if (year == 0 || !date.ok()) return std::nullopt;
    const std::time_t days = chrono::sys_days{date}.time_since_epoch().count();
    // The leap second of 9999-12-31, if there is one, has no text.
    return std::min(days * seconds_of_day + of_day, last_second);
}

unsigned year_of(std::time_t time) noexcept {
    const chrono::sys_seconds at{
        chrono::seconds{std::clamp<std::time_t>(time, first_second, last_second)}};
    const chrono::year_month_day date{chrono::floor<chrono::days>(at)};
    return static_cast<unsigned>(static_cast<int>(date.year()));
}

/// "Sun, 06 Nov 1994 08:49:37 GMT".
std::optional<std::time_t> read_fixdate(date_reader from) noexcept {
    from.text(", ");
    const unsigned day = from.number(2);
    from.text(" ");
    const unsigned month = from.month();
    from.text(" ");
    const unsigned year = from.number(4);
    from.text(" ");
    const std::time_t of_day = from.time_of_day();
    from.text(" GMT");
    if (!from.succeeded()) return std::nullopt;
    return time_at(year, month, day, of_day);
}

/// "Sunday, 06-Nov-94 08:49:37 GMT".
std::optional<std::time_t> read_rfc850(date_reader from, std::time_t now) noexcept {
    from.text(", ");
    const unsigned day = from.number(2);
    from.text("-");
    const unsigned month = from.month();
    from.text("-");
    const unsigned of_century = from.number(2);
    from.text(" ");
    const std::time_t of_day = from.time_of_day();
    from.text(" GMT");
    if (!from.succeeded()) return std::nullopt;

    // The last such year that is not more than 50 years ahead. 29 February may exist in one century
    // and not in the next one, which is why the century is chosen by the year alone.
    now = std::max<std::time_t>(now, 0); // a clock that was never set
    const unsigned latest = year_of(now) + 50;
    const unsigned year = latest - (latest - of_century) % 100;
    const auto time = time_at(year, month, day, of_day);
    if (!time || year != latest) return time;
    // Exactly 50 years ahead by the year: the rest of the date decides.
    const std::time_t into_this_year = now - *time_at(year_of(now), 1, 1, 0);
    const std::time_t into_that_year = *time - *time_at(year, 1, 1, 0);
    return into_that_year > into_this_year ? time_at(year - 100, month, day, of_day) : time;
}

/// "Sun Nov  6 08:49:37 1994".
std::optional<std::time_t> read_asctime(date_reader from) noexcept {
    from.text(" ");
    const unsigned month = from.month();
    from.text(" ");
    const unsigned day = from.padded_number();
    from.text(" ");
    const std::time_t of_day = from.time_of_day();
    from.text(" ");
    const unsigned year = from.number(4);
    if (!from.succeeded()) return std::nullopt;
    return time_at(year, month, day, of_day);
}

} // namespace

void format_date(std::time_t time, char (&out)[date_size]) noexcept {
    const chrono::sys_seconds at{
        chrono::seconds{std::clamp<std::time_t>(time, first_second, last_second)}};
    const auto midnight = chrono::floor<chrono::days>(at);
    const chrono::year_month_day date{midnight};
    const auto of_day = static_cast<unsigned>((at - midnight).count());

    char* to = write_text(out, day_names[chrono::weekday{midnight}.c_encoding()].substr(0, 3));
    to = write_text(to, ", ");
    to = write_padded(to, static_cast<unsigned>(date.day()), 2);
    *to++ = ' ';
    to = write_text(to, month_names.substr((static_cast<unsigned>(date.month()) - 1) * 3, 3));
    *to++ = ' ';
    to = write_padded(to, static_cast<unsigned>(static_cast<int>(date.year())), 4);
    *to++ = ' ';
    to = write_padded(to, of_day / 3600, 2);
    *to++ = ':';
    to = write_padded(to, of_day / 60 % 60, 2);
    *to++ = ':';
    to = write_padded(to, of_day % 60, 2);
    write_text(to, " GMT");
}

std::time_t now_seconds() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now); // in the vDSO; cannot fail for this clock
    return now.tv_sec;
}

std::string_view date_now() noexcept {
    struct written_date {
        std::time_t second = -1;
        char text[date_size] = {};
    };
    static constinit thread_local written_date last;
    const std::time_t now = now_seconds();
    if (now != last.second) {
        format_date(now, last.text);
        last.second = now;
    }
    return {last.text, date_size};
}

std::optional<std::time_t> parse_date(std::string_view text, std::time_t now) noexcept {
    date_reader reader{text};
    const char behind_name = text.size() > 3 ? text[3] : '\0';
    const bool whole_name = behind_name != ',' && behind_name != ' ';
    if (!reader.day_name(whole_name)) return std::nullopt;
    if (whole_name) return read_rfc850(reader, now);
    return behind_name == ',' ? read_fixdate(reader) : read_asctime(reader);
}

} // namespace simplenet::v0::http::detail
