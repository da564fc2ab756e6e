#pragma once
// remote_handle: the result of a task that runs on another thread's loop. Layer threads.

#include <simplenet/coro/spawn.hpp>
#include <simplenet/threads/detail/posted.hpp>
#include <simplenet/time/deadline.hpp>

#include <atomic>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

struct remote_access;

/// Shared by the thread that runs a task or a call and the one that waits for it.
///
/// Owns the work until it has ended. Each side has a reference: the executor, into whose queue it
/// is put, and the handle or the frame that waits.
class remote_state_base {
public:
    remote_state_base(const remote_state_base&) = delete;
    remote_state_base& operator=(const remote_state_base&) = delete;

    void hold() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    void release() noexcept {
        if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
    }

    /// True only for the first caller, which then begins the work or discards it: the other thread,
    /// or a waiter that withdraws work that has not begun. Any thread.
    [[nodiscard]] bool claim() noexcept {
        return !claimed_.exchange(true, std::memory_order_acq_rel);
    }
    /// Destroys work that never began, and completes. A second call does nothing. @pre claimed by
    /// the caller.
    virtual void discard() noexcept = 0;

    /// The work has ended, or never will begin. Called on the thread that claimed it, which holds a
    /// reference. A second call does nothing.
    void complete() noexcept;
    /// Waits for completion. For threads without a loop.
    void wait() noexcept;
    /// Posts `waiter` to `waiting` on completion. False: already complete.
    [[nodiscard]] bool wait_with(posted& waiter, run_queue& waiting) noexcept;
    /// The waiter stops waiting. False: it is already posted, and will run.
    bool forget_waiter() noexcept;

    [[nodiscard]] bool done() const noexcept {
        return phase_.load(std::memory_order_acquire) >= phase::telling;
    }

    /// Asks the work to stop. The first reason counts. Any thread.
    void request_stop(stop_reason why) noexcept {
        if (note(why)) pass_stop();
    }
    /// The same, but if the work has not begun, it never will: true, and claimed by this call. It
    /// has left its executor's queue, where possible.
    [[nodiscard]] bool withdraw_or_stop(stop_reason why) noexcept {
        const bool first = note(why);
        if (claim()) {
            leave_queue();
            return true;
        }
        if (first) pass_stop();
        return false;
    }
    /// The reason of the stop request; none before one.
    [[nodiscard]] stop_reason why() const noexcept { return why_.load(std::memory_order_acquire); }

protected:
    /// With one reference.
    remote_state_base() noexcept = default;
    ~remote_state_base() = default;

private:
    // nobody   has asked for the end
    // thread   is in wait()
    // loop     `waiter_` is to be posted to `waiting_`
    // telling  complete, and being posted: forget_waiter() keeps that loop until it is
    // done     complete
    enum class phase : int { nobody, thread, loop, telling, done };

    virtual void destroy() noexcept = 0;
    /// why() is no longer none. Stops the work if it is running.
    virtual void pass_stop() noexcept {}
    virtual void leave_queue() noexcept {}
    [[nodiscard]] bool note(stop_reason why) noexcept;

    std::atomic<unsigned> references_ = 1;
    std::atomic<bool> claimed_ = false;
    std::atomic<stop_reason> why_ = stop_reason::none;
    std::atomic<phase> phase_ = phase::nobody;
    posted* waiter_ = nullptr;     // borrowed: a part of the awaiter
    run_queue* waiting_ = nullptr; // the waiter's loop
};

/// A reference to a state.
template <class State>
class remote_ref {
public:
    remote_ref() noexcept = default;
    /// Takes over a reference.
    explicit remote_ref(State* held) noexcept
        : state_{held} {}
    template <class Derived>
    // NOLINTNEXTLINE(google-explicit-constructor): like a pointer to a base.
    remote_ref(remote_ref<Derived>&& other) noexcept
        : state_{other.let_go()} {}
    remote_ref(remote_ref&& other) noexcept
        : state_{other.let_go()} {}
    remote_ref& operator=(remote_ref&& other) noexcept {
        remote_ref taken{std::move(other)};
        std::swap(state_, taken.state_);
        return *this;
    }
    ~remote_ref() {
        if (state_ != nullptr) state_->release();
    }

