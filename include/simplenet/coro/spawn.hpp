#pragma once
// spawn and join_handle: a task that runs beside the one that started it. Layer coro.

#include <simplenet/coro/task.hpp>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

struct spawn_access;

template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;

/// Owns the frame of a chain's root, and everything that must outlive the frame.
template <class T>
class chain_frame {
public:
    using handle = std::coroutine_handle<task_promise<T>>;

    /// None yet.
    chain_frame() noexcept = default;
    explicit chain_frame(task<T>& work) noexcept
        : frame_{task_access::release(work)} {}
    chain_frame(chain_frame&& other) noexcept
        : frame_{std::exchange(other.frame_, {})} {}
    chain_frame& operator=(chain_frame&&) = delete;
    ~chain_frame() { destroy(); }

    /// @pre there is none.
    void adopt(task<T>& work) noexcept { frame_ = task_access::release(work); }

    /// Runs the root in `owner.inner` until it suspends.
    void start(chain& owner) noexcept {
        promise_base& promise = frame_.promise();
        promise.scope_ = &owner.inner;
        promise.chain_ = &owner;
        owner.inner.queue->resume(frame_, owner.inner);
    }
    void destroy() noexcept {
        if (frame_) std::exchange(frame_, {}).destroy();
    }
    [[nodiscard]] task_promise<T>& promise() const noexcept { return frame_.promise(); }
    [[nodiscard]] const promise_base* first() const noexcept {
        return frame_ ? &frame_.promise() : nullptr;
    }

private:
    handle frame_;
};

/// A chain created by spawn(). Shared by the loop, while the chain runs, and its join_handle.
template <class T>
class root : public chain, public recycled {
public:
    root(run_queue& queue, task<T> work) noexcept
        : frame_{work} {
        inner.begin(queue.top);
    }
    virtual ~root() = default; // a root created from a callable holds more

    void run() noexcept final {
        switch (state_) {
        case state::ready:
            state_ = state::running;
            frame_.start(*this);
            return;
        case state::ended: // not in finished(), where the frame is in use
            state_ = state::kept;
            if (references_ != 1) keep_outcome();
            release();
            return;
        case state::running:
        case state::kept:
            break;
        }
    }

    void finished() noexcept final {
        over = true;
        state_ = state::ended;
        run_queue& queue = *inner.queue;
        queue.chain_ended();
        inner.end();
        if (joiner_ != nullptr) {
            // The joiner holds it too, so the loop has nothing left to do.
            state_ = state::kept;
            --references_;
            queue.push(*joiner_);
            return;
        }
        if (!held_) report();
        queue.push(*this);
    }

    void abandon() noexcept final {
        if (!done()) {
            over = true;
            state_ = state::kept;
            abandoned_ = true;
            inner.queue->chain_ended();
            let_go();
            inner.end(); // a handle may keep this after the loop is gone
            release();
            return;
        }
        report(); // the last chance: the hook is gone with the loop
        if (std::exchange(state_, state::kept) == state::ended) release();
    }

    [[nodiscard]] const promise_base* first() const noexcept final { return frame_.first(); }

    /// The handle holds it too.
    void hold() noexcept {
        held_ = true;
        ++references_;
    }
    /// The handle releases it: nobody receives its exception, present or future.
    void drop() noexcept {
        held_ = false;
        if (!taken_ && done() && joiner_ == nullptr) report(); // usually it was taken
        release();
    }

    void request_stop(stop_reason reason) noexcept {
        if (done()) return;
        inner.queue->debug_check_thread();
        inner.stop(reason);
    }
    [[nodiscard]] bool done() const noexcept { return state_ >= state::ended; }

    /// The joiner holds it too, until forget_joiner().
    void join_with(suspension& joiner) noexcept {
        SIMPLENET_EXPECTS(joiner_ == nullptr, "a join_handle can be awaited once");
        joiner_ = &joiner;
        ++references_;
    }
    void forget_joiner() noexcept {
        joiner_ = nullptr;
        release();
    }
    [[nodiscard]] T take() {
        SIMPLENET_EXPECTS(!taken_, "a join_handle can be awaited once");
        taken_ = true;
        if (abandoned_) throw_system_error(std::make_error_code(std::errc::operation_canceled));
        ++references_;      // the child's arguments may hold the handle
        struct at_the_end { // destroyed when the join is over
            root& self;
            ~at_the_end() {
                self.let_go();
                self.release();
            }
        } guard{*this};
        return frame_.first() ? frame_.promise().take() : outcome_.take();
    }

protected:
    /// Destroys the callable of the coroutine, if it is stored here.
    virtual void drop_call() noexcept {}

private:
    // ready    on the ready list for its first turn
    // running  its coroutines are suspended somewhere, or run
    // ended    the root is at its final suspension, and this is on the ready list to be released
    // kept     ended or abandoned; only a handle or a joiner holds it, and the frame is gone, or
    // its
    //          value is about to be taken
    enum class state : std::uint8_t { ready, running, ended, kept };

