#include "httpd/serve/served_site.hpp"

#include "httpd/config/routing.hpp"
#include "httpd/config/syntax.hpp"
#include "httpd/config/text.hpp"
#include "httpd/serve/error_answer.hpp"
#include "httpd/serve/forwarded_client.hpp"
#include "httpd/serve/host_table.hpp"

#include <simplenet/http/path.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace httpd {

namespace http = simplenet::http;
using simplenet::fail;
using simplenet::result;
using simplenet::task;

namespace {

// Where issuers of certificates look for proofs, by http (RFC 8555, section 8.3).
constexpr std::string_view acme_challenges = "/.well-known/acme-challenge/";

constexpr unsigned most_reroutes = 2; // an index, and the fallback of that

std::vector<std::string> script_suffixes_of(const site& of) {
    std::vector<std::string> suffixes{".php", ".phtml", ".phar"};
    for (const route& each : of.routes) {
        if (each.action != route_action::fastcgi || each.match.kind != path_match::form::suffix)
            continue;
        std::string suffix = each.match.text;
        std::ranges::transform(suffix, suffix.begin(), lower);
        if (std::ranges::find(suffixes, suffix) == suffixes.end()) suffixes.push_back(suffix);
    }
    return suffixes;
}

http::file_handler files_of(const site& of) {
    http::static_options options;
    options.index = {}; // a script may be one: see index_of()
    options.listing = of.listing;
    options.follow =
        of.symlinks == symlinks::never ? http::symlinks::never : http::symlinks::beneath;
    options.hidden = of.hidden;
    options.precompressed = of.precompressed;
    return http::file_handler{of.root, options};
}

std::vector<http::backend> backends_of(const route& to) {
    std::vector<http::backend> backends;
    for (const backend& each : to.backends)
        backends.push_back({.address = each.address, .weight = each.weight});
    return backends;
}

/// SERVER_NAME: of the configuration, so that no client chooses it. A site with every name has
/// none, and gets the address.
std::string_view server_name_of(const site& of) noexcept {
    for (const std::string& each : of.hosts)
        if (!each.starts_with("*.")) return each;
    return of.hosts.empty() ? std::string_view{} : std::string_view{of.hosts.front()}.substr(2);
}

http::fastcgi_handler fastcgi_of(const site& of, const route& to,
                                 const gateway_listener& listener) {
    const std::vector<http::backend> backends = backends_of(to);
    http::fastcgi_options options;
    options.backends = backends;
    options.root = of.root;
    options.script_root = to.script_root;
    options.follow =
        of.symlinks == symlinks::never ? http::symlinks::never : http::symlinks::beneath;
    options.path_info = to.path_info;
    options.server_name = server_name_of(of);
    options.trusted = &of.trusted.set;
    options.streamed = to.streamed;
    options.keep_connections = to.keep_connections;
    options.connections = to.connections;
    options.report = listener.report;
    options.report_context = listener.context;
    return http::fastcgi_handler{options};
}

http::proxy_handler proxy_of(const site& of, const route& to, const gateway_listener& listener) {
    const std::vector<http::backend> backends = backends_of(to);
    http::proxy_options options;
    options.backends = backends;
    options.trusted = &of.trusted.set;
    options.keep_connections = to.keep_connections;
    options.connections = to.connections;
    options.streamed = to.streamed;
    options.report = listener.report;
    options.context = listener.context;
    return http::proxy_handler{options};
}

/// Methods of RFC 9110 and RFC 5789; a server that does not know a method says so (501).
bool is_known_method(std::string_view method) noexcept {
    constexpr std::array<std::string_view, 8> known{"GET",    "HEAD",    "POST",  "PUT",
                                                    "DELETE", "OPTIONS", "PATCH", "TRACE"};
    return std::ranges::find(known, method) != known.end();
}

} // namespace

