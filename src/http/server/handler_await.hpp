#pragma once
// handler_await: awaits a handler, and notices whether it suspends. Layer http, private.

#include "http/server/exchange.hpp"

#include <simplenet/coro/task.hpp>

#include <coroutine>
#include <utility>

namespace simplenet::v0::http::detail {

/// What gathered answers cost if nobody looked: a handler that waits would hold up those before it.
template <class T>
class [[nodiscard]] handler_await {
public:
    handler_await(task<T> handler, exchange& of) noexcept
        : handler_{std::move(handler).operator co_await()}
        , of_{of} {}

    static bool await_ready() noexcept { return false; }
    template <simplenet::detail::own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
        if (!handler_.start(caller, *caller.promise().scope_)) return false;
        of_.handler_waits();
        return true;
    }
    T await_resume() { return handler_.await_resume(); }

private:
    simplenet::detail::task_awaiter<T> handler_;
    exchange& of_;
};

} // namespace simplenet::v0::http::detail
