#pragma once
// httpd::configuration: what the program is told to do, resolved. Made by config/reader.hpp from a
// file, or by config/command_line.hpp; used by all other parts of the program.

#include <simplenet/http/limits.hpp>
#include <simplenet/io/loop_options.hpp>
#include <simplenet/ip/address_set.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/server/server_options.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace httpd {

/// A place in the file of the configuration, for messages. Both are 0 where a value comes from the
/// command line, or is a default; else they count from 1, the column in characters.
struct position {
    std::uint32_t line = 0;
    std::uint32_t column = 0;

    friend bool operator==(const position&, const position&) = default;
};

/// Addresses and prefixes.
struct addresses {
    std::vector<std::string> texts; ///< As written.
    simplenet::address_set set;
    position where;
};

enum class tls_version : std::uint8_t { tls_1_2, tls_1_3 };

/// PEM files; absolute paths.
struct certificate {
    std::string certificate; ///< The server's, followed by those of its issuers.
    std::string key;
    position certificate_where;
    position key_where;
};

struct tls_options {
    std::vector<certificate> certificates; ///< At least one. The first is the default, see SNI.
    tls_version minimum = tls_version::tls_1_2;
    /// If not empty: clients must have a certificate of one of these issuers. An absolute path.
    std::string client_ca;
    position client_ca_where;
    position where;
};

/// `[[listen]]`
struct listener {
    simplenet::endpoint address;
    position where; ///< Of the address.
    std::optional<tls_options> tls;
    simplenet::proxy_protocol proxy_protocol = simplenet::proxy_protocol::none;
    addresses proxy_from; ///< Not empty if the protocol is required.
    /// Requests are redirected to the first listener with TLS. Not together with `tls`.
    bool redirect_https = false;
    position redirect_https_where;
};

/// Where requests are redirected: the port of the first listener with TLS. 443 without one: another
/// program serves it then, or its certificates do not exist yet.
[[nodiscard]] std::uint16_t https_port(const std::vector<listener>& of) noexcept;

/// `auth`
struct authentication {
    std::string realm;
    std::string file; ///< As of htpasswd(1); an absolute path. Empty: nobody is asked.
    position where;   ///< Of the file.
    position realm_where;
};

/// `rate`
struct rate_limit {
    std::uint64_t requests = 0; ///< 0: no limit.
    std::chrono::nanoseconds per = std::chrono::seconds{1};
    std::uint64_t burst = 0; ///< So many more may come at once.
};

/// `compress`
struct compression {
    std::vector<std::string> types; ///< Lower case; `text/*` means all of them. Empty: off.
    std::uint64_t minimum = 1024;   ///< Smaller bodies are not compressed. Bytes.
};

/// A field that is added to answers. It can be sent: reading has checked it.
struct header {
    std::string name;
    std::string value;
};

/// `error_pages`: the file that is the body of an answer with `status`.
struct error_page {
    unsigned status = 0; ///< 400 to 599
    std::string path;    ///< Beneath the site's root, with a leading slash, normalised.
    position where;
};

/// Which paths a route takes.
struct path_match {
    enum class form : std::uint8_t {
        exact,  ///< The path is `text`.
        prefix, ///< The path begins with `text`, which ends in a slash.
        suffix, ///< The path ends with `text`, which begins with a dot and has no slash.
    };

    form kind = form::prefix;
    std::string text = "/"; ///< Without the `*`.
    position where;

    friend bool operator==(const path_match& left, const path_match& right) {
        return left.kind == right.kind && left.text == right.text;
    }
};

/// A server behind this one.
struct backend {
    std::string address; ///< As http::backend::address, with an absolute path.
    unsigned weight = 1; ///< 1 to 1000.
    position where;
};

/// `redirect`
struct redirection {
    /// A path with a leading slash, or an absolute URL. What the `*` of the match stands for is
    /// appended.
    std::string to;
    unsigned status = 301; ///< 301, 302, 303, 307 or 308
};

/// `answer`
struct fixed_answer {
    unsigned status = 200; ///< 200 to 599
    std::string type = "text/plain";
    std::string body;
};

/// What a route does.
enum class route_action : std::uint8_t { files, fastcgi, proxy, redirect, answer, fallback };

