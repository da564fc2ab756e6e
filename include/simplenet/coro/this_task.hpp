#pragma once
// yield() and this_task: what a coroutine asks of whoever runs it, and tells it. Layer coro.

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

    void on_stop(stop_reason) noexcept override {} // it is on its way already
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

/// Appends where `innermost` and those who await it wait, innermost first.
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

/// Gives the task that runs a name, for dump_tasks(); a copy is kept, with `?` for control
/// characters. An empty name takes it away.
///
/// A task here is what was spawned, or an argument of a combinator, with all that it awaits.
///
/// @pre Called by a coroutine that a loop runs.
/// @par Cost
/// One allocation.
void set_name(std::string_view name);

/// Where this coroutine is, where its parent awaits it, and so on up to the task that was spawned.
/// Never suspends.
///
/// An entry has line 0 where an awaitable of somebody else's did not tell. What compilers say
/// about columns and functions differs; GCC's name of a coroutine is mangled.
/// @par Cost
/// Proportional to the depth, and the vector. What it reads is noted by awaits that wait, in a
/// few instructions, and not by those that do not.
[[nodiscard]] inline detail::callstack_query callstack() noexcept {
    return {};
}

} // namespace this_task
} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
