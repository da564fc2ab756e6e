// A library to preload: refuses system calls like a sandbox, from the start of the program's own
// code.
//
// CROWD_REFUSE=EPERM:splice,tee LD_PRELOAD=.../libcrowd_refuse.so PROGRAM. A launcher that execs
// the program would also refuse the calls of the loader (mmap, openat, read), and the library would
// not be tested at all.

#include "support/refuse_system_calls.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/syscall.h>

namespace {

using known_call = std::pair<std::string_view, long>;

// Not every architecture has all of them: arm64 lacks old ones.
constexpr known_call known_calls[] = {
#ifdef SYS_accept
    {"accept", SYS_accept},
#endif
    {"accept4", SYS_accept4},
    {"bind", SYS_bind},
    {"brk", SYS_brk},
    {"clock_nanosleep", SYS_clock_nanosleep},
    {"clone", SYS_clone},
    {"clone3", SYS_clone3},
    {"close", SYS_close},
    {"connect", SYS_connect},
    {"epoll_create1", SYS_epoll_create1},
    {"epoll_ctl", SYS_epoll_ctl},
    {"epoll_pwait", SYS_epoll_pwait},
    {"epoll_pwait2", 441}, // the same number on every architecture
#ifdef SYS_epoll_wait
    {"epoll_wait", SYS_epoll_wait},
#endif
    {"eventfd2", SYS_eventfd2},
    {"fcntl", SYS_fcntl},
    {"fstat", SYS_fstat},
    {"futex", SYS_futex},
    {"getdents64", SYS_getdents64},
    {"getpeername", SYS_getpeername},
    {"getpid", SYS_getpid},
    {"getrandom", SYS_getrandom},
    {"getsockname", SYS_getsockname},
    {"getsockopt", SYS_getsockopt},
    {"gettid", SYS_gettid},
    {"inotify_add_watch", SYS_inotify_add_watch},
    {"inotify_init1", SYS_inotify_init1},
    {"io_uring_enter", 426},
    {"io_uring_register", 427},
    {"io_uring_setup", 425},
    {"ioctl", SYS_ioctl},
    {"listen", SYS_listen},
#ifdef SYS_lstat
    {"lstat", SYS_lstat},
#endif
    {"madvise", SYS_madvise},
    {"mmap", SYS_mmap},
    {"mprotect", SYS_mprotect},
    {"mremap", SYS_mremap},
    {"munmap", SYS_munmap},
#ifdef SYS_newfstatat
    {"newfstatat", SYS_newfstatat},
#endif
    {"openat", SYS_openat},
    {"openat2", 437}, // likewise
    {"pipe2", SYS_pipe2},
#ifdef SYS_poll
    {"poll", SYS_poll},
#endif
    {"ppoll", SYS_ppoll},
    {"prctl", SYS_prctl},
    {"pread64", SYS_pread64},
    {"prlimit64", SYS_prlimit64},
    {"read", SYS_read},
#ifdef SYS_readlink
    {"readlink", SYS_readlink},
#endif
    {"readlinkat", SYS_readlinkat},
    {"readv", SYS_readv},
    {"recvfrom", SYS_recvfrom},
    {"recvmmsg", SYS_recvmmsg},
    {"recvmsg", SYS_recvmsg},
    {"rseq", 334},
    {"rt_sigaction", SYS_rt_sigaction},
    {"rt_sigpending", SYS_rt_sigpending},
    {"rt_sigprocmask", SYS_rt_sigprocmask},
    {"rt_sigtimedwait", SYS_rt_sigtimedwait},
    {"rt_tgsigqueueinfo", SYS_rt_tgsigqueueinfo},
    {"sched_getaffinity", SYS_sched_getaffinity},
    {"sched_yield", SYS_sched_yield},
    {"sendfile", SYS_sendfile},
    {"sendmmsg", SYS_sendmmsg},
    {"sendmsg", SYS_sendmsg},
    {"sendto", SYS_sendto},
    {"set_robust_list", SYS_set_robust_list},
    {"setsockopt", SYS_setsockopt},
    {"shutdown", SYS_shutdown},
    {"sigaltstack", SYS_sigaltstack},
    {"signalfd4", SYS_signalfd4},
    {"socket", SYS_socket},
    {"socketpair", SYS_socketpair},
    {"splice", SYS_splice},
    {"statx", SYS_statx},
    {"tgkill", SYS_tgkill},
    {"uname", SYS_uname},
#ifdef SYS_unlink
    {"unlink", SYS_unlink},
#endif
    {"unlinkat", SYS_unlinkat},
    {"write", SYS_write},
    {"writev", SYS_writev},
};

/// Status 126, like a program that cannot be run.
[[noreturn]] void wrong(std::string_view what) {
    std::cerr << "crowd_refuse: " << what << '\n';
    std::_Exit(126);
}

[[gnu::constructor]] void refuse() {
    const char* const variable = std::getenv("CROWD_REFUSE");
    if (variable == nullptr) return;
    const std::string_view wanted{variable};
    const auto colon = wanted.find(':');
    const auto error = wanted.substr(0, colon);
    if (colon == wanted.npos || (error != "EPERM" && error != "ENOSYS")) {
        wrong("CROWD_REFUSE is not EPERM:CALL,... or ENOSYS:CALL,...");
    }
    std::vector<long> calls;
    for (std::size_t at = colon + 1; at <= wanted.size();) {
        const auto end = std::min(wanted.find(',', at), wanted.size());
        const auto name = wanted.substr(at, end - at);
        for (const auto& [known, number] : known_calls)
            if (known == name) calls.push_back(number);
        at = end + 1;
    }
    if (calls.empty()) std::_Exit(77); // none of them exists on this architecture
    if (!simplenet::testing::refuse_system_calls(calls, error == "EPERM" ? EPERM : ENOSYS))
        wrong("this sandbox refuses even seccomp(2)");
}

} // namespace
