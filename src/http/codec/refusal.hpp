#pragma once
// The statuses that refuse a message for its syntax, its framing or its size. Layer http/codec,
// private: for the parsers.

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::http::detail::refusal {

inline constexpr unsigned bad_request = 400;
inline constexpr unsigned uri_too_long = 414;
inline constexpr unsigned expectation_failed = 417;
inline constexpr unsigned fields_too_large = 431;
inline constexpr unsigned not_implemented = 501;
inline constexpr unsigned version_not_supported = 505;

} // namespace simplenet::v0::http::detail::refusal
