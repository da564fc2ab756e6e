#include "httpd/config/routing.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

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

/// The path as a backend may read it that takes most for a slash.
std::string read_freely(std::string_view path) {
    std::vector<std::string_view> segments;
    bool ends_in_slash = false;
    while (!path.empty()) {
        const std::size_t end =
            std::min({path.find('/'), path.find('\\'), path.find(encoded_slash), path.size()});
        const std::string_view segment = path.substr(0, std::min(end, path.find(';')));
        const std::size_t slash = path.substr(end).starts_with('%') ? encoded_slash.size() : 1;
        ends_in_slash = end < path.size();
        path.remove_prefix(std::min(path.size(), end + slash));
        if (segment == "..") {
            if (!segments.empty()) segments.pop_back();
            ends_in_slash = true;
        } else if (segment == ".") {
            ends_in_slash = true;
        } else if (!segment.empty()) {
            segments.push_back(segment);
        }
    }
    std::string read;
    for (const std::string_view each : segments)
        read.append("/").append(each);
    if (ends_in_slash || read.empty()) read += '/';
    return read;
}

} // namespace

bool may_mean_another_route(const site& site, const route& taken, std::string_view path) {
    if (!is_read_in_two_ways(path) || is_read_in_two_ways(taken.match.text)) return false;
    return route_of(site, read_freely(path)) != &taken;
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
