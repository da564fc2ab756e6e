#include "ip/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

namespace simplenet::v0::detail {

namespace {

struct run {
    std::size_t begin = 0;
    std::size_t size = 0;

    [[nodiscard]] std::size_t end() const noexcept { return begin + size; }
};

/// The groups that `::` replaces: the longest run of zeros, the first of equal runs, and never a
/// single group (RFC 5952 section 4.2).
run longest_zero_run(std::span<const std::uint16_t> words) noexcept {
    run longest{.begin = words.size()};
    for (std::size_t at = 0; at < words.size(); ++at) {
        const std::size_t begin = at;
        while (at < words.size() && words[at] == 0)
            ++at;
        if (at - begin >= 2 && at - begin > longest.size) longest = {begin, at - begin};
    }
    return longest;
}

char* write_dotted(char* to, std::span<const std::byte, 4> octets) noexcept {
    for (std::size_t at = 0; at < octets.size(); ++at) {
        if (at != 0) *to++ = '.';
        to = write_decimal(to, std::to_integer<std::uint32_t>(octets[at]));
    }
    return to;
}

char* write_v6(char* to, std::span<const std::byte, 16> bytes) noexcept {
    std::array<std::uint16_t, 8> words;
    for (std::size_t at = 0; at < words.size(); ++at) {
        words[at] = static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[2 * at]) << 8U |
                                               std::to_integer<unsigned>(bytes[2 * at + 1]));
    }
    const run zeros = longest_zero_run(words);
    for (std::size_t at = 0; at < words.size();) {
        if (at == zeros.begin) {
            *to++ = ':';
            *to++ = ':';
            at = zeros.end();
            continue;
        }
        if (at != 0 && at != zeros.end()) *to++ = ':';
        to = std::to_chars(to, to + 4, words[at], 16).ptr;
        ++at;
    }
    return to;
}

} // namespace

std::optional<std::uint32_t> parse_decimal(std::string_view text, std::uint32_t max) noexcept {
    if (text.empty() || (text.size() > 1 && text.front() == '0')) return std::nullopt;

    std::uint64_t number = 0; // wide enough for one digit more than any max
    for (const char digit : text) {
        if (digit < '0' || digit > '9') return std::nullopt;
        number = number * 10 + static_cast<unsigned>(digit - '0');
        if (number > max) return std::nullopt;
    }
    return static_cast<std::uint32_t>(number);
}

char* write_decimal(char* to, std::uint32_t number) noexcept {
    return std::to_chars(to, to + 10, number).ptr;
}

char* write_address(char* to, const ip_address& address) noexcept {
    const std::span bytes = address.bytes();
    if (address.is_v4()) return write_dotted(to, bytes.first<4>());

    if (address.is_v4_mapped()) {
        constexpr std::string_view prefix = "::ffff:";
        to = std::ranges::copy(prefix, to).out;
        to = write_dotted(to, bytes.last<4>());
    } else {
        to = write_v6(to, bytes.first<16>());
    }
    if (address.scope_id() == 0) return to;

    *to++ = '%';
    return write_decimal(to, address.scope_id());
}

} // namespace simplenet::v0::detail
