#pragma once
// nginx_words: the key that does what a directive of nginx does, for those who come from there.

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

/// Those that have one.
std::vector<std::string_view> known_directives();

} // namespace httpd
