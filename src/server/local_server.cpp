#include <simplenet/server/local_server.hpp>

#include "server/server_core.hpp"
#include "sys/calls.hpp"

#include <string>
#include <utility>

namespace simplenet::v0 {
namespace detail {

namespace {

result<std::shared_ptr<server_core>> make_core(event_loop_group& group,
                                               std::vector<nonblocking::local_listener> listeners,
                                               const local_server_options& options) {
    const auto address = listeners.front().local_endpoint();
    if (!address) return fail(address);
    const server_settings settings{
        .kind = connection_kind::local,
        .single_acceptor = true,
        .rebalances = group.size() > 1,
        .balance = options.balance,
        .max_connections = options.max_connections,
        .full = options.full,
        .idle_timeout = options.idle_timeout,
        .accept_ahead = options.listen.accept_ahead,
        .proxies = {},
        .on_handler_exception = options.on_handler_exception,
        .context = options.context,
    };
    std::vector<unique_fd> sockets;
    for (auto& each : listeners)
        sockets.push_back(std::move(each).release());
    auto core = std::make_shared<server_core>(group, settings, std::move(sockets));
    core->local_address = *address;
    return core;
}

} // namespace

} // namespace detail

inline namespace runtime {

result<local_server> local_server::listen(event_loop_group& group,
                                          const simplenet::local_endpoint& at,
                                          const local_server_options& options) {
    auto listener = nonblocking::local_listener::bind(at, options.listen);
    if (!listener) return fail(listener);
    std::vector<nonblocking::local_listener> listeners;
    listeners.push_back(*std::move(listener));
    auto core = detail::make_core(group, std::move(listeners), options);
    if (!core) return fail(core);
    std::uint64_t number = 0;
    std::string path{at.path()};
    if (!path.empty() && detail::sys::socket_file_number(path.c_str(), number) == 0) {
        (*core)->socket_file = number;
        (*core)->socket_path = std::move(path);
    }
    return local_server{*std::move(core)};
}

result<local_server> local_server::adopt(event_loop_group& group,
                                         std::vector<nonblocking::local_listener> listeners,
                                         const local_server_options& options) {
    if (listeners.empty()) return fail(std::errc::invalid_argument);
    auto core = detail::make_core(group, std::move(listeners), options);
    if (!core) return fail(core);
    return local_server{*std::move(core)};
}

simplenet::local_endpoint local_server::local_endpoint() const noexcept {
    return core().local_address;
}

} // namespace runtime
} // namespace simplenet::v0
