#pragma once
// remote_handle: the result of a task that runs on another thread's loop. Layer threads.

#include <simplenet/coro/spawn.hpp>
#include <simplenet/threads/detail/posted.hpp>
#include <simplenet/threads/with_stop.hpp>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

struct remote_access;

/// Shared by the thread that runs a task or a call and the one that waits for it.
///
/// Owns the posted work until it is claimed. The post itself is only a reference: when the waiter
/// has withdrawn the work, the post is an empty shell that frees itself in its turn.
class remote_state_base {
public:
    /// True only for the first caller, which then begins the work or discards it: the other thread,
    /// or a waiter that withdraws work that has not begun. Any thread.
    [[nodiscard]] bool claim() noexcept {
        return !claimed_.exchange(true, std::memory_order_acq_rel);
    }
    /// Destroys work that never began, and completes. A second call does nothing. @pre claimed by
    /// the caller.
    virtual void discard() noexcept = 0;

    /// The work has ended, or never will begin. Called on the thread that claimed it.
    void complete() noexcept;
    /// Waits for completion. For threads without a loop.
    void wait() noexcept;
    /// Posts `waiter` to `waiting` on completion. False: already complete.
    [[nodiscard]] bool wait_with(posted& waiter, run_queue& waiting) noexcept;
    /// The waiter stops waiting. False: it is already posted, and will run.
    bool forget_waiter() noexcept;

    [[nodiscard]] bool done() const noexcept;

    /// Asks the task to stop. The first reason applies on the other thread. Any thread.
    void request_stop(stop_reason why) noexcept;
    [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_.get_token(); }
    /// The reason of the stop request; none before one.
    [[nodiscard]] const std::atomic<stop_reason>& why() const noexcept { return why_; }

protected:
    remote_state_base() = default; // std::stop_source allocates
    ~remote_state_base() = default;

private:
    std::atomic<bool> claimed_ = false;
    std::stop_source stop_;
    std::atomic<stop_reason> why_ = stop_reason::none; // written before stop_ is
    mutable std::mutex guard_;
    std::condition_variable ended_;
    bool done_ = false;
    posted* waiter_ = nullptr;     // borrowed: a part of the awaiter
    run_queue* waiting_ = nullptr; // the waiter's loop, which outlives it
};

template <class T>
class remote_state : public remote_state_base {
public:
    remote_state(const remote_state&) = delete;
    remote_state& operator=(const remote_state&) = delete;

    result_slot<T> slot;   // written before complete(), read after it
    bool has_slot = false; // false at the end: the task's loop was destroyed first

    T take() {
        SIMPLENET_EXPECTS(!taken_, "a remote_handle can be awaited once");
        taken_ = true;
        if (!has_slot) throw_system_error(std::make_error_code(std::errc::operation_canceled));
        return slot.take();
    }

protected:
    explicit remote_state(unhandled_hook hook)
        : hook_{hook} {}
    // If nobody took the task's exception, the last owner, loop or handle, reports it.
    ~remote_state() {
        if (taken_) return;
        if (auto exception = slot.exception())
            run_queue::report_unhandled(hook_, std::move(exception));
    }

private:
    unhandled_hook hook_; // of the task's loop
    bool taken_ = false;
};

/// The object posted to the other thread: a reference to work that has not begun.
template <class State>
class remote_post {
public:
    explicit remote_post(std::shared_ptr<State> state) noexcept
        : state_{std::move(state)} {}
    remote_post(remote_post&&) noexcept = default;
    remote_post& operator=(remote_post&&) = delete;
    // The executor dropped it, unless it has begun.
    ~remote_post() {
        if (state_ && state_->claim()) state_->discard();
    }
    void operator()() {
        if (state_->claim()) state_->begin();
    }

private:
    std::shared_ptr<State> state_;
};

/// Completes the state when the coroutine that holds this ends, for whatever reason.
template <class T>
class remote_completion {
public:
    explicit remote_completion(std::shared_ptr<remote_state<T>> state) noexcept
        : state_{std::move(state)} {}
    remote_completion(remote_completion&&) noexcept = default;
    remote_completion& operator=(remote_completion&&) = delete;
    ~remote_completion() {
        if (state_) state_->complete();
    }
    [[nodiscard]] remote_state<T>& state() const noexcept { return *state_; }

private:
    std::shared_ptr<remote_state<T>> state_;
};