    [[nodiscard]] State* let_go() noexcept { return std::exchange(state_, nullptr); }
    [[nodiscard]] State* get() const noexcept { return state_; }
    [[nodiscard]] State* operator->() const noexcept { return state_; }
    [[nodiscard]] State& operator*() const noexcept { return *state_; }

private:
    State* state_ = nullptr;
};

template <class T>
class remote_state : public remote_state_base {
public:
    result_slot<T> slot;   // written before complete(), read after it
    bool has_slot = false; // false at the end: the task's loop was destroyed first

    T take() {
        SIMPLENET_EXPECTS(!taken_, "a remote_handle can be awaited once");
        taken_ = true;
        return has_slot ? slot.take() : prevented();
    }
    /// The result of work that did not come to its end: the reason of the stop, as an error or
    /// thrown.
    [[nodiscard]] T prevented() const {
        const stop_reason why = this->why();
        const auto code = error_of(why == stop_reason::none ? stop_reason::canceled : why);
        if constexpr (reports_errors<T>) {
            return T{std::unexpect, code};
        } else {
            throw work_prevented{code};
        }
    }

protected:
    explicit remote_state(unhandled_hook hook) noexcept
        : hook_{hook} {}
    // If nobody took the task's exception, the last owner, loop or handle, reports it.
    ~remote_state() {
        if (taken_) return;
        auto exception = slot.exception();
        if (!exception || is_only_stop(exception, stopped_for)) return;
        run_queue::report_unhandled(hook_, std::move(exception));
    }

    stop_reason stopped_for = stop_reason::none; // the task; like has_slot

private:
    unhandled_hook hook_; // of the task's loop
    bool taken_ = false;
};

/// Brings the stop of a task to its loop, which lives until the task has ended.
class remote_stop final : public posted {
public:
    /// @param state  Contains this.
    explicit remote_stop(remote_state_base& state) noexcept
        : state_{state} {}

    /// Posts it, once, unless close() was called. Any thread.
    void send(run_queue& to) noexcept;
    /// Returns when no thread is in send(), and none will post. The loop's thread, or whoever
    /// withdrew the task.
    void close() noexcept;

    // On the loop's thread.
    scope* target = nullptr; // null: the task has not begun, or has ended

private:
    // idle     not sent
    // sending  a thread is posting it
    // sent     posted, and perhaps gone
    // closed   never sent any more
    enum class phase : std::uint8_t { idle, sending, sent, closed };

    void run() noexcept override;
    void drop() noexcept override { state_.release(); }

    remote_state_base& state_; // held while this is on its way
    std::atomic<phase> phase_ = phase::idle;
};

/// A task for another loop, and its chain there.
template <class T>
class remote_task : public remote_state<T>, public chain, public recycled_message {
public:
    remote_task(run_queue& queue, task<T> work) noexcept
        : remote_task{queue} {
        frame_.adopt(work);
    }
    remote_task(const remote_task&) = delete;
    remote_task& operator=(const remote_task&) = delete;

    /// What is posted to the loop; has a reference of its own.
    [[nodiscard]] posted& start() noexcept {
        this->hold();
        return start_;
    }

    void discard() noexcept final {
        let_go();
        stop_.close();
        this->complete();
    }

    // --- the chain, on the loop's thread ---

    void run() noexcept final {
        if (state_ == state::ended) return end(); // not in finished(), where the frame is in use
        state_ = state::starting;
        run_queue& queue = *queue_;
        queue.here = &this->inner;
        try {
            make_frame();
        } catch (...) {
            queue.here = &queue.top;
            this->slot.unhandled_exception();
            this->has_slot = true;
            leave();
            return end();
        }
        queue.here = &queue.top;
        frame_.start(*this);
        if (state_ == state::ended) return end(); // a ready node would cost the loop another poll
        state_ = state::running;
    }
    void finished() noexcept final {
        leave();
        if (std::exchange(state_, state::ended) == state::running) queue_->push(*this);
    }
    void abandon() noexcept final {
        if (state_ != state::ended) {
            no_longer_runs();
            let_go(); // before the scope ends: groups in the frame are children of the scope
            this->inner.end();
        }
        end();
    }
    [[nodiscard]] const promise_base* first() const noexcept final { return frame_.first(); }

protected:
    explicit remote_task(run_queue& queue) noexcept
        : remote_state<T>{queue.on_unhandled}
        , queue_{&queue} {}
    virtual ~remote_task() = default;

