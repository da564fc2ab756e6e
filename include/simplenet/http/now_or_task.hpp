#pragma once
// now_or_task: an awaitable that has its result already, or a task. Layer http.

#include <simplenet/coro/detail/foreign_wait.hpp>
#include <simplenet/coro/detail/promise.hpp>
#include <simplenet/coro/task.hpp>

#include <concepts>
#include <coroutine>
#include <expected>
#include <utility>
#include <variant>

namespace simplenet::v0::http::detail {
// The library's own: not exported, since it is first named here.
class handler_call;
} // namespace simplenet::v0::http::detail

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// A result that is known already, or a task. Await it once.
///
/// A handler may be a plain function that returns `now_or_task<result<>>`. It must not
/// pass its own variables to response::send(), even small ones: the answer may be sent after the
/// function has returned.
///
/// @par Cancellation
/// That of the task. A result that is known is returned even if the caller was stopped.
/// @par Cost
/// A known result costs no coroutine.
///
/// Loop thread only, as the task.
///
/// @par Example
/// @snippet http.cpp without a coroutine
template <class T>
class [[nodiscard]] now_or_task : public simplenet::detail::awaited_from_outside<now_or_task<T>> {
    using own_site = simplenet::detail::await_site;

public:
    // NOLINTBEGIN(google-explicit-constructor): functions return either.
    /// A known result.
    now_or_task(T now)
        : outcome_{std::in_place_index<0>, std::move(now)} {}
    /// A known failure, so that `return fail(...)` converts.
    template <class Error>
        requires std::constructible_from<T, std::unexpected<Error>>
    now_or_task(std::unexpected<Error> failure)
        : outcome_{std::in_place_index<0>, std::move(failure)} {}
    /// A task, which begins when this is awaited.
    now_or_task(task<T> later)
        : outcome_{std::in_place_index<1>, std::move(later).operator co_await()} {}
    // NOLINTEND(google-explicit-constructor)
    now_or_task(now_or_task&&) noexcept = default; // idle awaitables may be moved
    now_or_task& operator=(now_or_task&&) = delete;
    ~now_or_task() = default;

    /// The result if it is known; otherwise null.
    [[nodiscard]] T* now() noexcept { return std::get_if<0>(&outcome_); }

    /// Called by `co_await`, as the next two: whether the result is known.
    [[nodiscard]] bool await_ready() const noexcept { return outcome_.index() == 0; }
    using simplenet::detail::awaited_from_outside<now_or_task>::await_suspend;
    /// Begins the task, and resumes `caller` when it has ended.
    template <simplenet::detail::own_promise Promise>
    auto await_suspend(std::coroutine_handle<Promise> caller,
                       own_site at = own_site::current()) noexcept {
        return std::get<1>(outcome_).await_suspend(caller, at);
    }
    /// The result; throws what the task threw.
    T await_resume() {
        if (T* const there = now()) return std::move(*there);
        return std::get<1>(outcome_).await_resume();
    }

private:
    friend detail::handler_call;

    /// As task_awaiter::start().
    bool start(std::coroutine_handle<> caller, simplenet::detail::scope& within) noexcept {
        return std::get_if<1>(&outcome_)->start(caller, within);
    }

    std::variant<T, simplenet::detail::task_awaiter<T>> outcome_;
};

} // namespace simplenet::v0::http

#pragma GCC visibility pop