/// `[[site.route]]`. `action` says which of the members below it counts.
struct route {
    path_match match;
    route_action action = route_action::files;

    std::vector<backend> backends; ///< fastcgi, proxy: at least one.
    /// fastcgi, proxy: connections without a request that are kept, for each backend and loop.
    std::uint32_t keep_connections = 8;
    /// fastcgi, proxy: requests at once, for each backend and loop.
    std::uint32_t connections = 128;
    bool streamed = false;   ///< fastcgi, proxy: neither bodies nor answers are collected first.
    bool path_info = false;  ///< fastcgi
    std::string script_root; ///< fastcgi: the root as the backend sees it; empty: the site's.
    redirection redirect;
    fixed_answer answer;
    std::string fallback; ///< The path that is routed if there is no file; normalised.

    /// @name In place of the site's
    /// Where absent, the site's counts.
    /// @{
    std::optional<addresses> allow;
    std::optional<addresses> deny;
    std::optional<authentication> auth; ///< With an empty file: nobody is asked.
    std::optional<rate_limit> rate;
    std::optional<std::uint64_t> body;
    /// @}
    /// The site's, but for those that have a name that is given here, and then those given here.
    std::vector<header> headers;
    position where; ///< Of the table.

    [[nodiscard]] bool has_backend() const noexcept {
        return action == route_action::fastcgi || action == route_action::proxy;
    }
    /// Whether an application may get the client's path: behind a fallback, too, as REQUEST_URI.
    [[nodiscard]] bool leads_on() const noexcept {
        return has_backend() || action == route_action::fallback;
    }
};

enum class symlinks : std::uint8_t { beneath, never };

/// `[[site]]`
struct site {
    /// Lower case, no trailing dot; `*.example.org` stands for all names below example.org, at any
    /// depth. Empty: every name that no other site has.
    std::vector<std::string> hosts;
    std::vector<position> hosts_where; ///< As many.
    std::string root;                  ///< An absolute path. Empty: no files are served.
    position root_where;
    std::vector<std::string> index{"index.html"};
    bool listing = false;
    httpd::symlinks symlinks = httpd::symlinks::beneath;
    bool hidden = false;
    bool precompressed = true;
    compression compress;
    std::vector<header> headers;
    std::vector<error_page> error_pages;
    addresses trusted; ///< Whose Forwarded and X-Forwarded-* count.
    addresses allow;   ///< Empty: all.
    addresses deny;    ///< Empty: none. Counts before `allow`.
    authentication auth;
    rate_limit rate;
    std::uint64_t body = std::uint64_t{1024} * 1024; ///< Bytes; 0: unlimited. Default: [limits].
    std::vector<route> routes;
    position where; ///< Of the table.
};

enum class log_format : std::uint8_t { combined, json };
enum class log_level : std::uint8_t { info, warning, error };

/// `[log]`. `access` and `error` are "-" for standard output and standard error, "off", or an
/// absolute path.
struct log_options {
    std::string access = "-";
    log_format format = log_format::combined;
    std::string error = "-";
    log_level level = log_level::info;
    position access_where;
    position error_where;
};

/// `user`, looked up.
struct run_as {
    std::string name;
    ::uid_t uid = 0;
    ::gid_t gid = 0;
    position where;
};

/// `[limits]`: those of the library. A server that is restarted waits for the requests that are on
/// their way; the library leaves that to its users.
struct limits : simplenet::http::limits {
    limits() noexcept { last_request = std::chrono::seconds{1}; }
};

/// A whole configuration. Reading it has found no error, which does not mean that files are still
/// what they were.
struct configuration {
    std::string file;     ///< An absolute path; empty without one.
    unsigned workers = 0; ///< 0: as many as may be used.
    bool pin = false;
    /// Only from the command line.
    simplenet::backend backend = simplenet::backend::automatic;
    std::optional<run_as> user;
    std::chrono::nanoseconds grace = std::chrono::seconds{10};
    std::vector<listener> listen; ///< At least one.
    std::vector<site> sites;      ///< At least one.
    httpd::limits limits;
    log_options log;
    std::optional<simplenet::endpoint> status; ///< `[status]`: where figures are served.
    position status_where;
    /// Names by which the status server may be asked; as site::hosts.
    std::vector<std::string> status_hosts;
};

} // namespace httpd
