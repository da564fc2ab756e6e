// Dates: a text that is read is, but for the name of its day, what strftime(3) writes for the
// result in one of the three forms; and every time can be written and read again.

#include "fuzz/fuzz.hpp"
#include "http/codec/date.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <iomanip>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>

namespace simplenet::v0::fuzz {
namespace {

using namespace http::detail;

std::string written_by_c(std::time_t time, const char* form) {
    std::tm parts{};
    ::gmtime_r(&time, &parts);
    std::ostringstream text;
    text.imbue(std::locale::classic());
    text << std::put_time(&parts, form);
    return text.str();
}

/// What follows the name of the day.
std::string_view behind_day(std::string_view text) {
    return text.substr(std::min(text.find_first_of(", "), text.size()));
}

void check_text(std::string_view text, std::time_t now) {
    const auto time = parse_date(text, now);
    if (!time || text.contains(":60")) return; // the text of a leap second is another minute's

    // Of the C library only years of four digits can be expected to be padded.
    const bool padded = *time >= -30'000'000'000;
    const std::string_view rest = behind_day(text);
    const auto is = [&](const char* form) { return rest == written_by_c(*time, form); };
    FUZZ_CHECK(!padded || is(", %d %b %Y %H:%M:%S GMT") || is(", %d-%b-%y %H:%M:%S GMT") ||
               is(" %b %e %H:%M:%S %Y") || is(" %b %d %H:%M:%S %Y"));
    if (text.contains('-')) FUZZ_CHECK(*time <= now + std::time_t{51} * 366 * 86'400);
}

void check_time(std::time_t time) {
    char text[date_size];
    format_date(time, text);
    const auto read = parse_date({text, date_size});
    FUZZ_CHECK(read.has_value());
    const bool four_digits = time >= -62'135'596'800 && time <= 253'402'300'799;
    FUZZ_CHECK((*read == time) == four_digits);
}

} // namespace
} // namespace simplenet::v0::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace simplenet::fuzz;
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    std::time_t time = 0;
    if (size != 0) std::memcpy(&time, data, std::min(size, sizeof time)); // else `data` may be null
    check_time(time);
    check_time(time % 253'402'300'800);

    constexpr std::time_t year_2030 = 1'893'456'000;
    check_text(text, year_2030);
    for (const std::string_view day : {"Sun", "Sunday"})
        check_text(std::string{day} + std::string{text}, year_2030);
    return 0;
}