served_site::served_site(const site& of, const gateway_listener& listener)
    : is_{of}
    , name_{of.hosts.empty() ? "-" : of.hosts.front()}
    , script_suffixes_{script_suffixes_of(of)}
    , compressed_types_{of.compress.types.begin(), of.compress.types.end()}
    , compression_{.types = compressed_types_,
                   .minimum = static_cast<std::size_t>(of.compress.minimum)}
    , otherwise_{[&] {
        authenticators known;
        return served_route{
            .guard = {of, nullptr, known}, .headers = headers_of(of, nullptr), .body = of.body};
    }()} {
    if (!of.root.empty()) files_.emplace(files_of(of));
    authenticators known;
    for (const route& each : of.routes) {
        served_route added{.is = &each,
                           .guard = {of, &each, known},
                           .headers = headers_of(of, &each),
                           .body = each.body.value_or(of.body)};
        // One bucket for all routes of a site that have no limit of their own.
        if (!each.rate) added.guard.share_rate(otherwise_.guard);
        if (each.action == route_action::fastcgi)
            added.fastcgi.emplace(fastcgi_of(of, each, listener));
        if (each.action == route_action::proxy) added.proxy.emplace(proxy_of(of, each, listener));
        routes_.push_back(std::move(added));
    }
}

served_site::header_set served_site::headers_of(const site& of, const route* over) {
    header_set all;
    const auto add = [&all](const header& each) {
        // RFC 6797, section 7.2.
        const bool is_over_tls = equal_without_case(each.name, "Strict-Transport-Security");
        (is_over_tls ? all.over_tls : all.always).push_back(each);
    };
    for (const header& each : of.headers) {
        const auto is_same = [&](const header& other) {
            return equal_without_case(each.name, other.name);
        };
        if (over == nullptr || std::ranges::none_of(over->headers, is_same)) add(each);
    }
    if (over != nullptr) std::ranges::for_each(over->headers, add);
    return all;
}

std::vector<site_backend> served_site::backends() const {
    std::vector<site_backend> all;
    const auto add = [&](const route& of, std::vector<http::backend_status> backends) {
        for (http::backend_status& each : backends)
            all.push_back({.site = name_, .route = to_text(of.match), .status = std::move(each)});
    };
    for (const served_route& each : routes_) {
        if (each.fastcgi) add(*each.is, each.fastcgi->backends());
        if (each.proxy) add(*each.is, each.proxy->backends());
    }
    return all;
}

// --- which route ---------------------------------------------------------------------------------

const served_site::served_route& served_site::route_for(std::string_view path) const noexcept {
    const route* const found = route_of(is_, path);
    return found == nullptr ? otherwise_
                            : routes_[static_cast<std::size_t>(found - is_.routes.data())];
}

bool served_site::is_script(std::string_view path) const noexcept {
    return std::ranges::any_of(script_suffixes_, [path](const std::string& suffix) {
        constexpr int only_case = 'a' ^ 'A'; // nearly always more is different in the last byte
        if (path.size() < suffix.size() || ((path.back() ^ suffix.back()) & ~only_case) != 0) {
            return false;
        }
        return equal_without_case(path.substr(path.size() - suffix.size()), suffix);
    });
}

void served_site::prepare(const served_route& to, request& asked, response& answer) const {
    asked.limit_body(to.body);
    if (!compressed_types_.empty()) answer.compression(compression_);
    for (const header& each : to.headers.always)
        answer.add(each.name, each.value);
    if (to.headers.over_tls.empty() || !asked.secure()) return;
    for (const header& each : to.headers.over_tls)
        answer.add(each.name, each.value);
}

void served_site::learn_client(request& asked) const {
    if (!is_.trusted.set.contains(asked.connection_peer().address())) return;
    const forwarded_client told = forwarded_client::of(asked.fields(), is_.trusted.set);
    if (told.peer) asked.set_peer(*told.peer);
    if (told.secure) asked.set_secure(*told.secure);
}

