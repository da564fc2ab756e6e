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

/// What may be written, with an article: "an integer from 0 to 1024".
[[nodiscard]] std::string expected_value(const key& key);

/// What may be written, for the column of the reference: "integer, 0 to 1024".
[[nodiscard]] std::string type_of(const key& key);

/// An example of a correct value, in TOML.
[[nodiscard]] std::string example_of(const key& key);

} // namespace httpd
