#pragma once
// The values of keys: from TOML, and to TOML.

#include "httpd/config/keys.hpp"
#include "httpd/config/problem.hpp"
#include "httpd/config/toml.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace httpd {

/// For keys that are no tables of a section.
///
/// @param directory  What relative paths begin at; an absolute path.
/// @return Nothing if something is wrong, which `found` then says.
[[nodiscard]] std::optional<value> read_value(const key& key, const toml_tree::entry& entry,
                                              std::string_view directory, problems& found);

/// As a configuration writes it.
[[nodiscard]] std::string format_value(const key& key, const value& value);

/// An object of a section without tables in it, in one line. Null: one of defaults.
[[nodiscard]] std::string format_table_of(const section& section, const void* object);

} // namespace httpd
