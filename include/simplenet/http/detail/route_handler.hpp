#pragma once
// route_handler: a handler of requests, of any type. Layer http.

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/now_or_task.hpp>

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

class request;
class response;

namespace detail {

/// Shared by all loops.
class route_handler {
public:
    route_handler(const route_handler&) = delete;
    route_handler& operator=(const route_handler&) = delete;
    virtual ~route_handler() = default;

    /// @pre not `reports`.
    [[nodiscard]] virtual task<> serve(request& asked, response& answer) = 0;
    /// @pre `reports`.
    [[nodiscard]] virtual now_or_task<result<>> report(request& asked, response& answer) = 0;

    const bool reports; // call report() and not serve()

protected:
    explicit route_handler(bool result) noexcept
        : reports{result} {}
};

template <class Function>
using handler_result = std::invoke_result_t<std::decay_t<Function>&, request&, response&>;

/// What a router accepts.
template <class Function>
concept handles_requests = std::invocable<std::decay_t<Function>&, request&, response&> &&
                           (std::same_as<handler_result<Function>, task<>> ||
                            std::same_as<handler_result<Function>, task<result<>>> ||
                            std::same_as<handler_result<Function>, now_or_task<result<>>>);

template <class Function>
class route_handler_of final : public route_handler {
    static constexpr bool reports_errors = !std::same_as<handler_result<Function>, task<>>;

public:
    template <class From>
    explicit route_handler_of(From&& function)
        : route_handler{reports_errors}
        , function_(std::forward<From>(function)) {}

    [[nodiscard]] task<> serve(request& asked, response& answer) override {
        if constexpr (reports_errors) {
            std::unreachable();
        } else {
            return std::invoke(function_, asked, answer);
        }
    }
    [[nodiscard]] now_or_task<result<>> report(request& asked, response& answer) override {
        if constexpr (reports_errors) {
            return std::invoke(function_, asked, answer);
        } else {
            std::unreachable();
        }
    }

private:
    Function function_;
};

template <class Function>
[[nodiscard]] std::shared_ptr<route_handler> make_route_handler(Function&& function) {
    return std::make_shared<route_handler_of<std::decay_t<Function>>>(
        std::forward<Function>(function));
}

} // namespace detail
} // namespace simplenet::v0::http

#pragma GCC visibility pop
