#pragma once
// text_hash: lets an unordered container of std::string be searched by a view. Layer http, private.

#include <simplenet/core/abi.hpp>

#include <cstddef>
#include <functional>
#include <string_view>

namespace simplenet::v0::http::detail {

/// Together with `std::equal_to<>`.
struct text_hash {
    using is_transparent = void;
    [[nodiscard]] std::size_t operator()(std::string_view text) const noexcept {
        return std::hash<std::string_view>{}(text);
    }
};

} // namespace simplenet::v0::http::detail
