#pragma once
// connection_handler: a server's copy of its handler, for one loop. Layer server, private.

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/server/server_options.hpp>

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// Thrown by a handler of the library that has failed, which is counted and not reported: a handler
/// that returns `task<>` has a smaller frame than one that returns a result.
struct handler_failed {};

/// Used and destroyed on its loop.
class any_handler {
public:
    any_handler(const any_handler&) = delete;
    any_handler& operator=(const any_handler&) = delete;
    virtual ~any_handler() = default;

    [[nodiscard]] virtual std::unique_ptr<any_handler> copy() const = 0;

    const bool wants_info; // it takes a connection_info
    const bool reports;    // call report() and not serve()
    const bool can_spare;  // its listeners leave connections in the backlog for want of descriptors

protected:
    any_handler(bool info, bool result, bool spare) noexcept
        : wants_info{info}
        , reports{result}
        , can_spare{spare} {}
};

/// A handler of connections of the type `Stream`.
template <class Stream>
class connection_handler : public any_handler {
public:
    /// Calls the handler. @pre not `reports`.
    [[nodiscard]] virtual task<> serve(Stream&& stream, const connection_info& info) = 0;
    /// Calls the handler. @pre `reports`.
    [[nodiscard]] virtual task<result<>> report(Stream&& stream, const connection_info& info) = 0;

protected:
    using any_handler::any_handler;
};

template <class Function, class Stream>
inline constexpr bool takes_info = std::invocable<Function&, Stream, const connection_info&>;

template <class Function, class Stream>
struct result_of_handler {
    using type = std::invoke_result_t<Function&, Stream>;
};
template <class Function, class Stream>
    requires takes_info<Function, Stream>
struct result_of_handler<Function, Stream> {
    using type = std::invoke_result_t<Function&, Stream, const connection_info&>;
};

/// What serve() accepts.
template <class Function, class Stream>
concept handles = (takes_info<std::decay_t<Function>, Stream> ||
                   std::invocable<std::decay_t<Function>&, Stream>) &&
                  std::copy_constructible<std::decay_t<Function>>;

/// A handler most of whose connections wait for requests, and can be closed to make room.
template <class Function>
concept spares_connections = requires { typename Function::can_spare_connections; };

template <class Function, class Stream>
class handler_of final : public connection_handler<Stream> {
    using returned = typename result_of_handler<Function, Stream>::type;
    static constexpr bool reports_errors = std::same_as<returned, task<result<>>>;
    static_assert(reports_errors || std::same_as<returned, task<>>,
                  "a handler returns task<> or task<result<>>");

public:
    explicit handler_of(Function function)
        : connection_handler<Stream>{takes_info<Function, Stream>, reports_errors,
                                     spares_connections<Function>}
        , function_{std::move(function)} {}

    [[nodiscard]] std::unique_ptr<any_handler> copy() const override {
        return std::make_unique<handler_of>(function_);
    }
    [[nodiscard]] task<> serve(Stream&& stream, const connection_info& info) override {
        if constexpr (reports_errors) {
            std::unreachable();
        } else {
            return call(std::move(stream), info);
        }
    }
    [[nodiscard]] task<result<>> report(Stream&& stream, const connection_info& info) override {
        if constexpr (reports_errors) {
            return call(std::move(stream), info);
        } else {
            std::unreachable();
        }
    }

private:
    returned call(Stream&& stream, const connection_info& info) {
        if constexpr (takes_info<Function, Stream>) {
            return std::invoke(function_, std::move(stream), info);
        } else {
            return std::invoke(function_, std::move(stream));
        }
    }

    Function function_;
};

/// The `std::decay_t` of a handler as a server takes it.
template <class Stream, class Function>
[[nodiscard]] std::unique_ptr<any_handler> make_handler(Function&& function) {
    return std::make_unique<handler_of<std::decay_t<Function>, Stream>>(
        std::forward<Function>(function));
}

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
