#pragma once
// async_mutex: mutual exclusion across suspensions. Layer sync.

#include <simplenet/sync/detail/waiter.hpp>

#include <coroutine>
#include <optional>
#include <string>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {
class condition_waiter;
} // namespace detail

inline namespace runtime {

/// Mutual exclusion for coroutines of one loop, across suspensions.
///
/// Code between two suspensions needs no mutex, because one thread runs the loop. Fair: waiters get
/// the lock in the order of their arrival, and nobody overtakes them. Not recursive. Loop thread
/// only. Not movable: guards and waiters hold its address.
///
/// @pre When it is destroyed, it is not locked, so nobody waits for it either.
///
/// @par Example
/// @snippet synchronisation.cpp mutex
class async_mutex {
public:
    class guard;
    class lock_operation;

    async_mutex() noexcept = default;
    async_mutex(const async_mutex&) = delete;
    async_mutex& operator=(const async_mutex&) = delete;
    ~async_mutex();

    /// Waits until the lock is free, and takes it.
    ///
    /// @return An awaitable of `result<guard>`. The destructor of the guard unlocks.
    ///
    /// @par Errors
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came
    ///   first; it is not locked for the caller.
    /// @par Cancellation
    /// A waiter to which the lock was handed has it, even if a stop comes before it resumes.
    [[nodiscard]] lock_operation lock() noexcept;

    /// Takes the lock if it is free.
    [[nodiscard]] std::optional<guard> try_lock() noexcept;

    [[nodiscard]] bool locked() const noexcept { return locked_; }

private:
    friend class detail::condition_waiter;

    [[nodiscard]] bool take() noexcept { return !std::exchange(locked_, true); }
    void unlock() noexcept {
        holder_ = nullptr;
        if (!waiters_.empty()) return hand_over();
        locked_ = false;
    }
    void hand_over() noexcept;

    bool locked_ = false;
    guard* holder_ = nullptr; // null while the lock is being handed to a waiter
    detail::waiter_queue<detail::waiter> waiters_;
};

/// A locked async_mutex; unlocks it when destroyed.
///
/// Loop thread only.
class async_mutex::guard {
public:
    guard(guard&& other) noexcept
        : guard{std::exchange(other.mutex_, nullptr)} {}
    guard& operator=(guard&& other) noexcept {
        if (this != &other) {
            unlock();
            hold(std::exchange(other.mutex_, nullptr));
        }
        return *this;
    }
    ~guard() { unlock(); }

    /// Unlocks early. Does nothing the second time.
    void unlock() noexcept {
        if (mutex_ != nullptr) std::exchange(mutex_, nullptr)->unlock();
    }
    [[nodiscard]] bool owns_lock() const noexcept { return mutex_ != nullptr; }

private:
    friend async_mutex;
    friend class detail::condition_waiter;

    explicit guard(async_mutex* locked) noexcept { hold(locked); }
    void hold(async_mutex* locked) noexcept {
        mutex_ = locked;
        if (locked != nullptr) locked->holder_ = this;
    }

    async_mutex* mutex_ = nullptr; // borrowed; null if nothing is locked
};

/// Awaitable of async_mutex::lock(); the contract is documented there.
class [[nodiscard]] async_mutex::lock_operation final
    : public detail::waiter,
      public detail::awaited_from_outside<lock_operation> {
public:
    explicit lock_operation(async_mutex& at) noexcept
        : mutex_{&at} {}

    void describe(std::string& text) override { text += "an async_mutex"; }
    using detail::awaited_from_outside<lock_operation>::await_suspend;
    template <detail::own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       detail::await_site at = detail::await_site::current()) noexcept {
        detail::scope& within = detail::scope_of(caller, at);
        if (refused(caller, within)) return true;
        if (mutex_->take()) return ended_at_once(caller, within);
        suspend(caller, within);
        mutex_->waiters_.push_back(*this);
        return true;
    }
    result<guard> await_resume() noexcept {
        if (end_ != detail::wait_end::granted) return fail(error_of(end_));
        return guard{mutex_};
    }

private:
    async_mutex* mutex_; // borrowed
};

inline async_mutex::lock_operation async_mutex::lock() noexcept {
    return lock_operation{*this};
}

inline std::optional<async_mutex::guard> async_mutex::try_lock() noexcept {
    if (!take()) return std::nullopt;
    return guard{this};
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
