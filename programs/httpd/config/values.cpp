#include "httpd/config/values.hpp"

#include "httpd/config/expected.hpp"
#include "httpd/config/syntax.hpp"
#include "httpd/config/text.hpp"

#include <simplenet/http/backend.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <functional>
#include <utility>

#include <pwd.h>
#include <unistd.h>

namespace httpd {
namespace {

using toml_tree::entry;
using toml_tree::node;
using toml_tree::node_kind;

// --- from TOML -----------------------------------------------------------------------------------

// Of one value. Complains with the name of the key in front.
struct reading {
    const httpd::key& key;
    std::string_view directory;
    problems& found;

    std::nullopt_t complain(const node& at, std::string what) const {
        found.add(at.where, code(key.name) + ' ' + std::move(what));
        return std::nullopt;
    }
    std::nullopt_t complain_about_text(const node& at, std::string what) const {
        return complain(at, quote(at.text) + ' ' + std::move(what));
    }
    // Without a value: it could be of any size, or a secret.
    std::nullopt_t wrong_type(const node& at) const {
        return complain(at, "is " + std::string{toml_tree::name_of(at.kind)} + "; " +
                                expected_value(key) + " was expected, such as " + example_of(key));
    }

    std::optional<value> range_checked(const node& at, std::uint64_t number,
                                       const std::string& as_written) const {
        if (number >= key.minimum && number <= key.maximum) return value{number};
        return complain(at, "is " + as_written + "; " + range_of(key) + " was expected");
    }

    std::optional<value> integer(const node& at) const {
        if (at.kind != node_kind::integer) return wrong_type(at);
        if (at.integer < 0)
            return complain(at, "is " + std::to_string(at.integer) + "; " + expected_value(key) +
                                    " was expected");
        return range_checked(at, static_cast<std::uint64_t>(at.integer),
                             std::to_string(at.integer));
    }

    std::optional<value> status(const node& at) const {
        auto number = integer(at);
        if (!number || key.choices.empty()) return number;
        if (std::ranges::find(key.choices, std::to_string(at.integer)) == key.choices.end())
            return complain(at, "is " + std::to_string(at.integer) + "; " + range_of(key) +
                                    " was expected");
        return number;
    }

    std::optional<value> size(const node& at) const {
        if (at.kind == node_kind::integer) return integer(at);
        if (at.kind != node_kind::text) return wrong_type(at);
        const auto bytes = parse_size(at.text);
        if (!bytes)
            return complain_about_text(
                at, "is no size: a whole number of bytes was expected, or one with KiB, MiB or "
                    "GiB, such as \"8KiB\"");
        return range_checked(at, *bytes, at.text);
    }

    std::optional<value> duration(const node& at) const {
        if (at.kind != node_kind::text) return wrong_type(at);
        const auto time = parse_duration(at.text);
        if (!time)
            return complain_about_text(at, "is no duration: a whole number with ms, s, m or h was "
                                           "expected, such as \"10s\"");
        if (!range_checked(at, static_cast<std::uint64_t>(time->count()), at.text))
            return std::nullopt;
        return value{*time};
    }

    std::optional<value> choice(const node& at) const {
        if (at.kind != node_kind::text) return wrong_type(at);
        const auto found_at = std::ranges::find(key.choices, at.text);
        if (found_at != key.choices.end())
            return value{static_cast<std::uint64_t>(found_at - key.choices.begin())};
        const std::string_view meant = closest(at.text, key.choices);
        return complain_about_text(
            at, "is not one of " + listed(key.choices) +
                    (meant.empty() ? std::string{} : "; did you mean " + quote(meant) + "?"));
    }

    // A text that `check` has no complaint about.
    std::optional<std::string> checked(const node& at, complaint (*check)(std::string_view)) const {
        if (at.kind != node_kind::text) return wrong_type(at);
        if (auto wrong = check(at.text)) return complain_about_text(at, std::move(*wrong));
        return at.text;
    }

    std::optional<value> text_checked(const node& at, complaint (*check)(std::string_view)) const {
        auto text = checked(at, check);
        if (!text) return std::nullopt;
        return value{std::move(*text)};
    }

    // Absolute; an empty one stays empty.
    std::optional<value> file(const node& at) const {
        const auto text = checked(at, [](std::string_view path) -> complaint {
            if (path.find('\0') == std::string_view::npos) return std::nullopt;
            return "has a zero byte, which no path has";
        });
        if (!text) return std::nullopt;
        return value{absolute(*text)};
    }

