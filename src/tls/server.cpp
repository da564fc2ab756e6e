#include <simplenet/tls/server.hpp>

#include "tls/context_core.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/server/detail/spare_wait.hpp>
#include <simplenet/server/server_stop.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/tls/errc.hpp>

#include <utility>

namespace simplenet::v0::tls {

namespace detail {

std::shared_ptr<handshake_settings> settings_of(const context& with,
                                                const server_options& options) {
    if (with.core().plays() != side::server) return nullptr;
    return std::make_shared<handshake_settings>(
        with, options.handshake_timeout, options.handshake_steps_per_turn,
        options.server.idle_timeout, options.on_handshake_failed, options.context);
}

task<result<>> shake_hands(stream<tcp_stream>& client, handshake_limit& limit,
                           std::chrono::nanoseconds last_hello) {
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    using stop_or_shortage = simplenet::detail::server_stop_operation;
    constexpr bool is_spare = true; // it has said nothing yet
    const auto first = co_await when_any(client.transport().readable(), stop_or_shortage{is_spare});
    if (first.index == 1) { // the server ends or is full, or a stop or the limit came
        const result<>& stopped = *std::get<1>(first.values);
        if (within.stopped()) co_return fail(simplenet::detail::error_of(within.reason));
        // What is in the socket is taken.
        const result<> hello = co_await with_timeout(
            client.transport().readable(), stopped ? last_hello : std::chrono::nanoseconds{0});
        if (!hello) co_return fail(std::errc::operation_canceled);
    }
    // A crowd that begins handshakes and stays must not keep others out, either.
    simplenet::detail::spare_wait waiting{within};
    auto shaking = waiting.of(client.handshake(limit));
    const result<> done = co_await std::move(shaking);
    if (!done && waiting.must_end() && !within.stopped()) {
        co_return fail(std::errc::operation_canceled);
    }
    co_return done;
}

task<> answer_without_tls(stream<tcp_stream>& client, const handshake_settings& settings) {
    // What OpenSSL calls it: the record begins like a request.
    if (settings.answer_without_tls == nullptr || client.error_detail() != "http request")
        co_return;
    const std::string text = settings.answer_without_tls();
    auto telling = async_write_all(client.transport(), text);
    static_cast<void>(co_await with_timeout(std::move(telling), std::chrono::seconds{1}));
}

/// The transport counts every byte, so the limit is the stream's.
simplenet::server_options transport_options(const server_options& options) noexcept {
    simplenet::server_options transport = options.server;
    transport.idle_timeout = {};
    return transport;
}

} // namespace detail

result<server> server::listen(event_loop_group& group, const endpoint& at, const context& with,
                              const server_options& options) {
    auto settings = detail::settings_of(with, options);
    if (!settings) return fail(errc::bad_configuration);
    auto tcp = tcp_server::listen(group, at, detail::transport_options(options));
    if (!tcp) return fail(tcp);
    return server{*std::move(tcp), std::move(settings)};
}

result<server> server::adopt(event_loop_group& group,
                             std::vector<nonblocking::tcp_listener> listeners, const context& with,
                             const server_options& options) {
    auto settings = detail::settings_of(with, options);
    if (!settings) return fail(errc::bad_configuration);
    auto tcp = tcp_server::adopt(group, std::move(listeners), detail::transport_options(options));
    if (!tcp) return fail(tcp);
    return server{*std::move(tcp), std::move(settings)};
}

server_statistics server::statistics() const {
    server_statistics all{tcp_.statistics()};
    all.handshakes_failed = settings_->failed.load(std::memory_order_relaxed);
    return all;
}

} // namespace simplenet::v0::tls
