#pragma once
// gate: an event that a test triggers. Stands in for I/O.

#include <simplenet/coro/task.hpp>

#include <coroutine>
#include <utility>

namespace simplenet::v0::testing {

/// One coroutine at a time waits at a gate, and the test opens it. Outlives its waiters.
///
/// Like an operation of the library, a wait fails when its scope is stopped, through the ready
/// list, and with the reason of the stop.
class gate {
public:
    class operation;

    /// Waits for open(); returns the value given there, or the reason of a stop.
    [[nodiscard]] operation wait() noexcept;

    /// Ends the wait. Does nothing without a waiter.
    void open(int value = 0) noexcept;

    [[nodiscard]] bool waited_at() const noexcept { return waiter_ != nullptr; }

    bool deaf = false; // ignores stops of a wait in progress, as an operation that succeeds does
    int refusals = 0;  // waits that were refused at their start
    int stops = 0;     // stops that reached a wait in progress

private:
    operation* waiter_ = nullptr;
};

/// Awaitable of gate::wait().
class [[nodiscard]] gate::operation final : public detail::suspension,
                                            public detail::awaited_from_outside<operation> {
public:
    explicit operation(gate& at) noexcept
        : gate_{&at} {}
    operation(operation&& other) noexcept
        : gate_{other.gate_} {}
    ~operation() {
        if (gate_->waiter_ == this) gate_->waiter_ = nullptr;
    }

    static bool await_ready() noexcept { return false; }
    using detail::awaited_from_outside<operation>::await_suspend;
    template <detail::own_promise Promise>
    void await_suspend(std::coroutine_handle<Promise> caller) noexcept {
        detail::scope& within = detail::scope_of(caller);
        suspend(caller, within);
        if (within.stopped()) {
            ++gate_->refusals;
            outcome_ = fail(detail::error_of(within.reason));
            within.queue->refuse(*this, within);
        } else {
            gate_->waiter_ = this;
        }
    }
    result<int> await_resume() const noexcept { return outcome_; }

    void on_stop(detail::stop_reason reason) noexcept override {
        if (gate_->waiter_ != this) return; // its completion is on the ready list
        ++gate_->stops;
        if (!gate_->deaf) end(fail(detail::error_of(reason)));
    }

private:
    friend gate;
    void end(result<int> outcome) noexcept {
        gate_->waiter_ = nullptr;
        outcome_ = outcome;
        within_->queue->push(*this);
    }

    gate* gate_;
    result<int> outcome_ = 0;
};

inline gate::operation gate::wait() noexcept {
    return operation{*this};
}

inline void gate::open(int value) noexcept {
    if (waiter_ != nullptr) waiter_->end(value);
}

} // namespace simplenet::v0::testing
