#pragma once
// is_idempotent: what a method says about sending a request again. Layer http/codec.

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

} // namespace simplenet::v0::http::detail
