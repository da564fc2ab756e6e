#pragma once
// task_group and with_group: children that are always joined. Layer coro.

#include <simplenet/coro/detail/safe_in_co_await.hpp>
#include <simplenet/coro/scoped.hpp>
#include <simplenet/coro/spawn.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

inline namespace runtime {

/// How with_group() treats its children.
struct group_options {
    /// The number of children that run at once; the others wait in the order they were spawned. 0:
    /// no limit.
    std::size_t limit = 0;
};

} // namespace runtime

namespace detail {

template <class T>
concept group_result = std::same_as<T, void> || std::same_as<T, result<>>;

class group_core;
struct group_access;

struct in_group; // tag of a child's second list hook

/// A child of a group. Owned by the loop; the group refers to it until it ends.
class group_child_base : public chain, public list_hook<in_group>, public recycled {
public:
    virtual ~group_child_base() = default;

    void run() noexcept final;
    void finished() noexcept final;
    void abandon() noexcept final;

protected:
    friend class group_core;
    explicit group_child_base(group_core& group) noexcept;

    virtual void start() noexcept = 0;
    /// Also destroys the callable of the coroutine.
    virtual void destroy_frame() noexcept = 0;
    virtual std::exception_ptr exception() const noexcept = 0;
    virtual const result<>* outcome() const noexcept = 0; // null for task<>

private:
    enum class state : std::uint8_t { ready, running, ended };

    void drop() noexcept;

    group_core* group_; // valid until ended
    state state_ = state::ready;
    bool counted_ = true; // toward the limit; the body of with_group is not
};

/// Shared by task_group and with_group. Loop thread only.
class group_core : public child_set {
public:
    explicit group_core(scope& within, group_options options = {}) noexcept;
    group_core(const group_core&) = delete;
    group_core& operator=(const group_core&) = delete;
    ~group_core();

    void add(group_child_base& child, bool counted) noexcept;
    void stop(stop_reason reason) noexcept;
    /// Behaves as if a child had ended with this exception.
    void fail_with(std::exception_ptr exception) noexcept;

    void on_stop(stop_reason reason) noexcept override { stop_from_outside(reason); }
    void on_move(scope& enclosing) noexcept override;
    void on_queue_end() noexcept override;
    void show(inspector& to) override;

    /// The body of a with_group() does not count.
    [[nodiscard]] std::size_t size() const noexcept { return size_ - bodies_; }
    [[nodiscard]] bool ended() const noexcept { return size_ == 0; }
    [[nodiscard]] bool failed() const noexcept { return exception_ || error_; }

    /// The result of join() when no child is left.
    [[nodiscard]] result<> outcome();
    /// A stop from outside the group, as opposed to one requested by its user.
    void stop_from_outside(stop_reason reason) noexcept;

    suspension* joiner = nullptr; // borrowed: notified when the last child has ended

private:
    friend group_child_base;
    void ended(group_child_base& child) noexcept;
    void note_outcome(const group_child_base& child) noexcept;
    void report() noexcept;
    void forget(group_child_base& child) noexcept;
    void start_next() noexcept;
    void drop_unstarted() noexcept;

    scope* within_; // null once the loop is gone
    std::size_t limit_;
    std::size_t size_ = 0;                    // children that have not ended
    std::size_t bodies_ = 0;                  // of these, bodies of a with_group()
    std::size_t running_ = 0;                 // of these, started and counted
    stop_reason reason_ = stop_reason::none;  // of the children, including later ones
    stop_reason outside_ = stop_reason::none; // if it came from outside the group
    bool joined_ = false;                     // the exception was rethrown, or passed to the hook
    bool interrupted_ = false;     // a child ended without success after a stop from outside
    std::exception_ptr exception_; // the first failure of a child
    std::error_code error_;
    intrusive_list<group_child_base, in_group> children_; // alive and started
    intrusive_list<group_child_base, in_group> queued_;   // alive, waiting for the limit
};

template <class T>
class group_child : public group_child_base {
public:
    group_child(group_core& group, task<T> work) noexcept
        : group_child_base{group}
        , frame_{work} {}

