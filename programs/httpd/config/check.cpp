#include "httpd/config/check.hpp"

#include "httpd/config/routing.hpp"
#include "httpd/config/syntax.hpp"
#include "httpd/config/text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace httpd {
namespace {

void check_redirect_https(const configuration& whole, const listener& from, problems& found) {
    const position where = from.redirect_https_where;
    const bool has_tls = std::ranges::any_of(
        whole.listen, [](const listener& each) { return each.tls.has_value(); });
    if (from.tls)
        found.add(where, "`redirect_https` and `tls` exclude each other: what has come by `https` "
                         "would be redirected for ever");
    else if (!has_tls)
        found.add(where,
                  "no listener has `tls`, so `redirect_https` leads to port 443 of something "
                  "else",
                  severity::warning);
    else if (https_port(whole.listen) == 0)
        found.add(where, "`redirect_https` needs a port that is known: the first listener with "
                         "`tls` has port 0");
}

/// Whether both cannot be bound, ip(7). A listener for all IPv6 addresses takes none of IPv4.
bool overlap(const simplenet::endpoint& one, const simplenet::endpoint& other) {
    const simplenet::ip_address first = one.address().unmapped();
    const simplenet::ip_address second = other.address().unmapped();
    return one.port() != 0 && one.port() == other.port() && first.is_v6() == second.is_v6() &&
           (first == second || first.is_any() || second.is_any());
}

void check_listeners(const configuration& whole, problems& found) {
    const auto same = [&](const simplenet::endpoint& address, position where, std::size_t before) {
        for (std::size_t i = 0; i < before; ++i) {
            const listener& other = whole.listen[i];
            if (!overlap(address, other.address) || other.where == position{}) continue;
            const bool is_same = address.address().unmapped() == other.address.address().unmapped();
            found.add(where, quote(address.to_string()) +
                                 (is_same ? " is listened on already, at "
                                          : " cannot be listened on beside " +
                                                quote(other.address.to_string()) + " at ") +
                                 to_text(other.where) +
                                 (is_same ? "" : ": one of them is every address of this port"));
            return;
        }
    };
    for (std::size_t i = 0; i < whole.listen.size(); ++i) {
        const listener& each = whole.listen[i];
        same(each.address, each.where, i);
        const bool required = each.proxy_protocol == simplenet::proxy_protocol::required;
        if (required && each.proxy_from.texts.empty())
            found.add(each.where, "`proxy_protocol` is \"required\", so `proxy_from` has to say "
                                  "who may send it: anybody could take any address otherwise");
        if (!required && !each.proxy_from.texts.empty())
            found.add(each.proxy_from.where,
                      "`proxy_from` has a meaning only with `proxy_protocol = \"required\"`");
        if (each.redirect_https) check_redirect_https(whole, each, found);
    }
    if (whole.status) same(*whole.status, whole.status_where, whole.listen.size());
}

void check_hosts(const configuration& whole, problems& found) {
    struct named {
        std::string_view host;
        position where;
    };
    std::vector<named> all;
    const site* without = nullptr;
    const bool are_hosts_known = found.can_start(); // else an empty list may be a wrong one
    for (const site& site : whole.sites) {
        if (site.hosts.empty() && without != nullptr && are_hosts_known)
            found.add(site.where, "a site without `hosts` takes every name that no other has, but "
                                  "there is one already, at " +
                                      to_text(without->where) + "; give it its names");
        if (site.hosts.empty() && without == nullptr) without = &site;
        for (std::size_t i = 0; i < site.hosts.size(); ++i) {
            const position where = i < site.hosts_where.size() ? site.hosts_where[i] : site.where;
            const auto other = std::ranges::find(all, site.hosts[i], &named::host);
            if (other != all.end())
                found.add(where, "`hosts` has " + quote(site.hosts[i]) +
                                     ", which another site has already, at " +
                                     to_text(other->where));
            all.push_back({site.hosts[i], where});
        }
    }
}

void check_reach(const site& site, problems& found) {
    for (std::size_t i = 0; i < site.routes.size(); ++i) {
        const path_match& match = site.routes[i].match;
        if (match.where == position{}) continue; // wrong, and told already
        for (std::size_t j = 0; j < i; ++j) {
            const path_match& before = site.routes[j].match;
            if (before.where == position{} || !covers(before, match)) continue;
            // What goes on behind a script may be left for it.
            if (site.routes[i].path_info && !site.routes[j].path_info &&
                before.kind == path_match::form::suffix)
                continue;
            const std::string why = before == match
                                        ? "there is the same match before, at "
                                        : quote(to_text(before)) + " takes all of its paths, at ";
            found.add(match.where,
                      "nothing reaches the route " + quote(to_text(match)) + ": " + why +
                          to_text(before.where),
                      severity::finding);
            break;
        }
    }
}

// `location /app/` of nginx takes all paths below; here a star says so.
void check_directories(const site& site, problems& found) {
    for (const route& each : site.routes) {
        const path_match& match = each.match;
        if (!each.has_backend() || match.kind != path_match::form::exact ||
            !match.text.ends_with('/'))
            continue;
        const bool has_rest = std::ranges::any_of(site.routes, [&](const route& other) {
            return other.match.kind == path_match::form::prefix && other.match.text == match.text;
        });
        if (has_rest) continue;
        found.add(match.where,
                  quote(match.text) + " takes this path only; what is below it is taken by " +
                      quote(match.text + '*'),
                  severity::warning);
    }
}

// nginx redirects `/app` to `/app/` before a backend; here it is a path of another route, and many
// applications answer both alike.
void check_guards(const site& site, problems& found) {
    const auto has_guard = [](const route& of) {
        return of.allow || of.deny || (of.auth && !of.auth->file.empty());
    };
    for (const route& each : site.routes) {
        const path_match& match = each.match;
        if (!each.leads_on() || !has_guard(each) || match.kind != path_match::form::prefix ||
            match.text.size() < 2)
            continue;
        const std::string bare = match.text.substr(0, match.text.size() - 1);
        const route* const other = route_of(site, bare);
        if (other == nullptr || !other->leads_on() || has_guard(*other)) continue;
        found.add(match.where,
                  quote(bare) + " is not guarded as " + quote(to_text(match)) + " is: the route " +
                      quote(to_text(other->match)) + " takes it" +
                      "; add a route for it, such as a redirection",
                  severity::finding);
    }
}

// A path that the route takes, if no other does.
std::string sample_of(const path_match& match) {
    switch (match.kind) {
    case path_match::form::prefix:
        return match.text + 'x';
    case path_match::form::suffix:
        return "/x" + match.text;
    case path_match::form::exact:
        break;
    }
    return match.text;
}

// Where a browser goes from `path`; empty if it stays, or leaves the site.
std::string redirected(const site& site, std::string_view path) {
    const route* const taken = route_of(site, path);
    if (taken == nullptr || taken->action != route_action::redirect) return {};
    const std::string_view to = taken->redirect.to;
    if (!to.starts_with('/')) return {};
    std::string next{to.substr(0, to.find('?'))};
    return next += wildcard_of(taken->match, path);
}

void check_redirects(const site& site, problems& found) {
    const bool all_known = std::ranges::none_of(
        site.routes, [](const route& each) { return each.match.where == position{}; });
    if (!all_known) return;
    for (const route& each : site.routes) {
        if (each.action != route_action::redirect) continue;
        // Browsers give up after about 20.
        constexpr int most = 20;
        const std::string from = sample_of(each.match);
        if (route_of(site, from) != &each) continue;
        const std::string first = redirected(site, from);
        std::string path = first;
        int steps = 0;
        while (!path.empty() && steps < most && path.size() < 10'000) {
            path = redirected(site, path);
            ++steps;
        }
        if (path.empty()) continue;
        found.add(each.match.where,
                  "the redirection never ends: " + quote(from) + " leads to " + quote(first) +
                      ", which is redirected again",
                  severity::finding);
    }
}

// Of its match, unless that is wrong, or missing.
position place_of(const route& route) {
    return route.match.where == position{} ? route.where : route.match.where;
}

void check_actions(const site& site, problems& found) {
    if (site.root.empty() && site.routes.empty())
        found.add(site.where, "the site has neither a `root` nor a route, so all it answers is 404",
                  severity::finding);
    if (site.root.empty() && !site.error_pages.empty())
        found.add(site.error_pages.front().where, "`error_pages` are beneath the `root` of the "
                                                  "site, which is missing");
    for (const route& each : site.routes) {
        const bool files =
            each.action == route_action::files || each.action == route_action::fallback;
        if (files && site.root.empty())
            found.add(place_of(each), "the route serves files, but the site has no `root`",
                      severity::finding);
        if (each.action == route_action::fastcgi && site.root.empty() && each.script_root.empty() &&
            each.match.kind == path_match::form::suffix)
            found.add(
                place_of(each),
                "no script can be found: the site has no `root`, and the route no `script_root`",
                severity::finding);
        if (each.path_info && each.match.kind == path_match::form::exact)
            found.add(place_of(each),
                      "`path_info` has no effect: nothing can follow " + quote(each.match.text) +
                          ", which is matched exactly",
                      severity::finding);
        const bool appends =
            each.action == route_action::redirect && each.match.kind == path_match::form::prefix;
        if (appends && each.redirect.to.find('?') != std::string::npos)
            found.add(place_of(each),
                      "what `*` stands for would be appended to the query of " +
                          quote(each.redirect.to),
                      severity::finding);
        const unsigned status = each.answer.status;
        if (each.action == route_action::answer && (status == 204 || status == 304) &&
            !each.answer.body.empty())
            found.add(place_of(each),
                      "an answer with the status " + std::to_string(status) +
                          " has no body, so `body` is lost",
                      severity::finding);
    }
}

void check_trusted(const site& site, problems& found) {
    const bool everybody = std::ranges::any_of(
        site.trusted.texts, [](const std::string& each) { return each.ends_with("/0"); });
    if (everybody)
        found.add(
            site.trusted.where,
            "`trusted` contains every address, so clients choose the one that `allow`, `rate` "
            "and the logs see",
            severity::warning);
}

void check_headers(const site& site, problems& found) {
    const auto belongs_to_files = [](const header& each) {
        return equal_without_case(each.name, "ETag") ||
               equal_without_case(each.name, "Last-Modified");
    };
    const auto tell = [&](const header& each, position where) {
        found.add(where,
                  "`headers`: a file has its own " + quote(each.name) + ", which is sent instead",
                  severity::warning);
    };
    const auto has_files = [](const route& each) {
        return each.action == route_action::files || each.action == route_action::fallback;
    };
    // A route with a value that is wrong looks like one of files.
    if (site.root.empty() || !found.can_start()) return;
    const bool others_take_all = std::ranges::any_of(site.routes, [&](const route& each) {
        return !has_files(each) && covers(each.match, path_match{});
    });
    if (!others_take_all || std::ranges::any_of(site.routes, has_files))
        for (const header& each : site.headers)
            if (belongs_to_files(each)) tell(each, site.where);
    for (const route& route : site.routes) {
        if (!has_files(route)) continue;
        for (const header& each : route.headers) {
            const bool is_of_site = std::ranges::any_of(site.headers, [&](const header& other) {
                return other.name == each.name && other.value == each.value;
            });
            if (belongs_to_files(each) && !is_of_site) tell(each, place_of(route));
        }
    }
}

// Of a client that is not on this machine, and has no proxy between.
bool listens_in_the_open(const configuration& whole) {
    return std::ranges::any_of(whole.listen, [](const listener& each) {
        return !each.tls && !each.redirect_https && !each.address.address().is_loopback() &&
               each.proxy_protocol == simplenet::proxy_protocol::none;
    });
}

void check_passwords(const configuration& whole, problems& found) {
    const bool is_in_the_open = listens_in_the_open(whole);
    const auto check = [&](const site& site, const authentication& auth) {
        // A `file` that is wrong has been told.
        if (auth.where == position{} && !auth.realm.empty() && found.can_start())
            found.add(auth.realm_where, "`auth` has no `file`, so nobody is asked for a password",
                      severity::finding);
        if (is_in_the_open && !auth.file.empty() && site.trusted.texts.empty())
            found.add(auth.where,
                      "passwords can be read on their way: the program listens without TLS",
                      severity::warning);
    };
    for (const site& site : whole.sites) {
        check(site, site.auth);
        for (const route& each : site.routes)
            if (each.auth) check(site, *each.auth);
    }
}

} // namespace

std::uint16_t https_port(const std::vector<listener>& of) noexcept {
    constexpr std::uint16_t registered = 443;
    const auto first =
        std::ranges::find_if(of, [](const listener& each) { return each.tls.has_value(); });
    return first == of.end() ? registered : first->address.port();
}

void check_configuration(const configuration& whole, problems& found) {
    check_passwords(whole, found);
    check_listeners(whole, found);
    check_hosts(whole, found);
    for (const site& each : whole.sites) {
        check_reach(each, found);
        check_directories(each, found);
        check_guards(each, found);
        check_redirects(each, found);
        check_actions(each, found);
        check_headers(each, found);
        check_trusted(each, found);
    }
}

} // namespace httpd
