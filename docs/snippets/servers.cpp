// The code of docs/usage/servers.md and of the headers of servers.

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

using namespace simplenet;
using namespace std::chrono_literals;

namespace {

//! [run_server]
task<> echo(tcp_stream client) {
    while (auto bytes = co_await client.receive()) {
        if (!co_await async_write_all(client, *bytes)) break;
    }
}

int echo_on_every_core() {
    const auto ended = run_server(endpoint::any(7000), echo);
    if (!ended) std::fprintf(stderr, "cannot serve: %s\n", ended.error().message().c_str());
    return ended ? 0 : 1;
}
//! [run_server]

//! [run_server options]
void announce(tcp_server& server, void*) {
    std::printf("listening on %s\n", server.local_endpoint().to_string().c_str());
}

result<shutdown_report> echo_with_limits(std::stop_token stop) {
    const run_server_options options{
        .server = {.max_connections = 10'000, .idle_timeout = 5min}, // see the table below
        .group = {.loops = 2},
        .grace = 5s,
        .on_listening = announce,
    };
    return run_server(endpoint::any(7000), echo, options, std::move(stop));
}
//! [run_server options]

//! [tcp_server]
result<> serve(event_loop_group& group) {
    auto server = tcp_server::listen(group, endpoint::any(7000), {.max_connections = 10'000});
    if (!server) return fail(server);
    if (const auto serves = server->serve(echo); !serves) return serves; // returns at once
    std::puts("press Enter to end");
    std::ignore = std::getchar();
    const shutdown_report report = run(server->shutdown(10s));
    std::printf("%zu clients finished, %zu were cut off\n", report.drained, report.cut);
    return {};
}
//! [tcp_server]

//! [info]
task<result<>> greet(tcp_stream client, connection_info info) {
    const auto sent = co_await async_write_all(client, "hello, " + info.peer.to_string() + '\n');
    if (!sent) co_return fail(sent); // counted as failed
    co_return result<>{};
}
//! [info]

//! [server_stop]
task<> answer_requests(tcp_stream client) {
    buffered_reader lines{std::move(client)};
    for (bool answered = false;; answered = true) {
        if (answered) { // between two requests
            const auto next = co_await when_any(lines.readable(), server_stop());
            if (next.index == 1) co_return;
        }
        const auto request = co_await with_timeout(lines.read_line(1000), 30s);
        if (!request) co_return;
        const std::string answer = "you asked for " + std::string{*request} + '\n';
        if (!co_await async_write_all(lines.stream(), answer)) co_return;
    }
}
//! [server_stop]

//! [local_server]
task<> answer_own_user(local_stream client, connection_info info) {
    if (info.credentials.uid != 1000) co_return;
    std::ignore = co_await async_write_all(client, "welcome\n");
}

result<local_server> serve_locally(event_loop_group& group) {
    const auto at = local_endpoint::parse("/run/example.sock");
    if (!at) return fail(at);
    auto server = local_server::listen(group, *at, {.listen = {.unlink_existing = true}});
    if (!server) return server;
    if (const auto serves = server->serve(answer_own_user); !serves) return fail(serves);
    return server;
}
//! [local_server]

//! [activation]
result<tcp_server> open_server(event_loop_group& group) {
    auto inherited = inherited_listeners();
    if (!inherited) return fail(inherited);
    if (inherited->empty()) return tcp_server::listen(group, endpoint::any(7000));
    std::vector<nonblocking::tcp_listener> listeners;
    for (auto& each : *inherited) {
        auto adopted = nonblocking::tcp_listener::adopt(std::move(each.socket));
        if (!adopted) return fail(adopted);
        listeners.push_back(*std::move(adopted));
    }
    return tcp_server::adopt(group, std::move(listeners));
}
//! [activation]

//! [proxy]
result<tcp_server> serve_behind_a_proxy(event_loop_group& group) {
    const std::array<std::string_view, 2> balancers{"10.0.0.0/8", "::1"};
    return tcp_server::listen(group, endpoint::any(7000),
                              {.proxy = proxy_protocol::required, .proxy_sources = balancers});
}
//! [proxy]

//! [exceptions]
result<tcp_server> serve_and_log(event_loop_group& group, std::FILE* log) {
    auto report = [](std::exception_ptr exception, void* context) {
        try {
            std::rethrow_exception(std::move(exception));
        } catch (const std::exception& thrown) {
            std::fprintf(static_cast<std::FILE*>(context), "handler: %s\n", thrown.what());
        }
    };
    return tcp_server::listen(group, endpoint::any(7000),
                              {.on_handler_exception = report, .context = log});
}
//! [exceptions]

} // namespace

//! [successor]
/// Starts the new program with these sockets. Blocks; false: it does not serve.
bool start_successor(std::vector<unique_fd> listeners);

task<> serve_until_replaced(tcp_server& server) {
    signal_set signals{SIGHUP, SIGINT, SIGTERM};
    while (const auto number = co_await signals.next()) {
        if (*number != SIGHUP) break;
        auto listeners = server.duplicate_listeners();
        if (!listeners) continue; // no descriptors for a successor: this process goes on
        const bool replaced = co_await run_blocking(start_successor, *std::move(listeners));
        if (replaced) break;
    }
    co_await server.shutdown(10s);
}
//! [successor]

void use_the_servers(event_loop_group& group) {
    std::ignore = echo_on_every_core();
    std::ignore = echo_with_limits({});
    std::ignore = serve(group);
    std::ignore = serve_locally(group);
    auto opened = open_server(group);
    std::ignore = opened->serve(greet);
    run(serve_until_replaced(*opened));
    std::ignore = serve_behind_a_proxy(group)->serve(answer_requests);
    std::ignore = serve_and_log(group, stderr);
}
