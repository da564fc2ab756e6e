#include <simplenet/http/server.hpp>

#include "http/server/connection.hpp"
#include "http/server/router_access.hpp"
#include "http/server/service.hpp"

#include <memory>
#include <optional>
#include <utility>

namespace simplenet::v0::http {

namespace detail {

namespace {

/// Port 0: the kernel did not tell the address, and rules about addresses could be evaded. What a
/// proxy reports is taken as it is.
bool is_known(const connection_info& client) noexcept {
    return client.proxied || client.peer.port() != 0;
}
task<> leave(tcp_stream /*stream*/) {
    co_return; // which closes it
}

/// The handler of a tcp_server: a copy for each loop, which outlives its connections.
class plain_service {
public:
    using can_spare_connections = void;

    explicit plain_service(std::shared_ptr<server_state> state)
        : loop_{std::move(state)} {}
    plain_service(const plain_service& other)
        : plain_service{other.loop_.server} {}
    plain_service& operator=(const plain_service&) = delete;
    ~plain_service() = default;

    task<> operator()(tcp_stream stream, const connection_info& info) {
        if (!is_known(info)) return leave(std::move(stream));
        return serve_connection(std::move(stream), connection_state{info, loop_});
    }

private:
    loop_state loop_;
};

#if SIMPLENET_HAS_TLS
/// The same behind a handshake.
class tls_service {
    using stream = tls::stream<tcp_stream>;
    struct after_handshake {
        loop_state* loop;
        task<> operator()(stream client, const connection_info& info) const {
            return serve_connection(std::move(client), connection_state{info, *loop});
        }
    };
    using handshaking = tls::detail::handshaking<after_handshake>;

public:
    using can_spare_connections = void;

    explicit tls_service(std::shared_ptr<server_state> state)
        : loop_{std::move(state)} {}
    tls_service(const tls_service& other)
        : tls_service{other.loop_.server} {}
    tls_service& operator=(const tls_service&) = delete;
    ~tls_service() = default;

    task<result<>> operator()(tcp_stream transport, const connection_info& info) {
        const auto& settings = loop_.handshakes();
        if (settings != settings_) {
            entry_ = std::make_shared<handshaking>(settings, after_handshake{&loop_});
            settings_ = settings;
        }
        return serve(entry_, std::move(transport), info);
    }

private:
    // Holds the settings for as long as the connection.
    static task<result<>> serve(std::shared_ptr<handshaking> entry, tcp_stream transport,
                                const connection_info& info) {
        if (!is_known(info)) co_return result<>{};
        co_return co_await (*entry)(std::move(transport), info);
    }

    loop_state loop_;
    std::shared_ptr<tls::detail::handshake_settings> settings_;
    std::shared_ptr<handshaking> entry_;
};
#endif

[[nodiscard]] bool can_serve(const server_options& options) noexcept {
    const int level = options.compression.level;
    return level >= 1 && level <= 9 && options.limits.header_count != 0;
}

/// What listen(), adopt() and run_server() need of their arguments.
[[nodiscard]] result<std::shared_ptr<server_state>> state_of(router&& routes,
                                                             const server_options& options) {
    if (!can_serve(options)) return fail(std::errc::invalid_argument);
    served first;
    first.what = std::make_shared<const serving>(router_access::take(std::move(routes)), options);
    if (options.tls != nullptr) {
#if SIMPLENET_HAS_TLS
        first.handshakes = handshakes_of(*options.tls, options.server, options.limits);
        if (!first.handshakes) return fail(tls::errc::bad_configuration);
#else
        return fail(std::errc::operation_not_supported);
#endif
    }
    return std::make_shared<server_state>(options, std::move(first));
}

[[nodiscard]] simplenet::server_options transport_options(const server_options& options) noexcept {
#if SIMPLENET_HAS_TLS
    if (options.tls != nullptr) {
        return tls::detail::transport_options(tls::server_options{.server = options.server});
    }
#endif
    return options.server;
}

[[nodiscard]] std::unique_ptr<simplenet::detail::any_handler>
handler_of(const std::shared_ptr<server_state>& state) {
#if SIMPLENET_HAS_TLS
    if (state->has_tls()) return simplenet::detail::make_handler<tcp_stream>(tls_service{state});
#endif
    return simplenet::detail::make_handler<tcp_stream>(plain_service{state});
}

[[nodiscard]] result<> serve(tcp_server& with, const std::shared_ptr<server_state>& state) {
#if SIMPLENET_HAS_TLS
    if (state->has_tls()) return with.serve(tls_service{state});
#endif
    return with.serve(plain_service{state});
}

} // namespace

struct server_access {
    [[nodiscard]] static server make(tcp_server tcp, std::shared_ptr<server_state> state) noexcept {
        return {std::move(tcp), std::move(state)};
    }
    [[nodiscard]] static tcp_server& tcp(server& of) noexcept { return of.tcp_; }
};

namespace {

[[nodiscard]] result<server> serve_at(result<tcp_server> tcp, std::shared_ptr<server_state> state) {
    if (!tcp) return fail(tcp);
    if (const result<> serves = serve(*tcp, state); !serves) return fail(serves);
    return server_access::make(*std::move(tcp), std::move(state));
}

} // namespace
} // namespace detail

result<server> server::listen(event_loop_group& group, const endpoint& at, router routes,
                              const server_options& options) {
    auto state = detail::state_of(std::move(routes), options);
    if (!state) return fail(state);
    return detail::serve_at(tcp_server::listen(group, at, detail::transport_options(options)),
                            *std::move(state));
}

result<server> server::adopt(event_loop_group& group,
                             std::vector<nonblocking::tcp_listener> listeners, router routes,
                             const server_options& options) {
    auto state = detail::state_of(std::move(routes), options);
    if (!state) return fail(state);
    return detail::serve_at(
        tcp_server::adopt(group, std::move(listeners), detail::transport_options(options)),
        *std::move(state));
}

bool server::replace(router routes, const tls::context* with) {
    return state_->replace(detail::router_access::take(std::move(routes)), nullptr, with);
}

bool server::replace(router routes, const server_options& options) {
    if (!detail::can_serve(options)) return false;
    return state_->replace(detail::router_access::take(std::move(routes)), &options, options.tls);
}

server_statistics server::statistics() const {
    server_statistics all{};
    static_cast<simplenet::server_statistics&>(all) = tcp_.statistics();
    all.requests = state_->requests();
    all.handshakes_failed = state_->handshakes_failed();
    return all;
}

result<shutdown_report> run_server(const endpoint& at, router routes, run_server_options options,
                                   std::stop_token stop) {
    auto state = detail::state_of(std::move(routes), options.server);
    if (!state) return fail(state);
    struct told {
        const run_server_options& options;
        std::shared_ptr<detail::server_state> state;
    } context{options, *state};
    simplenet::run_server_options below{.server = detail::transport_options(options.server),
                                        .group = options.group,
                                        .grace = options.grace};
    if (options.on_listening != nullptr) {
        below.context = &context;
        below.on_listening = [](tcp_server& tcp, void* with) {
            const told& to = *static_cast<told*>(with);
            server whole = detail::server_access::make(std::move(tcp), to.state);
            to.options.on_listening(whole, to.options.context);
            tcp = std::move(detail::server_access::tcp(whole));
        };
    }
    return simplenet::detail::run_server(at, detail::handler_of(*state), below, std::move(stop));
}

} // namespace simplenet::v0::http
