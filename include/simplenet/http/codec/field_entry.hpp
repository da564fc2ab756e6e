#pragma once
// field_entry: where a field stands in the text of its message. Layer http/codec.

#include <simplenet/core/abi.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

#pragma GCC visibility push(default)

namespace simplenet::v0::http::detail {

/// Offsets, not pointers: the text of a head that arrives in pieces moves.
struct field_entry {
    std::uint32_t name_at = 0;
    std::uint32_t name_size = 0;
    std::uint32_t value_at = 0;
    std::uint32_t value_size = 0;

    [[nodiscard]] std::string_view name(const char* text) const noexcept {
        return {text + name_at, name_size};
    }
    [[nodiscard]] std::string_view value(const char* text) const noexcept {
        return {text + value_at, value_size};
    }
};

} // namespace simplenet::v0::http::detail

#pragma GCC visibility pop
