#include "http/codec/framing.hpp"

#include "http/codec/list.hpp"
#include "http/codec/scan.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <optional>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace simplenet::v0::http::detail {

namespace {

constexpr unsigned bad = 400;
constexpr unsigned expectation_failed = 417;
constexpr unsigned not_implemented = 501;

/// 1*DIGIT and at most 2^63 - 1: what a signed number of another recipient can hold, too.
std::optional<std::uint64_t> parse_length(std::string_view text) noexcept {
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    if (text.empty()) return {};
    std::uint64_t length = 0;
    for (const char byte : text) {
        if (!is_in(digit_byte, byte)) return {};
        const auto digit = static_cast<std::uint64_t>(byte - '0');
        if (length > (most - digit) / 10) return {};
        length = length * 10 + digit;
    }
    return length;
}

/// Judges the only Transfer-Encoding. 0: it is `chunked` and nothing else.
unsigned refusal_of_codings(std::string_view value) noexcept {
    bool chunked_is_last = false;
    std::size_t chunked_count = 0;
    std::size_t count = 0;
    const bool all_good = for_each_element(value, [&](std::string_view element) {
        const std::string_view name = trim_blanks(element.substr(0, element.find(';')));
        ++count;
        // A parameter of `chunked` is an error: it defines none (RFC 9112 section 7.1).
        chunked_is_last = iequals(element, "chunked");
        if (iequals(name, "chunked")) ++chunked_count;
        return is_token(name);
    });
    if (!all_good || !chunked_is_last || chunked_count != 1) return bad;
    return count == 1 ? 0 : not_implemented;
}

// --- fields --------------------------------------------------------------------------------------

/// What one pass over the fields finds.
struct gathered {
    unsigned length_count = 0;
    unsigned coding_count = 0;
    unsigned host_count = 0;
    bool close = false;
    bool keep_alive = false;
    bool upgrade_option = false;
    bool upgrade_field = false;
    bool expects_continue = false;
    bool expects_other = false;
    std::string_view length;
    std::string_view coding;
    std::string_view host;
};

void gather_connection(gathered& all, std::string_view value) noexcept {
    // A quoted string is no option; what stands before it counts.
    static_cast<void>(for_each_element(value, [&all](std::string_view option) {
        if (iequals(option, "close")) all.close = true;
        if (iequals(option, "keep-alive")) all.keep_alive = true;
        if (iequals(option, "upgrade")) all.upgrade_option = true;
        return true;
    }));
}

void gather_expectations(gathered& all, std::string_view value) noexcept {
    const bool good = for_each_element(value, [&all](std::string_view expectation) {
        if (iequals(expectation, "100-continue"))
            all.expects_continue = true;
        else if (!expectation.empty())
            all.expects_other = true;
        return true;
    });
    if (!good) all.expects_other = true;
}

gathered gather(std::span<const field_entry> fields, const char* text) noexcept {
    gathered all;
    for (const field_entry& field : fields) {
        const std::string_view name = field.name(text);
        const std::string_view value = field.value(text);
        // Most fields are none of these, and most of those differ in size already.
        switch (name.size()) {
        case 4:
            if (!iequals(name, "host")) break;
            ++all.host_count;
            all.host = value;
            break;
        case 6:
            if (iequals(name, "expect")) gather_expectations(all, value);
            break;
        case 7:
            if (iequals(name, "upgrade") && !value.empty()) all.upgrade_field = true;
            break;
        case 10:
            if (iequals(name, "connection")) gather_connection(all, value);
            break;
        case 14:
            if (!iequals(name, "content-length")) break;
            ++all.length_count;
            all.length = value;
            break;
        case 17:
            if (!iequals(name, "transfer-encoding")) break;
            ++all.coding_count;
            all.coding = value;
            break;
        default:
            break;
        }
    }
    return all;
}

/// What requests and responses have in common. `kind` is none where the fields name no body.
std::expected<framing, unsigned> common_framing(unsigned version, const gathered& all) noexcept {
    framing is;
    is.keep_alive = !all.close && (version != 10 || all.keep_alive);
    is.upgrade = version != 10 && all.upgrade_option && all.upgrade_field;

    if (all.coding_count != 0) {
        if (all.coding_count > 1 || all.length_count != 0 || version == 10)
            return std::unexpected{bad};
        if (const unsigned refusal = refusal_of_codings(all.coding); refusal != 0)
            return std::unexpected{refusal};
        is.kind = framing::kind::chunked;
    } else if (all.length_count != 0) {
        // RFC 9110 section 8.6 allows to merge equal ones; recipients differ in whether they do.
        const auto length = parse_length(all.length);
        if (all.length_count > 1 || !length) return std::unexpected{bad};
        is.kind = framing::kind::length;
        is.length = *length;
    }
    return is;
}

bool is_ipv6(std::string_view text) noexcept {
    // INET6_ADDRSTRLEN counts the terminator.
    std::array<char, INET6_ADDRSTRLEN> terminated{};
    if (text.size() >= terminated.size() || text.contains('\0')) return false;
    std::ranges::copy(text, terminated.begin());
    in6_addr address{};
    return ::inet_pton(AF_INET6, terminated.data(), &address) == 1;
}

bool is_port(std::string_view text) noexcept {
    const auto port = parse_length(text);
    return text.empty() || (port && *port <= 65535);
}

/// *( unreserved / pct-encoded / sub-delims ): names, and IPv4 addresses.
const char* scan_reg_name(const char* at, const char* end) noexcept {
    const auto is_hex = [](char byte) {
        return is_in(digit_byte, byte) || (to_lower(byte) >= 'a' && to_lower(byte) <= 'f');
    };
    for (;;) {
        at = scan_bytes(reg_name_byte, at, end);
        if (end - at < 3 || *at != '%' || !is_hex(at[1]) || !is_hex(at[2])) return at;
        at += 3;
    }
}

} // namespace

