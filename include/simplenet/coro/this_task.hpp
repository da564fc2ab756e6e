#pragma once
// yield() and this_task: functions by which a coroutine talks to its loop and task. Layer coro.

#include <simplenet/coro/task.hpp>

#include <concepts>
#include <coroutine>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

/// Awaitable of yield(); the contract is documented there.
class [[nodiscard]] yield_operation final : public suspension,
                                            public awaited_from_outside<yield_operation> {
public:
    yield_operation() noexcept = default;
    yield_operation(yield_operation&&) noexcept = default;
    ~yield_operation() = default;

    static bool await_ready() noexcept { return false; }
    using awaited_from_outside<yield_operation>::await_suspend;
    template <own_promise Promise>
    void await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept {
        scope& within = scope_of(caller, at);
        suspend(caller, within);
        if (within.torn_down) {
            within.queue->refuse(*this, within);
        } else {
            within.queue->push(*this);
        }
    }
    static void await_resume() noexcept {}

    void on_stop(stop_reason) noexcept override {} // already on the ready list
    void describe(std::string& text) override { text += "yield"; }
};

/// Awaitable of this_task::stop_requested(); the contract is documented there.
class [[nodiscard]] stop_requested_query {
public:
    static bool await_ready() noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
        stopped_ = innermost_scope(caller).stopped();
        return false;
    }
    [[nodiscard]] bool await_resume() const noexcept { return stopped_; }

private:
    bool stopped_ = false;
};

/// Appends the await locations of `innermost` and of the coroutines that await it, innermost first.
void append_sites(const promise_base& innermost, std::vector<std::source_location>& to);

/// Awaitable of this_task::callstack(); the contract is documented there.
class [[nodiscard]] callstack_query {
public:
    static bool await_ready() noexcept { return false; }
    template <own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) {
        note_site(caller, at);
        append_sites(caller.promise(), sites_);
        return false;
    }
    [[nodiscard]] std::vector<std::source_location> await_resume() noexcept {
        return std::move(sites_);
    }

private:
    std::vector<std::source_location> sites_;
};

} // namespace detail

inline namespace runtime {

/// Lets all other ready tasks run first.
///
/// @par Cancellation
/// A stop has no effect on it: it returns nothing, and the next operation reports the stop.
[[nodiscard]] inline detail::yield_operation yield() noexcept {
    return {};
}

namespace this_task {

/// Whether operations of this coroutine would be refused. Never suspends.
///
/// @return An awaitable of `bool`.
[[nodiscard]] inline detail::stop_requested_query stop_requested() noexcept {
    return {};
}

/// Names the running task, for dump_tasks(). The name is copied, with `?` for control characters.
/// An empty name removes it.
///
/// A task here is a spawned task or an argument of a combinator, with everything that it awaits.
///
/// @pre Called by a coroutine that a loop runs.
/// @par Cost
/// One allocation.
void set_name(std::string_view name);

/// The location of this coroutine, the location where its parent awaits it, and so on up to the
/// spawned task. Never suspends.
///
/// An entry has line 0 if a foreign awaitable did not report its location. Compilers differ in
/// columns and function names; GCC's name of a coroutine is mangled.
///
/// @return An awaitable of `std::vector<std::source_location>`.
/// @par Cost
/// Proportional to the depth, plus the vector. Awaits that wait record what it reads, in a few
/// instructions; awaits that do not wait record nothing.
[[nodiscard]] inline detail::callstack_query callstack() noexcept {
    return {};
}

} // namespace this_task
} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
