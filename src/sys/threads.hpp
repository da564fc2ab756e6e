#pragma once
// Starts a thread, which can fail like any other call. Layer sys, private.

#include "sys/seam.hpp"

#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

namespace simplenet::v0::detail::sys {

/// A std::thread of `body`. Throws the same exceptions: std::system_error if there are too many
/// (pthread_create(3), EAGAIN), std::bad_alloc.
template <class Body>
[[nodiscard]] std::thread start_thread(Body body) {
    constexpr auto allowed = []() noexcept { return 0; };
    if (made<call::thread>(allowed) != 0) throw std::system_error{errno, std::system_category()};
    return std::thread{std::move(body)};
}

} // namespace simplenet::v0::detail::sys
