#pragma once
// nginx_words: the key that does what a directive of nginx does, or why there is none, for those
// who come from there.

#include <optional>
#include <string_view>
#include <vector>

namespace httpd {

struct counterpart {
    std::string_view section; // empty: the top of the file
    std::string_view key;
};

/// Nothing if `directive` has no counterpart that is one key.
std::optional<counterpart> counterpart_of(std::string_view directive) noexcept;

/// Why there is nothing here that does what `directive` does; empty: it is not known.
std::string_view why_absent(std::string_view directive) noexcept;

std::vector<std::string_view> directives_with_counterpart();
std::vector<std::string_view> directives_without_counterpart();

} // namespace httpd
