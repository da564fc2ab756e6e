#pragma once
// task<T>: a lazy coroutine. Layer coro. The return type of users' asynchronous functions.

#include <simplenet/coro/detail/foreign_wait.hpp>
#include <simplenet/coro/detail/promise.hpp>
#include <simplenet/coro/detail/run_queue.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

// Clang turns symmetric transfer into a tail call at every optimisation level. GCC does so only
// with -foptimize-sibling-calls (not at -O0, -O1 or under sanitizers), which no macro reports. So
// with GCC a child is resumed inside its parent's await_suspend, and the stack is kept flat by
// hand.
#if defined(__clang__)
#define SIMPLENET_SYMMETRIC_TRANSFER 1
#else
#define SIMPLENET_SYMMETRIC_TRANSFER 0
#endif

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {
template <class T = void>
class task;
} // namespace runtime

namespace detail {

struct task_access;

/// The end of a coroutine: continues its parent, or notifies its chain.
struct final_awaiter {
    static bool await_ready() noexcept { return false; }
    static void await_resume() noexcept {}

#if SIMPLENET_SYMMETRIC_TRANSFER
    template <own_promise Promise>
    static std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) noexcept {
        const std::coroutine_handle<> next = successor(self.promise());
        return next ? next : std::noop_coroutine();
    }
#else
    template <own_promise Promise>
    static void await_suspend(std::coroutine_handle<Promise> self) noexcept {
        end(self.promise());
    }
#endif

    /// Ends a suspended coroutine, wherever it is suspended. Must be the last action of its
    /// await_suspend, or of the stand-in resumed in its place.
    static void end(promise_base& ended) noexcept {
        run_queue& queue = *ended.scope_->queue;
        if (const std::coroutine_handle<> next = successor(ended)) queue.continue_with(next);
    }

private:
    /// The coroutine that continues after `ended`; null if that is already settled.
    static std::coroutine_handle<> successor(promise_base& ended) noexcept {
        ended.ended_ = true;
        if (ended.nested_) return {}; // its parent's await_suspend continues
        if (ended.continuation_) return ended.continuation_;
        ended.chain_->finished();
        return {};
    }
};

/// Whether `co_return` of a `U` gives a `T`. A reference has to outlive the coroutine's statement,
/// so it binds neither to a temporary nor to the result of a conversion.
template <class U, class T>
concept returnable_as = std::convertible_to<U, T> &&
                        (!std::is_reference_v<T> ||
                         (std::convertible_to<std::add_pointer_t<U>, std::add_pointer_t<T>> &&
                          std::is_lvalue_reference_v<U> == std::is_lvalue_reference_v<T>));

/// Where a coroutine stores its value or exception for take().
template <class T>
class result_slot {
    // A reference is stored as a pointer; accessed by index, because T may be any type.
    using stored = std::conditional_t<std::is_reference_v<T>, std::add_pointer_t<T>, T>;

public:
    // The default argument gives `co_return {...}` its meaning.
    template <class U = T>
        requires returnable_as<U, T>
    void return_value(U&& value) noexcept(std::is_nothrow_constructible_v<T, U>) {
        if constexpr (std::is_reference_v<T>) {
            T&& bound = std::forward<U>(value);
            slot_.template emplace<1>(std::addressof(bound));
        } else {
            slot_.template emplace<1>(std::forward<U>(value));
        }
    }
    void unhandled_exception() noexcept { slot_.template emplace<2>(std::current_exception()); }

    [[nodiscard]] std::exception_ptr exception() const noexcept {
        const auto* held = std::get_if<2>(&slot_);
        return held == nullptr ? nullptr : *held;
    }
    /// @pre ended with a value.
    [[nodiscard]] const stored& peek() const noexcept { return *std::get_if<1>(&slot_); }
    T take() {
        if (auto* held = std::get_if<2>(&slot_)) std::rethrow_exception(std::move(*held));
        if constexpr (std::is_reference_v<T>) {
            return static_cast<T>(*std::get<1>(slot_));
        } else {
            return std::get<1>(std::move(slot_));
        }
    }

    /// Takes over the outcome of `other`, which has ended. If moving the value throws, the
    /// exception replaces the value.
    void take_from(result_slot& other) noexcept {
        try {
            if (auto* const value = std::get_if<1>(&other.slot_)) {
                slot_.template emplace<1>(std::move(*value));
            } else if (auto* const held = std::get_if<2>(&other.slot_)) {
                slot_.template emplace<2>(std::move(*held));
            }
        } catch (...) {
            unhandled_exception();
        }
    }

private:
    std::variant<std::monostate, stored, std::exception_ptr> slot_;
};

template <>
class result_slot<void> {
public:
    static void return_void() noexcept {}
    void unhandled_exception() noexcept { exception_ = std::current_exception(); }
    [[nodiscard]] std::exception_ptr exception() const noexcept { return exception_; }
    void take() {
        if (exception_) std::rethrow_exception(std::move(exception_));
    }
    void take_from(result_slot& other) noexcept { exception_ = std::move(other.exception_); }

private:
    std::exception_ptr exception_;
};

