#include "httpd/config/keys.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

namespace httpd {
namespace {

using namespace std::chrono_literals;

// --- from a pointer to a member to the functions that store and read it --------------------------

template <class Pointer>
struct member;
template <class Object, class Type>
struct member<Type Object::*> {
    using object = Object;
    using type = Type;
};

template <class Type>
Type from_value(value&& given) {
    if constexpr (std::is_same_v<Type, bool>)
        return std::get<bool>(given);
    else if constexpr (std::is_integral_v<Type> || std::is_enum_v<Type>)
        return static_cast<Type>(std::get<std::uint64_t>(given));
    else
        return std::get<Type>(std::move(given));
}

template <class Type>
value to_value(const Type& stored) {
    if constexpr (std::is_same_v<Type, bool>)
        return stored;
    else if constexpr (std::is_integral_v<Type> || std::is_enum_v<Type>)
        return static_cast<std::uint64_t>(stored);
    else
        return stored;
}
template <class Type>
value to_value(const std::optional<Type>& stored) {
    return stored ? to_value(*stored) : value{};
}

template <class Type>
struct plain {
    using type = Type;
};
template <class Type>
struct plain<std::optional<Type>> {
    using type = Type;
};

// The place of the value, too, if `Where` names a member for it.
template <auto Member, auto Where = nullptr>
constexpr storage stored_in() {
    using object = member<decltype(Member)>::object;
    using type = member<decltype(Member)>::type;
    return {[](void* to, value given, position where) {
                auto& self = *static_cast<object*>(to);
                self.*Member = from_value<typename plain<type>::type>(std::move(given));
                if constexpr (requires { (self.*Member).where; })
                    (self.*Member).where = where;
                else if constexpr (requires { (self.*Member)->where; })
                    (self.*Member)->where = where;
                if constexpr (!std::is_null_pointer_v<decltype(Where)>) self.*Where = where;
            },
            [](const void* from) { return to_value(static_cast<const object*>(from)->*Member); }};
}

// A table that is always there, or that there may be.
template <auto Member>
constexpr children table_in() {
    using object = member<decltype(Member)>::object;
    using type = member<decltype(Member)>::type;
    return {[](void* in, position) -> void* {
                auto& found = static_cast<object*>(in)->*Member;
                if constexpr (std::is_same_v<type, typename plain<type>::type>)
                    return &found;
                else
                    return &found.emplace();
            },
            [](const void* in) -> std::size_t {
                const auto& found = static_cast<const object*>(in)->*Member;
                if constexpr (std::is_same_v<type, typename plain<type>::type>)
                    return 1;
                else
                    return found ? 1 : 0;
            },
            [](const void* in, std::size_t) -> const void* {
                const auto& found = static_cast<const object*>(in)->*Member;
                if constexpr (std::is_same_v<type, typename plain<type>::type>)
                    return &found;
                else
                    return &*found;
            }};
}

template <auto Member>
constexpr children tables_in() {
    using object = member<decltype(Member)>::object;
    return {[](void* in, position where) -> void* {
                auto& made = (static_cast<object*>(in)->*Member).emplace_back();
                made.where = where;
                return &made;
            },
            [](const void* in) { return (static_cast<const object*>(in)->*Member).size(); },
            [](const void* in, std::size_t index) -> const void* {
                return &(static_cast<const object*>(in)->*Member)[index];
            }};
}

// What is stored only with an action of a route, which it decides.
template <route_action Action, auto Member>
constexpr storage action_in() {
    constexpr storage plain_storage = stored_in<Member>();
    return {[](void* to, value given, position where) {
                static_cast<route*>(to)->action = Action;
                stored_in<Member>().set(to, std::move(given), where);
            },
            [](const void* from) {
                const bool is_set = static_cast<const route*>(from)->action == Action;
                return is_set ? plain_storage.get(from) : value{};
            }};
}

template <route_action Action, auto Member>
constexpr children action_table() {
    return {[](void* in, position) -> void* {
                auto& self = *static_cast<route*>(in);
                self.action = Action;
                return &(self.*Member);
            },
            [](const void* in) -> std::size_t {
                return static_cast<const route*>(in)->action == Action ? 1 : 0;
            },
            [](const void* in, std::size_t) -> const void* {
                return &(static_cast<const route*>(in)->*Member);
            }};
}

template <class Object>
value default_in(const key& key) {
    static const Object object{};
    return key.stored.get(&object);
}
template <>
value default_in<tls_options>(const key& key) {
    static const tls_options object{.certificates = {certificate{}}};
    return key.stored.get(&object);
}

// One certificate of those in the object: reading a table fills the last.
template <auto Text, auto Where>
constexpr storage last_certificate() {
    return {[](void* to, value given, position where) {
                certificate& last = static_cast<tls_options*>(to)->certificates.back();
                last.*Text = std::get<std::string>(std::move(given));
                last.*Where = where;
            },
            [](const void* from) -> value {
                return static_cast<const tls_options*>(from)->certificates.back().*Text;
            }};
}

constexpr std::uint64_t ns(std::chrono::nanoseconds time) {
    return static_cast<std::uint64_t>(time.count());
}

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t gib = kib * kib * kib;
constexpr std::uint64_t all_numbers = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t longest = ns(24h * 365);

// --- the keys ------------------------------------------------------------------------------------

constexpr std::string_view versions[]{"1.2", "1.3"};
constexpr std::string_view proxy_protocols[]{"none", "required"};
constexpr std::string_view symlink_rules[]{"beneath", "never"};
constexpr std::string_view redirect_statuses[]{"301", "302", "303", "307", "308"};
constexpr std::string_view formats[]{"combined", "json"};
constexpr std::string_view levels[]{"info", "warning", "error"};
constexpr std::string_view gateways[]{"fastcgi", "proxy"};
constexpr std::string_view only_fastcgi[]{"fastcgi"};
constexpr std::string_view only_requests[]{"requests"};

constexpr key tls_keys[]{
    {.name = "certificate",
     .type = value_type::file,
     .stored = last_certificate<&certificate::certificate, &certificate::certificate_where>(),
     .required = true,
     .description = "The server's certificate, followed by those of its issuers, in PEM."},
    {.name = "key",
     .type = value_type::file,
     .stored = last_certificate<&certificate::key, &certificate::key_where>(),
     .required = true,
     .description = "The private key of the certificate, in PEM, not encrypted."},
    {.name = "minimum",
     .type = value_type::choice,
     .stored = stored_in<&tls_options::minimum>(),
     .choices = versions,
     .description = "The oldest version of TLS. In a list, all tables that have it agree."},
    {.name = "client_ca",
     .type = value_type::file,
     .stored = stored_in<&tls_options::client_ca, &tls_options::client_ca_where>(),
     .description = "If not empty: clients must have a certificate that one of these issuers, in "
                    "PEM, has signed. In a list, all tables that have it agree."},
};

constexpr key backend_keys[]{
    {.name = "address",
     .type = value_type::backend,
     .stored = stored_in<&backend::address>(),
     .required = true,
     .description = "`host:port`, `[::1]:port` for IPv6, or `unix:/path`."},
    {.name = "weight",
     .type = value_type::integer,
     .stored = stored_in<&backend::weight>(),
     .minimum = 1,
     .maximum = 1000,
     .description = "A backend with the weight 2 gets twice as many requests as one with 1."},
};

constexpr key compress_keys[]{
    {.name = "types",
     .type = value_type::media_types,
     .stored = stored_in<&compression::types>(),
     .description = "The media types of answers that are compressed with gzip while they are sent. "
                    "`text/*` means all that begin with `text/`. Not for pages that hold a secret "
                    "beside text of the client's choice (BREACH)."},
    {.name = "minimum",
     .type = value_type::size,
     .stored = stored_in<&compression::minimum>(),
     .maximum = gib,
     .description = "Smaller answers are not compressed."},
};

constexpr key auth_keys[]{
    {.name = "realm",
     .type = value_type::quoted_text,
     .stored = stored_in<&authentication::realm, &authentication::realm_where>(),
     .description = "What the browser shows when it asks for the password."},
    {.name = "file",
     .type = value_type::file,
     .stored = stored_in<&authentication::file, &authentication::where>(),
     .description =
         "Users and hashes of their passwords, as htpasswd(1) writes them: bcrypt, "
         "SHA-2 or yescrypt. Empty: nobody is asked. Use one method and cost for all of "
         "them, for SHA-2 with salts of one length: a wrong password is hashed with each kind "
         "that the file has, so that the time tells nobody which users there are."},
};

constexpr key rate_keys[]{
    {.name = "requests",
     .type = value_type::integer,
     .stored = stored_in<&rate_limit::requests>(),
     .maximum = 1'000'000'000,
     .description =
         "How many requests one address may send in the time of `per`, spread evenly: 60 in `1m` "
         "is one a second. One that comes sooner gets 429, unless `burst` lets it through. IPv6 "
         "addresses count by /64. 0: no limit."},
    {.name = "per",
     .type = value_type::duration,
     .stored = stored_in<&rate_limit::per>(),
     .minimum = ns(1ms),
     .maximum = ns(24h),
     .needs = only_requests,
     .description = "The period of `requests`."},
    {.name = "burst",
     .type = value_type::integer,
     .stored = stored_in<&rate_limit::burst>(),
     .maximum = 1'000'000'000,
     .needs = only_requests,
     .description =
         "How many may come at once beyond that. Set it to the number of files of a page at "
         "least. A reload begins to count anew."},
};

constexpr key redirect_keys[]{
    {.name = "to",
     .type = value_type::redirect_to,
     .stored = stored_in<&redirection::to>(),
     .required = true,
     .description = "A path, or an absolute URL. What the `*` of `match` stands for is appended as "
                    "it is, so `to` should end in a slash then. The client's query is kept; if "
                    "`to` has one, it is appended to that."},
    {.name = "status",
     .type = value_type::status,
     .stored = stored_in<&redirection::status>(),
     .minimum = 301,
     .maximum = 308,
     .choices = redirect_statuses,
     .description =
         "301 and 308 are permanent: browsers remember them. 307 and 308 keep the method."},
};

constexpr key answer_keys[]{
    {.name = "status",
     .type = value_type::status,
     .stored = stored_in<&fixed_answer::status>(),
     .minimum = 200,
     .maximum = 599,
     .description = "The status of the answer."},
    {.name = "type",
     .type = value_type::header_text,
     .stored = stored_in<&fixed_answer::type>(),
     .description = "The field Content-Type. For text beyond ASCII name its encoding: "
                    "`text/plain; charset=utf-8`."},
    {.name = "body",
     .type = value_type::text,
     .stored = stored_in<&fixed_answer::body>(),
     .description = "The body of the answer."},
};

template <class Object>
constexpr section make_section(std::string_view name, std::string_view description,
                               std::span<const key> keys) {
    return {name, description, keys, default_in<Object>};
}

constexpr section compress_section =
    make_section<compression>("compress",
                              "Compression of a site's answers, those of backends as well. Files "
                              "that stand beside the file as `name.br` or "
                              "`name.gz` cost less, see `precompressed`.",
                              compress_keys);
constexpr section auth_section = make_section<authentication>(
    "auth",
    "Clients need a name and a password (Basic, RFC 7617); without them they get 401. Use it with "
    "TLS only: passwords are sent unencrypted.",
    auth_keys);
constexpr section rate_section =
    make_section<rate_limit>("rate", "How many requests a client may send.", rate_keys);
constexpr section redirect_section =
    make_section<redirection>("redirect", "The answer is a redirection.", redirect_keys);
constexpr section answer_section =
    make_section<fixed_answer>("answer", "The answer is always the same.", answer_keys);

constexpr key route_keys[]{
    {.name = "match",
     .type = value_type::match,
     .stored = stored_in<&route::match>(),
     .required = true,
     .description =
         "Which paths the route takes: `/path` that path, `/path/*` all paths below it, `*.suffix` "
         "all paths that end in `.suffix`. An exact match comes first; else the first route "
         "of the file that matches. Paths are compared normalised: decoded once, without "
         "empty and dot segments; an encoded slash stays `%2F`. Servers differ in how they read "
         "`%2F`, `\\` and what follows a `;`. Where the route has a backend or a fallback, and "
         "such a path may be read as one of a route with other `allow`, `deny`, `auth` or `rate`, "
         "it is 404: `/admin%2Fx` beside `/admin/*`."},
    {.name = "fastcgi",
     .type = value_type::backends,
     .stored = action_in<route_action::fastcgi, &route::backends>(),
     .sub = &backend_section,
     .group = "action",
     .description = "Requests go to a FastCGI server, such as `unix:/run/php/php-fpm.sock`. Of "
                    "several, the one with the fewest requests for its weight. Scripts are files "
                    "whose names end in `.php`; everything else gets 404. Where the site has no "
                    "`root` and the route no `script_root`, the backend is an application without "
                    "files: it gets each path as PATH_INFO."},
    {.name = "proxy",
     .type = value_type::backends,
     .stored = action_in<route_action::proxy, &route::backends>(),
     .sub = &backend_section,
     .group = "action",
     .description = "Requests go to an HTTP/1.1 server, such as `127.0.0.1:9000`, with the path "
                    "unchanged. Of several, as for `fastcgi`."},
    {.name = "keep_connections",
     .type = value_type::integer,
     .stored = stored_in<&route::keep_connections>(),
     .maximum = 10'000,
     .needs = gateways,
     .description = "Connections that are kept between requests, for each backend and worker. "
                    "With FastCGI each occupies a process, so it is kept for 10 ms at most, and "
                    "not when a request has waited for a process. 0: none is kept."},
    {.name = "connections",
     .type = value_type::integer,
     .stored = stored_in<&route::connections>(),
     .minimum = 1,
     .maximum = 10'000,
     .needs = gateways,
     .description =
         "Requests that a backend gets at once from each worker, WebSockets not counted. "
         "Further ones wait, and get 503 after 10 s. One client (an address, for IPv6 "
         "its /64) has at most half of these places."},
    {.name = "streamed",
     .type = value_type::boolean,
     .stored = stored_in<&route::streamed>(),
     .needs = gateways,
     .description = "Whether bodies are passed on as they come. Otherwise a backend is taken only "
                    "when a body is there as a whole, and answers are read ahead, up to 1 MiB in "
                    "memory and the rest in a file, so that slow clients do not occupy it."},
    {.name = "path_info",
     .type = value_type::boolean,
     .stored = stored_in<&route::path_info>(),
     .needs = only_fastcgi,
     .description = "Whether a path may continue behind the script, as in `/index.php/news`. "
                    "Otherwise that is 404."},
    {.name = "script_root",
     .type = value_type::remote_file,
     .stored = stored_in<&route::script_root>(),
     .needs = only_fastcgi,
     .description = "The directory of the scripts as the backend sees it, for backends on other "
                    "machines. Empty: the site's `root`."},
    {.name = "redirect",
     .type = value_type::table,
     .sub = &redirect_section,
     .inside = action_table<route_action::redirect, &route::redirect>(),
     .group = "action",
     .description = "The answer is a redirection, see [redirect](#redirect)."},
    {.name = "answer",
     .type = value_type::table,
     .sub = &answer_section,
     .inside = action_table<route_action::answer, &route::answer>(),
     .group = "action",
     .description = "The answer is always the same, see [answer](#answer)."},
    {.name = "fallback",
     .type = value_type::url_path,
     .stored = action_in<route_action::fallback, &route::fallback>(),
     .group = "action",
     .description = "Where there is no file, this path is routed instead. Once only: a second "
                    "fallback is not followed."},
    {.name = "allow",
     .type = value_type::addresses,
     .stored = stored_in<&route::allow>(),
     .description = "In place of the site's.",
     .default_note = "the site's"},
    {.name = "deny",
     .type = value_type::addresses,
     .stored = stored_in<&route::deny>(),
     .description = "In place of the site's.",
     .default_note = "the site's"},
    {.name = "auth",
     .type = value_type::table,
     .sub = &auth_section,
     .inside = table_in<&route::auth>(),
     .description = "In place of the site's; with an empty `file` nobody is asked.",
     .default_note = "the site's"},
    {.name = "rate",
     .type = value_type::table,
     .sub = &rate_section,
     .inside = table_in<&route::rate>(),
     .description = "In place of the site's, and counted by itself.",
     .default_note = "the site's"},
    {.name = "body",
     .type = value_type::size,
     .stored = stored_in<&route::body>(),
     .maximum = all_numbers,
     .description = "In place of the site's.",
     .default_note = "the site's"},
    {.name = "headers",
     .type = value_type::headers,
     .stored = stored_in<&route::headers>(),
     .description = "Added to the site's; one with the same name takes its place.",
     .default_note = "the site's"},
};
constexpr section route_section = make_section<route>(
    "[[site.route]]",
    "What a site does with some of its paths. At most one of `fastcgi`, `proxy`, `redirect`, "
    "`answer` and `fallback`; without one of them, files are served.",
    route_keys);

constexpr key site_keys[]{
    {.name = "hosts",
     .type = value_type::hosts,
     .stored = {
         [](void* to, value given, position) {
             static_cast<site*>(to)->hosts = std::get<std::vector<std::string>>(std::move(given));
         },
         [](const void* from) -> value { return static_cast<const site*>(from)->hosts; },
         [](void* to, position where) { static_cast<site*>(to)->hosts_where.push_back(where); }},
     .description =
         "The names that the site answers to, without ports. `*.example.org` stands for "
         "all names below example.org. Names with letters other than a to z are written as "
         "A-labels (`xn--`). If empty, the site answers to every name that no other site has. "
         "With several sites, a name that none of them has gets 421; a single site answers it, "
         "but `redirect_https` sends nobody to it."},
    {.name = "root",
     .type = value_type::file,
     .stored = stored_in<&site::root, &site::root_where>(),
     .description = "The directory whose files are served. Nothing outside of it ever is. Names "
                    "that end in `.php`, `.phtml` or `.phar` are not served as files; without a "
                    "route for them they are 404. A file that changes is served as it was for up "
                    "to a second. Empty: no files."},
    {.name = "index",
     .type = value_type::names,
     .stored = stored_in<&site::index>(),
     .description = "The names of the file that is the answer for a directory; the first that "
                    "exists counts."},
    {.name = "listing",
     .type = value_type::boolean,
     .stored = stored_in<&site::listing>(),
     .description =
         "Whether a directory without such a file is answered with a page of up to 10,000 of its "
         "entries. Otherwise the answer is 404."},
    {.name = "symlinks",
     .type = value_type::choice,
     .stored = stored_in<&site::symlinks>(),
     .choices = symlink_rules,
     .description = "`beneath`: symbolic links are followed if they are relative and lead to "
                    "something beneath the root. `never`: no symbolic link is followed."},
    {.name = "hidden",
     .type = value_type::boolean,
     .stored = stored_in<&site::hidden>(),
     .description = "Whether names that begin with a dot are served. `/.well-known` always is."},
    {.name = "precompressed",
     .type = value_type::boolean,
     .stored = stored_in<&site::precompressed>(),
     .description = "Whether `name.br` or `name.gz` is sent in place of `name` to clients that "
                    "accept it, if it is no older."},
    {.name = "compress",
     .type = value_type::table,
     .sub = &compress_section,
     .inside = table_in<&site::compress>(),
     .description = "Compression on the fly, see [compress](#compress)."},
    {.name = "headers",
     .type = value_type::headers,
     .stored = stored_in<&site::headers>(),
     .description = "Fields that are added to every answer, such as "
                    "`{ \"X-Frame-Options\" = \"DENY\" }`, in place of a backend's with the same "
                    "name. `Strict-Transport-Security` is added over TLS alone."},
    {.name = "error_pages",
     .type = value_type::error_pages,
     .stored = stored_in<&site::error_pages>(),
     .description =
         "Files whose content is the body of an answer with a status of 400 to 599, such "
         "as `{ 404 = \"/404.html\" }`; paths beneath the root. Not for requests that are refused "
         "before a site is chosen (400, 414, 417, 421, 431, 505), and not for `answer`."},
    {.name = "trusted",
     .type = value_type::addresses,
     .stored = stored_in<&site::trusted>(),
     .description =
         "Proxies whose fields `X-Forwarded-*`, else `Forwarded`, else `X-Real-IP` count. Those of "
         "others are dropped. Such a proxy must set each of these fields or remove it: one that it "
         "passes on as it came lets clients choose their address."},
    {.name = "allow",
     .type = value_type::addresses,
     .stored = stored_in<&site::allow>(),
     .description = "Only these are served; others get 403. Empty: all."},
    {.name = "deny",
     .type = value_type::addresses,
     .stored = stored_in<&site::deny>(),
     .description = "These get 403, also if `allow` has them."},
    {.name = "auth",
     .type = value_type::table,
     .sub = &auth_section,
     .inside = table_in<&site::auth>(),
     .description = "Passwords, see [auth](#auth)."},
    {.name = "rate",
     .type = value_type::table,
     .sub = &rate_section,
     .inside = table_in<&site::rate>(),
     .description = "How many requests a client may send, see [rate](#rate)."},
    {.name = "body",
     .type = value_type::size,
     .stored = stored_in<&site::body>(),
     .maximum = all_numbers,
     .description = "The largest body of a request; a larger one gets 413. 0: unlimited.",
     .default_note = "`body` of `[limits]`"},
    {.name = "route",
     .type = value_type::tables,
     .sub = &route_section,
     .inside = tables_in<&site::routes>(),
     .description = "What is done with some of the paths, see [site.route](#siteroute)."},
};
constexpr section site_section = make_section<site>(
    "[[site]]", "A site: its names, and how it answers. At least one table is required.",
    site_keys);

constexpr key listen_keys[]{
    {.name = "address",
     .type = value_type::endpoint,
     .stored = stored_in<&listener::address, &listener::where>(),
     .required = true,
     .description = "An address and a port, such as `0.0.0.0:80` or `[::]:443`."},
    {.name = "tls",
     .type = value_type::certificates,
     .stored = stored_in<&listener::tls>(),
     .sub = &tls_section,
     .description = "A table with a certificate and its key, or a list of such tables, from which "
                    "the name that the client asks for (SNI) chooses; the first is the default.",
     .default_note = "none: HTTP without TLS"},
    {.name = "proxy_protocol",
     .type = value_type::choice,
     .stored = stored_in<&listener::proxy_protocol>(),
     .choices = proxy_protocols,
     .description = "`required`: each connection begins with the header of the PROXY protocol, "
                    "version 1 or 2, and the address in it is the client's."},
    {.name = "proxy_from",
     .type = value_type::addresses,
     .stored = stored_in<&listener::proxy_from>(),
     .description = "The addresses that may send that header; other connections are closed. "
                    "Required with `proxy_protocol = \"required\"`."},
    {.name = "redirect_https",
     .type = value_type::boolean,
     .stored = stored_in<&listener::redirect_https, &listener::redirect_https_where>(),
     .description =
         "Whether requests are redirected (308) to `https` and the same name, at the port of the "
         "first listener that has `tls`. What is below `/.well-known/acme-challenge/` is served "
         "as usual, and so is a request that came by `https` to a `trusted` proxy. Not together "
         "with `tls`."},
};
constexpr section listen_section =
    make_section<listener>("[[listen]]",
                           "An address to listen on. Every site is served at every address. At "
                           "least one table is required.",
                           listen_keys);

template <auto Member>
constexpr key limit_size(std::string_view name, std::uint64_t minimum, std::uint64_t maximum,
                         std::string_view description) {
    return {.name = name,
            .type = value_type::size,
            .stored = stored_in<Member>(),
            .minimum = minimum,
            .maximum = maximum,
            .description = description};
}
template <auto Member>
constexpr key limit_count(std::string_view name, std::uint64_t minimum, std::uint64_t maximum,
                          std::string_view description) {
    key made = limit_size<Member>(name, minimum, maximum, description);
    made.type = value_type::integer;
    return made;
}
template <auto Member>
constexpr key limit_time(std::string_view name, std::string_view description) {
    key made = limit_size<Member>(name, 0, longest, description);
    made.type = value_type::duration;
    return made;
}

constexpr key limits_keys[]{
    limit_size<&limits::request_line>("request_line", 64, kib* kib,
                                      "The request line; a longer one gets 414."),
    limit_size<&limits::header_bytes>(
        "header_bytes", 256, 16 * kib * kib,
        "All fields of a request together; more get 431. The same for trailers."),
    limit_count<&limits::header_count>("header_count", 1, 10'000,
                                       "The number of fields; more get 431."),
    limit_size<&limits::body>("body", 0, all_numbers,
                              "The body, where a site has no limit of its own; a larger one gets "
                              "413. 0: unlimited."),
    limit_size<&limits::chunk_extensions>("chunk_extensions", 0, kib* kib,
                                          "The extensions of one chunk; more get 400."),
    limit_count<&limits::requests_per_connection>(
        "requests_per_connection", 0, std::numeric_limits<unsigned>::max(),
        "A connection is closed after so many requests. 0: never."),
    limit_time<&limits::headers_within>(
        "headers_within",
        "The time for a whole head: of the first request from the accept, or from the end of the "
        "TLS handshake, which has 10 s; of later ones from their first byte; then 408. 0: no "
        "limit, as for all times here but `last_request`."),
    limit_time<&limits::body_idle>("body_idle", "The time without a byte of a body; then 408."),
    limit_time<&limits::keep_alive>(
        "keep_alive", "The time without a request on a connection; then it is closed."),
    limit_time<&limits::send_idle>(
        "send_idle", "The time without a byte that the client's kernel acknowledges while "
                     "an answer waits, also when the connection ends behind it; then the "
                     "connection is reset."),
    limit_time<&limits::last_request>(
        "last_request", "When the program stops: how long a kept connection still accepts one "
                        "more request, which may be on its way. 0: it is closed at once."),
    limit_time<&limits::linger>("linger",
                                "How long a client may go on sending once it has taken an "
                                "answer that did not wait for the whole request."),
    limit_time<&limits::linger_idle>(
        "linger_idle",
        "The same, without a byte; also while a body that nobody reads is dropped. "
        "When the program stops: how long a client may take nothing of its last answer."),
    limit_count<&limits::minimum_rate>(
        "minimum_rate", 0, gib,
        "Bytes a second that a body or an answer has to move while the client is waited for, after "
        "30 s and after `body_idle` or `send_idle`. 0: none."),
};
constexpr section limits_section = make_section<limits>(
    "[limits]", "What a client may cost. All limits are on by default.", limits_keys);

constexpr key log_keys[]{
    {.name = "access",
     .type = value_type::log_target,
     .stored = stored_in<&log_options::access, &log_options::access_where>(),
     .description = "Where a line about each request goes: `-` is standard output, `off` nowhere, "
                    "else a file. SIGUSR1 opens both files again."},
    {.name = "format",
     .type = value_type::choice,
     .stored = stored_in<&log_options::format>(),
     .choices = formats,
     .description = "`combined`, as Apache's; or `json`, an object a line."},
    {.name = "error",
     .type = value_type::log_target,
     .stored = stored_in<&log_options::error, &log_options::error_where>(),
     .description =
         "Where messages of the program go: `-` is standard error, `off` nowhere, else a file."},
    {.name = "level",
     .type = value_type::choice,
     .stored = stored_in<&log_options::level>(),
     .choices = levels,
     .description = "Less important messages are left out of `error`."},
};
constexpr section log_section =
    make_section<log_options>("[log]", "Where the program logs, and what.", log_keys);

constexpr key status_keys[]{
    {.name = "address",
     .type = value_type::endpoint,
     .stored = stored_in<&configuration::status, &configuration::status_where>(),
     .required = true,
     .description =
         "Serves `/metrics` for Prometheus, `/` for people, and `/health`, which becomes 503 once "
         "the program ends. Everybody who reaches the address sees the figures."},
    {.name = "hosts",
     .type = value_type::hosts,
     .stored = stored_in<&configuration::status_hosts>(),
     .description = "The names by which it may be asked, beside addresses and `localhost`; "
                    "`*.example.org` stands for all names below example.org. Others get 421: a "
                    "page of somebody else could give its own name this address, and "
                    "let the browser of a visitor read the figures (DNS rebinding)."},
};
constexpr section status_section = make_section<configuration>(
    "[status]", "Figures of the running program. Without this table they are not served.",
    status_keys);

constexpr key top_keys[]{
    {.name = "workers",
     .type = value_type::integer,
     .stored = stored_in<&configuration::workers>(),
     .maximum = 1024,
     .description = "The number of threads that serve. 0: as many as there are CPUs that may be "
                    "used."},
    {.name = "pin",
     .type = value_type::boolean,
     .stored = stored_in<&configuration::pin>(),
     .description = "Whether each worker stays on a CPU of its own."},
    {.name = "user",
     .type = value_type::user,
     .stored = stored_in<&configuration::user>(),
     .description = "The user to run as, if root starts the program. It keeps only "
                    "CAP_NET_BIND_SERVICE, and opens the logs as this user.",
     .default_note = "the user who starts it"},
    {.name = "grace",
     .type = value_type::duration,
     .stored = stored_in<&configuration::grace>(),
     .maximum = longest,
     .description = "How long requests in progress may take when the program stops."},
    {.name = "listen",
     .type = value_type::tables,
     .sub = &listen_section,
     .inside = tables_in<&configuration::listen>(),
     .required = true,
     .description = "Where connections are accepted, see [listen](#listen)."},
    {.name = "site",
     .type = value_type::tables,
     .sub = &site_section,
     .inside = {[](void* in, position where) -> void* {
                    auto& whole = *static_cast<configuration*>(in);
                    site& made = whole.sites.emplace_back();
                    made.where = where;
                    made.body = whole.limits.body; // [limits] is read before
                    return &made;
                },
                tables_in<&configuration::sites>().count, tables_in<&configuration::sites>().at},
     .required = true,
     .description = "What is served, see [site](#site)."},
    {.name = "limits",
     .type = value_type::table,
     .sub = &limits_section,
     .inside = table_in<&configuration::limits>(),
     .description = "What a client may cost, see [limits](#limits)."},
    {.name = "log",
     .type = value_type::table,
     .sub = &log_section,
     .inside = table_in<&configuration::log>(),
     .description = "Logs, see [log](#log)."},
    {.name = "status",
     .type = value_type::table,
     .sub = &status_section,
     .inside = {[](void* in, position) { return in; },
                [](const void* in) -> std::size_t {
                    return static_cast<const configuration*>(in)->status ? 1 : 0;
                },
                [](const void* in, std::size_t) { return in; }},
     .description = "Figures, see [status](#status)."},
};

} // namespace

constinit const section top_section =
    make_section<configuration>("", "These keys stand before the first table.", top_keys);
constinit const section tls_section = make_section<tls_options>(
    "tls", "A certificate of a listener, and what clients have to support.", tls_keys);
constinit const section backend_section = make_section<backend>(
    "backend",
    "One of several backends of `fastcgi` or `proxy`: a list may hold texts and such "
    "tables.",
    backend_keys);

std::span<const section* const> all_sections() noexcept {
    static constexpr std::array all{
        &top_section,    &listen_section, &tls_section,   &site_section,    &compress_section,
        &auth_section,   &rate_section,   &route_section, &backend_section, &redirect_section,
        &answer_section, &limits_section, &log_section,   &status_section};
    return all;
}

const key* section::find(std::string_view wanted) const noexcept {
    const auto found = std::ranges::find(keys, wanted, &key::name);
    return found == keys.end() ? nullptr : &*found;
}

} // namespace httpd
