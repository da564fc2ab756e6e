#include "httpd/config/toml.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

namespace httpd::toml_tree {
namespace {

position position_of(const toml::source_region& region) noexcept {
    return {region.begin.line, region.begin.column};
}

node converted(const toml::node& from) {
    node to;
    to.where = position_of(from.source());
    switch (from.type()) {
    case toml::node_type::boolean:
        to.kind = node_kind::boolean;
        to.boolean = **from.as_boolean();
        break;
    case toml::node_type::integer:
        to.kind = node_kind::integer;
        to.integer = **from.as_integer();
        break;
    case toml::node_type::floating_point:
        to.kind = node_kind::number;
        break;
    case toml::node_type::string:
        to.kind = node_kind::text;
        to.text = **from.as_string();
        break;
    case toml::node_type::array:
        to.kind = node_kind::array;
        for (const toml::node& each : *from.as_array())
            to.items.push_back(converted(each));
        break;
    case toml::node_type::table:
        to.kind = node_kind::table;
        for (auto&& [key, value] : *from.as_table())
            to.entries.push_back(
                {std::string{key.str()}, position_of(key.source()), converted(value)});
        std::ranges::sort(to.entries, {}, [](const entry& each) {
            return std::tuple{each.where.line, each.where.column};
        });
        break;
    default:
        to.kind = node_kind::date;
        break;
    }
    return to;
}

// The rest of the text from this line on. Lines count from 1.
std::string_view from_line(std::string_view text, std::size_t line) {
    for (; line > 1 && text.find('\n') != std::string_view::npos; --line)
        text.remove_prefix(text.find('\n') + 1);
    return text;
}

void blank_line(std::string& text, std::size_t line) {
    const std::string_view rest = from_line(text, line);
    text.erase(text.size() - rest.size(), std::min(rest.find('\n'), rest.size()));
}

// The number of blanks at the front of a line.
std::size_t indentation(std::string_view line) {
    return std::min(line.find_first_not_of(" \t"), line.size());
}

// The name in quotation marks behind `before`; empty if there is none.
std::string_view name_behind(std::string_view what, std::string_view before) {
    const std::size_t found = what.find(before);
    if (found == std::string_view::npos) return {};
    what.remove_prefix(found + before.size());
    return what.substr(0, what.find('\''));
}

// What was hardly meant as TOML; empty: nothing in particular.
std::string_view misunderstanding_in(std::string_view line) {
    const std::size_t comment = line.find('#');
    if (line.find_first_of("\"'") > comment) line = line.substr(0, comment);
    const auto trim = [](std::string_view text) {
        text.remove_prefix(indentation(text));
        return text.substr(0, text.find_last_not_of(" \t\r") + 1);
    };
    line = trim(line);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos && (line.ends_with('{') || line.ends_with(';')))
        return "this looks like a file of nginx; here it is `key = value`";
    if (equals == std::string_view::npos) return {};
    const std::string_view value = trim(line.substr(equals + 1));
    if (value.ends_with(';')) return "there is no semicolon behind a value";
    for (const std::string_view each : {"on", "off", "yes", "no"})
        if (value == each) return "a boolean is `true` or `false`";
    // Also 127.0.0.1:80 and 10s, which begin like a number or a time.
    const bool has_key = equals != 0 && trim(line.substr(0, equals)).find(' ') == value.npos;
    const bool is_bare = value.find_first_of("\"'[{ ") == value.npos;
    const bool is_number = value.find_first_not_of("+-_0123456789") == value.npos;
    if (has_key && is_bare && !is_number) return "strings are written in quotation marks";
    return {};
}

// An error of toml++ tells what the parser saw; this tells what was done. `rest` is the line from
// the error on.
std::string explained(std::string what, std::string_view line, std::string_view rest) {
    const auto has = [&](std::string_view part) { return what.find(part) != std::string::npos; };
    if (has("parsing string") && has("control characters") && (rest.empty() || rest == "\r"))
        return "not TOML: the string does not end in its line; is a quotation mark missing?";
    if (has("parsing inline table") && has("saw '\\n'"))
        return "not TOML: a table in braces has to stand in one line";
    const std::string_view name = name_behind(what, "existing table '");
    if (has("as array-of-tables") && !name.empty()) {
        const std::string header = "[[" + std::string{name} + "]]";
        return "a table that belongs to " + code(header) + " stands before it";
    }
    if (const std::string_view meant = misunderstanding_in(line); !meant.empty())
        return "not TOML: " + std::string{meant};
    constexpr std::string_view prefix = "Error while ";
    if (what.starts_with(prefix)) what.replace(0, prefix.size(), "not TOML; while ");
    return what;
}

// The first line with so many dots that its keys could be nested deeper than the stack allows: the
// parser recurses over dotted keys without a limit of its own. 0: none.
std::uint32_t line_of_too_deep_keys(std::string_view text) {
    constexpr std::ptrdiff_t most_dots = 1000;
    for (std::uint32_t line = 1; !text.empty(); ++line) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        if (std::ranges::count(text.substr(0, end), '.') > most_dots) return line;
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return 0;
}

} // namespace

const entry* node::find(std::string_view key) const noexcept {
    const auto found = std::ranges::find(entries, key, &entry::key);
    return found == entries.end() ? nullptr : &*found;
}

std::string_view name_of(node_kind kind) noexcept {
    switch (kind) {
    case node_kind::boolean:
        return "a boolean";
    case node_kind::integer:
        return "an integer";
    case node_kind::number:
        return "a number with a fraction";
    case node_kind::text:
        return "a string";
    case node_kind::date:
        return "a date or a time";
    case node_kind::array:
        return "a list";
    case node_kind::table:
        break;
    }
    return "a table";
}

std::optional<node> parse(std::string_view text, problems& found) {
    if (const std::uint32_t line = line_of_too_deep_keys(text); line != 0) {
        found.add({.line = line, .column = 1}, "has more dots than any keys need");
        return std::nullopt;
    }
    // A key that is given twice is the one mistake after which the rest still means what it says:
    // its line is left out, and the text is parsed again. So often that no file takes long.
    std::string rest{text};
    for (int attempt = 0; attempt < 50; ++attempt) {
        try {
            const toml::table table = toml::parse(rest);
            return converted(table);
        } catch (const toml::parse_error& error) {
            position where = position_of(error.source());
            std::string what{error.description()};
            const bool misplaced = what.find("as array-of-tables") != std::string::npos;
            const bool repeated = !misplaced && what.find("cannot redefine") != std::string::npos;
            if (!repeated && attempt > 0) return std::nullopt; // a line of several is missing
            std::string_view line = from_line(rest, where.line);
            line = line.substr(0, line.find('\n'));
            const std::size_t begin = indentation(line);
            // Without a header the keys below it would belong to another table.
            const bool goes_on = repeated && line.substr(begin, 1) != "[";
            if (repeated) {
                // toml++ names the end of the value; within an inline table that has to do.
                if (line.find('{') == std::string_view::npos)
                    where.column = static_cast<std::uint32_t>(begin + 1);
                what = "given twice: " + what.substr(what.find("cannot redefine"));
            } else {
                what = explained(std::move(what), line,
                                 line.substr(std::min<std::size_t>(line.size(), where.column - 1)));
            }
            found.add(where, std::move(what));
            if (!goes_on) return std::nullopt;
            blank_line(rest, where.line);
        }
    }
    return std::nullopt;
}

} // namespace httpd::toml_tree
