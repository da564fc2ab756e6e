#include "httpd/config/routing.hpp"

#include <cstddef>

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