/// Stops by a token; does not change the result.
struct remote_policy : token_policy {
    using token_policy::token_policy;
    static decltype(auto) finish(auto&& resume) { return resume(); }
};

/// A task for another loop, and the destination of its result. One object, because compilers differ
/// in the order in which they destroy the parameters of a coroutine.
template <class T>
struct remote_job {
    remote_job(std::shared_ptr<remote_state<T>> state, task<T> body) noexcept
        : completion{std::move(state)}
        , work{std::move(body)} {}

    remote_completion<T>
        completion; // destroyed last: the arguments are gone before completion is reported
    task<T> work;
};

template <class T>
task<> run_remotely(remote_job<T> job) {
    remote_state<T>& state = job.completion.state();
    scoped_awaiter<task<T>, remote_policy> stoppable{std::move(job.work), state.stop_token(),
                                                     state.why()};
    try {
        if constexpr (std::is_void_v<T>) {
            co_await std::move(stoppable);
            state.slot.return_void();
        } else {
            state.slot.return_value(co_await std::move(stoppable));
        }
    } catch (...) {
        state.slot.unhandled_exception();
    }
    state.has_slot = true;
}

/// A task for another loop.
template <class T>
class remote_task final : public remote_state<T> {
public:
    explicit remote_task(unhandled_hook hook)
        : remote_state<T>{hook} {}
    ~remote_task() = default;

    /// The frame is created here; whoever claims it destroys it.
    [[nodiscard]] static std::shared_ptr<remote_task> make(unhandled_hook hook, task<T> work) {
        auto made = std::make_shared<remote_task>(hook);
        made->root_.emplace(run_remotely(remote_job<T>{made, std::move(work)}));
        return made;
    }
    /// On the loop's thread.
    void begin() noexcept {
        run_queue& queue = run_queue::require_current();
        try {
            // Not spawn_on(): if memory is short, that destroys the frame, which completes this
            // state before the exception arrives here.
            auto* const child = new root<void>{queue, *std::move(root_)};
            spawn_access::start(queue, *child);
        } catch (...) {
            this->slot.unhandled_exception();
            this->has_slot = true;
        }
        root_.reset();
    }
    void discard() noexcept override { root_.reset(); } // its remote_completion completes the state

private:
    // Refers back to this state until the work has begun or is discarded.
    std::optional<task<>> root_;
};

/// Waits for work elsewhere, and withdraws it if a stop comes before it has begun.
template <class T>
class remote_wait : public suspension, public posted, public awaited_from_outside<remote_wait<T>> {
public:
    explicit remote_wait(remote_state<T>& state) noexcept
        : state_{&state} {}
    remote_wait(remote_wait&& other) noexcept
        : suspension{}
        , posted{}
        , state_{other.state_} {}
    static bool await_ready() noexcept { return false; }
    using awaited_from_outside<remote_wait>::await_suspend;
    template <own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept {
        scope& within = scope_of(caller, at);
        suspend(caller, within);
        if (within.stopped()) {
            state_->request_stop(within.reason);
            withdrawn_ = state_->claim();
        }
        if (withdrawn_ || within.torn_down) { // a teardown does not wait for another loop
            given_up_ = true;
            within.queue->refuse(*this, within);
            return true;
        }
        waiting_ = true;
        if (state_->wait_with(*this, *within.queue)) return true;
        within.current = nullptr;
        return false;
    }

    void on_stop(stop_reason reason) noexcept override {
        state_->request_stop(reason);
        if (given_up_) return;
        // The other loop may be busy, or never run again: do not wait for it if the work has not
        // begun. Work that has begun is joined, except in a teardown.
        withdrawn_ = state_->claim();
        if (!withdrawn_ && reason != stop_reason::teardown) return;
        if (!state_->forget_waiter()) return;
        given_up_ = true;
        within_->queue->push(*this);
    }
    void describe(std::string& text) override { text += "work on another thread"; }

protected:
    ~remote_wait() { let_go(); }

