#pragma once
// sigpipe_watch: detects whether a SIGPIPE was delivered or is pending; can raise one like the
// kernel.

#include "raw_peer.hpp"

#include <atomic>

#include <csignal>
#include <sys/socket.h>

namespace simplenet::v0::testing {

/// Raises a SIGPIPE for this thread, as a send to a closed peer does.
inline void raise_sigpipe_as_the_kernel() {
    auto [ours, theirs] = local_ends();
    theirs.reset();
    static_cast<void>(!::send(ours.get(), "", 1, 0));
}

/// Handles SIGPIPE as long as it lives. One at a time in a process.
class sigpipe_watch {
public:
    sigpipe_watch() {
        delivered_ = 0;
        struct sigaction action{};
        action.sa_handler = [](int) { ++delivered_; };
        checked(::sigaction(SIGPIPE, &action, &before_));
    }
    sigpipe_watch(const sigpipe_watch&) = delete;
    sigpipe_watch& operator=(const sigpipe_watch&) = delete;
    ~sigpipe_watch() { ::sigaction(SIGPIPE, &before_, nullptr); }

    /// In all threads together.
    [[nodiscard]] static int delivered() { return delivered_; }
    /// For this thread, which blocks SIGPIPE.
    [[nodiscard]] static bool is_pending() {
        sigset_t pending;
        sigemptyset(&pending);
        checked(::sigpending(&pending));
        return sigismember(&pending, SIGPIPE) == 1;
    }
    [[nodiscard]] static bool is_blocked() {
        sigset_t mask;
        sigemptyset(&mask);
        ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        return sigismember(&mask, SIGPIPE) == 1;
    }

private:
    static inline std::atomic<int> delivered_ = 0;
    struct sigaction before_{};
};

/// Blocks SIGPIPE in this thread as long as it lives, and removes a pending one at the end.
class sigpipe_block {
public:
    sigpipe_block() {
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    sigpipe_block(const sigpipe_block&) = delete;
    sigpipe_block& operator=(const sigpipe_block&) = delete;
    ~sigpipe_block() {
        while (take()) {
        }
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    /// Removes a pending SIGPIPE; false if there is none.
    [[nodiscard]] bool take() const {
        const timespec no_wait{};
        return ::sigtimedwait(&pipe_, nullptr, &no_wait) == SIGPIPE;
    }

private:
    sigset_t pipe_{};
    sigset_t before_{};
};

} // namespace simplenet::v0::testing
