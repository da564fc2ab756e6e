#pragma once
// The table of all keys of a configuration. It drives reading, --print-config and the reference
// page, so these cannot disagree.

#include "httpd/config/configuration.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace httpd {

/// What a key may be, and how it is written. config/values.hpp reads and writes each.
enum class value_type : std::uint8_t {
    boolean,
    integer,
    size,
    duration,
    text,
    choice,       ///< One of key::choices; stored as its index.
    header_text,  ///< What can be the value of a field, not empty.
    quoted_text,  ///< What can stand between quotes in the value of a field.
    file,         ///< A path, absolute or relative to the file of the configuration.
    remote_file,  ///< An absolute path, of another machine perhaps.
    log_target,   ///< The same, or "-", or "off".
    url_path,     ///< A normalised path that begins with a slash.
    redirect_to,  ///< A path or an absolute URL.
    status,       ///< One of HTTP; key::minimum, key::maximum, or key::choices.
    user,         ///< A user of this system.
    endpoint,     ///< An address and a port.
    match,        ///< Which paths a route takes.
    backend,      ///< The address of one.
    hosts,        ///< A list of names of hosts.
    names,        ///< A list of names of files, without a slash.
    media_types,  ///< A list.
    addresses,    ///< A list of addresses and prefixes.
    headers,      ///< A table of fields and their values.
    error_pages,  ///< A table of statuses and paths.
    backends,     ///< An address, or a list of addresses and of tables.
    certificates, ///< A table of key::sub, or a list of them.
    table,        ///< One table of key::sub.
    tables,       ///< `[[name]]`: any number of them.
};

/// The value of a key that is no table. Nothing: absent, which a key without a default can be.
using value = std::variant<std::monostate, bool, std::uint64_t, std::chrono::nanoseconds,
                           std::string, std::vector<std::string>, std::vector<header>,
                           std::vector<error_page>, std::vector<backend>, addresses, path_match,
                           run_as, simplenet::endpoint, tls_options>;

/// Where the value of a key is stored, in the object that key's section describes.
struct storage {
    void (*set)(void* object, value given, position where) = nullptr;
    value (*get)(const void* object) = nullptr;
    /// Of a list: stores the place of each item, in order. Null: they are not needed.
    void (*add_place)(void* object, position where) = nullptr;
};

/// Where the tables of a key are stored.
struct children {
    /// Makes one more, or returns the only one. `where` is the place of its header.
    void* (*open)(void* object, position where) = nullptr;
    std::size_t (*count)(const void* object) = nullptr;
    const void* (*at)(const void* object, std::size_t index) = nullptr;
};

struct section;

struct key {
    std::string_view name;
    value_type type = value_type::text;
    storage stored{};
    const section* sub = nullptr;
    children inside{};
    /// Of an integer, size, status; of a duration in nanoseconds.
    std::uint64_t minimum = 0;
    std::uint64_t maximum = 0;
    std::span<const std::string_view> choices{};
    bool required = false;
    /// Keys of one table with the same group exclude each other. Empty: none.
    std::string_view group{};
    /// One of these must stand beside it. Empty: it stands alone.
    std::span<const std::string_view> needs{};
    /// One sentence or more for the reference, in Markdown.
    std::string_view description{};
    /// What the reference says in place of the default. Empty: the value that a new object has.
    std::string_view default_note{};
};

struct section {
    std::string_view name;        ///< As it is written: `[[site]]`; empty for the top.
    std::string_view description; ///< For the reference, in Markdown.
    std::span<const key> keys;

    [[nodiscard]] const key* find(std::string_view name) const noexcept;
    /// A new object of the section as value of `stored.get`, for defaults.
    value (*default_of)(const key& key) = nullptr;
};

/// The top of the file; its object is a configuration. All others are below it.
extern const section top_section;
/// The object is a tls_options with one certificate.
extern const section tls_section;
/// The object is a backend.
extern const section backend_section;

/// All sections, the top first, each before those below it.
[[nodiscard]] std::span<const section* const> all_sections() noexcept;

} // namespace httpd
