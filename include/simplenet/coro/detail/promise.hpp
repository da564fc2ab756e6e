#pragma once
// promise_base: the state of our coroutines besides their result, and the functions that awaiters
// call. Layer coro.

#include <simplenet/coro/detail/frame_allocator.hpp>
#include <simplenet/coro/detail/run_queue.hpp>

#include <concepts>
#include <coroutine>
#include <source_location>
#include <type_traits>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// The location of an await: as a default argument of await_suspend it is the location of the
/// co_await, and costs nothing until it is stored.
// Not an await_transform, which would see every await: under GCC 12 its references cost 16
// instructions each, even if the await does not wait.
using await_site = std::source_location;

/// The state of one of our coroutines besides its result.
class promise_base : public recycled {
public:
    static std::suspend_always initial_suspend() noexcept { return {}; }

    [[nodiscard]] scope& current_scope() noexcept { return *scope_; }

    scope* scope_ = nullptr;               // the scope it runs in; set when it is started
    std::coroutine_handle<> continuation_; // the parent; null for the root of a chain
    chain* chain_ = nullptr;               // told when a root ends
    // Both flags exist in every build: parent and child may come from different compilers.
    bool nested_ = false; // the parent's await_suspend is on the stack and will check ended_
    bool ended_ = false;
    bool stands_in_ = false; // for its continuation, see or_return()
    await_site where_;       // of the latest await that waited; empty if it did not say
};

/// The promise of one of our coroutines, or of a stand-in for one.
template <class Promise>
concept own_promise = std::derived_from<Promise, promise_base>;

/// The scope in which the coroutine behind `caller` runs.
template <class Promise>
[[nodiscard]] scope& innermost_scope(std::coroutine_handle<Promise> caller) noexcept {
    if constexpr (own_promise<Promise>) {
        return caller.promise().current_scope();
    } else {
        // A coroutine type of another library: it belongs to the loop and to no scope.
        return run_queue::require_current().top;
    }
}
/// Records where `caller` waits, for callstack() and dump_tasks().
template <class Promise>
void note_site(std::coroutine_handle<Promise> caller, await_site at) noexcept {
    if constexpr (own_promise<Promise>) caller.promise().where_ = at;
}

/// The scope of `caller`, which is about to wait at `at`; the location is unknown if omitted.
template <own_promise Promise>
[[nodiscard]] scope& scope_of(std::coroutine_handle<Promise> caller, await_site at = {}) noexcept {
    note_site(caller, at);
    return innermost_scope(caller);
}

/// `caller` broke the contract of the awaitable: stops the program with a message that contains the
/// location of the await and the task.
///
/// An operation stores that location only when it has to wait, and after its start. So this returns
/// true, as for a wait, and the program stops before the queue runs anything else.
bool misused(std::coroutine_handle<> caller, scope& within, const char* message,
             std::source_location where = std::source_location::current()) noexcept;

/// Calls `awaited.await_suspend(caller)` for an await at another location.
template <class Awaiter, class Promise>
decltype(auto) await_suspend_at(Awaiter& awaited, std::coroutine_handle<Promise> caller,
                                await_site at) {
    if constexpr (requires { awaited.await_suspend(caller, at); }) {
        return awaited.await_suspend(caller, at);
    } else {
        note_site(caller, at);
        return awaited.await_suspend(caller);
    }
}

/// The coroutine that awaits `awaited`; null for the first coroutine of a chain.
[[nodiscard]] inline promise_base* parent_of(const promise_base& awaited) noexcept {
    if (!awaited.continuation_) return nullptr;
    return &std::coroutine_handle<promise_base>::from_address(awaited.continuation_.address())
                .promise();
}

/// Is resumed in place of a coroutine, and calls a function then.
///
/// It has the beginning of a frame as both compilers lay it out, and as libstdc++ writes it for its
/// own noop_coroutine under GCC: the resume function, the destroy function, the promise. So a
/// result can be inspected before its coroutine continues, without an allocation.
class stand_in {
public:
    using function = void (*)(stand_in&) noexcept;

    /// The handle through which this is resumed, in `within`. `represented` is one of our
    /// coroutines, or null.
    [[nodiscard]] std::coroutine_handle<promise_base>
    begin(std::coroutine_handle<> represented, scope& within, function when_resumed) noexcept {
        frame_.resume = resume;
        frame_.destroy = nullptr; // an awaitable never destroys its caller
        frame_.promise.scope_ = &within;
        frame_.promise.continuation_ = represented;
        frame_.promise.stands_in_ = static_cast<bool>(represented);
        when_resumed_ = when_resumed;
        const auto handle = std::coroutine_handle<promise_base>::from_address(&frame_);
        SIMPLENET_DEBUG_EXPECTS(&handle.promise() == &frame_.promise,
                                "this compiler lays out coroutine frames differently");
        return handle;
    }
    [[nodiscard]] std::coroutine_handle<> represented() const noexcept {
        return frame_.promise.continuation_;
    }

protected:
    [[nodiscard]] const promise_base& promise() const noexcept { return frame_.promise; }

private:
    struct frame {
        void (*resume)(frame*) noexcept;
        void (*destroy)(frame*) noexcept;
        promise_base promise;
    };
    static inline void resume(frame* self) noexcept;

    frame frame_;
    function when_resumed_;
};
// So the frame is at the address of the object.
static_assert(std::is_standard_layout_v<stand_in>);

inline void stand_in::resume(frame* self) noexcept {
    auto& resumed = *reinterpret_cast<stand_in*>(self);
    resumed.when_resumed_(resumed);
}

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
