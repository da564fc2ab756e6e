#include <simplenet/ip/ip_address.hpp>

#include "ip/text.hpp"

#include <limits>
#include <optional>

namespace simplenet::v0 {

namespace {

bool parse_v4(std::string_view text, std::span<std::byte, 4> into) noexcept {
    for (std::size_t at = 0; at < into.size(); ++at) {
        const bool last = at + 1 == into.size();
        const std::size_t end = last ? text.size() : text.find('.');
        if (end == text.npos) return false;

        const auto octet = detail::parse_decimal(text.substr(0, end), 255);
        if (!octet) return false;

        into[at] = static_cast<std::byte>(*octet);
        text.remove_prefix(last ? end : end + 1);
    }
    return true;
}

std::optional<unsigned> hex_digit(char digit) noexcept {
    if (digit >= '0' && digit <= '9') return digit - '0';
    if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
    return std::nullopt;
}

bool parse_group(std::string_view text, std::span<std::byte, 2> into) noexcept {
    if (text.empty() || text.size() > 4) return false;

    unsigned group = 0;
    for (const char character : text) {
        const auto digit = hex_digit(character);
        if (!digit) return false;
        group = group << 4U | *digit;
    }
    into[0] = static_cast<std::byte>(group >> 8U);
    into[1] = static_cast<std::byte>(group & 0xffU);
    return true;
}

enum class dotted_tail { refused, allowed };

/// Parses groups without a `::`; there may be none. Returns the number of bytes.
std::optional<std::size_t> parse_groups(std::string_view text, std::span<std::byte, 16> into,
                                        dotted_tail tail) noexcept {
    std::size_t used = 0;
    if (text.empty()) return used;

    while (true) {
        const std::size_t colon = text.find(':');
        const std::string_view group = text.substr(0, colon);

        if (colon == text.npos && tail == dotted_tail::allowed && group.contains('.')) {
            if (used > 12 || !parse_v4(group, into.subspan(used).first<4>())) return std::nullopt;
            return used + 4;
        }
        if (used > 14 || !parse_group(group, into.subspan(used).first<2>())) return std::nullopt;
        used += 2;

        if (colon == text.npos) return used;
        text.remove_prefix(colon + 1);
    }
}

bool parse_v6(std::string_view text, std::span<std::byte, 16> into) noexcept {
    const std::size_t gap = text.find("::");
    if (gap == text.npos) return parse_groups(text, into, dotted_tail::allowed) == into.size();

    // A second `::` leaves an empty group in the tail, which parse_groups rejects.
    std::array<std::byte, 16> after{};
    const auto head_size = parse_groups(text.substr(0, gap), into, dotted_tail::refused);
    const auto tail_size = parse_groups(text.substr(gap + 2), after, dotted_tail::allowed);
    if (!head_size || !tail_size) return false;

    // RFC 4291 section 2.2: `::` stands for at least one group.
    if (*head_size + *tail_size > into.size() - 2) return false;
    std::ranges::copy(std::span{after}.first(*tail_size), into.last(*tail_size).begin());
    return true;
}

} // namespace

result<ip_address> ip_address::parse(std::string_view text) noexcept {
    ip_address parsed;
    const std::span bytes{parsed.bytes_};
    if (!text.contains(':')) {
        if (!parse_v4(text, bytes.first<4>())) return fail(std::errc::invalid_argument);
        return parsed;
    }

    parsed.family_ = family::v6;
    if (const std::size_t percent = text.find('%'); percent != text.npos) {
        const auto zone = detail::parse_decimal(text.substr(percent + 1),
                                                std::numeric_limits<std::uint32_t>::max());
        if (!zone) return fail(std::errc::invalid_argument);

        parsed.scope_id_ = *zone;
        text = text.substr(0, percent);
    }
    if (!parse_v6(text, bytes)) return fail(std::errc::invalid_argument);
    return parsed;
}

std::string ip_address::to_string() const {
    std::array<char, detail::max_address_text> text;
    return {text.data(), detail::write_address(text.data(), *this)};
}

} // namespace simplenet::v0

std::size_t
std::hash<simplenet::ip_address>::operator()(const simplenet::ip_address& address) const noexcept {
    const std::span bytes = address.bytes();
    // The length distinguishes IPv4 from IPv6.
    const std::string_view text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    return simplenet::detail::combine_hashes(std::hash<std::string_view>{}(text),
                                             address.scope_id());
}
