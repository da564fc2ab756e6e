#pragma once
// fill_with_random: bytes that nobody can predict. Layer http, private.

#include <simplenet/core/abi.hpp>

#include <cstddef>
#include <span>

namespace simplenet::v0::http::detail {

/// Fills `to` with bytes of getrandom(2). Ends the program if there are none.
///
/// @pre `to` has at most 256 bytes, for which the call is never interrupted or cut short.
void fill_with_random(std::span<std::byte> to) noexcept;

} // namespace simplenet::v0::http::detail
