#include "http/codec/authority.hpp"

#include "http/codec/ascii.hpp"
#include "http/codec/uri_characters.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace simplenet::v0::http::detail {

namespace {

/// inet_pton(3) accepts exactly the IPv6address of RFC 3986.
bool is_v6_address(std::string_view text) noexcept {
    std::array<char, INET6_ADDRSTRLEN> terminated{};
    if (text.size() >= terminated.size() || text.find('\0') != std::string_view::npos) return false;
    std::ranges::copy(text, terminated.begin());
    in6_addr address{};
    return ::inet_pton(AF_INET6, terminated.data(), &address) == 1;
}

/// 1*DIGIT, with leading zeros if the sender likes them.
std::optional<std::uint16_t> read_port(std::string_view text) noexcept {
    std::uint32_t number = 0;
    for (const char each : text) {
        if (!ascii::is_digit(each)) return std::nullopt;
        number = number * 10 + static_cast<std::uint32_t>(each - '0');
        if (number > 65535) return std::nullopt;
    }
    return static_cast<std::uint16_t>(number);
}

} // namespace

std::optional<authority_parts> split_authority(std::string_view text) noexcept {
    authority_parts parts;
    std::string_view rest;
    if (text.starts_with('[')) {
        const std::size_t end = text.find(']');
        if (end == std::string_view::npos) return std::nullopt;
        parts.host = text.substr(1, end - 1);
        parts.is_v6 = true;
        if (!is_v6_address(parts.host)) return std::nullopt;
        rest = text.substr(end + 1);
    } else {
        parts.host = text.substr(0, uri::count_of(text, uri::reg_name));
        if (parts.host.empty()) return std::nullopt;
        rest = text.substr(parts.host.size());
    }
    if (rest.empty()) return parts;
    if (!rest.starts_with(':')) return std::nullopt;
    rest.remove_prefix(1);
    if (rest.empty()) return parts;
    parts.port = read_port(rest);
    if (!parts.port) return std::nullopt;
    return parts;
}

// Every request comes here, and needs no parts.
bool valid_authority(std::string_view text) noexcept {
    if (text.starts_with('[')) return split_authority(text).has_value();
    const std::size_t host = uri::count_of(text, uri::reg_name);
    if (host == 0 || host == text.size()) return host != 0;
    return text[host] == ':' && (host + 1 == text.size() || read_port(text.substr(host + 1)));
}

} // namespace simplenet::v0::http::detail
