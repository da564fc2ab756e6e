#pragma once
// run_on: a call on another loop, a pool or a strand, awaited on this loop. Layer runtime.

#include <simplenet/coro/detail/safe_in_co_await.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/runtime/event_loop.hpp>
#include <simplenet/threads/remote_handle.hpp>
#include <simplenet/threads/strand.hpp>
#include <simplenet/threads/thread_pool.hpp>
#include <simplenet/time/deadline.hpp>

#include <concepts>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// Takes callables from any thread and runs them elsewhere: an event_loop, a pool. Each is called
/// at most once; a callable that will never be called is destroyed.
template <class T>
concept executor = requires(T& where, void (*call)()) { where.post(call); };

} // namespace runtime

namespace detail {

/// Explains why a callable or its arguments are invalid.
template <class Function, class... Args>
consteval bool checked_call_elsewhere() {
    static_assert(safe_in_co_await<Function>,
                  "GCC 12 destroys the captures of this closure twice inside a co_await "
                  "expression: name it, and pass the name without std::move (auto call = [...] "
                  "{...}; co_await run_on(loop, call)); what only moves goes in as an argument "
                  "(co_await run_on(loop, call, std::move(state)))");
    constexpr bool callable = std::invocable<std::decay_t<Function>, std::decay_t<Args>...>;
    static_assert(callable, "run_on() cannot call this with these arguments: as for std::thread, "
                            "callable and arguments are copied or moved and passed as rvalues, so "
                            "an argument that is a reference needs std::ref");
    return callable;
}

template <class Function, class... Args>
kept_call<std::decay_t<Function>, std::decay_t<Args>...> keep_call(Function&& function,
                                                                   Args&&... arguments) {
    return {std::forward<Function>(function), {std::forward<Args>(arguments)...}};
}

/// A call for another thread. `Link` puts it into the executor's queue.
template <class T, class Call, class Link>
class remote_call final : public remote_state<T>, public Link {
public:
    template <class... Args>
    remote_call(unhandled_hook hook, Call&& call, Args&&... link)
        : remote_state<T>{hook}
        , Link{std::forward<Args>(link)...}
        , call_{std::move(call)} {}
    ~remote_call() = default;

    void begin() noexcept {
        try {
            if constexpr (std::is_void_v<T>) {
                (*call_)();
                this->slot.return_void();
            } else {
                this->slot.return_value((*call_)());
            }
        } catch (...) {
            this->slot.unhandled_exception();
        }
        this->has_slot = true;
        discard();
    }
    void discard() noexcept override {
        call_.reset(); // the captures are gone when the caller continues
        this->complete();
    }
    // For the executor, with its reference.
    void run() noexcept override {
        if (this->claim()) begin();
        this->release();
    }
    void drop() noexcept override {
        if (this->claim()) discard();
        this->release();
    }

private:
    void destroy() noexcept override { delete this; }
    void leave_queue() noexcept override {
        if (Link::leave()) this->release();
    }

    std::optional<Call> call_;
};

/// In the inbox of a loop. A withdrawn call stays there until the loop gets to it.
class in_inbox : public posted {
protected:
    ~in_inbox() = default;
    static bool leave() noexcept { return false; }
};

/// In the queue of a pool or a strand, or in the line before it.
class in_work_queue : public work_item {
public:
    explicit in_work_queue(std::shared_ptr<work_queue> queue) noexcept
        : queue_{std::move(queue)} {}