    /// The wait is over. False: the work never came to its end.
    [[nodiscard]] bool answered() noexcept {
        let_go();
        return !given_up_ && state_->has_slot;
    }
    /// Work that never came to its end has the reason of the stop as its error, or throws it.
    [[nodiscard]] T unanswered() const {
        const stop_reason why = state_->why().load();
        const auto code = error_of(why == stop_reason::none ? stop_reason::canceled : why);
        if constexpr (reports_errors<T>) {
            return T{std::unexpect, code};
        } else {
            throw never_began{code};
        }
    }

    remote_state<T>* state_; // the creator of this holds it
    bool withdrawn_ = false; // claimed here, before it began

private:
    void run() noexcept override { resume(); } // posted, or on the ready list, never both
    void drop() noexcept override {}           // the enclosing frame is destroyed with its loop

    void let_go() noexcept {
        // The thread that posted this no longer uses our loop, which may end now.
        if (std::exchange(waiting_, false)) static_cast<void>(state_->forget_waiter());
        // Here, not in on_stop(): the destroyed objects belong to the caller and may do anything.
        if (withdrawn_) state_->discard();
    }

    bool waiting_ = false;
    bool given_up_ = false;
};

/// Awaitable of remote_handle; the contract is documented there.
template <class T>
class [[nodiscard]] remote_handle_wait final : public remote_wait<T> {
public:
    using remote_wait<T>::remote_wait;

    T await_resume() {
        if (this->answered()) return this->state_->take();
        if (this->withdrawn_) return this->unanswered();
        throw_system_error(std::make_error_code(std::errc::operation_canceled));
    }
};

} // namespace detail

inline namespace runtime {

/// The future result of a task on another loop, created by event_loop::spawn_remote().
///
/// Shares the result with that loop. Await it on any loop, or call get() on a thread without one,
/// once. Dropping it detaches the task: an exception that nobody took goes to `on_unhandled` of the
/// task's loop, on the thread of the last owner, task or handle. May outlive both loops.
///
/// @par Cancellation
/// A stop that reaches the await is passed to the task with its reason, and the task is then
/// joined. A task that has not begun is withdrawn at once, even if its loop is busy or no longer
/// runs: it is destroyed on the awaiting thread, and the await fails with the reason, as an error
/// if an expected can hold it, otherwise as a thrown `std::system_error`.
// Not [[nodiscard]]: dropping it detaches the task.
template <class T = void>
class remote_handle {
public:
    using awaiter = detail::remote_handle_wait<T>;

    remote_handle(remote_handle&&) noexcept = default;
    remote_handle& operator=(remote_handle&&) noexcept = default;
    ~remote_handle() = default;

    /// Waits for the task's end and returns its value or rethrows its exception. If its loop was
    /// destroyed first, throws `std::system_error` with operation_canceled.
    [[nodiscard]] awaiter operator co_await() & noexcept { return awaiter{state()}; }
    [[nodiscard]] awaiter operator co_await() && noexcept { return awaiter{state()}; }

    /// The same on a thread that runs no loop; blocks the thread.
    T get() {
        SIMPLENET_EXPECTS(detail::run_queue::current() == nullptr,
                          "get() would block this thread's event loop: await the handle");
        state().wait();
        return state().take();
    }

    /// Asks the task to stop. Any thread.
    void request_stop() noexcept { state().request_stop(detail::stop_reason::canceled); }
    /// Any thread.
    [[nodiscard]] bool done() const noexcept { return state().done(); }
    /// Lets the task run on.
    void detach() noexcept { state_.reset(); }

private:
    friend detail::remote_access;
    explicit remote_handle(std::shared_ptr<detail::remote_state<T>> state) noexcept
        : state_{std::move(state)} {}

    [[nodiscard]] detail::remote_state<T>& state() const noexcept {
        SIMPLENET_EXPECTS(state_ != nullptr, "an empty remote_handle has no task");
        return *state_;
    }

    std::shared_ptr<detail::remote_state<T>> state_;
};

} // namespace runtime

struct detail::remote_access {
    template <class T>
    [[nodiscard]] static remote_handle<T> make(std::shared_ptr<remote_state<T>> state) noexcept {
        return remote_handle<T>{std::move(state)};
    }
    template <class T>
    [[nodiscard]] static std::shared_ptr<remote_state<T>> share(remote_handle<T> handle) noexcept {
        return std::move(handle.state_);
    }
};

} // namespace simplenet::v0

#pragma GCC visibility pop
