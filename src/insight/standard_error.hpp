#pragma once
// print_to_standard_error: text for people, of whatever size, without a stream. Layer insight,
// private.

#include <string_view>

namespace simplenet::inline v0::detail {

/// Gives up at the first error. Safe in a signal handler (write(2)).
void print_to_standard_error(std::string_view text) noexcept;

} // namespace simplenet::inline v0::detail
