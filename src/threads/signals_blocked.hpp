#pragma once
// signals_blocked: for the threads that the library starts on its own. Layer threads, private.

#include <csignal>

#include <pthread.h>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::detail {

/// Blocks signals on the calling thread while it lives: a thread that is started meanwhile inherits
/// that, and keeps it.
///
/// Signals are for the threads of the program: its handlers do not expect this one. Not those of a
/// fault, whose handlers (of a sanitizer, or one that writes a report) run where it happens.
class signals_blocked {
public:
    signals_blocked() noexcept {
        sigset_t all;
        sigfillset(&all);
        for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
            sigdelset(&all, fault);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    signals_blocked(const signals_blocked&) = delete;
    signals_blocked& operator=(const signals_blocked&) = delete;
    ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_;
};

} // namespace simplenet::v0::detail
