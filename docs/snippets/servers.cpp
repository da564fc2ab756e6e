// The code of docs/usage/servers.md and of the headers of servers.

#include <simplenet/simplenet.hpp>

#include <array>
#include <cstdio>

using namespace std::chrono_literals;

// [tcp_server]
simplenet::task<> echo(simplenet::tcp_stream stream) {
    std::array<std::byte, 4096> buffer;
    while (auto count = co_await stream.read_some(buffer)) {
        const auto all = simplenet::const_buffer{buffer.data(), *count};
        if (!co_await simplenet::async_write_all(stream, all)) break;
    }
}

simplenet::result<> serve_on_every_core(std::uint16_t port) {
    auto group = simplenet::event_loop_group::create();
    if (!group) return simplenet::fail(group);
    auto server = simplenet::tcp_server::listen(*group, simplenet::endpoint::any(port));
    if (!server) return simplenet::fail(server);
    if (auto serves = server->serve(echo); !serves) return serves;
    std::puts("press Enter to end");
    static_cast<void>(std::getchar());
    simplenet::run(server->shutdown(10s));
    return {};
}
// [tcp_server]

// [run_server]
int main_of_an_echo_server() {
    const auto ended = simplenet::run_server(simplenet::endpoint::any(7777), echo);
    if (!ended) std::fprintf(stderr, "%s\n", ended.error().message().c_str());
    return ended ? 0 : 1;
}
// [run_server]

// [local_server]
simplenet::task<> answer_own_user(simplenet::local_stream stream, simplenet::connection_info info) {
    if (info.credentials.uid != 1000) co_return;
    static_cast<void>(co_await simplenet::async_write_all(stream, "welcome\n"));
}

simplenet::result<simplenet::local_server> serve_locally(simplenet::event_loop_group& group) {
    const auto at = simplenet::local_endpoint::parse("/run/example.sock");
    if (!at) return simplenet::fail(at);
    auto server =
        simplenet::local_server::listen(group, *at, {.listen = {.unlink_existing = true}});
    if (!server) return server;
    if (auto serves = server->serve(answer_own_user); !serves) return simplenet::fail(serves);
    return server;
}
// [local_server]

// [server_stop]
simplenet::task<> answer_requests(simplenet::tcp_stream stream) {
    std::array<std::byte, 4096> buffer;
    for (;;) {
        const auto first =
            co_await simplenet::when_any(stream.read_some(buffer), simplenet::server_stop());
        if (first.index == 1) co_return; // between two requests is a good time to end
        // answer the request
    }
}
// [server_stop]
