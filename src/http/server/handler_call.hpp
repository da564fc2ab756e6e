#pragma once
// handler_call: calls a handler, and notices whether it suspends. Layer http, private.

#include "http/server/exchange.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/detail/route_handler.hpp>
#include <simplenet/http/now_or_task.hpp>

#include <coroutine>
#include <exception>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

namespace simplenet::v0::http::detail {

/// How a handler ended.
struct handler_outcome {
    std::optional<std::error_code> error = {}; // what it returned, or that of its exception
    std::exception_ptr thrown = {};
};

/// An awaitable and no coroutine: a request that is answered at once has at most the frame of the
/// handler.
class [[nodiscard]] handler_call {
public:
    handler_call(route_handler& to, exchange& of, request& asked, response& answer) noexcept
        : to_{to}
        , of_{of}
        , asked_{asked}
        , answer_{answer} {}
    handler_call(handler_call&&) = delete;
    handler_call& operator=(handler_call&&) = delete;
    ~handler_call() = default;

    static bool await_ready() noexcept { return false; }
    template <simplenet::detail::own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
        auto& within = *caller.promise().scope_;
        try {
            // Earlier answers may still be in the output: if this handler waits, they leave without
            // it.
            bool waits = false;
            if (to_.reports) {
                auto& reported = running_.template emplace<1>(to_.report(asked_, answer_));
                if (reported.now() != nullptr) return false;
                waits = reported.start(caller, within);
            } else {
                auto& served =
                    running_.template emplace<2>(to_.serve(asked_, answer_).operator co_await());
                waits = served.start(caller, within);
            }
            if (waits) of_.handler_waits();
            return waits;
        } catch (...) { // by a function that is no coroutine
            thrown_ = std::current_exception();
            return false;
        }
    }
    handler_outcome await_resume() noexcept {
        try {
            if (thrown_) std::rethrow_exception(thrown_);
            if (running_.index() == 2) {
                std::get<2>(running_).await_resume();
            } else {
                const result<> reported = std::get<1>(running_).await_resume();
                if (!reported) return {.error = reported.error(), .thrown = {}};
            }
            return {};
        } catch (const std::system_error& error) {
            return {.error = error.code(), .thrown = std::current_exception()};
        } catch (...) {
            return {.error = std::make_error_code(std::errc::io_error),
                    .thrown = std::current_exception()};
        }
    }

private:
    route_handler& to_;
    exchange& of_;
    request& asked_;
    response& answer_;
    std::variant<std::monostate, now_or_task<result<>>, simplenet::detail::task_awaiter<void>>
        running_;
    std::exception_ptr thrown_;
};

} // namespace simplenet::v0::http::detail