    void release() noexcept {
        if (--references_ == 0) delete this;
    }
    /// A handle may keep this for a long time; the coroutine's arguments end with the coroutine.
    void keep_outcome() noexcept {
        if (!frame_.first()) return; // joined already
        outcome_.take_from(frame_.promise());
        let_go();
    }
    void let_go() noexcept {
        frame_.destroy();
        drop_call();
    }
    // Not inline: it needs registers that finished() and drop() would have to save.
    [[gnu::noinline]] void report() noexcept {
        if (taken_ || abandoned_ || reported_) return;
        const result_slot<T>& outcome = frame_.first() ? frame_.promise() : outcome_;
        if (auto exception = outcome.exception()) {
            reported_ = true;
            inner.queue->report_unhandled(inner, std::move(exception));
        }
    }

    // In this order a root without a result has 152 bytes, a size of `recycled`.
    state state_ = state::ready;
    bool held_ = false;            // by a handle
    bool taken_ = false;           // joined
    suspension* joiner_ = nullptr; // borrowed: it awaits the handle
    unsigned references_ = 1;      // of the loop, the handle and the joiner
    bool reported_ = false;        // its exception was passed to the hook
    bool abandoned_ = false;       // a teardown destroyed it before it ended
    chain_frame<T> frame_;
    result_slot<T> outcome_; // of a frame that is gone, until it is taken
};

/// Keeps the callable and its arguments alive while the coroutine uses them.
template <class Function, class... Args>
struct kept_call {
    [[no_unique_address]] Function function;
    [[no_unique_address]] std::tuple<Args...> arguments;

    decltype(auto) operator()() {
        return std::apply(
            [this](Args&... each) -> decltype(auto) {
                return std::invoke(std::move(function), std::move(each)...);
            },
            arguments);
    }
};

/// A kept_call that can be destroyed before the object that contains it.
template <class Call>
class call_slot {
public:
    template <class Function, class... Args>
    explicit call_slot(Function&& function, Args&&... arguments)
        : call_{std::forward<Function>(function), {std::forward<Args>(arguments)...}} {}
    call_slot(const call_slot&) = delete;
    call_slot& operator=(const call_slot&) = delete;
    ~call_slot() { drop(); }

protected:
    [[nodiscard]] decltype(auto) call() { return call_(); }
    void drop() noexcept {
        if (std::exchange(there_, false)) std::destroy_at(&call_);
    }

private:
    union {
        Call call_;
    };
    bool there_ = true;
};
template <class Call>
    requires std::is_trivially_destructible_v<Call>
class call_slot<Call> : Call {
public:
    template <class Function, class... Args>
    explicit call_slot(Function&& function, Args&&... arguments)
        : Call{std::forward<Function>(function), {std::forward<Args>(arguments)...}} {}

protected:
    [[nodiscard]] decltype(auto) call() { return static_cast<Call&>(*this)(); }
    static void drop() noexcept {}
};

template <class Function, class... Args>
using task_of_call = std::invoke_result_t<std::decay_t<Function>, std::decay_t<Args>...>;

template <class... Params>
struct parameters {};

/// The parameters of a callable; empty if they are unknown because it is overloaded or generic.
template <class Function>
struct parameters_of {};
template <class Function>
    requires requires { &Function::operator(); }
struct parameters_of<Function> : parameters_of<decltype(&Function::operator())> {};
template <class R, class... Params>
struct parameters_of<R (*)(Params...)> {
    using type = parameters<Params...>;
};
template <class R, class... Params>
struct parameters_of<R (*)(Params...) noexcept> : parameters_of<R (*)(Params...)> {};
template <class R, class C, class... Params>
struct parameters_of<R (C::*)(Params...)> : parameters_of<R (*)(Params...)> {};
template <class R, class C, class... Params>
struct parameters_of<R (C::*)(Params...) noexcept> : parameters_of<R (*)(Params...)> {};
template <class R, class C, class... Params>
struct parameters_of<R (C::*)(Params...) const> : parameters_of<R (*)(Params...)> {};
template <class R, class C, class... Params>
struct parameters_of<R (C::*)(Params...) const noexcept> : parameters_of<R (*)(Params...)> {};

template <class T>
inline constexpr bool is_reference_wrapper = false;
template <class T>
inline constexpr bool is_reference_wrapper<std::reference_wrapper<T>> = true;

