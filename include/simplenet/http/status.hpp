#pragma once
// http::reason_of: what a status is called. Layer http.

#include <simplenet/core/abi.hpp>

#include <string_view>

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// The reason phrase of a status, of RFC 9110, section 15, and of the registry of status codes; for
/// others that of the class: "OK" for 299. Any thread. Valid until the program ends.
[[nodiscard]] std::string_view reason_of(unsigned status) noexcept;

} // namespace simplenet::v0::http

#pragma GCC visibility pop
