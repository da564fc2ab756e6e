#pragma once
// scoped_awaiter: an awaitable in a scope of its own, without a coroutine in between; shield().
// Layer coro. with_timeout and with_stop are built on it.

#include <simplenet/coro/task.hpp>

#include <coroutine>
#include <optional>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

template <class Awaitable>
concept has_member_co_await =
    requires(Awaitable&& a) { std::forward<Awaitable>(a).operator co_await(); };
template <class Awaitable>
concept has_free_co_await =
    requires(Awaitable&& a) { operator co_await(std::forward<Awaitable>(a)); };

template <class Awaitable>
decltype(auto) get_awaiter(Awaitable&& awaitable) {
    if constexpr (has_member_co_await<Awaitable>) {
        return std::forward<Awaitable>(awaitable).operator co_await();
    } else if constexpr (has_free_co_await<Awaitable>) {
        return operator co_await(std::forward<Awaitable>(awaitable));
    } else {
        return std::forward<Awaitable>(awaitable);
    }
}

template <class Awaiter>
concept awaiter = requires(Awaiter& a) {
    { a.await_ready() } -> std::convertible_to<bool>;
    a.await_resume();
};

/// or_return() ends the coroutine that awaits it, so that coroutine must await it directly.
template <class Awaitable>
concept ends_its_task = requires { typename std::remove_cvref_t<Awaitable>::ends_its_task; };

/// Types that `co_await` accepts, and combinators take by value.
template <class Awaitable>
concept awaitable = !ends_its_task<Awaitable> && requires(Awaitable&& a) {
    { get_awaiter(std::forward<Awaitable>(a)) } -> awaiter;
};

template <class Awaitable>
using awaiter_of = decltype(get_awaiter(std::declval<Awaitable>()));
template <class Awaitable>
using await_result = decltype(std::declval<awaiter_of<Awaitable>&>().await_resume());

/// Our awaiters: their await_suspend never resumes the caller itself.
template <class Awaiter>
inline constexpr bool resumes_later = std::derived_from<Awaiter, suspension>;
template <class T>
inline constexpr bool resumes_later<task_awaiter<T>> = true;

/// An awaitable and its awaiter. `Awaitable` may be a reference.
template <class Awaitable>
class held_awaiter {
    // Most awaitables are their own awaiter; others create one, which is stored beside them.
    static constexpr bool is_own_awaiter = std::is_reference_v<awaiter_of<Awaitable>>;
    struct nothing {};

public:
    using type = std::remove_reference_t<awaiter_of<Awaitable>>;

    explicit held_awaiter(Awaitable&& awaitable)
        : awaitable_{std::forward<Awaitable>(awaitable)} {}
    // Idle awaitables may be moved.
    held_awaiter(held_awaiter&& other) noexcept(std::is_nothrow_move_constructible_v<Awaitable>)
        : awaitable_{std::forward<Awaitable>(other.awaitable_)} {}
    held_awaiter& operator=(held_awaiter&&) = delete;
    ~held_awaiter() = default;

    /// Called in await_suspend and not earlier: only then does nothing move any more.
    type& make() {
        if constexpr (!is_own_awaiter)
            made_.emplace(get_awaiter(std::forward<Awaitable>(awaitable_)));
        return get();
    }
    /// @pre made.
    [[nodiscard]] type& get() noexcept {
        if constexpr (is_own_awaiter) {
            return awaitable_;
        } else {
            return *made_;
        }
    }

private:
    Awaitable awaitable_;
    [[no_unique_address]] std::conditional_t<is_own_awaiter, nothing, std::optional<type>> made_;
};

/// The part of scoped_awaiter that does not depend on the awaitable.
class scope_entry : public suspension {
public:
    void show(inspector& to) final { to.inside(inner_); }

protected:
    scope_entry() noexcept = default;
    scope_entry(scope_entry&&) noexcept {} // idle awaitables move
    ~scope_entry() = default;

    void enter(promise_base& promise, std::coroutine_handle<> caller, stop_reason held) noexcept {
        promise_ = &promise;
        suspend(caller, *promise.scope_);
        inner_.begin(*within_, held);
        promise.scope_ = &inner_;
        inner_.queue->here = &inner_;
    }
    void leave() noexcept {
        inner_.end();
        promise_->scope_ = within_;
        within_->current = nullptr;
        within_->queue->here = within_;
    }

    scope inner_;
    promise_base* promise_ = nullptr; // of the awaiting coroutine
};

