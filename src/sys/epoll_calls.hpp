#pragma once
// The system calls of epoll(7). Layer sys, private: for the epoll backend. Outcomes as in
// calls.hpp, unless a function says otherwise.

#include "sys/seam.hpp"

#include <cerrno>
#include <ctime>
#include <span>

#include <sys/epoll.h>

namespace simplenet::v0::detail::sys {

/// epoll_create1(2), CLOEXEC.
[[nodiscard]] int epoll_create() noexcept;

/// epoll_ctl(2).
// ENOSPC: fs.epoll.max_user_watches. EPERM: a file that cannot be polled, such as a regular one.
[[nodiscard]] int epoll_control(int epoll, int action, int fd, epoll_event* event) noexcept;

/// epoll_wait(2), once: the number of events, or -1; then failure() has the reason.
// Inline and without reading errno: a turn of the loop is little more than this call.
[[nodiscard]] inline int epoll_wait(int epoll, std::span<epoll_event> events,
                                    int timeout_ms) noexcept {
    return made<call::epoll_wait>(::epoll_wait, epoll, events.data(),
                                  static_cast<int>(events.size()), timeout_ms);
}

/// The same by epoll_pwait2(2).
// ENOSYS: Linux < 5.11, and valgrind. EPERM: sandboxes older than the call.
[[nodiscard]] inline int epoll_wait(int epoll, std::span<epoll_event> events,
                                    const timespec& timeout) noexcept {
    return made<call::epoll_pwait2>(::epoll_pwait2, epoll, events.data(),
                                    static_cast<int>(events.size()), &timeout, nullptr);
}

} // namespace simplenet::v0::detail::sys
