#include "httpd/config/text.hpp"

#include <simplenet/ip/ip_address.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <limits>
#include <vector>

namespace httpd {
namespace {

struct unit {
    std::string_view name;
    std::uint64_t factor;
};

// From small to large.
constexpr std::array duration_units{unit{"ms", 1'000'000}, unit{"s", 1'000'000'000},
                                    unit{"m", 60'000'000'000}, unit{"h", 3'600'000'000'000}};
constexpr std::array size_units{unit{"", 1}, unit{"KiB", std::uint64_t{1} << 10},
                                unit{"MiB", std::uint64_t{1} << 20},
                                unit{"GiB", std::uint64_t{1} << 30}};

std::optional<std::uint64_t> parse_with_unit(std::string_view text,
                                             std::span<const unit> units) noexcept {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc{} || rest == text.data()) return std::nullopt;

    const std::string_view name{rest, static_cast<std::size_t>(end - rest)};
    const auto found = std::ranges::find(units, name, &unit::name);
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    if (found == units.end() || number > most / found->factor) return std::nullopt;
    return number * found->factor;
}

std::string format_with_unit(std::uint64_t number, std::span<const unit> units) {
    std::size_t best = 0;
    while (number != 0 && best + 1 < units.size() && number % units[best + 1].factor == 0)
        ++best;
    return std::to_string(number / units[best].factor) + std::string{units[best].name};
}

// The optimal string alignment distance: each insertion, removal, replacement or swap of
// neighbours costs one.
std::size_t distance(std::string_view from, std::string_view to) {
    std::vector<std::vector<std::size_t>> cost(from.size() + 1,
                                               std::vector<std::size_t>(to.size() + 1));
    for (std::size_t i = 0; i <= from.size(); ++i)
        for (std::size_t j = 0; j <= to.size(); ++j) {
            if (i == 0 || j == 0) {
                cost[i][j] = i + j;
                continue;
            }
            const std::size_t replaced = from[i - 1] == to[j - 1] ? 0 : 1;
            cost[i][j] =
                std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + replaced});
            if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
                cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
        }
    return cost[from.size()][to.size()];
}

// The number of bytes of the UTF-8 sequence at the front of `text`; 0 if there is none. RFC 3629,
// section 4, but for noncharacters, which are harmless.
std::size_t utf8_length(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    const std::size_t length = first < 0x80                    ? 1
                               : first >= 0xc2 && first < 0xe0 ? 2
                               : first >= 0xe0 && first < 0xf0 ? 3
                               : first >= 0xf0 && first < 0xf5 ? 4
                                                               : 0;
    if (length == 0 || length > text.size()) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    if (first == 0xe0 && byte(1) < 0xa0) return 0;  // too long a form
    if (first == 0xed && byte(1) >= 0xa0) return 0; // surrogates
    if (first == 0xf0 && byte(1) < 0x90) return 0;  // too long a form
    if (first == 0xf4 && byte(1) >= 0x90) return 0; // above U+10FFFF
    return length;
}

void append_shown(std::string& to, unsigned char byte) {
    constexpr std::string_view digits = "0123456789abcdef";
    to += "\\u00";
    to += digits[byte >> 4];
    to += digits[byte & 15];
}

} // namespace

bool equal_without_case(std::string_view left, std::string_view right) noexcept {
    return std::ranges::equal(left, right, {}, lower, lower);
}

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) noexcept {
    const auto count = parse_with_unit(text, duration_units);
    if (!count) return std::nullopt;
    return std::chrono::nanoseconds{static_cast<std::int64_t>(*count)};
}

std::string format_duration(std::chrono::nanoseconds duration) {
    const auto whole = std::chrono::ceil<std::chrono::milliseconds>(duration);
    const std::chrono::nanoseconds rounded = whole;
    if (rounded.count() <= 0) return "0s";
    return format_with_unit(static_cast<std::uint64_t>(rounded.count()), duration_units);
}

std::optional<std::uint64_t> parse_size(std::string_view text) noexcept {
    return parse_with_unit(text, size_units);
}

std::string format_size(std::uint64_t bytes) {
    return format_with_unit(bytes, size_units);
}

std::string_view closest(std::string_view word, std::span<const std::string_view> known) {
    // Nobody misspells so long a word, and the time grows with its square.
    if (word.size() > 100) return {};
    std::string_view best;
    std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
    for (const std::string_view each : known) {
        const std::size_t steps = distance(word, each);
        if (steps >= least) continue;
        least = steps;
        best = each;
    }
    if (!best.empty() || word.size() < 3) return best;
    const auto whole =
        std::ranges::find_if(known, [&](std::string_view each) { return each.starts_with(word); });
    return whole == known.end() ? best : *whole;
}

std::string quote(std::string_view text) {
    std::string result = "\"";
    while (!text.empty()) {
        const auto byte = static_cast<unsigned char>(text.front());
        const std::size_t length = utf8_length(text);
        if (text.front() == '"' || text.front() == '\\') {
            result += '\\';
            result += text.front();
        } else if (text.front() == '\n') {
            result += "\\n";
        } else if (text.front() == '\t') {
            result += "\\t";
        } else if (length == 0 || byte < 0x20 || byte == 0x7f) {
            append_shown(result, byte);
        } else if (byte == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0) {
            append_shown(result, static_cast<unsigned char>(text[1])); // controls, too
        } else {
            result += text.substr(0, length);
        }
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    result += '"';
    return result;
}

std::string joined(std::span<const std::string_view> texts, std::string_view last,
                   std::string (*format)(std::string_view)) {
    std::string all;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (i > 0 && i + 1 == texts.size())
            all.append(" ").append(last).append(" ");
        else if (i > 0)
            all += ", ";
        all += format(texts[i]);
    }
    return all;
}

std::optional<std::string> without_bits_behind(std::string_view text) {
    const std::size_t slash = text.find('/');
    const auto address = simplenet::ip_address::parse(text.substr(0, slash));
    if (slash == text.npos || !address) return std::nullopt;
    unsigned bits = 0;
    std::from_chars(text.data() + slash + 1, text.data() + text.size(), bits);
    std::array<std::byte, 16> kept{};
    std::ranges::copy(address->bytes(), kept.begin());
    for (std::byte& each : kept) {
        const unsigned here = std::min(bits, 8U);
        each &= std::byte{static_cast<unsigned char>(0xff00U >> here)};
        bits -= here;
    }
    const auto meant =
        address->is_v4() ? simplenet::ip_address::from_bytes(std::span{kept}.first<4>())
                         : simplenet::ip_address::from_bytes(std::span{kept}, address->scope_id());
    if (meant == *address) return std::nullopt;
    return meant.to_string() + std::string{text.substr(slash)};
}

} // namespace httpd
