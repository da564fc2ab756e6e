#pragma once
// reason_of: the reason phrase of a status. Layer http, private.

#include <simplenet/core/abi.hpp>

#include <string_view>

namespace simplenet::v0::http::detail {

/// Of RFC 9110, section 15, and of the registry of status codes; else that of the class.
[[nodiscard]] std::string_view reason_of(unsigned status) noexcept;

} // namespace simplenet::v0::http::detail