/// Awaits `Awaitable` in a scope of its own, inside the awaiter: no coroutine, no allocation.
/// `Policy` determines when that scope is stopped, and the result:
///
///     stop_reason inherits(stop_reason) const   which stops from outside apply inside
///     void entered(scope& inner)                the scope exists; nothing has started in it
///     void suspended(scope& inner)              the awaitable waits, or is about to
///     void leaving()                            the awaitable has its result
///     R finish(resume)                          returns the result, by calling `resume()`
template <class Awaitable, class Policy>
class [[nodiscard]] scoped_awaiter final
    : public scope_entry,
      public awaited_from_outside<scoped_awaiter<Awaitable, Policy>> {
    using inner_awaiter = typename held_awaiter<Awaitable>::type;

public:
    template <class... Args>
    explicit scoped_awaiter(Awaitable&& awaitable, Args&&... policy)
        : inner_awaiter_{std::move(awaitable)}
        , policy_{std::forward<Args>(policy)...} {}
    scoped_awaiter(scoped_awaiter&& other) noexcept(std::is_nothrow_move_constructible_v<Awaitable>)
        : inner_awaiter_{std::move(other.inner_awaiter_)}
        , policy_{std::move(other.policy_)} {}
    ~scoped_awaiter() = default;

    static bool await_ready() noexcept { return false; }

    using awaited_from_outside<scoped_awaiter>::await_suspend;
    template <own_promise Promise>
    auto await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) {
        promise_base& promise = caller.promise();
        enter(promise, caller, policy_.inherits(promise.scope_->reason));
        try {
            policy_.entered(inner_);
            return start(caller, at);
        } catch (...) {
            policy_.leaving();
            leave();
            throw;
        }
    }

    decltype(auto) await_resume() {
        struct on_exit {
            scoped_awaiter& self;
            ~on_exit() {
                self.policy_.leaving();
                self.leave();
            }
        } guard{*this};
        return policy_.finish(
            [this]() -> decltype(auto) { return inner_awaiter_.get().await_resume(); });
    }

    void on_stop(stop_reason reason) noexcept override {
        reason = policy_.inherits(reason);
        if (reason != stop_reason::none) inner_.stop(reason);
    }

private:
    template <class Promise>
    auto start(std::coroutine_handle<Promise> caller, await_site at) {
        inner_awaiter& awaited = inner_awaiter_.make();
        using suspended = decltype(awaited.await_suspend(caller));
        constexpr bool transfers = !std::is_void_v<suspended> && !std::is_same_v<suspended, bool>;
        // Told first: after the start, a foreign awaiter may be over and freed, and a transfer
        // never returns to this function. Otherwise told only if it does wait.
        constexpr bool told_first = transfers || !resumes_later<inner_awaiter>;

        if (awaited.await_ready()) {
            if constexpr (transfers) {
                return std::coroutine_handle<>{caller};
            } else {
                return false;
            }
        }
        if constexpr (told_first) policy_.suspended(inner_);
        if constexpr (transfers) {
            return std::coroutine_handle<>{await_suspend_at(awaited, caller, at)};
        } else {
            bool waits = true;
            if constexpr (std::is_void_v<suspended>) {
                await_suspend_at(awaited, caller, at);
            } else {
                waits = await_suspend_at(awaited, caller, at);
            }
            if constexpr (!told_first) {
                if (waits) policy_.suspended(inner_);
            }
            return waits;
        }
    }

    held_awaiter<Awaitable> inner_awaiter_;
    Policy policy_;
};

struct shield_policy {
    static stop_reason inherits(stop_reason reason) noexcept {
        return reason == stop_reason::teardown ? reason : stop_reason::none;
    }
    static void entered(scope&) noexcept {}
    static void suspended(scope&) noexcept {}
    static void leaving() noexcept {}
    static decltype(auto) finish(auto&& resume) { return resume(); }
};

} // namespace detail

inline namespace runtime {

/// Awaits `awaitable` out of reach of stops and deadlines from outside.
///
/// A stop that arrives meanwhile takes effect afterwards. The destruction of the loop reaches
/// inside nevertheless.
///
/// @return The result of `awaitable`.
template <detail::awaitable Awaitable>
[[nodiscard]] auto shield(Awaitable awaitable) {
    return detail::scoped_awaiter<Awaitable, detail::shield_policy>{std::move(awaitable)};
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
