#pragma once
// async_event: a flag that coroutines wait for. Layer sync.

#include <simplenet/sync/detail/waiter.hpp>

#include <coroutine>
#include <string>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// A flag that coroutines of one loop can wait for.
///
/// Stays set until reset(). Loop thread only. Not movable: waiters hold its address. Destroying it
/// ends their waits with operation_canceled.
///
/// @par Example
/// @snippet synchronisation.cpp event
class async_event {
public:
    class wait_operation;

    explicit async_event(bool set = false) noexcept
        : set_{set} {}

    /// Waits until it is set; returns at once if it is.
    ///
    /// @return An awaitable of `result<>`.
    ///
    /// @par Errors
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came
    ///   first.
    /// @par Cancellation
    /// A wait that set() has released succeeds, even if a stop or a reset() comes before it
    /// resumes.
    [[nodiscard]] wait_operation wait() noexcept;

    /// Releases all waiters, in the order of their arrival; later waits return at once.
    void set() noexcept {
        set_ = true;
        waiters_.end_all(detail::wait_end::granted);
    }
    /// From here on wait() waits again.
    void reset() noexcept { set_ = false; }
    [[nodiscard]] bool is_set() const noexcept { return set_; }

private:
    bool set_;
    detail::waiter_queue<detail::waiter> waiters_;
};

/// Awaitable of async_event::wait(); the contract is documented there.
class [[nodiscard]] async_event::wait_operation final
    : public detail::waiter,
      public detail::awaited_from_outside<wait_operation> {
public:
    explicit wait_operation(async_event& at) noexcept
        : event_{&at} {}

    void describe(std::string& text) override { text += "an async_event"; }
    using detail::awaited_from_outside<wait_operation>::await_suspend;
    template <detail::own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       detail::await_site at = detail::await_site::current()) noexcept {
        detail::scope& within = detail::scope_of(caller, at);
        if (refused(caller, within)) return true;
        if (event_->set_) return ended_at_once(caller, within);
        suspend(caller, within);
        event_->waiters_.push_back(*this);
        return true;
    }
    result<> await_resume() const noexcept { return outcome(); }

private:
    async_event* event_; // borrowed
};

inline async_event::wait_operation async_event::wait() noexcept {
    return wait_operation{*this};
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
