#include "httpd/config/syntax.hpp"

#include "httpd/config/problem.hpp"
#include "httpd/config/text.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace httpd {
namespace {

bool is_digit(char each) noexcept {
    return each >= '0' && each <= '9';
}
bool is_letter(char each) noexcept {
    return lower(each) >= 'a' && lower(each) <= 'z';
}
bool is_ascii(std::string_view text) noexcept {
    return std::ranges::all_of(text, [](char each) { return (each & 0x80) == 0; });
}
bool is_control(char each) noexcept {
    return static_cast<unsigned char>(each) < 0x20 || each == 0x7f;
}
// RFC 9110, section 5.6.2.
bool is_token(std::string_view text) noexcept {
    return !text.empty() && std::ranges::all_of(text, [](char each) {
        return is_letter(each) || is_digit(each) ||
               std::string_view{"!#$%&'*+-.^_`|~"}.find(each) != std::string_view::npos;
    });
}

std::optional<unsigned> hex_value(char each) noexcept {
    if (is_digit(each)) return static_cast<unsigned>(each - '0');
    if (lower(each) >= 'a' && lower(each) <= 'f')
        return static_cast<unsigned>(lower(each) - 'a' + 10);
    return std::nullopt;
}

std::string lower_case(std::string_view text) {
    std::string result{text};
    std::ranges::transform(result, result.begin(), lower);
    return result;
}

complaint wrong_label(std::string_view label) {
    if (label.empty()) return "has an empty part between its dots";
    if (label.size() > 63) return "has a part of more than 63 characters";
    if (label.front() == '-' || label.back() == '-')
        return "has a part that begins or ends with a hyphen";
    for (const char each : label)
        if (!is_letter(each) && !is_digit(each) && each != '-' && each != '_')
            return "has a " + quote({&each, 1}) + ", which no name of a host has";
    return std::nullopt;
}

// Like the library's normalised paths, but for what could not be written in a request at all.
std::string normalised(std::string_view text) {
    std::vector<std::string> segments;
    bool ends_in_slash = false;
    while (!text.empty()) {
        text.remove_prefix(text.starts_with('/') ? 1 : 0);
        const std::string_view raw = text.substr(0, text.find('/'));
        text.remove_prefix(raw.size());

        std::string segment;
        for (std::size_t i = 0; i < raw.size(); ++i) {
            const auto high = i + 2 < raw.size() ? hex_value(raw[i + 1]) : std::nullopt;
            const auto low = high ? hex_value(raw[i + 2]) : std::nullopt;
            if (raw[i] != '%' || !low) {
                segment += raw[i];
                continue;
            }
            const char byte = static_cast<char>(*high * 16 + *low);
            if (byte == '/') segment += "%2F";
            // An encoded percent sign stays where it would look like an encoding.
            else if (byte == '%' && (raw.substr(i + 3, 2) == "2F" || raw.substr(i + 3, 2) == "2f" ||
                                     raw.substr(i + 3, 2) == "25"))
                segment += "%25";
            else
                segment += byte;
            i += 2;
        }
        ends_in_slash = segment.empty() || segment == "." || segment == "..";
        if (segment == "..") {
            if (!segments.empty()) segments.pop_back();
        } else if (!segment.empty() && segment != ".") {
            segments.push_back(std::move(segment));
        }
    }
    std::string result;
    for (const std::string& each : segments)
        result += '/' + each;
    if (result.empty() || ends_in_slash) result += '/';
    return result;
}

constexpr std::string_view no_such_path = "matches no path, since paths are compared normalised; ";

std::expected<path_match, std::string> parse_suffix(std::string_view text) {
    if (text == "*") return std::unexpected{"is not a match; for all paths: `/*`"};
    const std::string_view suffix = text.substr(1);
    if (suffix.find('*') != std::string_view::npos) return std::unexpected{"has more than one `*`"};
    if (!suffix.starts_with('.') || suffix.size() < 2)
        return std::unexpected{"is not a match: behind a `*` at the front, a dot and a suffix are "
                               "expected, as in `*.php`"};
    if (suffix.find('/') != std::string_view::npos)
        return std::unexpected{"is not a match: a suffix has no slash"};
    if (suffix.find('\0') != std::string_view::npos)
        return std::unexpected{"has a zero byte, which no path has"};
    const std::string wanted = normalised(suffix);
    if (wanted.substr(1) != suffix && suffix != "..")
        return std::unexpected{std::string{no_such_path} + "did you mean " +
                               code('*' + wanted.substr(1)) + "?"};
    return path_match{.kind = path_match::form::suffix, .text = std::string{suffix}};
}

} // namespace

