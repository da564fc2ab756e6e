#pragma once
// A configuration as text, and the page of the reference. Both are made from the table of keys.

#include "httpd/config/configuration.hpp"

#include <string>

namespace httpd {

/// The whole configuration as it counts, in TOML: reading it gives the same one. Paths are
/// absolute; values that are defaults are marked by a comment.
[[nodiscard]] std::string print_configuration(const configuration& whole);

/// docs/usage/httpd-reference.md
[[nodiscard]] std::string reference_page();

} // namespace httpd
