#pragma once
// The system calls of io_uring(7) that liburing does not provide, or not in the form we need. Layer
// sys, private: for the io_uring backend. Outcomes as in calls.hpp.

#include "sys/seam.hpp"

#include <cerrno>
#include <cstddef>

#include <sys/syscall.h>
#include <unistd.h>

namespace simplenet::v0::detail::sys {

/// io_uring_enter(2), once.
[[nodiscard]] inline int uring_enter(int ring, unsigned to_submit, unsigned wait_for,
                                     unsigned flags, void* extra, std::size_t extra_size) noexcept {
    constexpr auto enter = [](int fd, unsigned submitted, unsigned waited, unsigned how,
                              void* argument, std::size_t size) noexcept {
        return ::syscall(__NR_io_uring_enter, fd, submitted, waited, how, argument, size);
    };
    const long outcome =
        made<call::uring_enter>(enter, ring, to_submit, wait_for, flags, extra, extra_size);
    return outcome < 0 ? -errno : static_cast<int>(outcome);
}

/// io_uring_register(2), IORING_REGISTER_ENABLE_RINGS: the calling thread becomes the one that
/// submits.
// Not through liburing, which declares it in 2.3 but does not export it.
[[nodiscard]] int uring_enable(int ring) noexcept;

/// io_uring_register(2).
[[nodiscard]] int uring_register(int ring, unsigned what, void* argument, unsigned count) noexcept;

} // namespace simplenet::v0::detail::sys