complaint wrong_host(std::string_view text) {
    if (text.empty()) return "is empty; leave it out, or all of `hosts`";
    if (text == "*" || text == "_")
        return "is no name of a host; for any name, leave `hosts` of a site out";
    if (text.find("://") != std::string_view::npos) return "is a URL; only the name is expected";
    if (text.starts_with('[')) {
        const bool closed = text.ends_with(']');
        const auto address = simplenet::ip_address::parse(text.substr(1, text.size() - 2));
        if (closed && address && address->is_v6()) return std::nullopt;
        return "is no IPv6 address in brackets, such as `[2001:db8::1]`, without a port";
    }
    if (const auto address = simplenet::ip_address::parse(text)) {
        if (address->is_v6())
            return "is an IPv6 address; write it in brackets: " +
                   code('[' + std::string{text} + ']');
        return std::nullopt;
    }
    if (text.find(':') != std::string_view::npos)
        return "has a port; only the name is expected: " + code(text.substr(0, text.find(':')));
    if (text.find('/') != std::string_view::npos)
        return "has a path; only the name is expected: " + code(text.substr(0, text.find('/')));
    if (!is_ascii(text))
        return "has letters that no name of a host has on the wire; write it with A-labels "
               "(`xn--...`), as idn2(1) prints them";

    std::string_view name = text.starts_with("*.") ? text.substr(2) : text;
    if (name.find('*') != std::string_view::npos)
        return "has a `*` elsewhere than in `*.` at the front, which stands for all names below";
    if (name.ends_with('.')) name.remove_suffix(1);
    if (name.size() > 253) return "has more than 253 characters";
    while (true) {
        const std::size_t dot = std::min(name.find('.'), name.size());
        if (auto wrong = wrong_label(name.substr(0, dot))) return wrong;
        if (dot == name.size()) return std::nullopt;
        name.remove_prefix(dot + 1);
    }
}

std::string normal_host(std::string_view text) {
    if (text.ends_with('.')) text.remove_suffix(1);
    return lower_case(text);
}

complaint wrong_path(std::string_view text) {
    if (!text.starts_with('/')) return "does not begin with a slash";
    if (text.find('\0') != std::string_view::npos) return "has a zero byte, which no path has";
    for (const char each : {'?', '#'})
        if (text.find(each) != std::string_view::npos)
            return "has a " + quote({&each, 1}) + ", which no path has";
    const std::string right = normalised(text);
    if (right == text) return std::nullopt;
    return std::string{no_such_path} + "did you mean " + quote(right) + "?";
}

std::expected<path_match, std::string> parse_match(std::string_view text) {
    if (text.starts_with('*')) return parse_suffix(text);
    if (!text.starts_with('/'))
        return std::unexpected{"is not a match; `/path`, `/path/*` or `*.suffix` was expected"};

    const std::size_t star = text.find('*');
    if (star == std::string_view::npos) {
        if (auto wrong = wrong_path(text)) return std::unexpected{std::move(*wrong)};
        return path_match{.kind = path_match::form::exact, .text = std::string{text}};
    }
    const std::string_view front = text.substr(0, star);
    if (star + 1 != text.size())
        return std::unexpected{
            "has a `*` that is neither behind the last slash nor before a suffix"};
    if (!front.ends_with('/'))
        return std::unexpected{"is not a match: `*` stands for whole segments; did you mean " +
                               quote(std::string{front} + "/*") + "?"};
    if (auto wrong = wrong_path(front)) {
        const std::string right = normalised(front);
        if (right == front) return std::unexpected{std::move(*wrong)};
        return std::unexpected{std::string{no_such_path} + "did you mean " + quote(right + '*') +
                               "?"};
    }
    return path_match{.kind = path_match::form::prefix, .text = std::string{front}};
}

std::string to_text(const path_match& match) {
    switch (match.kind) {
    case path_match::form::prefix:
        return match.text + '*';
    case path_match::form::suffix:
        return '*' + match.text;
    case path_match::form::exact:
        break;
    }
    return match.text;
}

complaint wrong_redirect(std::string_view text) {
    if (text.empty()) return "is empty; a path or an absolute URL was expected";
    for (const char each : text)
        if (is_control(each) || each == ' ' || each == '"' || each == '<' || each == '>' ||
            each == '\\' || (each & 0x80) != 0)
            return "has a character that a URL cannot have; write it percent-encoded";
    if (text.find('#') != std::string_view::npos)
        return "has a fragment, to which nothing can be appended";
    for (const std::string_view variable : {"$request_uri", "$uri", "$host", "$scheme", "$1"}) {
        const std::size_t at = text.find(variable);
        if (at == std::string_view::npos) continue;
        const std::string_view rest = text.substr(at + variable.size());
        if (!rest.empty() && (is_letter(rest.front()) || is_digit(rest.front()))) continue;
        return "has a variable of nginx; what `*` stands for and the query are appended anyway. A "
               "dollar sign of the URL itself is `%24`";
    }
    if (text.starts_with("//"))
        return "begins with two slashes, which a browser takes for another host; write the whole "
               "URL, or one slash";
    if (text.starts_with('/')) return std::nullopt;
    const std::string scheme = lower_case(text.substr(0, text.find("://")));
    if (scheme == "http" || scheme == "https") {
        const std::string_view rest = text.substr(std::min(text.size(), scheme.size() + 3));
        if (!rest.empty() && !rest.starts_with('/')) return std::nullopt;
        return "has no host";
    }
    return "is neither a path with a leading slash nor a URL of http or https";
}

