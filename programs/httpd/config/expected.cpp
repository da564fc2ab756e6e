#include "httpd/config/expected.hpp"

#include "httpd/config/text.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace httpd {

namespace {

std::string range_of(const key& key, std::string (*format)(std::uint64_t)) {
    if (key.maximum == std::numeric_limits<std::int64_t>::max())
        return key.minimum == 0 ? "" : "at least " + format(key.minimum);
    return format(key.minimum) + " to " + format(key.maximum);
}

std::string plain_number(std::uint64_t number) {
    return std::to_string(number);
}
std::string plain_text(std::string_view text) {
    return std::string{text};
}
std::string as_duration(std::uint64_t number) {
    return format_duration(std::chrono::nanoseconds{static_cast<std::int64_t>(number)});
}

struct type_text {
    std::string_view name; // without an article
    std::string_view example;
};

type_text text_of(value_type type) {
    switch (type) {
    case value_type::boolean:
        return {"boolean", "true"};
    case value_type::integer:
        return {"integer", "1"};
    case value_type::size:
        return {"size", "\"8KiB\""};
    case value_type::duration:
        return {"duration", "\"10s\""};
    case value_type::text:
    case value_type::quoted_text:
        return {"string", "\"text\""};
    case value_type::choice:
        return {"string", "\"one\""};
    case value_type::header_text:
        return {"string", "\"text/plain\""};
    case value_type::file:
        return {"path", "\"name\""};
    case value_type::remote_file:
        return {"absolute path", "\"/srv/app\""};
    case value_type::log_target:
        return {"path", "\"-\""};
    case value_type::url_path:
        return {"path of a URL", "\"/index.php\""};
    case value_type::redirect_to:
        return {"path or URL", "\"/new/\""};
    case value_type::status:
        return {"status", "404"};
    case value_type::user:
        return {"user", "\"nobody\""};
    case value_type::endpoint:
        return {"address and port", "\"127.0.0.1:8080\""};
    case value_type::match:
        return {"match", "\"/path/*\""};
    case value_type::backend:
        return {"backend", "\"127.0.0.1:9000\""};
    case value_type::hosts:
        return {"list of names", "[\"example.org\"]"};
    case value_type::names:
        return {"list of names", "[\"index.html\"]"};
    case value_type::media_types:
        return {"list of media types", "[\"text/html\"]"};
    case value_type::addresses:
        return {"list of addresses and prefixes", "[\"10.0.0.0/8\"]"};
    case value_type::headers:
        return {"table of fields", "{ \"X-Name\" = \"value\" }"};
    case value_type::error_pages:
        return {"table of statuses and paths", "{ 404 = \"/404.html\" }"};
    case value_type::backends:
        return {"backend or list of backends", "\"127.0.0.1:9000\""};
    case value_type::certificates:
        return {"table or list of tables", "{ certificate = \"site.pem\", key = \"site.key\" }"};
    case value_type::table:
        return {"table", "{}"};
    case value_type::tables:
        break;
    }
    return {"list of tables", "[]"};
}

} // namespace

std::string listed(std::span<const std::string_view> choices) {
    return joined(choices, "or", quote);
}

std::string range_of(const key& key) {
    switch (key.type) {
    case value_type::integer:
        return range_of(key, plain_number);
    case value_type::size:
        return range_of(key, format_size);
    case value_type::duration:
        return range_of(key, as_duration);
    case value_type::status:
        if (key.choices.empty()) return range_of(key, plain_number);
        return joined(key.choices, "or", plain_text);
    case value_type::choice:
        return listed(key.choices);
    default:
        return "";
    }
}

std::string type_of(const key& key) {
    std::string text{text_of(key.type).name};
    if (key.type == value_type::choice) return range_of(key);
    if (const std::string range = range_of(key); !range.empty()) text += ", " + range;
    return text;
}

std::string expected_value(const key& key) {
    if (key.type == value_type::choice) return listed(key.choices);
    const std::string text{text_of(key.type).name};
    const bool vowel = std::string_view{"aeio"}.find(text.front()) != std::string_view::npos;
    const std::string range = range_of(key);
    return (vowel ? "an " : "a ") + text +
           (range.empty() ? "" : (key.choices.empty() ? " from " : " that is ") + range);
}

std::string example_of(const key& key) {
    if (!key.choices.empty())
        return key.type == value_type::status ? std::string{key.choices.front()}
                                              : quote(key.choices.front());
    if (key.type == value_type::integer)
        return std::to_string(std::clamp<std::uint64_t>(2, key.minimum, key.maximum));
    return std::string{text_of(key.type).example};
}

} // namespace httpd
