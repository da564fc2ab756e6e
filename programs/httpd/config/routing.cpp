#include "httpd/config/routing.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace httpd {

bool matches(const path_match& match, std::string_view path) noexcept {
    switch (match.kind) {
    case path_match::form::prefix:
        return path.starts_with(match.text);
    case path_match::form::suffix:
        return path.ends_with(match.text);
    case path_match::form::exact:
        break;
    }
    return path == match.text;
}

namespace {

/// Whether a segment of `path` ends in `suffix`, and another one follows.
bool goes_on_behind(std::string_view path, std::string_view suffix) noexcept {
    for (std::size_t at = 0; (at = path.find(suffix, at)) != std::string_view::npos;) {
        at += suffix.size();
        if (path.substr(at).starts_with('/')) return true;
    }
    return false;
}

} // namespace

bool takes(const route& route, std::string_view path) noexcept {
    if (matches(route.match, path)) return true;
    return route.path_info && route.action == route_action::fastcgi &&
           route.match.kind == path_match::form::suffix && goes_on_behind(path, route.match.text);
}

const route* route_of(const site& site, std::string_view path) noexcept {
    const route* first = nullptr;
    for (const route& each : site.routes) {
        if (!takes(each, path)) continue;
        if (each.match.kind == path_match::form::exact) return &each;
        if (first == nullptr) first = &each;
    }
    return first;
}

namespace {

constexpr std::string_view encoded_slash = "%2F";

bool is_read_in_two_ways(std::string_view path) noexcept {
    constexpr auto none = std::string_view::npos;
    return path.find(';') != none || path.find('\\') != none || path.find(encoded_slash) != none;
}

/// How a server may read a path. Parameters are what follows a `;` in a segment.
struct path_reading {
    enum class parameters : std::uint8_t { kept, dropped_first, dropped_last };
    parameters with;
    bool decodes_slashes;
    bool turns_backslashes;
};

// Several slashes are one, as in a path that is normalised.
void append_to_path(std::string& path, char next) {
    if (next != '/' || !path.ends_with('/')) path += next;
}

std::string without_parameters(std::string_view path) {
    std::string read;
    bool is_dropped = false;
    for (const char each : path) {
        if (each == ';' || each == '/') is_dropped = each == ';';
        if (!is_dropped) append_to_path(read, each);
    }
    return read;
}

std::string with_slashes(std::string_view path, const path_reading& how) {
    std::string read;
    while (!path.empty()) {
        const bool is_encoded = how.decodes_slashes && path.starts_with(encoded_slash);
        const bool is_turned = how.turns_backslashes && path.starts_with('\\');
        append_to_path(read, is_encoded || is_turned ? '/' : path.front());
        path.remove_prefix(is_encoded ? encoded_slash.size() : 1);
    }
    return read;
}

// Linear in the length of the path, which is a client's.
std::string read_by(const path_reading& how, std::string_view path) {
    using parameters = path_reading::parameters;
    if (how.with == parameters::dropped_first) return with_slashes(without_parameters(path), how);
    std::string read = with_slashes(path, how);
    return how.with == parameters::dropped_last ? without_parameters(read) : read;
}

bool has_dot_segment(std::string_view path) noexcept {
    while (!path.empty()) {
        path.remove_prefix(1); // the slash before the segment
        const std::string_view segment = path.substr(0, path.find('/'));
        if (segment == "." || segment == "..") return true;
        path.remove_prefix(segment.size());
    }
    return false;
}

/// Whether `other`, or the site if it is null, asks of a client what `taken` does not.
bool asks_more(const site& site, const route& taken, const route* other) {
    // One that neither states is the site's for both.
    const auto differs = [&](auto member, const auto& of_site, auto asks) {
        const bool is_stated = other != nullptr && other->*member;
        if (!is_stated && !(taken.*member)) return false;
        return asks(is_stated ? *(other->*member) : of_site);
    };
    const auto has_texts = [](const addresses& one) { return !one.texts.empty(); };
    return differs(&route::allow, site.allow, has_texts) ||
           differs(&route::deny, site.deny, has_texts) ||
           differs(&route::auth, site.auth,
                   [](const authentication& one) { return !one.file.empty(); }) ||
           differs(&route::rate, site.rate,
                   [](const rate_limit& one) { return one.requests != 0; });
}

} // namespace

bool may_skip_a_guard(const site& site, const route& taken, std::string_view path) {
    if (!is_read_in_two_ways(path)) return false;
    using parameters = path_reading::parameters;
    for (const parameters with :
         {parameters::kept, parameters::dropped_first, parameters::dropped_last}) {
        for (const bool decodes : {false, true}) {
            for (const bool turns : {false, true}) {
                const std::string read = read_by({with, decodes, turns}, path);
                const auto skips = [&](const route* other) {
                    return other != &taken && asks_more(site, taken, other);
                };
                if (!has_dot_segment(read)) {
                    if (skips(route_of(site, read))) return true;
                    continue;
                }
                if (skips(nullptr) || std::ranges::any_of(site.routes, [&](const route& each) {
                        return skips(&each);
                    }))
                    return true;
            }
        }
    }
    return false;
}

std::string_view wildcard_of(const path_match& match, std::string_view path) noexcept {
    if (match.kind == path_match::form::exact) return {};
    if (match.kind == path_match::form::prefix)
        path.remove_prefix(match.text.size());
    else
        path.remove_suffix(match.text.size());
    while (path.starts_with('/'))
        path.remove_prefix(1);
    return path;
}

bool covers(const path_match& first, const path_match& second) noexcept {
    using form = path_match::form;
    if (first.kind == form::exact || second.kind == form::exact) return first == second;
    if (first.kind == form::prefix)
        return second.kind == form::prefix ? second.text.starts_with(first.text)
                                           : first.text == "/";
    return second.kind == form::suffix && second.text.ends_with(first.text);
}

} // namespace httpd
