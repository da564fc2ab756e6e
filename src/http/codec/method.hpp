#pragma once
// What a method says about its requests. Layer http/codec.

#include <simplenet/core/abi.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace simplenet::v0::http::detail {

/// Whether sending a request of this method twice does no more than sending it once (RFC 9110,
/// section 9.2.2).
[[nodiscard]] constexpr bool is_idempotent(std::string_view method) noexcept {
    constexpr std::array<std::string_view, 6> methods{"GET",   "HEAD", "OPTIONS",
                                                      "TRACE", "PUT",  "DELETE"};
    return std::ranges::find(methods, method) != methods.end();
}

/// Whether a request of this method that has no body says so (RFC 9110, section 8.6).
[[nodiscard]] constexpr bool anticipates_body(std::string_view method) noexcept {
    return method == "POST" || method == "PUT" || method == "PATCH";
}

} // namespace simplenet::v0::http::detail