template <class T>
class task_promise final : public promise_base, public result_slot<T> {
    // Frames have no stricter alignment, and parent_of() relies on that.
    static_assert(alignof(result_slot<T>) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__,
                  "a task cannot return what needs more than the default alignment: return a "
                  "pointer to it");

public:
    task<T> get_return_object() noexcept;
    static final_awaiter final_suspend() noexcept { return {}; }
};

/// Owns a coroutine frame until its coroutine has been awaited to the end.
template <class T>
class [[nodiscard]] task_awaiter : public awaited_from_outside<task_awaiter<T>> {
    using handle = std::coroutine_handle<task_promise<T>>;

public:
    explicit task_awaiter(handle frame) noexcept
        : frame_{frame} {
        SIMPLENET_EXPECTS(frame, "a task can be awaited once, and not after it was moved from");
    }
    task_awaiter(task_awaiter&& other) noexcept
        : frame_{std::exchange(other.frame_, {})} {}
    task_awaiter& operator=(task_awaiter&&) = delete;
    ~task_awaiter() {
        if (frame_) frame_.destroy();
    }

    static bool await_ready() noexcept { return false; }

    using awaited_from_outside<task_awaiter>::await_suspend;
#if SIMPLENET_SYMMETRIC_TRANSFER
    template <own_promise Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> caller,
                                          await_site at = await_site::current()) noexcept {
        promise_base& promise = frame_.promise();
        promise.scope_ = &scope_of(caller, at);
        promise.continuation_ = caller;
        return frame_;
    }
#else
    template <own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept {
        return start(caller, scope_of(caller, at));
    }
#endif

    /// await_suspend() without a tail call; also called inside that of another awaiter.
    bool start(std::coroutine_handle<> caller, scope& within) noexcept {
        promise_base& promise = frame_.promise();
        promise.scope_ = &within;
        promise.continuation_ = caller;
        run_queue& queue = *within.queue;
        if (queue.depth == most_nested) {
            // Unwinds the whole stack; resume() at its bottom continues with our coroutine.
            queue.continue_with(frame_);
            return true;
        }
        promise.nested_ = true;
        ++queue.depth;
        frame_.resume();
        --queue.depth;
        if (promise.ended_) return false;
        promise.nested_ = false;
        return true;
    }

    T await_resume() { return frame_.promise().take(); }

private:
    // The stack frames of a start take about 200 bytes at -O0: 64 of them fit on any stack.
    static constexpr unsigned most_nested = 64;
    handle frame_;
};

} // namespace detail

inline namespace runtime {

/// A coroutine that computes a `T`: lazy, move-only, awaited at most once.
///
/// Owns the coroutine's frame. It starts when it is awaited or spawned, runs in the scope of the
/// coroutine that awaits it, and its locals are destroyed when that await expression ends. The
/// await rethrows an exception that leaves the body. Destroying a task that was never started
/// destroys the frame with its arguments. Frames come from a recycling allocator.
///
/// Loop thread only, once started; a task that was not started may move between threads.
///
/// @par Example
/// @snippet echo_server.cpp serve
template <class T>
class [[nodiscard]] task {
    static_assert(!std::is_const_v<T>, "a task of const T cannot be moved out of: use task<T>");

public:
    using value_type = T;
    using promise_type = detail::task_promise<T>;

    task(task&& other) noexcept
        : frame_{std::exchange(other.frame_, {})} {}
    task& operator=(task&& other) noexcept {
        if (this != &other) {
            if (frame_) frame_.destroy();
            frame_ = std::exchange(other.frame_, {});
        }
        return *this;
    }
    ~task() {
        if (frame_) frame_.destroy();
    }

    /// Starts the task and waits for its end: `co_await std::move(t)` or `co_await f()`.
    ///
    /// @pre Neither awaited, spawned nor moved from.
    [[nodiscard]] detail::task_awaiter<T> operator co_await() && noexcept {
        return detail::task_awaiter<T>{release()};
    }
    void operator co_await() & = delete; // await a named task with `co_await std::move(named)`

private:
    friend promise_type;
    friend detail::task_access;
    explicit task(std::coroutine_handle<promise_type> frame) noexcept
        : frame_{frame} {}

    [[nodiscard]] std::coroutine_handle<promise_type> release() noexcept {
        return std::exchange(frame_, {});
    }

    std::coroutine_handle<promise_type> frame_; // owned; null once awaited or moved from
};

} // namespace runtime

/// Access for spawn() and the combinators.
struct detail::task_access {
    /// The frame, which the caller owns from now on.
    ///
    /// @pre `from` was neither awaited, spawned nor moved from.
    template <class T>
    [[nodiscard]] static std::coroutine_handle<task_promise<T>> release(task<T>& from) noexcept {
        SIMPLENET_EXPECTS(from.frame_,
                          "a task can be started once, and not after it was moved from");
        return from.release();
    }
};

template <class T>
task<T> detail::task_promise<T>::get_return_object() noexcept {
    return task<T>{std::coroutine_handle<task_promise>::from_promise(*this)};
}

} // namespace simplenet::v0

#pragma GCC visibility pop
