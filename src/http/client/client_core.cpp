#include "http/client/client_core.hpp"

#include "http/codec/url.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/http/errc.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/time/deadline.hpp>

#if SIMPLENET_HAS_TLS
#include <simplenet/tls/connect.hpp>
#endif

#include <algorithm>
#include <array>
#include <string_view>

namespace simplenet::v0::http::detail {

namespace {

/// Connects to an origin.
task<result<any_stream>> connect_to(std::shared_ptr<client_settings> settings,
                                    std::string_view origin) {
    const std::optional<url> to = parse_url(origin);
    if (!to) co_return fail(errc::bad_url);
    connect_options with = settings->options().connect;
    with.report = nullptr; // several connections may be made at once
    if (with.timeout && *with.timeout <= std::chrono::nanoseconds::zero()) with.timeout.reset();
    if (!to->secure) {
        result<tcp_stream> plain = co_await async_connect(to->host, to->port, with);
        if (!plain) co_return fail(plain);
        co_return any_stream{*std::move(plain)};
    }
#if SIMPLENET_HAS_TLS
    const result<tls::context> context = settings->context();
    if (!context) co_return fail(context);
    auto secured = co_await tls::async_connect(to->host, to->port, *context, with);
    if (!secured) co_return fail(secured);
    const std::string& protocol = secured->info().alpn;
    if (!protocol.empty() && protocol != "http/1.1") co_return fail(errc::bad_response);
    co_return any_stream{*std::move(secured)};
#else
    co_return fail(std::errc::operation_not_supported);
#endif
}

} // namespace

client_settings::client_settings(const client_options& options,
                                 std::optional<std::chrono::nanoseconds> send_idle)
    : user_agent_{options.user_agent}
    , options_{options}
    , send_idle_{send_idle.value_or(options.body_idle)} {
    options_.user_agent = user_agent_;
    options_.header_count = std::max<std::size_t>(options.header_count, 1);
#if SIMPLENET_HAS_TLS
    if (options.tls != nullptr) context_ = *options.tls;
#endif
    options_.tls = nullptr; // the caller's may be gone
}

#if SIMPLENET_HAS_TLS
result<tls::context> client_settings::context() {
    if (!context_) {
        constexpr std::array<std::string_view, 1> protocols{"http/1.1"};
        tls::client_config config;
        config.alpn = protocols;
        auto made = tls::context::client(config);
        if (!made) return made;
        context_ = *std::move(made);
    }
    return *context_;
}
#endif

client_core::client_core(const client_options& options)
    : settings{std::make_shared<client_settings>(options)} {
    auto connect = [with = settings](std::string_view origin) { return connect_to(with, origin); };
    pool.emplace(std::move(connect), pool_options{.per_key = options.per_origin,
                                                  .total = options.connections,
                                                  .idle = options.idle,
                                                  .wait = std::chrono::nanoseconds::max()});
}

task<result<std::unique_ptr<client_exchange>>>
exchange_once(client_core& core, const owned_request& asked,
              std::chrono::steady_clock::time_point until) {
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    const std::string origin = origin_of(asked.to);
    for (bool is_repetition = false;; is_repetition = true) {
        if (!core.pool) co_return fail(std::errc::operation_canceled);
        task<result<pooled<any_stream>>> borrowing = core.pool->borrow(origin);
        auto connection = co_await with_deadline(std::move(borrowing), until);
        if (!connection) co_return fail(connection);
        const bool is_reused = connection->is_reused();
        exchange_request message = message_of(asked, core.settings->options().user_agent);
        auto exchange = std::make_unique<client_exchange>(core.settings, std::move(message),
                                                          *std::move(connection), until);
        const result<> opened = co_await exchange->open();
        if (opened) co_return exchange;
        const bool is_stale = is_reused && !exchange->has_begun() &&
                              is_end_of_connection(opened.error()) && !within.stopped();
        if (is_repetition || !is_stale || !asked.is_repeatable()) co_return fail(opened);
    }
}

} // namespace simplenet::v0::http::detail
