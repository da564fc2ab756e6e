#pragma once
// websocket_handler: a handler of WebSockets, of any type. Layer http.

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/websocket.hpp>

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::http::detail {

/// Shared by all loops.
class websocket_handler {
public:
    websocket_handler() noexcept = default;
    websocket_handler(const websocket_handler&) = delete;
    websocket_handler& operator=(const websocket_handler&) = delete;
    virtual ~websocket_handler() = default;

    [[nodiscard]] virtual task<result<>> talk(websocket& peer) = 0;
};

template <class Function>
using talk_result = std::invoke_result_t<std::decay_t<Function>&, websocket&>;

/// What router::websocket() accepts.
template <class Function>
concept handles_websockets = std::invocable<std::decay_t<Function>&, websocket&> &&
                             (std::same_as<talk_result<Function>, task<>> ||
                              std::same_as<talk_result<Function>, task<result<>>>);

template <class Function>
class websocket_handler_of final : public websocket_handler {
public:
    template <class From>
    explicit websocket_handler_of(From&& function)
        : function_(std::forward<From>(function)) {}

    [[nodiscard]] task<result<>> talk(websocket& peer) override {
        if constexpr (std::same_as<talk_result<Function>, task<result<>>>) {
            return std::invoke(function_, peer);
        } else {
            return without_result(std::invoke(function_, peer));
        }
    }

private:
    static task<result<>> without_result(task<> talking) {
        co_await std::move(talking);
        co_return result<>{};
    }

    Function function_;
};

template <class Function>
[[nodiscard]] std::shared_ptr<websocket_handler> make_websocket_handler(Function&& function) {
    return std::make_shared<websocket_handler_of<std::decay_t<Function>>>(
        std::forward<Function>(function));
}

} // namespace simplenet::v0::http::detail

#pragma GCC visibility pop