answering served_site::serve(request& asked, response& answer, const arrival& by) const {
    asked.set_label(name_);
    if (!is_.trusted.set.empty()) learn_client(asked);
    // Before access control: so that no password is sent in clear text.
    if (by.https_port && !asked.secure() && !asked.path().starts_with(acme_challenges))
        return by.is_foreign ? send_error(421, answer)
                             : redirect_to_https(*by.https_port, asked, answer);
    const served_route& to = route_for(asked.path());
    prepare(to, asked, answer);
    // Without a coroutine of its own.
    if (to.guard.is_open()) return act(to, asked, answer, 0);
    return serve_guarded(to, asked, answer);
}

served_site::outcome served_site::serve_guarded(const served_route& to, request& asked,
                                                response& answer) const {
    const unsigned refused = co_await to.guard.check(asked, answer);
    if (refused != 0) co_return co_await answer_error(refused, asked, answer);
    co_return co_await act(to, asked, answer, 0);
}

served_site::outcome served_site::reroute(const served_route& from, std::string_view path,
                                          request& asked, response& answer,
                                          unsigned rerouted) const {
    asked.rewrite(path);
    const served_route& to = route_for(asked.path());
    if (&to == &from) co_return co_await act(to, asked, answer, rerouted + 1);
    answer.reset();
    prepare(to, asked, answer);
    const unsigned refused = co_await to.guard.check(asked, answer, &from.guard);
    if (refused != 0) co_return co_await answer_error(refused, asked, answer);
    co_return co_await act(to, asked, answer, rerouted + 1);
}

answering served_site::act(const served_route& to, request& asked, response& answer,
                           unsigned rerouted) const {
    const auto size = asked.content_length();
    if (to.body != 0 && size && *size > to.body) return answer_error(413, asked, answer);
    if (rerouted == 0 && to.is != nullptr && to.is->leads_on() &&
        may_skip_a_guard(is_, *to.is, asked.path()))
        return answer_error(404, asked, answer);
    switch (to.action()) {
    case route_action::files:
        return serve_files(to, asked, answer, rerouted);
    case route_action::fallback:
        return serve_fallback(to, asked, answer, rerouted);
    case route_action::answer:
        return answer_fixed(to, answer);
    case route_action::redirect:
        return redirect(to, asked, answer);
    case route_action::fastcgi:
    case route_action::proxy:
        return pass_on(to, asked, answer);
    }
    std::unreachable();
}

served_site::outcome served_site::redirect_to_https(std::uint16_t port, request& asked,
                                                    response& answer) {
    const std::string_view host = name_of_host(asked.host());
    if (host.empty()) co_return co_await send_error(400, answer); // HTTP/1.0 without one
    std::string target = "https://" + std::string{host};
    if (port != 443) target += ':' + std::to_string(port);
    target += http::encode_path(asked.path());
    if (!asked.query().empty()) target.append("?").append(asked.query());
    answer.set("Location", target);
    co_return co_await send_error(308, answer);
}

// --- files ---------------------------------------------------------------------------------------

task<std::optional<std::string>> served_site::index_of(request& asked) const {
    for (const std::string& name : is_.index) {
        std::string path = std::string{asked.path()} + name;
        const http::file_kind kind = co_await files_->look(asked, path);
        if (kind == http::file_kind::file) co_return path;
    }
    co_return std::nullopt;
}

answering served_site::serve_files(const served_route& to, request& asked, response& answer,
                                   unsigned rerouted) const {
    if (!files_) return answer_error(404, asked, answer);
    // First, because a script may be the index, and has methods of its own.
    if (asked.path().ends_with('/') && rerouted < most_reroutes)
        return serve_directory(to, asked, answer, rerouted);
    return serve_file(asked, answer);
}

served_site::outcome served_site::serve_directory(const served_route& to, request& asked,
                                                  response& answer, unsigned rerouted) const {
    const std::optional<std::string> index = co_await index_of(asked);
    if (index) co_return co_await reroute(to, *index, asked, answer, rerouted);
    co_return co_await serve_file(asked, answer);
}