    [[nodiscard]] const promise_base* first() const noexcept override { return frame_.first(); }

protected:
    void destroy_frame() noexcept override { frame_.destroy(); }

private:
    void start() noexcept override { frame_.start(*this); }
    std::exception_ptr exception() const noexcept override { return frame_.promise().exception(); }
    const result<>* outcome() const noexcept override {
        if constexpr (std::is_void_v<T>) {
            return nullptr;
        } else {
            return &frame_.promise().peek();
        }
    }

    chain_frame<T> frame_;
};

/// A child that holds the callable whose captures the coroutine uses.
// The call is the first base: created before the frame, destroyed after it.
template <class T, class Call>
class calling_group_child final : call_slot<Call>, public group_child<T> {
public:
    template <class Function, class... Args>
    explicit calling_group_child(group_core& group, Function&& function, Args&&... arguments)
        : call_slot<Call>{std::forward<Function>(function), std::forward<Args>(arguments)...}
        , group_child<T>{group, this->call()} {}

private:
    void destroy_frame() noexcept override {
        group_child<T>::destroy_frame();
        call_slot<Call>::drop();
    }
};

/// Awaitable of task_group::join(); the contract is documented there.
class [[nodiscard]] group_join final : public suspension, public awaited_from_outside<group_join> {
public:
    explicit group_join(group_core& group) noexcept
        : group_{&group} {}
    group_join(group_join&&) noexcept = default;
    ~group_join() {
        if (waiting_) group_->joiner = nullptr;
    }

    static bool await_ready() noexcept { return false; }
    using awaited_from_outside<group_join>::await_suspend;
    template <own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept {
        return start(caller, scope_of(caller, at));
    }
    result<> await_resume();

    void run() noexcept override;
    void on_stop(stop_reason reason) noexcept override { group_->stop_from_outside(reason); }
    void describe(std::string& text) override;

private:
    bool start(std::coroutine_handle<> caller, scope& within) noexcept;

    group_core* group_; // borrowed: a group outlives its join
    bool waiting_ = false;
};

} // namespace detail

inline namespace runtime {

/// Children that can be stopped and joined together.
///
/// Belongs to the scope of the coroutine that constructs it: a stop of that scope reaches the
/// children. If the scope ends first, the group moves to the enclosing one. The loop owns the
/// children and frees each as it ends, so a group may run millions of them over time. The first
/// exception or error of a child stops the rest and is rethrown or returned by join(); one that
/// only repeats the stop of the group is not a failure. If no join() has rethrown an exception when
/// the group is destroyed, it goes to the loop's `on_unhandled`. Loop thread only.
///
/// An exception that destroys the group before the join also destroys the children that have not
/// begun. A destructor cannot join a child that has begun, so the precondition is violated then;
/// with_group() does not have this problem.
///
/// @pre Constructed by a coroutine that a loop runs; destroyed with no child alive, except children
/// that an exception destroys with it.
///
/// @par Example
/// @snippet chat_server.cpp serve
class task_group {
public:
    task_group() noexcept;
    task_group(const task_group&) = delete;
    task_group& operator=(const task_group&) = delete;
    ~task_group() = default;

    /// Starts a child in the next turn, already stopped if the group is.
    ///
    /// @par Cost
    /// One recycled allocation besides the task's frame.
    template <class T>
    void spawn(task<T> work) {
        static_assert(detail::group_result<T>, "a child of a group is a task<> or task<result<>>: "
                                               "it has no other result");
        core_.add(*new detail::group_child<T>{core_, std::move(work)}, true);
    }
    /// The same for a callable that returns a task. Callable and arguments are copied or moved, as
    /// for std::thread, and live as long as the child.
    template <class Function, class... Args>
        requires(!detail::is_task<std::remove_cvref_t<Function>>)
    void spawn(Function&& function, Args&&... arguments) {
        if constexpr (detail::checked_task_function<Function, Args...>()) {
            using value = typename detail::task_of_call<Function, Args...>::value_type;
            static_assert(detail::group_result<value>, "a child of a group returns task<> or "
                                                       "task<result<>>: it has no other result");
            if constexpr (detail::needs_no_temporaries<std::decay_t<Function>,
                                                       std::decay_t<Args>...>()) {
                using call = detail::kept_call<std::decay_t<Function>, std::decay_t<Args>...>;
                core_.add(
                    *new detail::calling_group_child<value, call>{
                        core_, std::forward<Function>(function), std::forward<Args>(arguments)...},
                    true);
            } else {
                spawn(detail::call_and_wait<value, std::decay_t<Function>, std::decay_t<Args>...>(
                    std::forward<Function>(function), std::forward<Args>(arguments)...));
            }
        }
    }

    /// Stops every child, and every later one from its start, with operation_canceled.
    void request_stop() noexcept { core_.stop(detail::stop_reason::canceled); }
    /// The number of children that have not ended.
    [[nodiscard]] std::size_t size() const noexcept { return core_.size(); }
    /// Whether a child has ended with an exception or an error.
    [[nodiscard]] bool failed() const noexcept { return core_.failed(); }

    /// Waits until no child is left.
    ///
    /// @return An awaitable of `result<>`: the first error of a child; otherwise the reason of a
    ///         stop that reached this await or the group's scope while children were alive;
    ///         otherwise success. Rethrows the first exception of a child.
    /// @pre One join at a time.
    /// @par Cancellation
    /// A stop is passed to the children, which are then joined.
    [[nodiscard]] detail::group_join join() noexcept { return detail::group_join{core_}; }

private:
    friend detail::group_access;
    explicit task_group(detail::scope& within, group_options options) noexcept
        : core_{within, options} {}

    detail::group_core core_;
};

} // namespace runtime

