#pragma once
// print_to_standard_error: text of any size, without a stream. Layer insight, private.

#include <string_view>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::detail {

/// Gives up at the first error. Safe in a signal handler (write(2)).
void print_to_standard_error(std::string_view text) noexcept;

} // namespace simplenet::v0::detail
