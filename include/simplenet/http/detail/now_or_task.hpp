#pragma once
// now_or_task: an awaitable that has its result already, or a task. Layer http.

#include <simplenet/coro/detail/foreign_wait.hpp>
#include <simplenet/coro/detail/promise.hpp>
#include <simplenet/coro/task.hpp>

#include <coroutine>
#include <utility>
#include <variant>

#pragma GCC visibility push(default)

namespace simplenet::v0::http::detail {

/// What a function returns that seldom has to wait: without waiting it costs no coroutine.
template <class T>
class [[nodiscard]] now_or_task : public simplenet::detail::awaited_from_outside<now_or_task<T>> {
    using own_site = simplenet::detail::await_site;

public:
    // NOLINTBEGIN(google-explicit-constructor): functions return either.
    now_or_task(T now)
        : outcome_{std::in_place_index<0>, std::move(now)} {}
    now_or_task(task<T> later)
        : outcome_{std::in_place_index<1>, std::move(later).operator co_await()} {}
    // NOLINTEND(google-explicit-constructor)
    now_or_task(now_or_task&&) noexcept = default; // idle awaitables may be moved
    now_or_task& operator=(now_or_task&&) = delete;
    ~now_or_task() = default;

    [[nodiscard]] bool await_ready() const noexcept { return outcome_.index() == 0; }
    using simplenet::detail::awaited_from_outside<now_or_task>::await_suspend;
    template <simplenet::detail::own_promise Promise>
    auto await_suspend(std::coroutine_handle<Promise> caller,
                       own_site at = own_site::current()) noexcept {
        return std::get<1>(outcome_).await_suspend(caller, at);
    }
    T await_resume() {
        if (T* const now = std::get_if<0>(&outcome_)) return std::move(*now);
        return std::get<1>(outcome_).await_resume();
    }

private:
    std::variant<T, simplenet::detail::task_awaiter<T>> outcome_;
};

} // namespace simplenet::v0::http::detail

#pragma GCC visibility pop