/// Whether `Param` takes a kept `Arg` without a temporary in between, which would be gone when the
/// coroutine continues.
template <class Param, class Arg>
inline constexpr bool binds_directly =
    !std::is_reference_v<Param> || is_reference_wrapper<Arg> ||
    std::is_convertible_v<Arg*, std::add_pointer_t<std::remove_reference_t<Param>>>;

template <class Parameters, class... Args>
inline constexpr bool all_bind_directly = false;
template <class... Params, class... Args>
    requires(sizeof...(Params) == sizeof...(Args))
inline constexpr bool all_bind_directly<parameters<Params...>, Args...> =
    (binds_directly<Params, Args> && ...);

template <class Function, class... Args>
consteval bool needs_no_temporaries() {
    if constexpr (sizeof...(Args) == 0) {
        return true;
    } else if constexpr (std::is_member_pointer_v<Function> ||
                         !requires { typename parameters_of<Function>::type; }) {
        return false;
    } else {
        return all_bind_directly<typename parameters_of<Function>::type, Args...>;
    }
}

/// Makes the call in an expression that lasts as long as its task, so that converted arguments do
/// too.
// Not std::invoke: its temporaries are destroyed when it returns.
template <class T, class Function, class... Args>
task<T> call_and_wait(Function function, Args... arguments) {
    co_return co_await std::move(function)(std::move(arguments)...);
}
template <class T, class Function, class Object, class... Args>
    requires std::is_member_function_pointer_v<Function>
task<T> call_and_wait(Function function, Object object, Args... arguments) {
    if constexpr (is_reference_wrapper<Object>) {
        co_return co_await (object.get().*function)(std::move(arguments)...);
    } else if constexpr (requires { (object.*function)(std::move(arguments)...); }) {
        co_return co_await (object.*function)(std::move(arguments)...);
    } else {
        co_return co_await ((*object).*function)(std::move(arguments)...);
    }
}

template <class Function, class... Args>
concept task_function = !is_task<std::remove_cvref_t<Function>> &&
                        std::invocable<std::decay_t<Function>, std::decay_t<Args>...> &&
                        is_task<task_of_call<Function, Args...>>;

/// Explains why the arguments of a spawn() are invalid.
template <class Function, class... Args>
consteval bool checked_task_function() {
    constexpr bool callable = std::invocable<std::decay_t<Function>, std::decay_t<Args>...>;
    static_assert(callable, "spawn() cannot call this with these arguments: as for std::thread, "
                            "callable and arguments are copied or moved and passed as rvalues, so "
                            "an argument that is a reference needs std::ref");
    if constexpr (callable) {
        static_assert(is_task<task_of_call<Function, Args...>>,
                      "spawn() takes a task, or a callable that returns a task: this callable "
                      "returns something else");
    }
    return task_function<Function, Args...>;
}

} // namespace detail

inline namespace runtime {

/// The future result of a spawned task.
///
/// Shares the child with the loop. Awaiting it joins the child; dropping it detaches the child,
/// whose exception then goes to the loop's `on_unhandled`. The child's parameters and captures are
/// destroyed in the turn in which it ends; a handle that is kept keeps only the result.
///
/// Loop thread only, of the loop that runs the child; may outlive the loop.
///
/// @par Cancellation
/// A stop that reaches the await is passed to the child, which is then joined: the await returns
/// the child's result. shield() around the await prevents that.
// Not [[nodiscard]]: `spawn(f());` detaches a task.
template <class T = void>
class join_handle {
public:
    class awaiter;

    /// An empty handle.
    join_handle() noexcept = default;
    join_handle(join_handle&& other) noexcept
        : root_{std::exchange(other.root_, nullptr)} {}
    join_handle& operator=(join_handle&& other) noexcept {
        if (this != &other) {
            detach();
            root_ = std::exchange(other.root_, nullptr);
        }
        return *this;
    }
    ~join_handle() { detach(); }

    /// Waits for the child's end and returns its value or rethrows its exception, once. If the
    /// child's loop was destroyed first, throws `std::system_error` with operation_canceled.
    ///
    /// @pre Not awaited before, detached or moved from; on the child's loop.
    [[nodiscard]] awaiter operator co_await() & noexcept { return awaiter{root()}; }
    [[nodiscard]] awaiter operator co_await() && noexcept { return awaiter{root()}; }

    /// Stops the child: from here on its operations fail with operation_canceled.
    void request_stop() noexcept { root().request_stop(detail::stop_reason::canceled); }

    /// Whether the child has ended.
    [[nodiscard]] bool done() const noexcept { return root().done(); }

    /// Lets the child run on; does nothing on an empty handle.
    void detach() noexcept {
        if (root_ != nullptr) std::exchange(root_, nullptr)->drop();
    }

private:
    friend detail::spawn_access;
    explicit join_handle(detail::root<T>& child) noexcept
        : root_{&child} {
        child.hold();
    }

    [[nodiscard]] detail::root<T>& root() const noexcept {
        SIMPLENET_EXPECTS(root_ != nullptr, "an empty join_handle has no task");
        return *root_;
    }

    detail::root<T>* root_ = nullptr;
};

/// Awaitable of join_handle; the contract is documented there.
template <class T>
class [[nodiscard]] join_handle<T>::awaiter final : public detail::suspension,
                                                    public detail::awaited_from_outside<awaiter> {
public:
    explicit awaiter(detail::root<T>& child) noexcept
        : child_{&child} {}
    awaiter(awaiter&&) noexcept = default;
    ~awaiter() {
        if (waiting_) child_->forget_joiner();
    }
    awaiter& operator=(awaiter&&) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return child_->done(); }

    using detail::awaited_from_outside<awaiter>::await_suspend;
    template <detail::own_promise Promise>
    void await_suspend(std::coroutine_handle<Promise> caller,
                       detail::await_site at = detail::await_site::current()) noexcept {
        detail::scope& within = detail::scope_of(caller, at);
        suspend(caller, within);
        if (!within.queue->tolerate_refusal(within)) return;
        child_->join_with(*this);
        waiting_ = true;
        if (within.stopped()) child_->request_stop(within.reason);
    }

    T await_resume() { return child_->take(); }

    void on_stop(detail::stop_reason reason) noexcept override { child_->request_stop(reason); }
    void describe(std::string& text) override {
        text += "join of #";
        text += std::to_string(child_->number);
    }

private:
    detail::root<T>* child_; // held by the handle, and by this while it waits
    bool waiting_ = false;
};

} // namespace runtime

