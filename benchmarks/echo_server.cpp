// An echo server with a task for each connection, measured by scripts/perf_check.sh. Prints its
// port; ends when its last client has left.
//
//   --backend epoll|io_uring   --read-mode read_some|receive   --buffer BYTES   --limit SECONDS
//   --busy-poll MICROSECONDS   --stay (serve for ever)    --port N
//   --loops N: a tcp_server on N threads, which serves for ever; with it also
//   --style coroutines|callbacks (a callbacks::server; --read-mode has no effect)
//   --pin   --steer (by processor)   --accept automatic|single_acceptor
//   --balance least_connections|round_robin   --idle SECONDS (limit of each connection)
//   --own-descriptors (each loop's thread has its own descriptor table, unshare(2), so that the
//   limit of descriptors is that of a loop; needs --balance round_robin, which moves no connection)

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include <sched.h>

using namespace simplenet;

namespace {

struct settings {
    std::size_t buffer = 4096;
    std::chrono::seconds limit{0};
    bool receive = false;
    bool callbacks = false;
    bool stay = false;
    bool own_descriptors = false;
};

task<> echo_read(tcp_stream stream, std::size_t size) {
    const auto buffer = std::make_unique<std::byte[]>(size);
    while (auto count = co_await stream.read_some({buffer.get(), size})) {
        if (!co_await async_write_all(stream, const_buffer{buffer.get(), *count})) break;
    }
}

task<> echo_receive(tcp_stream stream) {
    while (auto bytes = co_await stream.receive()) {
        if (!co_await async_write_all(stream, *bytes)) break;
    }
}

task<> echo_read_limited(tcp_stream stream, std::size_t size, std::chrono::nanoseconds limit) {
    const auto buffer = std::make_unique<std::byte[]>(size);
    while (auto count = co_await with_timeout(stream.read_some({buffer.get(), size}), limit)) {
        const const_buffer reply{buffer.get(), *count};
        if (!co_await with_timeout(async_write_all(stream, reply), limit)) break;
    }
}

task<> echo_receive_limited(tcp_stream stream, std::chrono::nanoseconds limit) {
    while (auto bytes = co_await with_timeout(stream.receive(), limit)) {
        if (!co_await with_timeout(async_write_all(stream, *bytes), limit)) break;
    }
}

task<> serve(tcp_stream stream, settings how, std::size_t* serving, join_handle<>* accepting) {
    static_cast<void>(stream.set_no_delay(true));
    const bool limited = how.limit.count() != 0;
    if (how.receive) {
        if (limited) {
            co_await echo_receive_limited(std::move(stream), how.limit);
        } else {
            co_await echo_receive(std::move(stream));
        }
    } else if (limited) {
        co_await echo_read_limited(std::move(stream), how.buffer, how.limit);
    } else {
        co_await echo_read(std::move(stream), how.buffer);
    }
    if (--*serving == 0 && !how.stay) accepting->request_stop();
}

task<> accept_all(tcp_listener listener, settings how, std::size_t* serving,
                  join_handle<>* accepting) {
    while (auto stream = co_await listener.accept()) {
        ++*serving;
        spawn(serve(*std::move(stream), how, serving, accepting));
    }
}

void print_port(const endpoint& at) {
    std::printf("%d\n", int{at.port()});
    std::fflush(stdout);
}

void unshare_descriptors() {
    if (::unshare(CLONE_FILES) == 0) return;
    std::perror("unshare");
    std::exit(1);
}

int serve_on_loops(std::uint16_t port, unsigned loops, const loop_options& loop,
                   const settings& how, bool pin, const server_options& options) {
    auto group = event_loop_group::create({.loops = loops, .pin = pin, .loop = loop});
    if (!group) {
        std::fprintf(stderr, "%s\n", group.error().message().c_str());
        return 1;
    }
    if (how.callbacks) {
        callbacks::handlers handlers;
        handlers.on_message = [](const callbacks::connection_ptr& peer, callbacks::buffer& input) {
            peer->send(const_buffer{input.peek(), input.readable()});
            input.retrieve_all();
        };
        callbacks::server server{*group, endpoint::loopback(port), std::move(handlers), options};
        server.start();
        print_port(server.local_endpoint());
        group->join(); // until it is killed
        return 0;
    }
    auto server = tcp_server::listen(*group, endpoint::loopback(port), options);
    if (!server) {
        std::fprintf(stderr, "%s\n", server.error().message().c_str());
        return 1;
    }
    if (how.own_descriptors) {
        // Before serve(), whose accepting is posted behind it.
        for (std::size_t at = 0; at < group->size(); ++at)
            (*group)[at].post(unshare_descriptors);
    }
    const auto serves = server->serve([how](tcp_stream stream) {
        return how.receive ? echo_receive(std::move(stream))
                           : echo_read(std::move(stream), how.buffer);
    });
    if (!serves) return 1;
    print_port(server->local_endpoint());
    group->join(); // until it is killed
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    loop_options options;
    options.backend =
        given.text("backend", "epoll") == "epoll" ? backend::epoll : backend::io_uring;
    options.busy_poll = std::chrono::microseconds{given.number("busy-poll", 0)};
    settings how;
    how.receive = given.text("read-mode", given.text("read", "read_some")) == "receive";
    how.callbacks = given.text("style", "coroutines") == "callbacks";
    how.buffer = given.number("buffer", 4096);
    how.limit = std::chrono::seconds{given.number("limit", 0)};
    how.stay = given.flag("stay");
    how.own_descriptors = given.flag("own-descriptors");
    if (given.text("mode", "echo") != "echo") return 2; // stream_server has the others
    const auto port = static_cast<std::uint16_t>(given.number("port", 0));
    const auto loops = static_cast<unsigned>(given.number("loops", 0));
    const bool pin = given.flag("pin");
    server_options serving_options;
    serving_options.listen.steer_by_cpu = given.flag("steer");
    if (given.text("accept", "automatic") == "single_acceptor") {
        serving_options.accept = accept_mode::single_acceptor;
    }
    if (given.text("balance", "least_connections") == "round_robin") {
        serving_options.balance = balance::round_robin;
    }
    serving_options.idle_timeout = std::chrono::seconds{given.number("idle", 0)};
    given.done();
    if (loops != 0) return serve_on_loops(port, loops, options, how, pin, serving_options);

    auto loop = event_loop::create(options);
    auto listener = tcp_listener::bind(endpoint::loopback(port), {.backlog = 4096});
    if (!loop || !listener) {
        std::fprintf(stderr, "%s\n", (loop ? listener.error() : loop.error()).message().c_str());
        return 1;
    }
    print_port(*listener->local_endpoint());
    std::size_t serving = 0;
    join_handle<> accepting;
    accepting = loop->spawn(accept_all(*std::move(listener), how, &serving, &accepting));
    loop->run();
}
