#pragma once
// processors: how many CPUs this process may use, and on which ones. Layer sys, private.

#include <optional>
#include <string>
#include <vector>

#include <pthread.h>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::detail::sys {

/// The CPUs of the calling thread's affinity mask (sched_getaffinity(2)), in ascending order. Empty
/// if the kernel does not tell. Throws std::bad_alloc.
[[nodiscard]] std::vector<unsigned> allowed_processors();

/// The number of CPUs whose time the control groups of this process give it, at least 1; empty if
/// none of them limits it.
///
/// Reads cpu.max (cgroup v2) and cpu.cfs_quota_us (v1) of the process's group and of each of its
/// ancestors that can be seen (cgroups(7); Documentation/admin-guide/cgroup-v2.rst in the kernel's
/// sources). The smallest one counts, rounded down: once the quota is used up, the kernel stops
/// every thread of the group until the next period, which is 100 ms later at worst, and one thread
/// more than there are CPUs gets there under load.
///
/// @param root  For tests: goes in front of each absolute path.
[[nodiscard]] std::optional<unsigned> processor_quota(const std::string& root = {});

/// The smaller of both, at least 1.
[[nodiscard]] unsigned usable_processors();

/// Lets `thread` run on `processor` only. Returns 0 or -errno.
[[nodiscard]] int pin_thread(pthread_t thread, unsigned processor) noexcept;

} // namespace simplenet::v0::detail::sys
