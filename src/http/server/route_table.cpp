#include "http/server/route_table.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <algorithm>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

// RFC 9110, section 9.1, and RFC 5789. CONNECT never gets here.
constexpr std::array<std::string_view, 8> common_methods{"GET",    "HEAD",    "POST",  "PUT",
                                                         "DELETE", "OPTIONS", "PATCH", "TRACE"};

/// Cuts the first segment off `path`, which is what follows a slash. False: it was the last one.
bool cut_segment(std::string_view& path, std::string_view& segment) noexcept {
    const std::size_t end = path.find('/');
    segment = path.substr(0, end);
    if (end == std::string_view::npos) {
        path = {};
        return false;
    }
    path.remove_prefix(end + 1);
    return true;
}

} // namespace

// --- adding --------------------------------------------------------------------------------------

void route_table::methods::add(route to) {
    SIMPLENET_EXPECTS(std::ranges::find(routes, to.method, &route::method) == routes.end(),
                      "a router has two handlers for one pattern and method");
    routes.push_back(std::move(to));
    if (find({}) != nullptr) return; // nothing is refused
    std::vector<std::string_view> names{"OPTIONS"};
    for (const route& each : routes) {
        names.push_back(each.method);
        if (each.method == "GET") names.push_back("HEAD");
    }
    std::ranges::sort(names);
    const auto [last, end] = std::ranges::unique(names);
    names.erase(last, end);
    allow.clear();
    for (const std::string_view each : names) {
        if (!allow.empty()) allow += ", ";
        allow += each;
    }
}

const route* route_table::methods::find(std::string_view method) const noexcept {
    const auto found = std::ranges::find(routes, method, &route::method);
    return found == routes.end() ? nullptr : &*found;
}

void route_table::add(std::string_view pattern, route to) {
    SIMPLENET_EXPECTS(pattern.starts_with('/'), "the pattern of a route does not begin with '/'");
    if (!to.method.empty() && !knows(to.method)) own_methods_.push_back(to.method);
    std::string_view left = pattern.substr(1);
    std::size_t at = 0;
    bool more = true;
    bool takes_rest = false;
    while (more && !takes_rest) {
        std::string_view segment;
        more = cut_segment(left, segment);
        if (!segment.starts_with('{')) {
            SIMPLENET_EXPECTS(segment.find_first_of("{}") == std::string_view::npos,
                              "a parameter of a route is a part of a segment");
            std::string text{segment};
            auto& texts = nodes_[at].texts;
            const auto place = std::ranges::lower_bound(
                texts, text, {}, [](const auto& each) { return std::string_view{each.first}; });
            if (place != texts.end() && place->first == text) {
                at = place->second;
            } else {
                const std::size_t made = nodes_.size();
                texts.emplace(place, std::move(text), made);
                nodes_.emplace_back();
                at = made;
            }
            continue;
        }
        SIMPLENET_EXPECTS(segment.ends_with('}'), "a parameter of a route has no '}'");
        std::string_view name = segment.substr(1, segment.size() - 2);
        takes_rest = name.ends_with("...");
        if (takes_rest) name.remove_suffix(3);
        SIMPLENET_EXPECTS(!takes_rest || !more, "{name...} is not the last segment of a pattern");
        SIMPLENET_EXPECTS(!name.empty() && name.find_first_of("{}") == std::string_view::npos,
                          "a parameter of a route has no name");
        SIMPLENET_EXPECTS(std::ranges::find(to.names, name) == to.names.end(),
                          "two parameters of a route have the same name");
        SIMPLENET_EXPECTS(to.names.size() < most_parameters, "a route has too many parameters");
        to.names.emplace_back(name);
        if (takes_rest) break;
        if (nodes_[at].parameter == 0) {
            nodes_[at].parameter = nodes_.size();
            nodes_.emplace_back();
        }
        at = nodes_[at].parameter;
    }
    (takes_rest ? nodes_[at].rest : nodes_[at].here).add(std::move(to));
}

void route_table::set_fallback(route to) {
    SIMPLENET_EXPECTS(!fallback_, "a router has two fallbacks");
    fallback_ = std::move(to);
}

// --- matching ------------------------------------------------------------------------------------

// Each node is visited at most once, and recursion is as deep as the longest pattern.
const route_table::methods* route_table::find(std::size_t at, std::string_view path,
                                              route_match& into) const {
    const node& here = nodes_[at];
    const std::size_t count = into.count;
    std::string_view left = path;
    std::string_view segment;
    const bool more = cut_segment(left, segment);
    const auto go_on = [&](std::size_t next) -> const methods* {
        if (more) return find(next, left, into);
        return nodes_[next].here.empty() ? nullptr : &nodes_[next].here;
    };
    const auto text = std::ranges::lower_bound(
        here.texts, segment, {}, [](const auto& each) { return std::string_view{each.first}; });
    if (text != here.texts.end() && text->first == segment) {
        if (const methods* const found = go_on(text->second)) return found;
        into.count = count;
    }
    if (here.parameter != 0 && !segment.empty()) {
        into.values[into.count++] = segment;
        if (const methods* const found = go_on(here.parameter)) return found;
        into.count = count;
    }
    if (here.rest.empty()) return nullptr;
    into.values[into.count++] = path;
    return &here.rest;
}

void route_table::match(std::string_view method, std::string_view path, route_match& into) const {
    into.count = 0;
    into.is = route_match::kind::no_path;
    if (path.starts_with('/')) {
        if (const methods* const found = find(0, path.substr(1), into)) {
            return pick(*found, method, into);
        }
    }
    into.count = 0;
    if (fallback_) {
        into.is = route_match::kind::found;
        into.to = &*fallback_;
    } else if (path == "*") {
        into.is = route_match::kind::options;
        into.allow = {};
    }
}

void route_table::pick(const methods& among, std::string_view method, route_match& into) const {
    into.to = among.find(method);
    if (into.to == nullptr && method == "HEAD") into.to = among.find("GET");
    if (into.to == nullptr) into.to = among.find({});
    into.allow = among.allow;
    if (into.to != nullptr) {
        into.is = route_match::kind::found;
    } else if (method == "OPTIONS") {
        into.is = route_match::kind::options;
    } else {
        into.is =
            knows(method) ? route_match::kind::other_method : route_match::kind::unknown_method;
    }
}

bool route_table::knows(std::string_view method) const noexcept {
    return std::ranges::find(common_methods, method) != common_methods.end() ||
           std::ranges::find(own_methods_, method) != own_methods_.end();
}

} // namespace simplenet::v0::http::detail
