#include "httpd/config/print.hpp"

#include "httpd/config/expected.hpp"
#include "httpd/config/keys.hpp"
#include "httpd/config/values.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <variant>

namespace httpd {
namespace {

bool is_given(const key& key, const void* object) {
    if (key.inside.count != nullptr) return key.inside.count(object) != 0;
    return !std::holds_alternative<std::monostate>(key.stored.get(object));
}

// Tables with a header come behind all other keys: what follows a header belongs to it.
bool has_header(const key& key) {
    return key.type == value_type::tables ||
           (key.type == value_type::table && key.sub->name.starts_with('['));
}

class printer {
public:
    void print(const section& section, const void* object) {
        for (const key& each : section.keys)
            if (!has_header(each)) print_key(section, each, object);
        for (const key& each : section.keys)
            if (has_header(each)) print_tables(each, object);
    }

    std::string take() { return std::move(text_); }

private:
    void print_tables(const key& key, const void* object) {
        for (std::size_t i = 0; i < key.inside.count(object); ++i) {
            text_ += '\n' + std::string{key.sub->name} + '\n';
            print(*key.sub, key.inside.at(object, i));
        }
    }

    void print_key(const section& section, const key& key, const void* object) {
        const bool needed = std::ranges::any_of(key.needs, [&](std::string_view need) {
            return is_given(*section.find(need), object);
        });
        if (!key.needs.empty() && !needed) return;
        if (!is_given(key, object)) {
            // Of keys that exclude each other, those that are absent say nothing.
            if (key.group.empty())
                text_ += "# " + std::string{key.name} + ": " + std::string{key.default_note} + '\n';
            return;
        }
        const bool table = key.type == value_type::table;
        const std::string text = table ? format_table_of(*key.sub, key.inside.at(object, 0))
                                       : format_value(key, key.stored.get(object));
        // What is absent by default, or must be given, is none.
        const bool can_be_default = !key.required && key.default_note.empty() && key.group.empty();
        const bool is_default =
            can_be_default && text == (table ? format_table_of(*key.sub, nullptr)
                                             : format_value(key, section.default_of(key)));
        text_ += std::string{key.name} + " = " + text + (is_default ? " # default\n" : "\n");
    }

    std::string text_;
};

std::string default_text(const section& section, const key& key) {
    if (key.required) return "required";
    if (!key.default_note.empty()) return std::string{key.default_note};
    if (key.type == value_type::table || key.type == value_type::tables) return "";
    const std::string text = format_value(key, section.default_of(key));
    return text.empty() ? "" : '`' + text + '`';
}

// Without brackets: they would have to be escaped, and belong to no anchor.
std::string heading_of(const section& section) {
    if (section.name.empty()) return "Top of the file";
    std::string text{section.name};
    std::erase_if(text, [](char each) { return each == '[' || each == ']'; });
    return text;
}

// How the table is written.
std::string form_of(const section& section) {
    return section.name.starts_with('[') ? '`' + std::string{section.name} + "`. " : "";
}

} // namespace

std::string print_configuration(const configuration& whole) {
    printer printer;
    printer.print(top_section, &whole);
    return printer.take();
}

std::string reference_page() {
    std::string page =
        "# Reference of simplenet-httpd's configuration\n\n"
        "<!-- Made from the table of keys in programs/httpd/config/keys.cpp; "
        "`simplenet-httpd --reference` prints it. -->\n\n"
        "The configuration is a file in [TOML](https://toml.io/en/v1.0.0). "
        "`simplenet-httpd --config FILE --check` says what is wrong with one, and `--print-config` "
        "prints one with all defaults.\n\n"
        "A *duration* is a text with a whole number and a unit: `\"250ms\"`, `\"10s\"`, `\"5m\"`, "
        "`\"1h\"`. A *size* is a number of bytes, or a text with a unit: `4096`, `\"8KiB\"`, "
        "`\"1MiB\"`, `\"1GiB\"`. A relative *path* begins at the directory of the file. "
        "*Addresses* "
        "are written as `192.0.2.1` or `2001:db8::1`, *prefixes* as `10.0.0.0/8` or `fd00::/8`, "
        "without bits behind the prefix; a *backend* is `host:port`, `[::1]:port` or "
        "`unix:/path`.\n";
    for (const section* each : all_sections()) {
        page += "\n## " + heading_of(*each) + "\n\n" + form_of(*each) +
                std::string{each->description} + "\n\n";
        page += "| key | type | default | |\n|---|---|---|---|\n";
        for (const key& key : each->keys) {
            page += "| `" + std::string{key.name} + "` | " + type_of(key) + " | " +
                    default_text(*each, key) + " | " + std::string{key.description} + " |\n";
        }
    }
    return page;
}

} // namespace httpd
