#pragma once
// refuse_system_calls: acts like a sandbox (seccomp(2)), without a library for it.

#include <array>
#include <cerrno>
#include <cstddef>
#include <thread>
#include <vector>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

/// From here on each of `calls` fails with `error` in this thread and everything it starts. This
/// cannot be undone, so it is only for child processes. False: not even this is allowed.
inline bool refuse_system_calls(const std::vector<long>& calls, int error) {
    std::vector<sock_filter> program;
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    for (const long call : calls) {
        program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
        program.push_back(
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)));
    }
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const sock_fprog filter{.len = static_cast<unsigned short>(program.size()),
                            .filter = program.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// Whether this is possible at all.
inline bool can_refuse_system_calls() {
    bool can = false;
    std::thread{[&] { can = refuse_system_calls({}, EPERM); }}.join(); // filtered until its end
    return can;
}
inline constexpr const char* no_refusals = "seccomp: not offered by this kernel or sandbox";

} // namespace simplenet::v0::testing
