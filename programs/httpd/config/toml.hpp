#pragma once
// Texts in TOML as a tree with positions. Separate from toml++, whose header takes seconds to
// compile, and whose tables forget the order of the file.

#include "httpd/config/problem.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace httpd::toml_tree {

struct entry;

enum class node_kind : std::uint8_t { boolean, integer, number, text, date, array, table };

struct node {
    node_kind kind = node_kind::table;
    position where;
    bool boolean = false;
    std::int64_t integer = 0;
    std::string text;
    std::vector<node> items;    ///< Of an array.
    std::vector<entry> entries; ///< Of a table, in the order of the file.

    /// The entry of a table, or null.
    [[nodiscard]] const entry* find(std::string_view key) const noexcept;
};

struct entry {
    std::string key;
    position where;
    node value;
};

/// With an article: "a string".
[[nodiscard]] std::string_view name_of(node_kind kind) noexcept;

/// The table at the root. `found` gets every key that is given twice, of which the first counts. At
/// any other mistake there is nothing, and that is the only one told: what follows it means
/// nothing.
[[nodiscard]] std::optional<node> parse(std::string_view text, problems& found);

} // namespace httpd::toml_tree