bool is_host(std::string_view text) noexcept {
    std::string_view rest;
    if (text.starts_with('[')) {
        // IPvFuture is refused, since no version of it exists; so are zones (RFC 6874), which mean
        // something on the sender's machine only.
        const std::size_t close = text.find(']');
        if (close == text.npos || !is_ipv6(text.substr(1, close - 1))) return false;
        rest = text.substr(close + 1);
    } else {
        const char* const end = text.data() + text.size();
        const char* const name_end = scan_reg_name(text.data(), end);
        if (name_end == text.data()) return false;
        rest = {name_end, end};
    }
    return rest.empty() || (rest.starts_with(':') && is_port(rest.substr(1)));
}

std::expected<framing, unsigned>
request_framing(unsigned version, std::span<const field_entry> fields, const char* text) noexcept {
    const gathered all = gather(fields, text);
    auto is = common_framing(version, all);
    if (!is) return is;

    if (all.host_count > 1 || (all.host_count == 0 && version != 10)) return std::unexpected{bad};
    if (all.host_count == 1 && !is_host(all.host)) return std::unexpected{bad};
    if (all.expects_other) return std::unexpected{expectation_failed};
    // RFC 9110 section 10.1.1: to be ignored in HTTP/1.0.
    is->expects_continue = all.expects_continue && version != 10;
    is->host = all.host;
    return is;
}

std::expected<framing, unsigned> response_framing(unsigned version, unsigned code,
                                                  std::string_view method,
                                                  std::span<const field_entry> fields,
                                                  const char* text) noexcept {
    gathered all = gather(fields, text);
    const bool tunnel = method == "CONNECT" && code / 100 == 2;
    const bool no_body = method == "HEAD" || code / 100 == 1 || code == 204 || code == 304;
    if (no_body || tunnel) {
        all.coding_count = all.length_count = 0;
        all.close = all.close || tunnel;
        return common_framing(version, all);
    }

    auto is = common_framing(version, all);
    if (is && is->kind == framing::kind::none) {
        is->kind = framing::kind::until_close;
        is->keep_alive = false;
    }
    return is;
}

bool forbidden_in_trailers(std::string_view name) noexcept {
    using namespace std::string_view_literals;
    static constexpr std::array names{
        // framing, and the connection
        "content-length"sv, "transfer-encoding"sv, "trailer"sv, "connection"sv, "keep-alive"sv,
        "proxy-connection"sv, "te"sv, "upgrade"sv,
        // routing, and how to process the message
        "host"sv, "expect"sv, "max-forwards"sv, "cache-control"sv, "pragma"sv, "range"sv,
        "if-match"sv, "if-none-match"sv, "if-modified-since"sv, "if-unmodified-since"sv,
        "if-range"sv,
        // authentication
        "authorization"sv, "proxy-authorization"sv, "proxy-authenticate"sv, "www-authenticate"sv,
        "cookie"sv, "set-cookie"sv,
        // the form of the content
        "content-encoding"sv, "content-type"sv, "content-range"sv};
    return std::ranges::any_of(names,
                               [name](std::string_view each) { return iequals(each, name); });
}

} // namespace simplenet::v0::http::detail
