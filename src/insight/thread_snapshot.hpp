#pragma once
// thread_snapshot: what a thread that runs a loop is doing, as it says itself in the handler of a
// signal. Layer insight, private: for the watchdog.

#include <simplenet/coro/detail/run_queue.hpp>
#include <simplenet/insight/stall_report.hpp>

#include <array>
#include <csignal>

#include <sys/types.h>

namespace simplenet::v0::detail {

/// The handlers of the signals by which threads are asked. The owner guards it.
///
/// A handler that the program had is called for signals that are not ours, and has its place again
/// when no loop needs the signal any more.
class snapshot_handlers {
public:
    void install(int signal) noexcept;
    /// No loop needs it any more.
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

/// Asks `thread`, which runs `queue`, what it does, by a signal that is handled. It may not answer:
/// the signal may be blocked. One at a time.
void ask(pid_t thread, run_queue& queue, int signal, stall_report& into);

/// In a forked child, before it asks: the thread of its parent may have been asking.
void forget_what_was_asked() noexcept;

} // namespace simplenet::v0::detail