    chain_frame<T>& frame() noexcept { return frame_; }

private:
    // ready     on the ready list for its first turn, or before that
    // starting  in run(), which ends it if it does not suspend
    // running   its coroutines are suspended somewhere, or run
    // ended     the root is at its final suspension, and this is on the ready list or in run()
    enum class state : std::uint8_t { ready, starting, running, ended };

    class start_message final : public posted {
    public:
        explicit start_message(remote_task& of) noexcept
            : of_{of} {}
        void run() noexcept override { of_.claim() ? of_.begin() : of_.withdrawn(); }
        void drop() noexcept override {
            if (!of_.claim()) return of_.withdrawn();
            of_.discard();
            of_.release();
        }

    private:
        remote_task& of_;
    };

    /// Creates the frame, if it does not exist yet.
    virtual void make_frame() {}
    /// Destroys the callable of the coroutine, if it is stored here.
    virtual void drop_call() noexcept {}
    void destroy() noexcept final { delete this; }
    void pass_stop() noexcept final { stop_.send(*queue_); }

    void begin() noexcept {
        run_queue& queue = *queue_;
        this->inner.begin(queue.top);
        stop_.target = &this->inner;
        // A request that comes later is posted.
        if (const auto why = this->why(); why != stop_reason::none) this->inner.stop(why);
        queue.add(*this);
        if (queue.may_start(*this, *queue.here)) queue.push(*this);
    }
    /// The waiter has withdrawn it; the loop may end after this.
    void withdrawn() noexcept {
        stop_.close();
        this->release();
    }
    void no_longer_runs() noexcept {
        this->over = true;
        stop_.target = nullptr;
        queue_->chain_ended();
    }
    void leave() noexcept {
        no_longer_runs();
        this->inner.end();
    }
    void end() noexcept {
        if (frame_.first() != nullptr) {
            this->slot.take_from(frame_.promise());
            this->has_slot = true;
            this->stopped_for = this->inner.reason;
        }
        let_go(); // the arguments are gone before completion is reported
        this->unlink();
        stop_.close();
        this->complete();
        this->release();
    }
    void let_go() noexcept {
        frame_.destroy();
        drop_call();
    }

    run_queue* const queue_; // of the loop; used only until the task has ended
    state state_ = state::ready;
    chain_frame<T> frame_;
    start_message start_{*this};
    remote_stop stop_{*this};
};

/// A remote_task that holds the callable whose captures the coroutine uses.
template <class T, class Call>
class remote_calling_task final : call_slot<Call>, public remote_task<T> {
public:
    template <class Function, class... Args>
    explicit remote_calling_task(run_queue& queue, Function&& function, Args&&... arguments)
        : call_slot<Call>{std::forward<Function>(function), std::forward<Args>(arguments)...}
        , remote_task<T>{queue} {}

private:
    void make_frame() override {
        task<T> work = this->call();
        this->frame().adopt(work);
    }
    void drop_call() noexcept override { call_slot<Call>::drop(); }
};

template <class T>
remote_ref<remote_task<T>> make_remote_task(run_queue& queue, task<T> work) {
    return remote_ref<remote_task<T>>{new remote_task<T>{queue, std::move(work)}};
}
template <class Function, class... Args>
auto make_remote_task(run_queue& queue, Function&& function, Args&&... arguments) {
    using value = typename task_of_call<Function, Args...>::value_type;
    if constexpr (needs_no_temporaries<std::decay_t<Function>, std::decay_t<Args>...>()) {
        using call = kept_call<std::decay_t<Function>, std::decay_t<Args>...>;
        return remote_ref<remote_task<value>>{new remote_calling_task<value, call>{
            queue, std::forward<Function>(function), std::forward<Args>(arguments)...}};
    } else {
        return make_remote_task(
            queue, call_and_wait<value, std::decay_t<Function>, std::decay_t<Args>...>(
                       std::forward<Function>(function), std::forward<Args>(arguments)...));
    }
}

