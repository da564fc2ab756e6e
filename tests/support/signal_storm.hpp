#pragma once
// signal_storm: interrupts a thread over and over, to show that nobody above notices EINTR.

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include <csignal>
#include <pthread.h>

namespace simplenet::inline v0::testing {

// ThreadSanitizer keeps a signal back until the call that it interrupts has returned, so there a
// storm cannot wait for its handler.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool signals_come_at_once = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool signals_come_at_once = false;
#else
inline constexpr bool signals_come_at_once = true;
#endif
#else
inline constexpr bool signals_come_at_once = true;
#endif

/// Sends SIGUSR1 to the constructing thread a few hundred times, each after the one before was
/// handled, then calls `finally` on its own thread. The handler is installed without SA_RESTART,
/// so a call that waits meanwhile returns EINTR. One at a time in a process.
class signal_storm {
public:
    explicit signal_storm(std::function<void()> finally) {
        handled.store(0);
        struct sigaction action{};
        action.sa_handler = [](int) { handled.fetch_add(1); };
        ::sigaction(SIGUSR1, &action, &before_);
        thread_ = std::thread{[target = ::pthread_self(), finally = std::move(finally)] {
            for (int sent = 0; sent < 300; ++sent) {
                ::pthread_kill(target, SIGUSR1);
                while (signals_come_at_once && handled.load() <= sent)
                    std::this_thread::yield();
            }
            finally();
        }};
    }
    signal_storm(const signal_storm&) = delete;
    signal_storm& operator=(const signal_storm&) = delete;
    ~signal_storm() {
        thread_.join();
        ::sigaction(SIGUSR1, &before_, nullptr);
    }

private:
    static inline std::atomic<int> handled{0};
    struct sigaction before_{};
    std::thread thread_;
};

} // namespace simplenet::inline v0::testing
