#include "httpd/serve/forwarded_client.hpp"

#include "httpd/config/text.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace httpd {

namespace {

using simplenet::address_set;
using simplenet::endpoint;
using simplenet::ip_address;
using simplenet::http::fields;

/// What one proxy has told.
struct hop {
    std::optional<endpoint> from;
    std::string_view protocol;
};

std::string_view trimmed(std::string_view text) noexcept {
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`.
std::optional<endpoint> endpoint_of(std::string_view text) {
    if (const auto whole = endpoint::parse(text)) return *whole;
    if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
    if (const auto address = ip_address::parse(text)) return endpoint{*address, 0};
    return std::nullopt;
}

/// Calls `take` with each part of `list`, from the last to the first.
void for_each_part(std::string_view list, char separator, auto take) {
    for (;;) {
        const std::size_t before = list.rfind(separator);
        if (before == std::string_view::npos) return take(trimmed(list));
        take(trimmed(list.substr(before + 1)));
        list = list.substr(0, before);
    }
}

/// The same, with separators in quoted strings being none. Backwards, because only the end is a
/// proxy's: a quote that a client has left open must not swallow what was appended to it.
void for_each_unquoted_part(std::string_view list, char separator, auto take) {
    const auto is_escaped = [&](std::size_t at) {
        const std::size_t other = list.substr(0, at).find_last_not_of('\\');
        return (at - (other == std::string_view::npos ? 0 : other + 1)) % 2 != 0;
    };
    std::size_t end = list.size();
    bool quoted = false;
    for (std::size_t at = list.size(); at-- > 0;) {
        if (list[at] == '"') {
            if (!is_escaped(at)) quoted = !quoted;
        } else if (list[at] == separator && !quoted) {
            take(trimmed(list.substr(at + 1, end - at - 1)));
            end = at;
        }
    }
    take(trimmed(list.substr(0, end)));
}

std::string_view unquoted(std::string_view text) noexcept {
    // Addresses and schemes have nothing to escape.
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
        return text.substr(1, text.size() - 2);
    return text;
}

/// The values of the lines with this name, from the last to the first.
std::vector<std::string_view> lines_of(const fields& asked, std::string_view name) {
    std::vector<std::string_view> lines;
    for (const std::string_view value : asked.all(name))
        lines.push_back(value);
    std::ranges::reverse(lines);
    return lines;
}

/// What the proxies have told, the nearest one first.
std::vector<hop> hops_of_forwarded(const fields& asked) {
    std::vector<hop> hops;
    for (const std::string_view line : lines_of(asked, "Forwarded")) {
        for_each_unquoted_part(line, ',', [&](std::string_view element) {
            hop told;
            for_each_unquoted_part(element, ';', [&](std::string_view pair) {
                const std::size_t equals = std::min(pair.find('='), pair.size());
                const std::string_view name = pair.substr(0, equals);
                const std::string_view text =
                    unquoted(pair.substr(std::min(equals + 1, pair.size())));
                if (equal_without_case(name, "for")) told.from = endpoint_of(text);
                if (equal_without_case(name, "proto")) told.protocol = text;
            });
            hops.push_back(told);
        });
    }
    return hops;
}

std::vector<std::string_view> parts_of(const fields& asked, std::string_view name) {
    std::vector<std::string_view> parts;
    for (const std::string_view line : lines_of(asked, name))
        for_each_part(line, ',', [&](std::string_view part) { parts.push_back(part); });
    return parts;
}

std::vector<hop> hops_of_x_forwarded(const fields& asked) {
    std::vector<hop> hops;
    for (const std::string_view part : parts_of(asked, "X-Forwarded-For"))
        hops.push_back({.from = endpoint_of(part), .protocol = {}});
    // A proxy replaces this, or appends to it; either way the last one is the nearest proxy's.
    const std::vector<std::string_view> protocols = parts_of(asked, "X-Forwarded-Proto");
    for (std::size_t each = 0; each < std::min(hops.size(), protocols.size()); ++each)
        hops[each].protocol = protocols[each];
    return hops;
}

} // namespace

forwarded_client forwarded_client::of(const fields& asked, const address_set& trusted) {
    forwarded_client told;
    const auto learn_protocol = [&](std::string_view protocol) {
        if (equal_without_case(protocol, "https")) told.secure = true;
        if (equal_without_case(protocol, "http")) told.secure = false;
    };
    std::vector<hop> hops = hops_of_x_forwarded(asked);
    const std::vector<std::string_view> protocols = parts_of(asked, "X-Forwarded-Proto");
    const bool speaks_forwarded = hops.empty() && protocols.empty();
    if (speaks_forwarded) hops = hops_of_forwarded(asked);
    for (const hop& at : hops) {
        learn_protocol(at.protocol);
        if (!at.from) break;
        told.peer = at.from;
        if (!trusted.contains(at.from->address())) break;
    }
    if (hops.empty()) {
        if (!protocols.empty()) learn_protocol(protocols.front());
        if (const auto real = asked.find("X-Real-IP")) told.peer = endpoint_of(trimmed(*real));
    }
    return told;
}

} // namespace httpd
