#pragma once
// signals_blocked: for threads that the library starts. Layer threads, private.

#include <csignal>
#include <initializer_list>

#include <pthread.h>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::detail {

/// Blocks signals on the calling thread while it lives: threads started meanwhile inherit the mask
/// and keep it.
///
/// Signals belong to the program's threads; its handlers do not expect to run on this one. Not the
/// signals of faults: their handlers (of a sanitizer, or one that writes a report) run where the
/// fault happens.
class signals_blocked {
public:
    /// All but faults and `wanted`, of which 0 and numbers that are no signals do not count.
    explicit signals_blocked(std::initializer_list<int> wanted = {}) noexcept {
        sigset_t all;
        sigfillset(&all);
        for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
            sigdelset(&all, fault);
        for (const int signal : wanted)
            static_cast<void>(sigdelset(&all, signal));
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    signals_blocked(const signals_blocked&) = delete;
    signals_blocked& operator=(const signals_blocked&) = delete;
    ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_;
};

} // namespace simplenet::v0::detail
