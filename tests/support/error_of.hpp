#pragma once
// error_of: compares a result with an error, whether or not it holds one.

#include <simplenet/core/error.hpp>

#include <system_error>

/// The error of `outcome`, or no error if it holds a value.
template <simplenet::detail::failable Expected>
[[nodiscard]] std::error_code error_of(const Expected& outcome) noexcept {
    return outcome ? std::error_code{} : static_cast<std::error_code>(outcome.error());
}

/// The error of a stopped operation, or of one whose object was closed.
inline constexpr auto canceled = std::errc::operation_canceled;
