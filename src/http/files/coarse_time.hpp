#pragma once
// coarse_time: the clock by which the caches of files and listings age. Layer http, private.

#include <chrono>

#include <ctime>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::http::detail {

using coarse_time = std::chrono::nanoseconds; // of CLOCK_MONOTONIC_COARSE

/// Behind the exact time by a tick of the kernel, at most 10 ms. No system call.
inline coarse_time coarse_now() noexcept {
    timespec now{}; // clock_gettime(2) cannot fail here
    static_cast<void>(::clock_gettime(CLOCK_MONOTONIC_COARSE, &now));
    return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

} // namespace simplenet::v0::http::detail