    void apply() noexcept { queue_->apply(*this); }

protected:
    ~in_work_queue() = default;
    [[nodiscard]] bool leave() noexcept { return queue_->remove(*this); }

private:
    const std::shared_ptr<work_queue> queue_; // may outlive the pool
};

/// In the hands of an executor that is not the library's; it has a remote_post.
class in_callable {
public:
    virtual void run() noexcept = 0;
    virtual void drop() noexcept = 0;

protected:
    ~in_callable() = default;
    static bool leave() noexcept { return false; }
};

struct run_on_access {
    static void post(event_loop& to, posted& call) noexcept { to.post_item(call); }
};

template <class T, class Call>
task<T> run_call_on(event_loop& where, Call call) {
    using state_type = remote_call<T, Call, in_inbox>;
    const run_queue& queue = run_queue::require_current();
    const remote_ref<state_type> state{new state_type{queue.on_unhandled, std::move(call)}};
    // The wait refuses a start in a stopped scope.
    if (!queue.here->stopped()) {
        state->hold();
        run_on_access::post(where, *state);
    }
    remote_wait<T> wait{*state};
    co_return co_await wait;
}

template <class T, class Call>
task<T> run_call_in(std::shared_ptr<work_queue> where, Call call) {
    using state_type = remote_call<T, Call, in_work_queue>;
    const run_queue& queue = run_queue::require_current();
    const remote_ref<state_type> state{
        new state_type{queue.on_unhandled, std::move(call), std::move(where)}};
    if (!queue.here->stopped()) {
        state->hold();
        state->apply();
    }
    remote_wait<T> wait{*state};
    co_return co_await wait;
}
template <class T, class Call>
task<T> run_call_on(thread_pool& where, Call call) {
    return run_call_in<T, Call>(pool_access::queue(where), std::move(call));
}
template <class T, class Call>
task<T> run_call_on(strand& where, Call call) {
    return run_call_in<T, Call>(pool_access::queue(where), std::move(call));
}

template <class T, class Executor, class Call>
task<T> run_call_on(Executor& where, Call call) {
    using state_type = remote_call<T, Call, in_callable>;
    const run_queue& queue = run_queue::require_current();
    const remote_ref<state_type> state{new state_type{queue.on_unhandled, std::move(call)}};
    if (!queue.here->stopped()) {
        state->hold();
        where.post(remote_post{remote_ref<state_type>{state.get()}});
    }
    remote_wait<T> wait{*state};
    co_return co_await wait;
}

template <class T>
task<T> run_task_on(event_loop& where, task<T> work) {
    const auto state = remote_access::share(where.spawn_remote(std::move(work)));
    remote_wait<T> wait{*state};
    co_return co_await wait;
}

} // namespace detail

inline namespace runtime {

/// Calls `function(arguments...)` on the thread of `where`, and continues here with its result.
///
/// `where` is an event_loop, a thread_pool, a strand or another executor. If the result is a task,
/// it runs on that loop to its end: only an event_loop supports that. The callable and its
/// arguments are moved or copied, as for std::thread; they are used and destroyed there, before the
/// await returns (or here, if the call is withdrawn). Objects passed by std::ref must be usable on
/// another thread, and must survive if this coroutine's loop is destroyed meanwhile.
///
/// While queue_limit callables wait in a pool or a strand, the call waits for its place behind
/// them, in the order of the calls.
///
/// @return The result of the call, or of its task; rethrows its exception. If `where` was destroyed
///         before the end: operation_canceled, as the error of an expected that can hold one,
///         otherwise thrown as `std::system_error`; with_timeout() and with_stop() turn the latter
///         into the error of their result if they caused it.
/// @pre `where` lives until the await has begun. Awaited on a loop, which may be `where`.
/// @par Cancellation
/// A call or task that has not begun is withdrawn at once and fails with the reason of the stop
/// (operation_canceled or deadline_exceeded), even if the other loop is busy, or nobody runs it any
/// more; in that case only a stop or a time limit ends the wait. Its place in a pool or a strand is
/// free at once. A task that has begun gets the stop with its reason and is joined, and its result
/// is returned. A call that has begun is not interrupted, and the await lasts as long as the call.
/// The destruction of this loop does not wait: a later exception goes to `on_unhandled`. A task
/// that was stopped, and ends with the exception that says so, is not reported there.
/// @par Cost
/// One allocation and one recycled frame; a system call for each thread that sleeps. A task costs
/// one more frame.
/// @par Example
/// @snippet coroutines.cpp run_on
template <executor Executor, class Function, class... Args>
[[nodiscard]] auto run_on(Executor& where, Function&& function, Args&&... arguments) {
    if constexpr (detail::checked_call_elsewhere<Function, Args...>()) {
        using returned = detail::task_of_call<Function, Args...>;
        if constexpr (detail::is_task<returned>) {
            static_assert(std::same_as<Executor, event_loop>, "a task runs on an event_loop");
            using value = typename returned::value_type;
            return detail::run_task_on<value>(
                where, detail::call_and_wait<value, std::decay_t<Function>, std::decay_t<Args>...>(
                           std::forward<Function>(function), std::forward<Args>(arguments)...));
        } else {
            return detail::run_call_on<returned>(
                where, detail::keep_call(std::forward<Function>(function),
                                         std::forward<Args>(arguments)...));
        }
    }
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
