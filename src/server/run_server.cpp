#include <simplenet/server/run_server.hpp>

#include "server/server_access.hpp"
#include "server/server_core.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/coro/scoped.hpp>
#include <simplenet/runtime/run.hpp>
#include <simplenet/threads/with_stop.hpp>

#include <system_error>

namespace simplenet::v0::detail {

// Not in an anonymous namespace, see src/net/sockets.cpp. A stop of this task is a signal: it may
// come at any time, so everything happens in here.
task<result<shutdown_report>> serve_until_stopped(const endpoint& at,
                                                  std::unique_ptr<any_handler> handler,
                                                  const run_server_options& options,
                                                  std::stop_token stop) {
    auto group = event_loop_group::create(options.group);
    if (!group) co_return fail(group);
    auto server = tcp_server::listen(*group, at, options.server);
    if (!server) co_return fail(server);
    if (const auto serves = server_access::begin(*server, std::move(handler)); !serves) {
        co_return fail(serves);
    }
    const auto ended = server_access::core_of(*server).subscribe();
    if (options.on_listening != nullptr) options.on_listening(*server, options.context);
    static_cast<void>(co_await with_stop(std::move(stop), ended->receive()));
    task<shutdown_report> end = server->shutdown(options.grace);
    co_return co_await shield(std::move(end));
}

result<shutdown_report> run_server(const endpoint& at, std::unique_ptr<any_handler> handler,
                                   const run_server_options& options, std::stop_token stop) {
    SIMPLENET_EXPECTS(event_loop::current() == nullptr,
                      "run_server() inside a running loop: create a group and a tcp_server");
    loop_options with;
    with.backend = options.group.loop.backend;
    with.handle_signals = options.group.loop.handle_signals;
    try {
        // Qualified: a unity build has another `run` in this namespace.
        return v0::run(serve_until_stopped(at, std::move(handler), options, std::move(stop)), with);
    } catch (const std::system_error& error) { // no loop for this thread
        return std::unexpected{error.code()};
    }
}

} // namespace simplenet::v0::detail
