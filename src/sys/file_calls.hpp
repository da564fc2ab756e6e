#pragma once
// The system calls on files and directories. Layer sys, private; the conventions are those of
// calls.hpp.
//
// All inline: the component http makes these calls, and a shared library does not export the
// functions of this layer to it.

#include "sys/calls.hpp"
#include "sys/seam.hpp"

#include <simplenet/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <system_error>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace simplenet::v0::detail::sys {

/// The failure to return from a function whose result is a `result<T>`.
///
/// @pre `negative_errno < 0`.
[[nodiscard]] inline std::unexpected<std::error_code> fail_with(long negative_errno) noexcept {
    return fail(std::error_code{static_cast<int>(-negative_errno), std::system_category()});
}

/// openat2(2), CLOEXEC; `resolve` are RESOLVE_ flags.
// ENOSYS: before Linux 5.6, or a sandbox. EPERM: a sandbox. EXDEV: the path leaves the directory.
// EAGAIN: a rename or mount anywhere in the system raced with a `..`, so the kernel could not tell
// whether it leaves; or another process has a lease on the file (O_NONBLOCK).
[[nodiscard]] inline int openat2(int directory, const char* path, int flags,
                                 std::uint64_t resolve) noexcept {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
    how.resolve = resolve;
    return uninterrupted([&] {
        return made<call::openat2>(
            [](int at, const char* name, open_how* asked, std::size_t size) noexcept {
                return static_cast<int>(::syscall(SYS_openat2, at, name, asked, size));
            },
            directory, path, &how, sizeof how);
    });
}

/// openat(2), CLOEXEC. Creates nothing.
[[nodiscard]] inline int openat(int directory, const char* path, int flags) noexcept {
    return uninterrupted([&] {
        return made<call::openat>(
            [](int at, const char* name, int how) noexcept { return ::openat(at, name, how); },
            directory, path, flags | O_CLOEXEC);
    });
}

/// fstat(2). Works on O_PATH descriptors too.
[[nodiscard]] inline int fstat(int fd, struct stat& found) noexcept {
    return uninterrupted([&] {
        return made<call::fstat>(
            [](int of, struct stat* into) noexcept { return ::fstat(of, into); }, fd, &found);
    });
}

/// fstatat(2) that does not follow a symbolic link.
[[nodiscard]] inline int lstatat(int directory, const char* name, struct stat& found) noexcept {
    return uninterrupted([&] {
        return made<call::fstatat>(
            [](int at, const char* path, struct stat* into, int flags) noexcept {
                return ::fstatat(at, path, into, flags);
            },
            directory, name, &found, AT_SYMLINK_NOFOLLOW);
    });
}

/// readlinkat(2) of a symbolic link that was opened with O_PATH | O_NOFOLLOW. The length of the
/// target, cut to `size`; no terminator is written.
[[nodiscard]] inline ssize_t read_link(int link, char* target, std::size_t size) noexcept {
    return uninterrupted(
        [&] { return made<call::readlinkat>(::readlinkat, link, "", target, size); });
}

/// getdents64(2): fills `entries` with records of the form `linux_dirent64`. 0: the end.
[[nodiscard]] inline ssize_t getdents(int directory, void* entries, std::size_t size) noexcept {
    return uninterrupted([&] {
        return made<call::getdents>(
            [](int of, void* into, std::size_t room) noexcept {
                return static_cast<ssize_t>(::syscall(SYS_getdents64, of, into, room));
            },
            directory, entries, size);
    });
}

/// pread(2).
[[nodiscard]] inline ssize_t read_at(int fd, void* data, std::size_t size, off_t offset) noexcept {
    return uninterrupted([&] { return made<call::pread>(::pread, fd, data, size, offset); });
}

} // namespace simplenet::v0::detail::sys
