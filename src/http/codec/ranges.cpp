#include "http/codec/ranges.hpp"

#include "http/codec/ascii.hpp"
#include "http/codec/list.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace simplenet::v0::http::detail {

namespace {

/// A number too large for 64 bits is as good as the largest: no representation has so many bytes.
/// @return Nothing if `text` is not 1*DIGIT.
std::optional<std::uint64_t> read_position(std::string_view text) noexcept {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    if (text.empty()) return std::nullopt;
    std::uint64_t number = 0;
    for (const char each : text) {
        if (!ascii::is_digit(each)) return std::nullopt;
        const auto digit = static_cast<std::uint64_t>(each - '0');
        number = number > (most - digit) / 10 ? most : number * 10 + digit;
    }
    return number;
}

/// One range-spec.
/// @return Nothing if it is malformed; a size of 0 if it cannot be satisfied.
std::optional<byte_range> read_range(std::string_view text, std::uint64_t size) noexcept {
    const auto behind = ascii::cut_behind(text, '-');
    if (!behind) return std::nullopt;
    if (text.empty()) {
        const auto suffix = read_position(*behind);
        if (!suffix) return std::nullopt;
        const std::uint64_t length = std::min(*suffix, size);
        return byte_range{size - length, length};
    }
    const auto first = read_position(text);
    const auto last =
        behind->empty() ? std::numeric_limits<std::uint64_t>::max() : read_position(*behind);
    if (!first || !last || *last < *first) return std::nullopt;
    if (*first >= size) return byte_range{};
    return byte_range{*first, std::min(*last, size - 1) - *first + 1};
}

bool overlap(const byte_range& left, const byte_range& right) noexcept {
    return left.first < right.first + right.size && right.first < left.first + left.size;
}

bool overlap_any(std::span<const byte_range> ranges) noexcept {
    for (std::size_t at = 0; at < ranges.size(); ++at)
        for (std::size_t other = at + 1; other < ranges.size(); ++other)
            if (overlap(ranges[at], ranges[other])) return true;
    return false;
}

char* write_range_text(char* to, std::string_view text) noexcept {
    return std::ranges::copy(text, to).out;
}

char* write_position(char* to, std::uint64_t number) noexcept {
    constexpr std::size_t digits = 20; // of 2^64 - 1
    return std::to_chars(to, to + digits, number).ptr;
}

} // namespace

requested_ranges parse_ranges(std::string_view value, std::uint64_t size) noexcept {
    using verdict = requested_ranges::verdict;
    constexpr requested_ranges ignored;
    const auto set = ascii::cut_behind(value, '=');
    if (!set || !iequals(value, "bytes")) return ignored;

    requested_ranges found{.is = verdict::unsatisfiable};
    std::size_t asked = 0;
    const auto add = [&](std::string_view element) {
        if (element.empty()) return true; // RFC 9110, section 5.6.1.2
        const auto range = read_range(element, size);
        if (!range || ++asked > max_byte_ranges) return false;
        if (range->size == 0) return size != 0 || !element.starts_with('-');
        found.ranges[found.count++] = *range;
        return true;
    };
    if (!for_each_element(*set, add) || asked == 0 || overlap_any(found.list())) return ignored;
    if (found.count != 0) found.is = verdict::satisfiable;
    return found;
}

std::string_view write_content_range(std::span<char, max_content_range> to, byte_range range,
                                     std::uint64_t size) noexcept {
    char* end = write_range_text(to.data(), "bytes ");
    end = write_position(end, range.first);
    *end++ = '-';
    end = write_position(end, range.first + range.size - 1);
    *end++ = '/';
    end = write_position(end, size);
    return {to.data(), end};
}

std::string_view write_unsatisfied_range(std::span<char, max_content_range> to,
                                         std::uint64_t size) noexcept {
    char* end = write_range_text(to.data(), "bytes */");
    end = write_position(end, size);
    return {to.data(), end};
}

} // namespace simplenet::v0::http::detail
