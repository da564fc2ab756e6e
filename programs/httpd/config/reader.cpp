#include "httpd/config/reader.hpp"

#include "httpd/config/check.hpp"
#include "httpd/config/expected.hpp"
#include "httpd/config/keys.hpp"
#include "httpd/config/nginx_words.hpp"
#include "httpd/config/syntax.hpp"
#include "httpd/config/text.hpp"
#include "httpd/config/toml.hpp"
#include "httpd/config/values.hpp"

#include <simplenet/core/unique_fd.hpp>
#include <simplenet/http/backend.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace httpd {
namespace {

using toml_tree::entry;
using toml_tree::node;
using toml_tree::node_kind;

std::string title_of(const section& section) {
    if (section.name.empty()) return "the top of the file";
    if (section.name.starts_with('[')) return std::string{section.name};
    return code(section.name);
}

class file_reader {
public:
    file_reader(std::string directory, problems& found)
        : directory_{std::move(directory)}
        , found_{found} {}

    // `object` is what `section` describes; `where` is the table's place, or that of its header.
    void read_section(const section& section, const node& table, position where, void* object) {
        for (const entry& each : table.entries)
            if (section.find(each.key) == nullptr) unknown(section, each);
        // In the order of the table of keys, but for [limits], which has defaults of sites.
        if (const key* first = section.find("limits")) read_key(section, *first, table, object);
        for (const key& each : section.keys)
            if (each.name != "limits") read_key(section, each, table, object);
        look_for_contradictions(section, table);
        for (const key& each : section.keys)
            if (each.required && table.find(each.name) == nullptr) missing(section, each, where);
    }

private:
    void unknown(const section& section, const entry& given) {
        std::string text = code(given.key) + " is not a key of " + title_of(section);
        std::vector<std::string_view> known;
        for (const key& each : section.keys)
            known.push_back(each.name);
        if (const auto here = counterpart_of(given.key))
            text += "; this directive of nginx is " + named(*here, section) + " here";
        else if (const auto why = why_absent(given.key); !why.empty())
            text += "; this directive of nginx has no counterpart here: " + std::string{why};
        else
            text += suggestion(given.key, known);
        found_.add(given.where, std::move(text));
    }

    static std::string suggestion(std::string_view given, std::span<const std::string_view> known) {
        const httpd::section* const other = owner_of(given);
        const std::string_view meant = closest(given, known);
        if (other == nullptr && meant.empty())
            return "; its keys are " + joined(known, "and", code);
        const std::string there = other == nullptr ? "" : "of " + title_of(*other);
        if (meant.empty()) return "; it is a key " + there;
        if (other == nullptr) return "; did you mean " + code(meant) + "?";
        return "; did you mean " + code(meant) + ", or " + code(given) + ' ' + there + '?';
    }

    static std::string named(const counterpart& here, const section& within) {
        if (here.section == within.name) return code(here.key);
        const auto all = all_sections();
        const auto other = std::ranges::find(all, here.section, &section::name);
        return code(here.key) + " of " + title_of(**other);
    }

    static const section* owner_of(std::string_view name) {
        for (const section* each : all_sections())
            if (each->find(name) != nullptr) return each;
        return nullptr;
    }

    void missing(const section& section, const key& key, position where) {
        if (section.name.empty()) {
            found_.add({},
                       "there is no [[" + std::string{key.name} + "]]; at least one was expected");
            return;
        }
        found_.add(where, title_of(section) + " has no " + code(key.name) + "; " +
                              expected_value(key) + " was expected, such as " + example_of(key));
    }

    void look_for_contradictions(const section& section, const node& table) {
        for (const key& each : section.keys) {
            const entry* const given = table.find(each.name);
            if (given == nullptr) continue;
            for (const key& other : section.keys) {
                if (&other == &each) break; // each pair once
                const entry* const beside = table.find(other.name);
                if (beside == nullptr || each.group.empty() || other.group != each.group) continue;
                const bool later = std::tuple{given->where.line, given->where.column} >
                                   std::tuple{beside->where.line, beside->where.column};
                const entry& second = later ? *given : *beside;
                const entry& first = later ? *beside : *given;
                found_.add(second.where, code(second.key) + " and " + code(first.key) +
                                             " exclude each other; " + code(first.key) + " is at " +
                                             to_text(first.where));
            }
            const bool has_need = std::ranges::any_of(
                each.needs, [&](std::string_view need) { return table.find(need) != nullptr; });
            if (!each.needs.empty() && !has_need)
                found_.add(given->where,
                           code(each.name) + " has a meaning only beside " + either(each.needs));
        }
    }

    static std::string either(std::span<const std::string_view> names) {
        std::string text;
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
            text += code(names[i]);
        }
        return text;
    }

