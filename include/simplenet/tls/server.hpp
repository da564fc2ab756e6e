#pragma once
// tls::server: serves TLS connections on every loop of a group. Layer tls.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/runtime/event_loop_group.hpp>
#include <simplenet/server/run_server.hpp>
#include <simplenet/server/tcp_server.hpp>
#include <simplenet/stream/close_lingering.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/tls/context.hpp>
#include <simplenet/tls/detail/handshake_limit.hpp>
#include <simplenet/tls/stream.hpp>

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0::tls {

/// A handshake that has failed, for logs.
struct handshake_failure {
    /// An `errc`, an error of the transport, or after `handshake_timeout` the library's
    /// `errc::deadline_exceeded`.
    std::error_code error;
    std::string detail;                    ///< As stream::error_detail().
    simplenet::connection_info connection; ///< The addresses and the number of the connection.
};

/// How a tls::server accepts and treats connections.
struct server_options {
    /// `idle_timeout` counts application data only.
    simplenet::server_options server = {};
    /// A connection whose handshake is not complete within this time is closed.
    std::chrono::nanoseconds handshake_timeout = std::chrono::seconds{10};
    /// The most handshake steps in one turn of a loop; the others wait for the next turn. A step
    /// costs a few tenths of a millisecond of processor time. Without a limit, many new clients at
    /// once would delay the connected ones. 0: no limit.
    unsigned handshake_steps_per_turn = 16;
    /// Called on the loop of the connection, with `context`, when a handshake has failed or was not
    /// complete in time. Strangers cause these calls: limit the rate of what you log. Null: the
    /// failure is only counted.
    void (*on_handshake_failed)(const handshake_failure& failure, void* context) = nullptr;
    /// Passed to `on_handshake_failed`. Borrowed: must outlive the connections of the server.
    void* context = nullptr;
};

/// What a server has done since it began.
struct server_statistics : simplenet::server_statistics {
    /// Connections whose handshake failed or was not complete in time. `ended` counts them too.
    std::uint64_t handshakes_failed = 0;
};

namespace detail {

/// What the loops of a server share.
struct handshake_settings {
    context with;
    std::chrono::nanoseconds timeout;
    unsigned steps_per_turn;
    std::chrono::nanoseconds idle_timeout;
    void (*on_failed)(const handshake_failure& failure, void* told);
    void* told;
    /// How long a connection without a byte may wait for one once the server shuts down.
    std::chrono::nanoseconds last_hello{0};
    /// The answer to a client that speaks HTTP without TLS; null: none.
    std::string (*answer_without_tls)() = nullptr;
    std::atomic<std::uint64_t> failed = 0;
};

/// The handshake of a server's connection. A client that has sent nothing yet does not hold up the
/// end of the server for longer than `last_hello`, and is given up when there is no room for new
/// connections. What is in the socket then is taken.
[[nodiscard]] task<result<>> shake_hands(stream<tcp_stream>& client, handshake_limit& limit,
                                         std::chrono::nanoseconds last_hello);

/// Tells a client that it should have spoken TLS, if there is something to tell it.
[[nodiscard]] task<> answer_without_tls(stream<tcp_stream>& client,
                                        const handshake_settings& settings);

/// Null: `with` is not a server's context.
[[nodiscard]] std::shared_ptr<handshake_settings> settings_of(const context& with,
                                                              const server_options& options);
/// Of the tcp_server.
[[nodiscard]] simplenet::server_options transport_options(const server_options& options) noexcept;

using served = stream<tcp_stream>;

/// A handler that asks for what the handshake has agreed on.
template <class Handler>
concept takes_agreement =
    std::invocable<std::decay_t<Handler>&, served, const connection_info&> &&
    !simplenet::detail::handles<Handler, served> && std::copy_constructible<std::decay_t<Handler>>;

/// What serve() accepts.
template <class Handler>
concept handles = takes_agreement<Handler> || simplenet::detail::handles<Handler, served>;

template <class Handler>
struct result_of_handler : simplenet::detail::result_of_handler<Handler, served> {};
template <takes_agreement Handler>
struct result_of_handler<Handler> {
    using type = std::invoke_result_t<Handler&, served, const connection_info&>;
};

/// The handler of the tcp_server: the handshake, then `Handler`. A copy for each loop.
template <class Handler>
class handshaking {
    static constexpr bool takes_info = simplenet::detail::takes_info<Handler, served>;
    static constexpr bool reports =
        std::same_as<typename result_of_handler<Handler>::type, task<result<>>>;
    struct nothing {};
    using agreement = std::conditional_t<takes_agreement<Handler>, tls::connection_info, nothing>;

public:
    handshaking(std::shared_ptr<handshake_settings> settings, Handler handler)
        : settings_{std::move(settings)}
        , limit_{settings_->steps_per_turn}
        , handler_{std::move(handler)} {}
    handshaking(const handshaking& other)
        : handshaking{other.settings_, other.handler_} {}
    handshaking(handshaking&&) = default;
    handshaking& operator=(const handshaking&) = delete;
    ~handshaking() = default;

    // The copy outlives its handlers.
    task<result<>> operator()(tcp_stream transport, simplenet::connection_info info) {
        served client{std::move(transport), settings_->with};
        const result<> made = co_await with_timeout(
            shake_hands(client, limit_, settings_->last_hello), settings_->timeout);
        if (!made) {
            co_await give_up(client, made.error(), info);
            co_return result<>{};
        }
        client.set_idle_timeout(settings_->idle_timeout);
        [[maybe_unused]] agreement agreed;
        if constexpr (takes_agreement<Handler>) agreed = client.info();
        if constexpr (reports) {
            co_return co_await call(std::move(client), info, agreed);
        } else {
            co_await call(std::move(client), info, agreed);
            co_return result<>{};
        }
    }

private:
    auto call(served client, const simplenet::connection_info& info,
              [[maybe_unused]] const agreement& agreed) {
        if constexpr (takes_info) {
            return std::invoke(handler_, std::move(client), info);
        } else if constexpr (takes_agreement<Handler>) {
            return std::invoke(handler_, std::move(client), agreed);
        } else {
            return std::invoke(handler_, std::move(client));
        }
    }
    task<> give_up(served& client, std::error_code why, const simplenet::connection_info& info) {
        if (why == std::errc::operation_canceled) co_return;
        settings_->failed.fetch_add(1, std::memory_order_relaxed);
        if (settings_->on_failed != nullptr) {
            const handshake_failure failure{why, client.error_detail(), info};
            settings_->on_failed(failure, settings_->told);
        }
        if (why.category() != error_category()) co_return;
        if (why == errc::not_tls) co_await answer_without_tls(client, *settings_);
        // The client shall read the alert: a close with unread bytes would be a reset.
        const linger_options limits{.bytes = std::size_t{64} * 1024,
                                    .time = std::chrono::seconds{1}};
        static_cast<void>(co_await async_close_lingering(client.transport(), limits));
    }

    std::shared_ptr<handshake_settings> settings_;
    handshake_limit limit_;
    Handler handler_;
};

} // namespace detail

/// A TLS server on the loops of an event_loop_group: a tcp_server with a handshake between accept
/// and handler. The handler's argument is a `stream<tcp_stream>` whose handshake is complete.
///
/// @par Example
/// @snippet tls.cpp server
class server {
public:
    /// As tcp_server::listen(); and `errc::bad_configuration` if `with` is a client's context.
    [[nodiscard]] static result<server> listen(event_loop_group& group, const endpoint& at,
                                               const context& with,
                                               const server_options& options = {});
    /// As tcp_server::adopt(), and listen().
    [[nodiscard]] static result<server> adopt(event_loop_group& group,
                                              std::vector<nonblocking::tcp_listener> listeners,
                                              const context& with,
                                              const server_options& options = {});

    /// As tcp_server::serve(), with `handler(stream<tcp_stream>)`, or with a second parameter: the
    /// addresses in a `simplenet::connection_info`, or what stream::info() returns.
    template <class Handler>
        requires detail::handles<Handler>
    [[nodiscard]] result<> serve(Handler&& handler) {
        return tcp_.serve(
            detail::handshaking<std::decay_t<Handler>>{settings_, std::forward<Handler>(handler)});
    }

    /// As of tcp_server.
    [[nodiscard]] endpoint local_endpoint() const noexcept { return tcp_.local_endpoint(); }
    /// As of tcp_server. A handshake that is not complete is cut off at the end of `grace`, like a
    /// handler.
    [[nodiscard]] task<shutdown_report> shutdown(std::chrono::nanoseconds grace) {
        return tcp_.shutdown(grace);
    }
    /// As of tcp_server.
    void request_shutdown(std::chrono::nanoseconds grace) noexcept { tcp_.request_shutdown(grace); }
    /// As of tcp_server.
    [[nodiscard]] result<std::vector<unique_fd>> duplicate_listeners() const {
        return tcp_.duplicate_listeners();
    }
    /// As of tcp_server.
    [[nodiscard]] bool is_accepting() const noexcept { return tcp_.is_accepting(); }
    /// As of tcp_server, with the handshakes that failed.
    [[nodiscard]] server_statistics statistics() const;

private:
    server(tcp_server tcp, std::shared_ptr<detail::handshake_settings> settings) noexcept
        : settings_{std::move(settings)}
        , tcp_{std::move(tcp)} {}

    std::shared_ptr<detail::handshake_settings> settings_;
    tcp_server tcp_;
};

/// simplenet::run_server() with TLS: the handler is that of a tls::server, with the standard limits
/// of server_options.
///
/// @par Errors
/// Those of simplenet::run_server(), and `errc::bad_configuration` if `with` is a client's context.
/// @par Example
/// @snippet tls.cpp run_server
template <class Handler>
    requires detail::handles<Handler>
result<shutdown_report> run_server(const endpoint& at, const context& with, Handler&& handler,
                                   run_server_options options = {}, std::stop_token stop = {}) {
    const server_options standard{.server = options.server};
    auto settings = detail::settings_of(with, standard);
    if (!settings) return fail(errc::bad_configuration);
    options.server = detail::transport_options(standard);
    detail::handshaking<std::decay_t<Handler>> serving{std::move(settings),
                                                       std::forward<Handler>(handler)};
    return simplenet::detail::run_server(
        at, simplenet::detail::make_handler<tcp_stream>(std::move(serving)), options,
        std::move(stop));
}

} // namespace simplenet::v0::tls

#pragma GCC visibility pop
