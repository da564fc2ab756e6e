#pragma once
// The sanitizer or counter of lines under which a test runs, and how much longer it may take there.

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

// g++ defines macros, clang has features.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool under_address_sanitizer = true;
#elif defined(__has_feature)
inline constexpr bool under_address_sanitizer = __has_feature(address_sanitizer);
#else
inline constexpr bool under_address_sanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool under_thread_sanitizer = true;
#elif defined(__has_feature)
inline constexpr bool under_thread_sanitizer = __has_feature(thread_sanitizer);
#else
inline constexpr bool under_thread_sanitizer = false;
#endif

#if defined(SIMPLENET_COVERAGE) // by cmake/SimplenetCoverage.cmake
inline constexpr bool counts_lines = true;
#else
inline constexpr bool counts_lines = false;
#endif

inline constexpr int patience =
    under_address_sanitizer || under_thread_sanitizer || counts_lines ? 6 : 1;

} // namespace simplenet::v0::testing
