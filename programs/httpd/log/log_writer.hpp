#pragma once
// httpd::log_writer: the thread of a log, and how it is woken. Used by the logs.

#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

namespace httpd {

/// Wakes one thread. Any thread may call wake(), also in a signal handler: it takes no lock.
class wake_up {
public:
    wake_up() noexcept { ::sem_init(&semaphore_, 0, 0); }
    wake_up(const wake_up&) = delete;
    wake_up& operator=(const wake_up&) = delete;
    ~wake_up() { ::sem_destroy(&semaphore_); }

    void wake() noexcept { ::sem_post(&semaphore_); }
    /// Returns after a wake() since the last wait, or spuriously.
    void wait() noexcept {
        ::sem_wait(&semaphore_);
        forget();
    }
    void wait_until(std::chrono::steady_clock::time_point limit) noexcept {
        const auto since = limit.time_since_epoch();
        const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
        const ::timespec at{static_cast<std::time_t>(seconds.count()),
                            static_cast<long>(std::chrono::nanoseconds{since - seconds}.count())};
        ::sem_clockwait(&semaphore_, CLOCK_MONOTONIC, &at);
        forget();
    }

private:
    void forget() noexcept {
        while (::sem_trywait(&semaphore_) == 0) {
        }
    }

    ::sem_t semaphore_;
};

/// Starts a thread that runs `body` with every signal blocked: none of the process's is handled
/// there, and SIGPIPE and SIGXFSZ of its writes end nothing.
template <class Body>
[[nodiscard]] std::error_code start_writer(std::thread& thread, const char* name, Body body) {
    ::sigset_t all;
    ::sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::error_code error;
    try {
        thread = std::thread{std::move(body)};
        ::pthread_setname_np(thread.native_handle(), name);
    } catch (const std::system_error& thrown) {
        error = thrown.code();
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return error;
}

/// The end of a log's thread, for which its log does not wait for ever: a write to a dead disk, or
/// to a pipe that others fill, may never return.
class writer_end {
public:
    void announce() noexcept {
        over_.store(true, std::memory_order_release);
        waiter_.wake();
    }
    /// False: it does not end.
    [[nodiscard]] bool wait(std::chrono::milliseconds patience) noexcept {
        const auto limit = std::chrono::steady_clock::now() + patience;
        while (!over_.load(std::memory_order_acquire)) {
            if (std::chrono::steady_clock::now() >= limit) return false;
            waiter_.wait_until(limit);
        }
        return true;
    }

private:
    std::atomic<bool> over_ = false;
    wake_up waiter_;
};

inline constexpr std::chrono::milliseconds last_words{2000}; ///< For what waits at the end.

} // namespace httpd
