#include <simplenet/server/tcp_server.hpp>

#include "server/server_core.hpp"

#include <simplenet/nonblocking/tcp_listener.hpp>
#include <simplenet/socket/detail/option_calls.hpp>

#include <utility>

namespace simplenet::v0 {
namespace detail {

namespace {

/// Whether a single loop accepts.
bool accepts_alone(const server_options& options, std::size_t loops) noexcept {
    return loops == 1 || options.accept == accept_mode::single_acceptor;
}

result<server_settings> settings_of(const server_options& options, std::size_t loops,
                                    std::size_t listeners) {
    const bool alone = accepts_alone(options, loops);
    const bool all_listen = !alone && listeners >= loops;
    auto proxies = address_set::parse(options.proxy_sources);
    if (!proxies) return fail(proxies);
    return server_settings{
        .kind = connection_kind::tcp,
        .single_acceptor = alone,
        .rebalances = loops > 1 && (!all_listen || (options.balance == balance::least_connections &&
                                                    !options.listen.steer_by_cpu)),
        .balance = options.balance,
        .max_connections = options.max_connections,
        .full = options.full,
        .idle_timeout = options.idle_timeout,
        .accept_ahead = options.listen.accept_ahead,
        .behind_proxy = options.proxy == proxy_protocol::required,
        .proxies = *std::move(proxies),
        .proxy_timeout = options.proxy_timeout,
        .on_handler_exception = options.on_handler_exception,
        .context = options.context,
    };
}

/// What the connections of a listener inherit.
result<> prepare(nonblocking::tcp_listener& listener, const server_options& options) noexcept {
    return options.no_delay ? listener.set_no_delay(true) : result<>{};
}

/// A listener for each loop. Without listen_options::reuse_port only these share the endpoint: the
/// first one begins to listen without SO_REUSEPORT, so that a second server fails as usual, and
/// gets the option afterwards.
result<std::vector<nonblocking::tcp_listener>>
listen_on_all(const endpoint& at, listen_options options, std::size_t loops) {
    const bool steers = std::exchange(options.steer_by_cpu, false);
    std::vector<nonblocking::tcp_listener> listeners;
    auto first = nonblocking::tcp_listener::bind(at, options);
    if (!first) return fail(first);
    const auto where = first->local_endpoint();
    if (!where) return fail(where);
    if (loops > 1) {
        if (auto set = options::set_reuse_port(first->native_handle(), true); !set) {
            return fail(set);
        }
    }
    listeners.push_back(*std::move(first));
    options.reuse_port = true;
    while (listeners.size() < loops) {
        auto next = nonblocking::tcp_listener::bind(*where, options);
        if (!next) return fail(next);
        listeners.push_back(*std::move(next));
    }
    if (steers && loops > 1) {
        const auto steered =
            options::steer_by_cpu(listeners.front().native_handle(), static_cast<unsigned>(loops));
        if (!steered) return fail(steered);
    }
    return listeners;
}

result<std::shared_ptr<server_core>> make_core(event_loop_group& group,
                                               std::vector<nonblocking::tcp_listener> listeners,
                                               const server_options& options) {
    const auto settings = settings_of(options, group.size(), listeners.size());
    if (!settings) return fail(settings);
    const auto address = listeners.front().local_endpoint();
    if (!address) return fail(address);
    std::vector<unique_fd> sockets;
    for (auto& each : listeners) {
        if (auto ready = prepare(each, options); !ready) return fail(ready);
        sockets.push_back(std::move(each).release());
    }
    auto core = std::make_shared<server_core>(group, *settings, std::move(sockets));
    core->address = *address;
    return core;
}

} // namespace

} // namespace detail

inline namespace runtime {

result<tcp_server> tcp_server::listen(event_loop_group& group, const endpoint& at,
                                      const server_options& options) {
    const std::size_t loops = group.size();
    if (options.listen.steer_by_cpu && options.accept == accept_mode::single_acceptor) {
        return fail(std::errc::invalid_argument);
    }
    auto listeners = detail::listen_on_all(at, options.listen,
                                           detail::accepts_alone(options, loops) ? 1 : loops);
    if (!listeners) return fail(listeners);
    auto core = detail::make_core(group, *std::move(listeners), options);
    if (!core) return fail(core);
    return tcp_server{*std::move(core)};
}

result<tcp_server> tcp_server::adopt(event_loop_group& group,
                                     std::vector<nonblocking::tcp_listener> listeners,
                                     const server_options& options) {
    if (listeners.empty()) return fail(std::errc::invalid_argument);
    server_options with = options;
    if (listeners.size() == 1) with.accept = accept_mode::single_acceptor;
    auto core = detail::make_core(group, std::move(listeners), with);
    if (!core) return fail(core);
    return tcp_server{*std::move(core)};
}

endpoint tcp_server::local_endpoint() const noexcept {
    return core().address;
}

} // namespace runtime
} // namespace simplenet::v0
