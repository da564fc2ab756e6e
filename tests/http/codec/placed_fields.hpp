#pragma once
// Fields of a message for functions over field_entry.

#include <simplenet/http/codec/field_entry.hpp>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {

/// A text with these fields, and where they are in it.
struct placed_fields {
    placed_fields(std::initializer_list<std::pair<std::string_view, std::string_view>> fields) {
        for (const auto& [name, value] : fields)
            add(name, value);
    }

    void add(std::string_view name, std::string_view value) {
        const auto place = [this](std::string_view part) {
            const auto at = static_cast<std::uint32_t>(text_.size());
            text_ += part;
            return at;
        };
        http::detail::field_entry entry;
        entry.name_size = static_cast<std::uint32_t>(name.size());
        entry.value_size = static_cast<std::uint32_t>(value.size());
        entry.name_at = place(name);
        place(": ");
        entry.value_at = place(value);
        place("\r\n");
        entries.push_back(entry);
    }

    [[nodiscard]] const char* text() const { return text_.c_str(); }

    std::vector<http::detail::field_entry> entries;

private:
    std::string text_;
};

} // namespace simplenet::v0::testing