/// A call that is handed to an executor as a callable: a reference to work that has not begun.
template <class State>
class remote_post {
public:
    explicit remote_post(remote_ref<State> state) noexcept
        : state_{std::move(state)} {}
    remote_post(remote_post&&) noexcept = default;
    remote_post& operator=(remote_post&&) = delete;
    // The executor dropped it, unless it has begun.
    ~remote_post() {
        if (state_.get() != nullptr && state_->claim()) state_->discard();
    }
    void operator()() {
        if (state_->claim()) state_->begin();
    }

private:
    remote_ref<State> state_;
};

/// Waits for work elsewhere, and withdraws it if a stop comes before it has begun.
template <class T>
class [[nodiscard]] remote_wait final : public suspension,
                                        public posted,
                                        public awaited_from_outside<remote_wait<T>> {
public:
    explicit remote_wait(remote_state<T>& state) noexcept
        : state_{&state} {}
    remote_wait(remote_wait&& other) noexcept
        : suspension{}
        , posted{}
        , state_{other.state_} {}
    ~remote_wait() { let_go(); }
    static bool await_ready() noexcept { return false; }
    using awaited_from_outside<remote_wait>::await_suspend;
    template <own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept {
        scope& within = scope_of(caller, at);
        suspend(caller, within);
        if (within.stopped()) withdrawn_ = state_->withdraw_or_stop(within.reason);
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
        if (given_up_) return state_->request_stop(reason);
        // The other loop may be busy, or never run again: do not wait for it if the work has not
        // begun. Work that has begun is joined, except in a teardown.
        withdrawn_ = state_->withdraw_or_stop(reason);
        if (!withdrawn_ && reason != stop_reason::teardown) return;
        if (!state_->forget_waiter()) return;
        given_up_ = true;
        within_->queue->push(*this);
    }
    void describe(std::string& text) override { text += "work on another thread"; }
    T await_resume() {
        let_go();
        return given_up_ ? state_->prevented() : state_->take();
    }

private:
    void run() noexcept override { // posted, or on the ready list, never both
        waiting_ = false;
        resume();
    }
    void drop() noexcept override {} // the enclosing frame is destroyed with its loop

    void let_go() noexcept {
        // Afterwards no thread is about to post this to our loop.
        if (std::exchange(waiting_, false)) static_cast<void>(state_->forget_waiter());
        // Here, not in on_stop(): the destroyed objects belong to the caller and may do anything.
        if (withdrawn_) state_->discard();
    }

    remote_state<T>* state_; // the creator of this holds it
    bool withdrawn_ = false; // claimed here, before it began
    bool waiting_ = false;
    bool given_up_ = false;
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
    using awaiter = detail::remote_wait<T>;

    remote_handle(remote_handle&&) noexcept = default;
    remote_handle& operator=(remote_handle&&) noexcept = default;
    ~remote_handle() = default;

    /// Waits for the task's end and returns its value or rethrows its exception. If its loop was
    /// destroyed or its group was stopped first, the result is operation_canceled: as an error if
    /// an expected can hold it, otherwise as a thrown `std::system_error`.
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
    void detach() noexcept { state_ = {}; }

private:
    friend detail::remote_access;
    explicit remote_handle(detail::remote_ref<detail::remote_state<T>> state) noexcept
        : state_{std::move(state)} {}

    [[nodiscard]] detail::remote_state<T>& state() const noexcept {
        SIMPLENET_EXPECTS(state_.get() != nullptr, "an empty remote_handle has no task");
        return *state_;
    }

    detail::remote_ref<detail::remote_state<T>> state_;
};

} // namespace runtime

struct detail::remote_access {
    template <class T>
    [[nodiscard]] static remote_handle<T> make(remote_ref<remote_task<T>> state) noexcept {
        return remote_handle<T>{std::move(state)};
    }
    template <class T>
    [[nodiscard]] static remote_ref<remote_state<T>> share(remote_handle<T> handle) noexcept {
        return std::move(handle.state_);
    }
};

} // namespace simplenet::v0

#pragma GCC visibility pop
