#pragma once
// yield() and this_task: what a coroutine asks of whoever runs it. Layer coro.

#include <simplenet/coro/task.hpp>

#include <coroutine>

namespace simplenet {
namespace detail {

/// Awaitable of yield(); the contract is documented there.
class [[nodiscard]] yield_operation final : public suspension {
public:
    yield_operation() noexcept = default;
    yield_operation(yield_operation&&) noexcept = default;
    ~yield_operation() = default;

    static bool await_ready() noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> caller) noexcept {
        scope& within = scope_of(caller);
        suspend(caller, within);
        if (within.torn_down) {
            within.queue->refuse(*this, within);
        } else {
            within.queue->push(*this);
        }
    }
    static void await_resume() noexcept {}

    void on_stop(stop_reason) noexcept override {} // it is on its way already
};

/// Awaitable of this_task::stop_requested(); the contract is documented there.
class [[nodiscard]] stop_requested_query {
public:
    static bool await_ready() noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
        stopped_ = scope_of(caller).stopped();
        return false;
    }
    [[nodiscard]] bool await_resume() const noexcept { return stopped_; }

private:
    bool stopped_ = false;
};

} // namespace detail

inline namespace runtime {

/// Lets everything else that is ready run first.
///
/// @par Cancellation
/// A stop does not change it: it returns nothing, and the next operation sees the stop.
[[nodiscard]] inline detail::yield_operation yield() noexcept {
    return {};
}

namespace this_task {

/// Whether operations of this coroutine would be refused. Never suspends.
[[nodiscard]] inline detail::stop_requested_query stop_requested() noexcept {
    return {};
}

} // namespace this_task
} // namespace runtime
} // namespace simplenet