namespace detail {

template <class T>
inline constexpr bool is_group_task = false;
template <group_result T>
inline constexpr bool is_group_task<task<T>> = true;

template <class Function>
concept group_body = std::invocable<std::decay_t<Function>&, task_group&> &&
                     is_group_task<std::invoke_result_t<std::decay_t<Function>&, task_group&>>;

struct group_access {
    static task_group make(scope& within, group_options options) noexcept {
        return task_group{within, options};
    }
    /// The body of with_group: a child, so that a failing child stops it too; it does not count
    /// toward the limit.
    template <class T>
    static void add_body(task_group& group, task<T> work) {
        group.core_.add(*new group_child<T>{group.core_, std::move(work)}, false);
    }
    static void fail_with(task_group& group, std::exception_ptr exception) noexcept {
        group.core_.fail_with(std::move(exception));
    }
};

/// The scope of the awaiting coroutine. Never suspends.
class own_scope {
public:
    static bool await_ready() noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
        scope_ = &innermost_scope(caller);
        return false;
    }
    [[nodiscard]] scope& await_resume() const noexcept { return *scope_; }

private:
    scope* scope_ = nullptr;
};

template <class Function>
task<result<>> run_group(group_options options, Function function) {
    scope& within = co_await own_scope{};
    task_group group = group_access::make(within, options);
    try {
        group_access::add_body(group, function(group));
    } catch (...) { // a body that is not a coroutine may already have spawned
        group_access::fail_with(group, std::current_exception());
    }
    co_return co_await group.join();
}

template <class Function>
using kept = std::conditional_t<std::is_constructible_v<std::decay_t<Function>, Function>,
                                std::decay_t<Function>, Function>;

} // namespace detail

inline namespace runtime {

/// Runs `body(group)`, which returns task<> or task<result<>>, and joins every child that it
/// spawned, in every case.
///
/// The first exception or error of a child or of the body stops the rest, and is rethrown or
/// returned when all have ended.
///
/// The callable is copied or moved into the task; a callable that cannot be copied and is passed as
/// an lvalue is borrowed instead.
///
/// @return The same as task_group::join().
/// @par Cancellation
/// A stop reaches the body and every child; all are joined.
template <class Function>
    requires detail::group_body<Function>
[[nodiscard]] task<result<>> with_group(group_options options, Function&& body) {
    static_assert(detail::safe_in_co_await<Function>,
                  "GCC 12 destroys the captures of this closure twice inside a co_await "
                  "expression: name it, and pass the name without std::move (auto body = [...] "
                  "{...}; co_await with_group(body))");
    return detail::run_group<detail::kept<Function>>(options, std::forward<Function>(body));
}
template <class Function>
    requires detail::group_body<Function>
[[nodiscard]] task<result<>> with_group(Function&& body) {
    return with_group(group_options{}, std::forward<Function>(body));
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
