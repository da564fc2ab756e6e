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

namespace simplenet::v0::http {

class request;

namespace detail {

/// Shared by all loops.
class websocket_handler {
public:
    websocket_handler(const websocket_handler&) = delete;
    websocket_handler& operator=(const websocket_handler&) = delete;
    virtual ~websocket_handler() = default;

    /// @param asked  Not null if `wants_request`.
    [[nodiscard]] virtual task<result<>> talk(request* asked, websocket& peer) = 0;

    const bool wants_request;

protected:
    explicit websocket_handler(bool request) noexcept
        : wants_request{request} {}
};

template <class Function>
inline constexpr bool takes_request = std::invocable<std::decay_t<Function>&, request&, websocket&>;

template <class Function>
struct talk_result {
    using type = std::invoke_result_t<std::decay_t<Function>&, websocket&>;
};
template <class Function>
    requires takes_request<Function>
struct talk_result<Function> {
    using type = std::invoke_result_t<std::decay_t<Function>&, request&, websocket&>;
};

/// What router::websocket() accepts.
template <class Function>
concept handles_websockets =
    (takes_request<Function> || std::invocable<std::decay_t<Function>&, websocket&>) &&
    (std::same_as<typename talk_result<Function>::type, task<>> ||
     std::same_as<typename talk_result<Function>::type, task<result<>>>);

template <class Function>
class websocket_handler_of final : public websocket_handler {
public:
    template <class From>
    explicit websocket_handler_of(From&& function)
        : websocket_handler{takes_request<Function>}
        , function_(std::forward<From>(function)) {}

    [[nodiscard]] task<result<>> talk(request* asked, websocket& peer) override {
        if constexpr (std::same_as<returned, task<result<>>>) {
            return call(asked, peer);
        } else {
            return without_result(call(asked, peer));
        }
    }

private:
    using returned = typename talk_result<Function>::type;

    returned call([[maybe_unused]] request* asked, websocket& peer) {
        if constexpr (takes_request<Function>) {
            return std::invoke(function_, *asked, peer);
        } else {
            return std::invoke(function_, peer);
        }
    }
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

} // namespace detail
} // namespace simplenet::v0::http

#pragma GCC visibility pop