complaint wrong_header_name(std::string_view text) {
    if (!is_token(text)) return "is no name of a field: letters, digits and hyphens were expected";
    // They would contradict what is sent: RFC 9112, section 6; RFC 9110, sections 7.6.1 and 14.4.
    constexpr std::array<std::string_view, 10> own{
        "connection", "content-length", "content-range", "keep-alive",        "proxy-connection",
        "te",         "trailer",        "upgrade",       "transfer-encoding", "date"};
    if (std::ranges::find(own, lower_case(text)) != own.end())
        return "is a field that the server sets itself";
    return std::nullopt;
}

complaint wrong_quoted_text(std::string_view text) {
    const bool controls =
        std::ranges::any_of(text, [](char each) { return is_control(each) && each != '\t'; });
    if (controls) return "has a control character, such as the end of a line, which cannot be sent";
    return std::nullopt;
}

complaint wrong_header_value(std::string_view text) {
    if (auto wrong = wrong_quoted_text(text)) return wrong;
    if (!text.empty() &&
        (text.front() == ' ' || text.front() == '\t' || text.back() == ' ' || text.back() == '\t'))
        return "begins or ends with a blank, which is lost on the way";
    return std::nullopt;
}

complaint wrong_media_type(std::string_view text) {
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos || !is_token(text.substr(0, slash)) ||
        !is_token(text.substr(slash + 1)))
        return "is no media type: `type/subtype` or `type/*` was expected, without parameters";
    if (text.substr(0, slash) == "*") return "would compress what is compressed; list the types";
    const std::string_view subtype = text.substr(slash + 1);
    if (subtype != "*" && subtype.find('*') != std::string_view::npos)
        return "has a `*` beside other characters";
    return std::nullopt;
}

complaint wrong_file_name(std::string_view text) {
    if (text.empty()) return "is empty; the name of a file was expected";
    if (text == "." || text == "..") return "is a directory; the name of a file was expected";
    if (text.find('/') != std::string_view::npos)
        return "has a slash; the name of a file in the same directory was expected";
    if (text.find('\0') != std::string_view::npos)
        return "has a zero byte, which no name of a file has";
    return std::nullopt;
}

std::expected<simplenet::endpoint, std::string> parse_endpoint(std::string_view text) {
    if (const auto parsed = simplenet::endpoint::parse(text)) return *parsed;
    constexpr std::string_view what = "is no address and port";
    // `::1:80` is an address, too, but hardly the one that was meant.
    const std::size_t colon = std::min(text.rfind(':'), text.size());
    const std::string with_brackets =
        '[' + std::string{text.substr(0, colon)} + ']' + std::string{text.substr(colon)};
    if (!text.starts_with('[') && simplenet::endpoint::parse(with_brackets))
        return std::unexpected{std::string{what} + "; did you mean " + quote(with_brackets) + "?"};
    if (const auto address = simplenet::ip_address::parse(text)) {
        const std::string host =
            address->is_v6() ? '[' + std::string{text} + ']' : std::string{text};
        return std::unexpected{std::string{what} + ": the port is missing; did you mean " +
                               quote(host + ":80") + "?"};
    }
    if (text.starts_with(':') && simplenet::endpoint::parse("0.0.0.0" + std::string{text}))
        return std::unexpected{std::string{what} + "; did you mean " +
                               quote("0.0.0.0" + std::string{text}) + ", or " +
                               quote("[::]" + std::string{text}) + "?"};
    if (text.starts_with("localhost:"))
        return std::unexpected{std::string{what} + "; did you mean " +
                               quote("127.0.0.1" + std::string{text.substr(9)}) + "?"};
    if (colon != text.size() &&
        simplenet::endpoint::parse(std::string{text.substr(0, colon)} + ":1"))
        return std::unexpected{std::string{what} + ": a port is a number up to 65535"};
    return std::unexpected{std::string{what} +
                           "; `192.0.2.1:80` or `[2001:db8::1]:80` was expected, and names are not "
                           "looked up"};
}

} // namespace httpd