    void read_key(const section& section, const key& key, const node& table, void* object) {
        const entry* const given = table.find(key.name);
        if (given == nullptr) return;
        switch (key.type) {
        case value_type::table:
            read_table(key, *given, object);
            return;
        case value_type::tables:
            read_tables(section, key, *given, object);
            return;
        case value_type::backends:
            store(key, *given, read_backends(key, *given), object);
            return;
        case value_type::certificates:
            store(key, *given, read_certificates(key, *given), object);
            return;
        default:
            store(key, *given, read_value(key, *given, directory_, found_), object);
            return;
        }
    }

    static void store(const key& key, const entry& given, std::optional<value> read, void* object) {
        // What is given but wrong is not missing: nothing more is said about that.
        if (!read && key.type == value_type::backends)
            read = value{std::vector<backend>{}};
        else if (!read &&
                 (key.name == "root" || key.type == value_type::remote_file || !key.group.empty()))
            read = value{std::string{"/"}};
        if (!read) return;
        key.stored.set(object, *std::move(read), given.value.where);
        // Parallel to the names, which are in order if they are all good.
        if (key.stored.add_place == nullptr) return;
        for (const node& each : given.value.items)
            key.stored.add_place(object, each.where);
    }

    void read_table(const key& key, const entry& given, void* object) {
        if (given.value.kind != node_kind::table) {
            wrong_table(key, given, "a table was expected, " + table_example(key));
            return;
        }
        read_section(*key.sub, given.value, given.where, key.inside.open(object, given.where));
    }

    static std::string table_example(const key& key) {
        if (key.sub->name.starts_with('[')) return "as in " + std::string{key.sub->name};
        const httpd::key& first = key.sub->keys.front();
        return "such as { " + std::string{first.name} + " = " + example_of(first) + " }";
    }

    void read_tables(const section& section, const key& key, const entry& given, void* object) {
        const std::string header = "[[" + (section.name.empty() ? "" : std::string{"site."}) +
                                   std::string{key.name} + "]]";
        if (given.value.kind != node_kind::array) {
            wrong_table(key, given,
                        given.value.kind == node_kind::table
                            ? "there may be several of them; write " + header +
                                  ", with two brackets"
                            : "tables were expected, as in " + header);
            return;
        }
        for (const node& each : given.value.items) {
            if (each.kind != node_kind::table) {
                found_.add(each.where, code(key.name) + " has " +
                                           std::string{toml_tree::name_of(each.kind)} +
                                           " in its list; tables were expected, as in " + header);
                continue;
            }
            read_section(*key.sub, each, each.where, key.inside.open(object, each.where));
        }
        if (key.required && given.value.items.empty())
            found_.add(given.where, code(key.name) + " is empty; at least one table was expected");
    }

    void wrong_table(const key& key, const entry& given, std::string expected) {
        found_.add(given.value.kind == node_kind::table ? given.where : given.value.where,
                   code(key.name) + " is " + std::string{toml_tree::name_of(given.value.kind)} +
                       "; " + std::move(expected));
    }

