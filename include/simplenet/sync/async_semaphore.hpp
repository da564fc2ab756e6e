#pragma once
// async_semaphore: bounds how many tasks do something at once. Layer sync.

#include <simplenet/sync/detail/waiter.hpp>

#include <coroutine>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// A number of permits that coroutines of one loop take and return.
///
/// Fair: waiters get permits in the order of their arrival, and nobody overtakes them. Loop thread
/// only. Not movable: waiters hold its address. Destroying it ends their waits with
/// operation_canceled.
///
/// @par Example
/// @snippet synchronisation.cpp semaphore
class async_semaphore {
public:
    class permit;
    class acquire_operation;
    class acquire_permit_operation;

    explicit async_semaphore(std::size_t permits) noexcept
        : available_{permits} {}

    /// Takes a permit; waits for one if there is none. The caller keeps it until release().
    ///
    /// @return An awaitable of `result<>`.
    ///
    /// @par Errors
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came
    ///   first; no permit was taken.
    /// @par Cancellation
    /// A waiter that was given a permit succeeds, even if a stop comes before it resumes.
    [[nodiscard]] acquire_operation acquire() noexcept;

    /// The same for a permit that returns itself, even after exceptions and stops.
    ///
    /// @return An awaitable of `result<permit>`.
    [[nodiscard]] acquire_permit_operation acquire_permit() noexcept;

    /// Takes a permit if there is one.
    [[nodiscard]] bool try_acquire() noexcept {
        if (available_ == 0) return false; // always 0 while somebody waits
        --available_;
        return true;
    }

    /// Returns `count` permits, or adds them: the caller need not have taken any.
    ///
    /// @pre The sum fits a std::size_t.
    void release(std::size_t count = 1) noexcept {
        for (; count != 0 && !waiters_.empty() && !waiters_.front().is_lost(); --count)
            waiters_.pop_front().end(detail::wait_end::granted);
        SIMPLENET_EXPECTS(count <= std::numeric_limits<std::size_t>::max() - available_,
                          "too many permits for an async_semaphore");
        available_ += count;
    }

    /// The number of free permits.
    [[nodiscard]] std::size_t available() const noexcept { return available_; }

private:
    std::size_t available_; // 0 while somebody waits
    detail::waiter_queue<detail::waiter> waiters_;
};

/// Owns one permit and returns it. The semaphore must outlive it. Movable.
class [[nodiscard]] async_semaphore::permit {
public:
    permit() noexcept = default;
    permit(permit&& other) noexcept
        : from_{std::exchange(other.from_, nullptr)} {}
    permit& operator=(permit&& other) noexcept {
        if (this != &other) {
            release();
            from_ = std::exchange(other.from_, nullptr);
        }
        return *this;
    }
    ~permit() { release(); }

    /// Returns it early. Does nothing if it is empty.
    void release() noexcept {
        if (from_ != nullptr) std::exchange(from_, nullptr)->release();
    }
    /// Whether it owns a permit.
    explicit operator bool() const noexcept { return from_ != nullptr; }

private:
    friend acquire_permit_operation;
    explicit permit(async_semaphore& from) noexcept
        : from_{&from} {}

    async_semaphore* from_ = nullptr; // borrowed
};

/// Awaitable of async_semaphore::acquire(); the contract is documented there.
class [[nodiscard]] async_semaphore::acquire_operation
    : public detail::waiter,
      public detail::awaited_from_outside<acquire_operation> {
public:
    explicit acquire_operation(async_semaphore& at) noexcept
        : semaphore_{&at} {}

    void describe(std::string& text) override { text += "an async_semaphore"; }
    using detail::awaited_from_outside<acquire_operation>::await_suspend;
    template <detail::own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       detail::await_site at = detail::await_site::current()) noexcept {
        detail::scope& within = detail::scope_of(caller, at);
        if (refused(caller, within)) return true;
        if (semaphore_->try_acquire()) return ended_at_once(caller, within);
        suspend(caller, within);
        semaphore_->waiters_.push_back(*this);
        return true;
    }
    result<> await_resume() const noexcept { return outcome(); }

protected:
    async_semaphore* semaphore_; // borrowed
};

/// Awaitable of async_semaphore::acquire_permit(); the contract is documented there.
class [[nodiscard]] async_semaphore::acquire_permit_operation final : public acquire_operation {
public:
    using acquire_operation::acquire_operation;

    result<permit> await_resume() const noexcept {
        if (auto taken = outcome(); !taken) return fail(taken);
        return permit{*semaphore_};
    }
};

inline async_semaphore::acquire_permit_operation async_semaphore::acquire_permit() noexcept {
    return acquire_permit_operation{*this};
}
inline async_semaphore::acquire_operation async_semaphore::acquire() noexcept {
    return acquire_operation{*this};
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
