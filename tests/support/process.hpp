#pragma once
// What tests ask about the process, and how they take things away from it.

#include <cstddef>

#include <array>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

/// From here on io_uring_setup(2) fails with `error`: for death tests, it cannot be undone.
inline bool refuse_io_uring(int error) {
    std::array filter{
        sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0}, // the number of the call
        sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_io_uring_setup},
        sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)},
        sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

} // namespace simplenet::v0::testing