    [[nodiscard]] std::string absolute(std::string_view path) const {
        if (path.empty() || path.starts_with('/')) return std::string{path};
        while (path.starts_with("./"))
            path.remove_prefix(2);
        std::string whole{directory};
        if (path.empty() || path == ".") return whole;
        if (!whole.ends_with('/')) whole += '/';
        return whole += path;
    }

    std::optional<value> log_target(const node& at) const {
        if (at.kind == node_kind::text && (at.text == "-" || at.text == "off"))
            return value{at.text};
        if (at.kind == node_kind::text && at.text.empty())
            return complain(at, "is empty; \"-\", \"off\" or a path was expected");
        if (at.kind == node_kind::text && at.text.starts_with("syslog:"))
            return complain_about_text(at, "is no path; \"-\" is what a service manager collects");
        return file(at);
    }

    std::optional<value> user(const node& at) const {
        if (at.kind != node_kind::text) return wrong_type(at);
        std::vector<char> room(16 * 1024);
        struct ::passwd entry{};
        struct ::passwd* answer = nullptr;
        const bool clean = at.text.find('\0') == std::string::npos;
        const int failed =
            clean ? ::getpwnam_r(at.text.c_str(), &entry, room.data(), room.size(), &answer) : 0;
        if (answer != nullptr)
            return value{run_as{.name = at.text, .uid = answer->pw_uid, .gid = answer->pw_gid}};
        // getpwnam_r(3) lists the numbers that mean "not found".
        if (failed != 0 && failed != ENOENT && failed != ESRCH && failed != EBADF &&
            failed != EPERM)
            return complain_about_text(at, "cannot be looked up: " +
                                               std::system_category().message(failed));
        return complain_about_text(at, "is no user of this system");
    }

    std::optional<value> endpoint(const node& at) const {
        if (at.kind != node_kind::text) return wrong_type(at);
        auto parsed = parse_endpoint(at.text);
        if (!parsed) return complain_about_text(at, std::move(parsed.error()));
        return value{*parsed};
    }

    std::optional<value> match(const node& at) const {
        if (at.kind != node_kind::text) return wrong_type(at);
        auto parsed = parse_match(at.text);
        if (!parsed) return complain_about_text(at, std::move(parsed.error()));
        return value{std::move(*parsed)};
    }

    std::optional<value> backend(const node& at) const {
        if (at.kind != node_kind::text) return wrong_type(at);
        std::string address = at.text;
        constexpr std::string_view local = "unix:";
        if (address.starts_with(local) && address.size() > local.size())
            address = std::string{local} + absolute(std::string_view{address}.substr(local.size()));
        if (simplenet::http::is_backend_address(address)) return value{std::move(address)};
        if (at.text.starts_with('/'))
            return complain_about_text(at, "is no backend; did you mean " +
                                               quote("unix:" + at.text) + "?");
        if (const std::size_t scheme = at.text.find("://"); scheme != std::string::npos) {
            std::string_view rest = std::string_view{at.text}.substr(scheme + 3);
            rest = rest.substr(0, rest.find('/'));
            const std::string meant = rest.find(':') == std::string_view::npos
                                          ? std::string{rest} + ":80"
                                          : std::string{rest};
            if (at.text.starts_with("https://"))
                return complain_about_text(at, "is a URL of https, but backends are spoken to "
                                               "without TLS, and only an address is expected");
            return complain_about_text(at, "is a URL, but only an address is expected; did you "
                                           "mean " +
                                               quote(meant) + "?");
        }
        return complain_about_text(
            at, "is no backend: `host:port`, `[::1]:port` or `unix:/path` was expected");
    }

    // Every item is checked, and must differ from those before it.
    std::optional<std::vector<std::string>>
    list(const node& at, const std::function<std::optional<std::string>(const node&)>& item) const {
        if (at.kind != node_kind::array) return wrong_type(at);
        std::vector<std::string> texts;
        bool good = true;
        for (const node& each : at.items) {
            if (each.kind != node_kind::text) {
                complain(each, "has " + std::string{toml_tree::name_of(each.kind)} +
                                   " in its list; strings were expected, as in " + example_of(key));
                good = false;
                continue;
            }
            auto text = item(each);
            if (text && std::ranges::find(texts, *text) != texts.end()) {
                complain_about_text(each, "is in the list twice");
                text.reset();
            }
            if (text)
                texts.push_back(std::move(*text));
            else
                good = false;
        }
        if (!good) return std::nullopt;
        return texts;
    }

