#include "net/host_name.hpp"

#include "ip/text.hpp"
#include "sys/names.hpp"

#include <algorithm>

namespace simplenet::v0::detail {

namespace {

constexpr std::size_t longest_name = 253; // RFC 1035, 2.3.4: 255 on the wire

bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}
bool is_hex_digit(char c) noexcept {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
/// Bytes above 127 are allowed: some databases behind getaddrinfo(3) accept UTF-8.
bool is_blank_or_control(char c) noexcept {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= 0x20 || byte == 0x7f;
}

/// inet_aton(3), and so getaddrinfo(3), reads 127.1, 0x7f.1 and 017700000001 as addresses; a filter
/// that checked the text before us may not have. No DNS name ends in a number.
bool ends_in_number(std::string_view name) noexcept {
    const std::string_view last = name.substr(name.find_last_of('.') + 1);
    if (last.empty()) return false;
    if (std::ranges::all_of(last, is_digit)) return true;
    const bool hex = last.starts_with("0x") || last.starts_with("0X");
    return hex && std::ranges::all_of(last.substr(2), is_hex_digit);
}

/// `address%interface` with the interface's name; empty if the text has another form.
std::optional<result<ip_address>> read_scoped(std::string_view text) {
    const auto percent = text.find('%');
    if (percent == std::string_view::npos) return std::nullopt;
    const auto address = ip_address::parse(text.substr(0, percent));
    if (!address || address->is_v4()) return std::nullopt;
    const auto index = sys::interface_index(std::string{text.substr(percent + 1)});
    if (!index) return fail(index);
    return ip_address::from_bytes(address->bytes().first<16>(), *index);
}

} // namespace

result<host_name> read_host(std::string_view text) {
    if (const auto address = ip_address::parse(text)) return host_name{*address, {}};

    std::string_view name = text;
    if (name.ends_with('.')) name.remove_suffix(1); // the root: not part of the name
    // glibc's getaddrinfo(3) takes a lone `*` for no host at all, and answers with this machine.
    const auto in_no_name = [](char c) {
        return is_blank_or_control(c) || std::string_view{":/[]@*"}.contains(c);
    };
    if (text.find('\0') == std::string_view::npos) {
        if (const auto scoped = read_scoped(text)) {
            if (!*scoped) return fail(*scoped);
            return host_name{**scoped, {}};
        }
    }
    if (name.empty() || name.size() > longest_name || std::ranges::any_of(name, in_no_name) ||
        ends_in_number(name)) {
        return fail(std::errc::invalid_argument);
    }
    return host_name{std::nullopt, std::string{text}};
}

result<std::optional<std::uint16_t>> read_service(std::string_view text) noexcept {
    constexpr std::size_t longest_service = 255;
    // glibc takes a lone `*` for no service, and answers with port 0.
    if (text.empty() || text == "*" || text.size() > longest_service ||
        std::ranges::any_of(text, is_blank_or_control)) {
        return fail(std::errc::invalid_argument);
    }
    // getaddrinfo(3) reads numbers leniently: it would accept +80, and 65616 for 80.
    if (is_digit(text.front()) && std::ranges::all_of(text, is_digit)) {
        const auto port = parse_decimal(text, 65535);
        if (!port) return fail(std::errc::invalid_argument);
        return static_cast<std::uint16_t>(*port);
    }
    if (text.front() == '+' || text.front() == '-') return fail(std::errc::invalid_argument);
    return std::nullopt;
}

} // namespace simplenet::v0::detail