    std::optional<value> read_backends(const key& key, const entry& given) {
        std::vector<backend> backends;
        bool good = true;
        const auto read_one = [&](const node& one) {
            if (one.kind == node_kind::table) {
                read_section(*key.sub, one, one.where, &backends.emplace_back());
            } else if (one.kind == node_kind::text) {
                auto address =
                    read_value(named(*key.sub->find("address"), key),
                               {std::string{key.name}, one.where, one}, directory_, found_);
                good = good && address.has_value();
                if (address)
                    backends.push_back({.address = std::get<std::string>(*std::move(address))});
            } else {
                found_.add(one.where, code(key.name) + " has " +
                                          std::string{toml_tree::name_of(one.kind)} +
                                          " in its list; a string or a table was expected, as in "
                                          "{ address = \"127.0.0.1:9000\", weight = 2 }");
                good = false;
            }
            if (!backends.empty()) backends.back().where = one.where;
        };
        const node& at = given.value;
        if (at.kind != node_kind::array && at.kind != node_kind::table &&
            at.kind != node_kind::text)
            return wrong_value(key, at);
        if (at.kind == node_kind::array) {
            if (at.items.empty() || at.items.size() > simplenet::http::most_backends) {
                found_.add(at.where, code(key.name) + " has " + std::to_string(at.items.size()) +
                                         " backends; 1 to " +
                                         std::to_string(simplenet::http::most_backends) +
                                         " were expected");
                return std::nullopt;
            }
            for (const node& each : at.items)
                read_one(each);
        } else {
            read_one(at);
        }
        for (std::size_t i = 0; i < backends.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                if (backends[i].address == backends[j].address && !backends[i].address.empty())
                    found_.add(backends[i].where, code(key.name) + " has " +
                                                      quote(backends[i].address) +
                                                      " twice; give it a `weight` instead");
        if (!good) return std::nullopt;
        return value{std::move(backends)};
    }

    // The same key, called like another one in messages.
    static key named(key of, const key& like) {
        of.name = like.name;
        return of;
    }

    std::optional<value> wrong_value(const key& key, const node& at) {
        found_.add(at.where, code(key.name) + " is " + std::string{toml_tree::name_of(at.kind)} +
                                 "; " + expected_value(key) + " was expected, such as " +
                                 example_of(key));
        return std::nullopt;
    }

    std::optional<value> read_certificates(const key& key, const entry& given) {
        const node& at = given.value;
        if (at.kind != node_kind::table && at.kind != node_kind::array) return wrong_value(key, at);
        if (at.kind == node_kind::array && at.items.empty()) {
            found_.add(at.where, code(key.name) +
                                     " is an empty list; a certificate was expected, "
                                     "such as " +
                                     example_of(key));
            return std::nullopt;
        }
        tls_options made;
        std::array<const entry*, 2> stated{}; // who has said what holds for all
        const auto read_one = [&](const node& one) {
            if (one.kind != node_kind::table) {
                wrong_value(key, one);
                return;
            }
            tls_options part;
            part.certificates.emplace_back();
            read_section(*key.sub, one, one.where, &part);
            made.certificates.push_back(std::move(part.certificates.front()));
            const entry* const minimum = one.find("minimum");
            const entry* const issuer = one.find("client_ca");
            if (agrees(stated[0], minimum)) made.minimum = part.minimum;
            if (agrees(stated[1], issuer)) {
                made.client_ca = std::move(part.client_ca);
                made.client_ca_where = part.client_ca_where;
            }
        };
        if (at.kind == node_kind::table) read_one(at);
        for (const node& each : at.items)
            read_one(each);
        return value{std::move(made)};
    }

    // Whether `given` is the first that has been said.
    bool agrees(const entry*& before, const entry* given) {
        if (given == nullptr) return false;
        if (before == nullptr) {
            before = given;
            return true;
        }
        if (before->value.text != given->value.text)
            found_.add(given->where, code(given->key) +
                                         " holds for all certificates of the "
                                         "address, and is another one at " +
                                         to_text(before->where));
        return false;
    }

    std::string directory_;
    problems& found_;
};

// A route's fields are the site's, but for those that have its own names, and its own.
void inherit_headers(configuration& whole) {
    for (site& site : whole.sites)
        for (route& route : site.routes) {
            std::vector<header> all;
            for (const header& each : site.headers) {
                const bool replaced = std::ranges::any_of(route.headers, [&](const header& own) {
                    return equal_without_case(own.name, each.name);
                });
                if (!replaced) all.push_back(each);
            }
            all.insert(all.end(), route.headers.begin(), route.headers.end());
            route.headers = std::move(all);
        }
}

struct file_content {
    std::string text;
    int error = 0;
};

file_content content_of(const std::string& file) {
    // So large a file was written by no person, and could be a device.
    constexpr std::size_t most = std::size_t{16} << 20;
    // A FIFO without a writer would hold up the program for good, and its signals with it.
    const simplenet::unique_fd fd{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    file_content content;
    if (!fd) {
        content.error = errno;
        return content;
    }
    // What a writer of a pipe has not written yet is waited for.
    ::fcntl(fd.get(), F_SETFL, O_RDONLY);
    std::array<char, 16384> buffer{};
    while (true) {
        const ::ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
        if (count == 0) return content;
        if (count < 0 && errno == EINTR) continue;
        content.error = count < 0 ? errno : content.text.size() > most ? EFBIG : 0;
        if (content.error != 0) return content;
        content.text.append(buffer.data(), static_cast<std::size_t>(count));
    }
}

} // namespace

reading_result read_text(std::string_view text, const std::string& file, bool whole) {
    reading_result result;
    result.configuration.file = file;
    const auto tree = toml_tree::parse(text, result.problems);
    if (!tree) return result;

    std::string directory = std::filesystem::path{file}.parent_path().string();
    file_reader reader{std::move(directory), result.problems};
    reader.read_section(top_section, *tree, {}, &result.configuration);
    inherit_headers(result.configuration);
    check_configuration(result.configuration, result.problems);
    if (whole) check_files(result.configuration, result.problems);
    return result;
}

reading_result read_file(const std::string& file) {
    std::error_code ignored;
    std::string absolute = std::filesystem::absolute(file, ignored).string();
    const file_content content = content_of(absolute);
    if (content.error == 0) return read_text(content.text, absolute);

    reading_result result;
    result.configuration.file = std::move(absolute);
    result.problems.add({}, "cannot be read: " + std::system_category().message(content.error));
    return result;
}

} // namespace httpd
