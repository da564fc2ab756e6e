#pragma once
// async_condition_variable: waits, under a mutex, until a condition holds. Layer sync.

#include <simplenet/coro/detail/safe_in_co_await.hpp>
#include <simplenet/sync/async_mutex.hpp>

#include <concepts>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {
class async_condition_variable;
} // namespace runtime

namespace detail {

struct in_condition;

/// A wait for a predicate. Waits first for the condition variable, then for its mutex, and tests
/// the predicate when it has the lock.
class condition_waiter : public waiter, public list_hook<in_condition> {
public:
    void describe(std::string& text) override { text += "an async_condition_variable"; }
    void on_stop(stop_reason reason) noexcept final;
    void run() noexcept final;

    void notified() noexcept;
    /// The condition variable is being destroyed.
    void orphaned() noexcept;

protected:
    condition_waiter(async_condition_variable& condition, async_mutex::guard& held) noexcept
        : condition_{&condition}
        , guard_{&held} {}
    condition_waiter(condition_waiter&& other) noexcept
        : waiter{}
        , list_hook<in_condition>{}
        , condition_{other.condition_}
        , guard_{other.guard_} {}
    ~condition_waiter() = default;

    bool start(std::coroutine_handle<> caller, scope& within);
    result<> finish() const;

private:
    // waiting  in the condition variable's list of waiters; the mutex is unlocked
    // locking  waits for the lock, or has it and is on the ready list, to test the predicate
    // over     has the lock, and knows how the wait ended
    enum class phase : std::uint8_t { waiting, locking, over };

    [[nodiscard]] virtual bool holds() = 0;
    [[nodiscard]] bool found_to_hold() noexcept;
    void wait() noexcept;
    void lock() noexcept;

    async_condition_variable* condition_; // borrowed; null when it is gone
    async_mutex::guard* guard_;           // borrowed: the caller's; empty while this waits
    async_mutex* mutex_ = nullptr;
    phase phase_ = phase::over;
    wait_end stopped_ = wait_end::granted; // why the wait must end, if not granted
    bool notified_ = false;                // and has not tested the predicate since
    std::exception_ptr exception_;         // of the predicate
};

} // namespace detail

inline namespace runtime {

/// Lets coroutines of one loop that hold an async_mutex wait until another coroutine has changed
/// the protected state.
///
/// Loop thread only. Not movable: waiters hold its address. Destroying it ends their waits with
/// operation_canceled.
///
/// @par Example
/// @snippet synchronisation.cpp condition
class async_condition_variable {
public:
    template <class Predicate>
    class wait_operation;

    async_condition_variable() noexcept = default;
    async_condition_variable(const async_condition_variable&) = delete;
    async_condition_variable& operator=(const async_condition_variable&) = delete;
    ~async_condition_variable();

    /// Unlocks the mutex of `held`, waits until `predicate()` is true, and locks it again.
    ///
    /// Returns at once if it is already true. The predicate is called only with the mutex locked.
    /// In every case, including exceptions of the predicate, the mutex is locked when this returns.
    ///
    /// @pre `held` owns its lock, and nobody uses it during the wait.
    /// @return An awaitable of `result<>`.
    /// @par Errors
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came, and
    ///   the predicate did not hold when the mutex was locked again.
    /// @par Cancellation
    /// A stop ends the wait for a notification, but not the wait for the mutex. A notification that
    /// reached a stopped waiter is passed on to the next one.
    template <std::predicate Predicate>
    [[nodiscard]] wait_operation<std::decay_t<Predicate>> wait(async_mutex::guard& held,
                                                               Predicate&& predicate) {
        static_assert(detail::safe_in_co_await<Predicate>,
                      "GCC 12 destroys the captures of this closure twice inside a co_await "
                      "expression: name it, and pass the name without std::move (auto ready = "
                      "[...] {...}; co_await condition.wait(held, ready), or std::ref(ready) if it "
                      "cannot be copied)");
        return wait_operation<std::decay_t<Predicate>>{*this, held,
                                                       std::forward<Predicate>(predicate)};
    }

    /// Lets the longest waiter test its predicate. May be called with or without the lock.
    void notify_one() noexcept {
        if (!waiting_.empty()) waiting_.front().notified();
    }
    /// Lets every waiter test its predicate.
    void notify_all() noexcept {
        while (!waiting_.empty())
            notify_one();
    }

private:
    friend class detail::condition_waiter;

    using waiter_list = detail::intrusive_list<detail::condition_waiter, detail::in_condition>;
    waiter_list waiting_; // for a notification
    waiter_list locking_; // were notified or stopped: they may return to the other list
};

/// Awaitable of async_condition_variable::wait(); the contract is documented there.
template <class Predicate>
class [[nodiscard]] async_condition_variable::wait_operation final
    : public detail::condition_waiter,
      public detail::awaited_from_outside<wait_operation<Predicate>> {
public:
    wait_operation(async_condition_variable& condition, async_mutex::guard& held,
                   Predicate predicate)
        : condition_waiter{condition, held}
        , predicate_{std::move(predicate)} {}

    using detail::awaited_from_outside<wait_operation>::await_suspend;
    template <detail::own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       detail::await_site at = detail::await_site::current()) {
        return start(caller, detail::scope_of(caller, at));
    }
    result<> await_resume() const { return finish(); }

private:
    bool holds() override { return static_cast<bool>(predicate_()); }

    Predicate predicate_;
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