namespace detail {

struct spawn_access {
    template <class T>
    static join_handle<T> start(run_queue& queue, root<T>& child) noexcept {
        join_handle<T> handle{child};
        queue.add(child);
        if (queue.may_start(child, *queue.here)) queue.push(child);
        return handle;
    }
};

template <class T>
join_handle<T> spawn_on(run_queue& queue, task<T> work) {
    return spawn_access::start(queue, *new root<T>{queue, std::move(work)});
}

/// A root that holds the callable whose captures the coroutine uses.
// The call is in the first base: created before the frame, destroyed after it.
template <class T, class Call>
class calling_root final : call_slot<Call>, public root<T> {
public:
    template <class Function, class... Args>
    explicit calling_root(run_queue& queue, Function&& function, Args&&... arguments)
        : call_slot<Call>{std::forward<Function>(function), std::forward<Args>(arguments)...}
        , root<T>{queue, this->call()} {}

private:
    void drop_call() noexcept override { call_slot<Call>::drop(); }
};

template <class Function, class... Args>
    requires task_function<Function, Args...>
auto spawn_on(run_queue& queue, Function&& function, Args&&... arguments) {
    using value = typename task_of_call<Function, Args...>::value_type;
    if constexpr (needs_no_temporaries<std::decay_t<Function>, std::decay_t<Args>...>()) {
        using call = kept_call<std::decay_t<Function>, std::decay_t<Args>...>;
        root<value>* child = new calling_root<value, call>{queue, std::forward<Function>(function),
                                                           std::forward<Args>(arguments)...};
        return spawn_access::start(queue, *child);
    } else {
        return spawn_on(queue,
                        call_and_wait<value, std::decay_t<Function>, std::decay_t<Args>...>(
                            std::forward<Function>(function), std::forward<Args>(arguments)...));
    }
}

} // namespace detail

inline namespace runtime {

/// Starts `work` on the loop of this thread, outside every scope; it runs from the next turn on.
///
/// The loop owns the child; join_handle documents where its result, its exception and stops go.
///
/// @pre A loop runs on this thread, and `work` was neither started nor moved from.
/// @par Cost
/// One recycled allocation besides the task's frame.
template <class T>
join_handle<T> spawn(task<T> work) {
    return detail::spawn_on(detail::run_queue::require_current(), std::move(work));
}

/// The same for a callable that returns a task: callable and arguments are copied or moved, as for
/// std::thread, and live as long as the child, so a capturing lambda is safe here.
///
/// Under GCC 12 a closure with captures that are not trivially destructible must be named before
/// a `co_await` expression that contains this call: that compiler destroys such captures twice.
template <class Function, class... Args>
    requires(!detail::is_task<std::remove_cvref_t<Function>>)
auto spawn(Function&& function, Args&&... arguments) {
    if constexpr (detail::checked_task_function<Function, Args...>()) {
        return detail::spawn_on(detail::run_queue::require_current(),
                                std::forward<Function>(function), std::forward<Args>(arguments)...);
    }
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
