// Forwards every connection to another server, in both directions: `port_forward --to
// 127.0.0.1:80`.
// Lesson: a proxy is one await, and one direction of a connection may end before the other.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <iostream>
#include <string>
#include <system_error>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

//! [forward]
// Whatever one side does first (sends, falls silent, ends, breaks off), the other side sees the
// same.
task<> forward(tcp_stream client, endpoint to) {
    // Pass data on at once: how it is split into segments is up to the two sides.
    static_cast<void>(client.set_no_delay(true));
    auto server = co_await with_timeout(async_connect(to, {.no_delay = true}), 10s);
    if (!server) {
        std::cerr << "cannot connect to " + to.to_string() + ": " + server.error().message() + "\n";
        co_return; // closes the client's connection
    }
    // Detects a peer that vanished silently: nothing has moved in either direction for an hour.
    client.set_idle_timeout(1h);
    server->set_idle_timeout(1h);

    // While neither side sends anything, this holds no memory except its coroutine.
    const auto moved = co_await async_copy_bidirectional(client, *server);
    if (!moved) {
        const copy_counts& counts = moved.error().counts;
        std::cerr << "after " + std::to_string(counts.a_to_b) + " bytes to the server and " +
                         std::to_string(counts.b_to_a) + " back: " + moved.error().message() + "\n";
        static_cast<void>(client.set_linger(0s)); // pass an error on as an error: by a reset
        static_cast<void>(server->set_linger(0s));
    }
}
//! [forward]

task<result<>> listen(tcp_listener listener, endpoint to) {
    example::announce(listener);
    co_return co_await with_group([&](task_group& connections) -> task<result<>> {
        while (true) {
            auto client = co_await listener.accept();
            if (!client) co_return fail(client);
            connections.spawn(forward(*std::move(client), to));
        }
    });
}

int main(int argc, char** argv) {
    example::arguments given{argc, argv,
                             "port_forward --to IP:PORT [--address IP] [--port N] "
                             "[--backend automatic|epoll|io_uring]"};
    const auto to = endpoint::parse(given.option("--to").value_or(""));
    if (!to || to->port() == 0)
        given.wrong("--to needs an address and a port, like 127.0.0.1:80 or [::1]:80");
    const auto address = given.address(given.option("--address").value_or("127.0.0.1"));
    const auto port = given.port(given.option("--port").value_or("7000"), 0);
    const auto backend = given.backend();
    given.finish();

    auto listener = tcp_listener::bind({address, port});
    if (!listener) return example::failed("cannot listen", listener.error());
    try {
        const auto ended = run(listen(*std::move(listener), *to), {.backend = backend});
        if (!ended && ended.error() != std::errc::operation_canceled) {
            return example::failed("cannot accept connections", ended.error());
        }
    } catch (const std::system_error& error) { // the loop could not be created
        return example::failed("cannot make an event loop", error.code());
    }
}
