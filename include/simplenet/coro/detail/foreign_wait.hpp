#pragma once
// foreign_wait: how a coroutine of another library awaits an awaitable of this one. Layer coro.

#include <simplenet/coro/detail/promise.hpp>

#include <coroutine>
#include <type_traits>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// The chain, the scope and the promise that a coroutine of another type lacks, for one await.
///
/// The awaitable sees one of our coroutines, a stand_in, in a scope of its own: the loop counts the
/// wait as a task, and stops it when the loop ends. Does not own the coroutine, whose frame only
/// its own library may destroy.
class foreign_wait final : stand_in, public chain, public recycled {
public:
    foreign_wait(std::coroutine_handle<> waiting, run_queue& queue) noexcept;

    /// The await did not wait, or it threw.
    void end() noexcept;
    /// Resumes `next` in the next turn of this wait.
    void continue_with(std::coroutine_handle<> next) noexcept;
    /// Whether the awaiter is in its own scope, which it leaves in await_resume.
    [[nodiscard]] bool is_entered() const noexcept { return promise().scope_ != &inner; }

    void run() noexcept override;
    void finished() noexcept override {} // it has no coroutine
    void abandon() noexcept override { end(); }
    [[nodiscard]] const promise_base* first() const noexcept override { return &promise(); }

    std::coroutine_handle<promise_base> caller; // the awaitable resumes this

private:
    ~foreign_wait() = default;
    void resume_waiting() noexcept;

    std::coroutine_handle<> waiting_; // of another library
    std::coroutine_handle<> next_;
};

/// Exists while an awaitable starts below another coroutine.
class started_in {
public:
    started_in(run_queue& queue, scope& within) noexcept
        : queue_{queue}
        , before_{queue.here} {
        queue.here = &within;
    }
    started_in(const started_in&) = delete;
    started_in& operator=(const started_in&) = delete;
    ~started_in() { queue_.here = before_; }

private:
    run_queue& queue_;
    scope* before_;
};

/// Starts `awaited` for a coroutine of another type. Throws the exceptions of the start, and
/// std::bad_alloc.
template <class Awaiter>
auto await_from_outside(Awaiter& awaited, std::coroutine_handle<> waiting, await_site at) {
    using own_caller = std::coroutine_handle<promise_base>;
    using suspended = decltype(await_suspend_at(awaited, own_caller{}, at));

    run_queue& queue = run_queue::require_current();
    auto* const wait = new foreign_wait{waiting, queue};
    bool waits = true;
    {
        const started_in start{queue, wait->inner};
        try {
            if constexpr (std::is_void_v<suspended>) {
                await_suspend_at(awaited, wait->caller, at);
            } else if constexpr (std::is_same_v<suspended, bool>) {
                waits = await_suspend_at(awaited, wait->caller, at);
            } else {
                wait->continue_with(await_suspend_at(awaited, wait->caller, at));
            }
        } catch (...) {
            wait->end();
            throw;
        }
    }
    // If the wait suspended, it may be over and freed by now.
    if constexpr (!std::is_void_v<suspended>) {
        if (waits) return true;
        if (!wait->is_entered()) {
            wait->end();
            return false;
        }
        wait->continue_with(wait->caller);
        return true;
    }
}

/// Base of this library's awaiters, which have an await_suspend for our own coroutines: `using`
/// adds the one for all others.
template <class Awaiter>
class awaited_from_outside {
public:
    template <class Promise>
        requires(!own_promise<Promise>)
    auto await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) {
        return await_from_outside(static_cast<Awaiter&>(*this), caller, at);
    }
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
