#pragma once
// safe_in_co_await: whether a callable may be written inside the co_await expression that awaits
// its result. Layer coro.

#include <type_traits>

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

// GCC 12 destroys the captures of a closure twice if it is created in a co_await expression.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
/// `Function` is the deduced type of a forwarding reference.
template <class Function>
inline constexpr bool safe_in_co_await =
    std::is_lvalue_reference_v<Function> || std::is_trivially_destructible_v<Function>;
#else
template <class Function>
inline constexpr bool safe_in_co_await = true;
#endif

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
