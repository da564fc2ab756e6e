#pragma once
// What a key may have as its value, in words: for messages and the reference.

#include "httpd/config/keys.hpp"

#include <span>
#include <string>
#include <string_view>

namespace httpd {

/// "`a`, `b` or `c`".
[[nodiscard]] std::string listed(std::span<const std::string_view> choices);

/// "0 to 1024", "at least 1"; empty: there are no limits. Of a key with choices, these.
[[nodiscard]] std::string range_of(const key& key);

/// What may be written, with an article: "an integer from 0 to 1024".
[[nodiscard]] std::string expected_value(const key& key);

/// What may be written, for the column of the reference: "integer, 0 to 1024".
[[nodiscard]] std::string type_of(const key& key);

/// An example of a correct value, in TOML.
[[nodiscard]] std::string example_of(const key& key);

} // namespace httpd