answering served_site::serve_file(request& asked, response& answer) const {
    const std::string_view method = asked.method();
    if (method != "GET" && method != "HEAD") {
        answer.set("Allow", "GET, HEAD, OPTIONS");
        if (method == "OPTIONS") return answer.status(204).send({}, {});
        return answer_error(is_known_method(method) ? 405 : 501, asked, answer);
    }
    // The source of a script is never an answer, whatever the routes are.
    if (is_script(asked.path())) return answer_error(404, asked, answer);
    attempted attempt = files_->attempt(asked, answer);
    if (const auto* const left = attempt.now(); left != nullptr && *left && **left == 0)
        return result<>{};
    return end_attempt(std::move(attempt), asked, answer);
}

served_site::outcome served_site::serve_fallback(const served_route& to, request& asked,
                                                 response& answer, unsigned rerouted) const {
    auto kind = http::file_kind::missing;
    if (files_ && !is_script(asked.path())) kind = co_await files_->look(asked, asked.path());
    if (kind == http::file_kind::directory && !is_.listing) {
        // Without a slash it is redirected, if there is something to be redirected to.
        std::string inside{asked.path()};
        if (!inside.ends_with('/')) inside += '/';
        kind = http::file_kind::missing;
        for (const std::string& name : is_.index) {
            const auto found = co_await files_->look(asked, inside + name);
            if (found == http::file_kind::file) kind = http::file_kind::directory;
        }
    }
    if (kind != http::file_kind::missing || rerouted >= most_reroutes) {
        co_return co_await serve_files(to, asked, answer, rerouted);
    }
    co_return co_await reroute(to, to.is->fallback, asked, answer, most_reroutes - 1);
}

// --- everything else -----------------------------------------------------------------------------

answering served_site::answer_fixed(const served_route& to, response& answer) {
    const fixed_answer& with = to.is->answer;
    answer.status(with.status);
    const bool is_empty = with.status == 204 || with.status == 205 || with.status == 304;
    if (is_empty) return answer.send({}, {});
    return answer.send(with.type, with.body);
}

served_site::outcome served_site::redirect(const served_route& to, request& asked,
                                           response& answer) const {
    const redirection& with = to.is->redirect;
    std::string target = with.to;
    // Behind a bare host a path would become a part of it.
    const std::size_t scheme = target.find("://");
    if (scheme != std::string::npos && target.find_first_of("/?", scheme + 3) == std::string::npos)
        target += '/';
    target += http::encode_path(wildcard_of(to.is->match, asked.path()));
    if (!asked.query().empty()) {
        target += target.contains('?') ? '&' : '?';
        target += asked.query();
    }
    answer.set("Location", target);
    co_return co_await answer_error(with.status, asked, answer);
}

served_site::outcome served_site::pass_on(const served_route& to, request& asked,
                                          response& answer) const {
    return end_attempt(to.fastcgi ? to.fastcgi->attempt(asked, answer)
                                  : to.proxy->attempt(asked, answer),
                       asked, answer);
}

served_site::outcome served_site::end_attempt(attempted attempt, request& asked,
                                              response& answer) const {
    const result<unsigned> left = co_await std::move(attempt);
    if (!left) co_return fail(left);
    if (*left != 0) co_return co_await answer_error(*left, asked, answer);
    co_return result<>{};
}

served_site::outcome served_site::answer_error(unsigned status, request& asked,
                                               response& answer) const {
    const auto page = std::ranges::find(is_.error_pages, status, &error_page::status);
    if (files_ && page != is_.error_pages.end() && !is_script(page->path)) {
        answer.status(status);
        asked.rewrite(page->path);
        const result<unsigned> left = co_await files_->attempt(asked, answer);
        if (!left) co_return fail(left);
        if (*left == 0) co_return result<>{};
    }
    co_return co_await send_error(status, answer);
}

} // namespace httpd
