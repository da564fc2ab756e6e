#pragma once
// or_return: the value of a result, or the end of the task with its error. Layer coro.

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/coro/scoped.hpp>
#include <simplenet/coro/task.hpp>

#include <concepts>
#include <coroutine>
#include <expected>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

template <class T>
concept any_expected = requires(const std::remove_cvref_t<T>& outcome) { check_expected(outcome); };

template <class Promise>
inline constexpr bool is_task_promise = false;
template <class T>
inline constexpr bool is_task_promise<task_promise<T>> = true;

/// Whether a coroutine can end with an `Error` in place of its value.
template <class Promise, class Error>
inline constexpr bool can_end_with = false;
template <class T, class E, class Error>
inline constexpr bool can_end_with<task_promise<std::expected<T, E>>, Error> =
    std::convertible_to<Error, E>;

template <class Promise, class Error>
consteval void check_can_end_with() {
    static_assert(is_task_promise<Promise>, "or_return() ends a task: it can be awaited only in a "
                                            "coroutine that returns a simplenet::task");
    static_assert(!is_task_promise<Promise> || can_end_with<Promise, Error>,
                  "or_return() ends the task with the error, so the task has to be a "
                  "task<result<...>> (or of another std::expected whose error can be made of this "
                  "one)");
}

/// Ends the suspended `caller` with the error of `failed`, like final_awaiter::end().
template <class Promise, class Expected>
void end_with_error_of(std::coroutine_handle<Promise> caller, Expected&& failed) noexcept {
    Promise& promise = caller.promise();
    try {
        promise.return_value(std::unexpected{std::forward<Expected>(failed).error()});
    } catch (...) {
        promise.unhandled_exception(); // creating the error threw
    }
    final_awaiter::end(promise);
}

/// Awaitable of or_return() for an existing result.
template <class Expected> // an lvalue reference, or a value
class [[nodiscard]] or_return_check final {
    using plain = std::remove_cvref_t<Expected>;

public:
    using ends_its_task = void;

    explicit or_return_check(Expected&& outcome)
        : outcome_{std::forward<Expected>(outcome)} {}

    [[nodiscard]] bool await_ready() const noexcept { return outcome_.has_value(); }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> caller) noexcept {
        check_can_end_with<Promise, typename plain::error_type>();
        end_with_error_of(caller, std::forward<Expected>(outcome_));
    }
    decltype(auto) await_resume() {
        if constexpr (std::is_void_v<typename plain::value_type>) {
            return;
        } else if constexpr (std::is_lvalue_reference_v<Expected>) {
            return *outcome_;
        } else {
            return typename plain::value_type(*std::move(outcome_));
        }
    }

private:
    Expected outcome_;
};

/// Awaitable of or_return() for an awaitable.
///
/// The awaitable is started with a stand_in for its caller. When the stand-in is resumed, the
/// result decides what continues: the coroutine, or the coroutine that waits for its end.
template <class Awaitable>
class [[nodiscard]] or_return_awaiter final : private stand_in {
    using inner_awaiter = typename held_awaiter<Awaitable>::type;
    using outcome = std::remove_cvref_t<await_result<Awaitable>>;

public:
    using ends_its_task = void;

    explicit or_return_awaiter(Awaitable&& awaitable)
        : inner_{std::forward<Awaitable>(awaitable)} {}
    // Idle awaitables may be moved.
    or_return_awaiter(or_return_awaiter&& other) noexcept(
        std::is_nothrow_move_constructible_v<held_awaiter<Awaitable>>)
        : inner_{std::move(other.inner_)} {}
    or_return_awaiter& operator=(or_return_awaiter&&) = delete;
    ~or_return_awaiter() = default;

    static bool await_ready() noexcept { return false; }

    template <class Promise>
    auto await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) {
        check_can_end_with<Promise, typename outcome::error_type>();
        const auto proxy = begin(caller, scope_of(caller, at), [](stand_in& resumed) noexcept {
            auto& self = static_cast<or_return_awaiter&>(resumed);
            const auto represented =
                std::coroutine_handle<Promise>::from_address(self.represented().address());
            if (self.goes_on(represented)) {
                represented.promise().scope_->queue->continue_with(represented);
            }
        });
        inner_awaiter& awaited = inner_.make();
        using suspended = decltype(awaited.await_suspend(proxy));
        if constexpr (std::is_void_v<suspended>) {
            if (awaited.await_ready()) return !goes_on(caller);
            awaited.await_suspend(proxy);
            return true;
        } else if constexpr (std::is_same_v<suspended, bool>) {
            if (!awaited.await_ready() && awaited.await_suspend(proxy)) return true;
            return !goes_on(caller);
        } else {
            if (!awaited.await_ready()) {
                return std::coroutine_handle<>{awaited.await_suspend(proxy)};
            }
            if (goes_on(caller)) return std::coroutine_handle<>{caller};
            return std::coroutine_handle<>{std::noop_coroutine()};
        }
    }

    auto await_resume() -> typename outcome::value_type {
        if constexpr (std::is_void_v<typename outcome::value_type>) {
            static_cast<void>(slot_.take());
        } else {
            return *slot_.take();
        }
    }

private:
    /// The awaitable has ended. False: the coroutine has too, and must not be touched again.
    template <class Promise>
    bool goes_on(std::coroutine_handle<Promise> caller) noexcept {
        try {
            slot_.return_value(inner_.get().await_resume());
        } catch (...) {
            slot_.unhandled_exception();
            return true; // rethrown in the coroutine
        }
        if (slot_.peek().has_value()) [[likely]]
            return true;
        end_with_error_of(caller, slot_.take());
        return false;
    }

    held_awaiter<Awaitable> inner_;
    result_slot<outcome> slot_;
};

} // namespace detail

inline namespace runtime {

/// Returns the value of `outcome`; if it has none, ends this coroutine with the error as its
/// result.
///
/// Only in a `task<result<...>>`, or a task of another `std::expected` to whose error this one
/// converts: a `transfer_error` becomes a `std::error_code`. The effect is that of `co_return
/// fail(outcome)`, except that the coroutine's locals are destroyed a little later: when the await
/// expression of its parent ends, or when the loop releases a spawned task, before its join
/// returns. Locals that others need to be gone, such as a lock, belong in a coroutine of their own.
///
/// @return The value; a reference to it if `outcome` is an lvalue.
/// @pre Awaited at once: combinators do not accept it, because it would end the wrong coroutine.
/// Write `co_await or_return(with_timeout(f(), 1s))`.
/// @par Cancellation
/// Never suspends.
/// @par Cost
/// One comparison.
/// @par Example
/// @snippet coroutines.cpp or_return
template <detail::any_expected Expected>
[[nodiscard]] detail::or_return_check<Expected> or_return(Expected&& outcome) {
    return detail::or_return_check<Expected>{std::forward<Expected>(outcome)};
}

/// Awaits `awaitable` and does the same with its result.
///
/// @return The value. Rethrows the exception of the awaitable.
/// @par Cancellation
/// That of the awaitable. The error of a stopped operation ends the coroutine like any other.
/// @par Cost
/// No allocation, no coroutine in between; about fifteen instructions.
template <class Awaitable>
    requires(!detail::any_expected<Awaitable> && detail::awaitable<Awaitable> &&
             detail::any_expected<detail::await_result<Awaitable>>)
[[nodiscard]] detail::or_return_awaiter<Awaitable> or_return(Awaitable&& awaitable) {
    return detail::or_return_awaiter<Awaitable>{std::forward<Awaitable>(awaitable)};
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