    std::optional<value> hosts(const node& at) const {
        auto texts = list(at, [&](const node& each) -> std::optional<std::string> {
            const auto text = checked(each, wrong_host);
            if (!text) return std::nullopt;
            return normal_host(*text);
        });
        if (!texts) return std::nullopt;
        return value{std::move(*texts)};
    }

    std::optional<value> names(const node& at) const {
        auto texts = list(at, [&](const node& each) { return checked(each, wrong_file_name); });
        if (!texts) return std::nullopt;
        return value{std::move(*texts)};
    }

    std::optional<value> media_types(const node& at) const {
        auto texts = list(at, [&](const node& each) -> std::optional<std::string> {
            const auto text = checked(each, wrong_media_type);
            if (!text) return std::nullopt;
            return normal_host(*text); // in lower case
        });
        if (!texts) return std::nullopt;
        return value{std::move(*texts)};
    }

    std::optional<value> address_list(const node& at) const {
        addresses made;
        auto texts = list(at, [&](const node& each) -> std::optional<std::string> {
            const std::string_view text = each.text;
            if (!simplenet::address_set::parse({&text, 1}))
                return complain_about_text(each, "is neither an address nor a prefix, such as "
                                                 "\"192.0.2.1\", \"10.0.0.0/8\" or \"fd00::/8\"");
            if (const auto meant = without_bits_behind(text))
                return complain_about_text(each, "has bits behind its prefix; did you mean " +
                                                     quote(*meant) + " or " +
                                                     quote(text.substr(0, text.find('/'))) + '?');
            return each.text;
        });
        if (!texts) return std::nullopt;
        made.texts = std::move(*texts);
        const std::vector<std::string_view> views(made.texts.begin(), made.texts.end());
        if (auto set = simplenet::address_set::parse(views)) made.set = *std::move(set);
        return value{std::move(made)};
    }

    std::optional<value> headers(const node& at) const {
        if (at.kind != node_kind::table) return wrong_type(at);
        std::vector<header> made;
        bool good = true;
        const auto wrong = [&](position where, std::string what) {
            found.add(where, code(key.name) + ": " + std::move(what));
            good = false;
        };
        for (const entry& each : at.entries) {
            if (auto bad = wrong_header_name(each.key))
                wrong(each.where, quote(each.key) + ' ' + *bad);
            for (const header& other : made)
                if (equal_without_case(other.name, each.key))
                    wrong(each.where, quote(each.key) + " is the same field as " +
                                          quote(other.name) + "; case does not count");
            if (each.value.kind != node_kind::text)
                wrong(each.value.where, quote(each.key) + " is " +
                                            std::string{toml_tree::name_of(each.value.kind)} +
                                            "; a string was expected");
            else if (auto bad = wrong_header_value(each.value.text))
                wrong(each.value.where, "the value of " + quote(each.key) + ' ' + *bad);
            made.push_back({each.key, each.value.text});
        }
        if (!good) return std::nullopt;
        return value{std::move(made)};
    }

    std::optional<value> error_pages(const node& at) const {
        if (at.kind != node_kind::table) return wrong_type(at);
        std::vector<error_page> made;
        bool good = true;
        for (const entry& each : at.entries) {
            unsigned status = 0;
            const char* const end = each.key.data() + each.key.size();
            const auto [rest, error] = std::from_chars(each.key.data(), end, status);
            if (error != std::errc{} || rest != end || each.key.size() != 3 || status < 400 ||
                status > 599) {
                found.add(each.where, code(key.name) + ' ' + quote(each.key) +
                                          " is no status of an error; 400 to 599 was expected");
                good = false;
            }
            if (const auto path = checked(each.value, wrong_path))
                made.push_back({status, *path, each.value.where});
            else
                good = false;
        }
        if (!good) return std::nullopt;
        return value{std::move(made)};
    }

    static complaint wrong_remote_file(std::string_view text) {
        if (text.find('\0') != std::string_view::npos) return "has a zero byte, which no path has";
        if (text.empty() || text.starts_with('/')) return std::nullopt;
        return "is a path as the backend sees it, so it begins with a slash";
    }

    static complaint wrong_content_type(std::string_view text) {
        if (text.empty()) return "is empty; a media type was expected, such as \"text/plain\"";
        return wrong_header_value(text);
    }
};

// --- to TOML -------------------------------------------------------------------------------------

template <class Items, class Format>
std::string format_list(const Items& items, Format format) {
    std::string text = "[";
    for (const auto& each : items) {
        if (text.size() > 1) text += ", ";
        text += format(each);
    }
    return text + ']';
}

template <class Items, class Format>
std::string format_table(const Items& items, Format format) {
    if (std::empty(items)) return "{}";
    std::string text = "{ ";
    for (const auto& each : items) {
        if (text.size() > 2) text += ", ";
        text += format(each);
    }
    return text + " }";
}

struct formatting {
    const httpd::key& key;

