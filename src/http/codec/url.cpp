#include "http/codec/url.hpp"

#include "http/codec/ascii.hpp"
#include "http/codec/authority.hpp"
#include "http/codec/list.hpp"
#include "http/codec/uri_characters.hpp"

#include <array>
#include <cstddef>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace simplenet::v0::http::detail {

namespace {

/// The parts of a reference (RFC 3986, appendix B), without its fragment.
struct reference_parts {
    std::optional<std::string_view> scheme;
    std::optional<std::string_view> authority;
    std::string_view path;
    std::optional<std::string_view> query;
    bool has_fragment = false;
};

std::uint16_t default_port(bool secure) noexcept {
    return secure ? 443 : 80;
}

std::optional<std::string_view> take_scheme(std::string_view& text) noexcept {
    const std::size_t end = text.find_first_of(":/?#");
    if (end == std::string_view::npos || text[end] != ':') return std::nullopt;
    const std::string_view scheme = text.substr(0, end);
    text.remove_prefix(end + 1);
    return scheme;
}

/// @return Nothing if a part has characters that it must not have. The authority is not checked.
std::optional<reference_parts> split_reference(std::string_view text) noexcept {
    reference_parts parts;
    if (const auto fragment = ascii::cut_behind(text, '#')) {
        parts.has_fragment = true;
        if (!uri::consists_of(*fragment, uri::query)) return std::nullopt;
    }
    parts.query = ascii::cut_behind(text, '?');
    parts.scheme = take_scheme(text);
    if (text.starts_with("//")) {
        text.remove_prefix(2);
        parts.authority = text.substr(0, text.find('/'));
        text.remove_prefix(parts.authority->size());
    }
    parts.path = text;
    if (!uri::consists_of(parts.path, uri::path)) return std::nullopt;
    if (parts.query && !uri::consists_of(*parts.query, uri::query)) return std::nullopt;
    return parts;
}

/// RFC 3986, section 5.2.4.
///
/// @pre `path` begins with "/".
std::string without_dot_segments(std::string_view path) {
    std::string out;
    out.reserve(path.size());
    for (std::string_view left = path; !left.empty();) {
        const std::size_t end = left.find('/', 1);
        const bool last = end == std::string_view::npos;
        const std::string_view segment = left.substr(0, end); // with the slash before it
        left.remove_prefix(segment.size());
        const bool up = segment == "/..";
        if (up && !out.empty()) out.resize(out.rfind('/'));
        if (!up && segment != "/.")
            out += segment;
        else if (last)
            out += '/';
    }
    return out;
}

/// @pre `text` is an IPv6 address.
std::string canonical_v6(std::string_view text) {
    in6_addr address{};
    std::array<char, INET6_ADDRSTRLEN> written{};
    (void)::inet_pton(AF_INET6, std::string{text}.c_str(), &address);
    return ::inet_ntop(AF_INET6, &address, written.data(), written.size());
}

bool read_authority(std::string_view text, url& into) {
    const auto parts = split_authority(text);
    if (!parts || parts->port == 0) return false;
    into.port = parts->port.value_or(default_port(into.secure));
    if (parts->is_v6) {
        into.host = canonical_v6(parts->host);
        return true;
    }
    if (parts->host.find('%') != std::string_view::npos) return false;
    into.host = parts->host;
    for (char& each : into.host)
        each = to_lower(each);
    return true;
}

std::string target_of(std::string_view path, std::optional<std::string_view> query) {
    std::string target = path.empty() ? "/" : without_dot_segments(path);
    if (query) (target += '?') += *query;
    return target;
}

std::optional<url> read_url(const reference_parts& parts, std::string_view plain,
                            std::string_view secure) {
    if (!parts.scheme || !parts.authority) return std::nullopt;
    url read;
    read.secure = iequals(*parts.scheme, secure);
    if (!read.secure && !iequals(*parts.scheme, plain)) return std::nullopt;
    if (!read_authority(*parts.authority, read)) return std::nullopt;
    read.target = target_of(parts.path, parts.query);
    return read;
}

} // namespace

std::optional<url> parse_url(std::string_view text) {
    const auto parts = split_reference(text);
    if (!parts) return std::nullopt;
    return read_url(*parts, "http", "https");
}

std::optional<url> parse_websocket_url(std::string_view text) {
    const auto parts = split_reference(text);
    if (!parts || parts->has_fragment) return std::nullopt;
    return read_url(*parts, "ws", "wss");
}

std::optional<url> resolve(const url& base, std::string_view reference) {
    auto parts = split_reference(reference);
    if (!parts) return std::nullopt;
    // A scheme alone, as in "http:g", is not ignored: section 5.2.2, strict.
    if (parts->scheme) return read_url(*parts, "http", "https");
    if (parts->authority) {
        parts->scheme = base.secure ? "https" : "http";
        return read_url(*parts, "http", "https");
    }

    std::string_view base_path = base.target;
    const auto base_query = ascii::cut_behind(base_path, '?');
    url resolved = base;
    if (parts->path.empty()) {
        resolved.target = target_of(base_path, parts->query ? parts->query : base_query);
    } else if (parts->path.starts_with('/')) {
        resolved.target = target_of(parts->path, parts->query);
    } else {
        std::string merged{base_path.substr(0, base_path.rfind('/') + 1)};
        merged += parts->path;
        resolved.target = target_of(merged, parts->query);
    }
    return resolved;
}

std::string authority_of(const url& of) {
    const bool literal = of.host.find(':') != std::string::npos;
    std::string text = literal ? '[' + of.host + ']' : of.host;
    if (of.port != default_port(of.secure)) (text += ':') += std::to_string(of.port);
    return text;
}

std::string origin_of(const url& of) {
    return (of.secure ? "https://" : "http://") + authority_of(of);
}

std::string text_of(const url& of) {
    return origin_of(of) + of.target;
}

} // namespace simplenet::v0::http::detail
