#pragma once
// thread_snapshot: the state of a thread that runs a loop, reported by the thread itself in a
// signal handler. Layer insight, private: for the watchdog.

#include <simplenet/coro/detail/run_queue.hpp>
#include <simplenet/insight/stall_report.hpp>

#include <array>
#include <csignal>

#include <sys/types.h>

namespace simplenet::v0::detail {

/// The handlers of the signals that request snapshots. The owner guards it.
///
/// The program's own handler is called for signals that we did not send, and is restored when no
/// loop needs the signal any more.
class snapshot_handlers {
public:
    void install(int signal) noexcept;
    /// Called when no loop needs it any more.
    void remove(int signal) noexcept;
    [[nodiscard]] bool handles(int signal) const noexcept {
        return is_usable(signal) && entries_[static_cast<std::size_t>(signal)].installed;
    }

private:
    static constexpr int most_signals = _NSIG; // 65 on most machines, 128 on MIPS
    static bool is_usable(int signal) noexcept { return signal > 0 && signal < most_signals; }

    struct entry {
        struct sigaction before{};
        bool installed = false;
    };

    std::array<entry, most_signals> entries_{};
};

/// Requests a snapshot from `thread`, which runs `queue`, by a signal with a handler. There may be
/// no answer: the signal may be blocked. One at a time.
void ask(pid_t thread, run_queue& queue, int signal, stall_report& into);

/// Called in a forked child before its first request: its parent's thread may have been requesting
/// one.
void forget_what_was_asked() noexcept;

} // namespace simplenet::v0::detail