    std::string operator()(std::monostate) const { return ""; }
    std::string operator()(bool on) const { return on ? "true" : "false"; }
    std::string operator()(std::uint64_t number) const {
        if (key.type == value_type::choice) return quote(key.choices[number]);
        if (key.type == value_type::size && number >= 1024 && number % 1024 == 0)
            return quote(format_size(number));
        return std::to_string(number);
    }
    std::string operator()(std::chrono::nanoseconds time) const {
        return quote(format_duration(time));
    }
    std::string operator()(const std::string& text) const { return quote(text); }
    std::string operator()(const std::vector<std::string>& texts) const {
        return format_list(texts, quote);
    }
    std::string operator()(const addresses& set) const { return format_list(set.texts, quote); }
    std::string operator()(const std::vector<header>& headers) const {
        return format_table(headers, [](const header& each) {
            return quote(each.name) + " = " + quote(each.value);
        });
    }
    std::string operator()(const std::vector<error_page>& pages) const {
        return format_table(pages, [](const error_page& each) {
            return std::to_string(each.status) + " = " + quote(each.path);
        });
    }
    std::string operator()(const std::vector<backend>& backends) const {
        return format_list(backends, [&](const backend& each) {
            if (each.weight == 1) return quote(each.address);
            return format_table_of(*key.sub, &each);
        });
    }
    std::string operator()(const path_match& match) const { return quote(to_text(match)); }
    std::string operator()(const run_as& user) const { return quote(user.name); }
    std::string operator()(const simplenet::endpoint& endpoint) const {
        return quote(endpoint.to_string());
    }
    std::string operator()(const tls_options& tls) const {
        return format_list(tls.certificates, [&](const certificate& each) {
            tls_options one = tls;
            one.certificates = {each};
            return format_table_of(*key.sub, &one);
        });
    }
};

} // namespace

std::optional<value> read_value(const key& key, const toml_tree::entry& entry,
                                std::string_view directory, problems& found) {
    const reading reader{key, directory, found};
    const node& at = entry.value;
    switch (key.type) {
    case value_type::boolean:
        if (at.kind != node_kind::boolean) return reader.wrong_type(at);
        return value{at.boolean};
    case value_type::integer:
        return reader.integer(at);
    case value_type::size:
        return reader.size(at);
    case value_type::duration:
        return reader.duration(at);
    case value_type::text:
        if (at.kind != node_kind::text) return reader.wrong_type(at);
        return value{at.text};
    case value_type::choice:
        return reader.choice(at);
    case value_type::header_text:
        return reader.text_checked(at, reading::wrong_content_type);
    case value_type::quoted_text:
        return reader.text_checked(at, wrong_quoted_text);
    case value_type::file:
        return reader.file(at);
    case value_type::remote_file:
        return reader.text_checked(at, reading::wrong_remote_file);
    case value_type::log_target:
        return reader.log_target(at);
    case value_type::url_path:
        return reader.text_checked(at, wrong_path);
    case value_type::redirect_to:
        return reader.text_checked(at, wrong_redirect);
    case value_type::status:
        return reader.status(at);
    case value_type::user:
        return reader.user(at);
    case value_type::endpoint:
        return reader.endpoint(at);
    case value_type::match:
        return reader.match(at);
    case value_type::backend:
        return reader.backend(at);
    case value_type::hosts:
        return reader.hosts(at);
    case value_type::names:
        return reader.names(at);
    case value_type::media_types:
        return reader.media_types(at);
    case value_type::addresses:
        return reader.address_list(at);
    case value_type::headers:
        return reader.headers(at);
    case value_type::error_pages:
        return reader.error_pages(at);
    case value_type::backends:
    case value_type::certificates:
    case value_type::table:
    case value_type::tables:
        break; // config/reader.cpp: they have keys of their own
    }
    return reader.wrong_type(at);
}

std::string format_value(const key& key, const value& value) {
    return std::visit(formatting{key}, value);
}

std::string format_table_of(const section& section, const void* object) {
    return format_table(section.keys, [&](const key& each) {
        return std::string{each.name} + " = " +
               format_value(each,
                            object == nullptr ? section.default_of(each) : each.stored.get(object));
    });
}

} // namespace httpd
