#pragma once
// signal_storm: interrupts a thread repeatedly, to show that EINTR has no effect on callers.

#include "support/sanitizers.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include <csignal>
#include <ctime>
#include <pthread.h>
#include <unistd.h>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

// ThreadSanitizer delays a signal until the call that it interrupts has returned, so a storm cannot
// wait for its handler there.
inline constexpr bool signals_come_at_once = !under_thread_sanitizer;

/// Sends SIGUSR1 to the constructing thread a few hundred times, each after the previous one was
/// handled, then calls `finally` on its own thread. The handler is installed without SA_RESTART, so
/// a waiting call returns EINTR. One at a time in a process.
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

/// Sends SIGUSR1 to the constructing thread every `period` for as long as it lives, without waiting
/// for the handler. Also without SA_RESTART.
class signal_rain {
public:
    explicit signal_rain(std::chrono::nanoseconds period) {
        handled_.store(0);
        struct sigaction action{};
        action.sa_handler = [](int) { handled_.fetch_add(1); };
        ::sigaction(SIGUSR1, &action, &before_);
        sigevent event{};
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = SIGUSR1;
        event._sigev_un._tid = ::gettid();
        ::timer_create(CLOCK_MONOTONIC, &event, &timer_);
        const timespec each{.tv_sec = 0, .tv_nsec = static_cast<long>(period.count())};
        const itimerspec times{.it_interval = each, .it_value = each};
        ::timer_settime(timer_, 0, &times, nullptr);
    }
    signal_rain(const signal_rain&) = delete;
    signal_rain& operator=(const signal_rain&) = delete;
    ~signal_rain() {
        ::timer_delete(timer_);
        // A signal may still be pending, and before_ would end the process.
        std::signal(SIGUSR1, SIG_IGN);
        ::sigaction(SIGUSR1, &before_, nullptr);
    }

    /// Any thread.
    [[nodiscard]] int handled() const noexcept { return handled_.load(); }

private:
    static inline std::atomic<int> handled_{0};
    struct sigaction before_{};
    timer_t timer_{};
};

} // namespace simplenet::v0::testing
