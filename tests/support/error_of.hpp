#pragma once
// error_of: compares an outcome with an error, whether or not it has one.

#include <simplenet/core/error.hpp>

#include <system_error>

/// The error of `outcome`, or no error when it holds a value.
template <simplenet::detail::failable Expected>
[[nodiscard]] std::error_code error_of(const Expected& outcome) noexcept {
    return outcome ? std::error_code{} : static_cast<std::error_code>(outcome.error());
}

/// Of what was stopped, or whose object was closed.
inline constexpr auto canceled = std::errc::operation_canceled;
