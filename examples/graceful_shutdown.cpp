// An echo server that ends well: at SIGINT or SIGTERM it accepts nobody any more, gives the clients
// it has two seconds to finish, and then shows them out.
// Lesson: a signal is something to await, and a group with a limit is a grace period.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <csignal>
#include <iostream>
#include <system_error>
#include <tuple>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

namespace {

constexpr auto grace = 2s;

task<> serve(tcp_stream client) {
    while (auto bytes = co_await client.receive()) {
        if (!co_await async_write_all(client, *bytes)) break;
    }
}

task<result<>> accept_clients(tcp_listener& listener, task_group& clients) {
    while (true) {
        auto client = co_await listener.accept();
        if (!client) co_return fail(client);
        clients.spawn(serve(*std::move(client)));
    }
}

//! [signals]
// Returns with the first signal. Then the set is gone, and the next signal stops main, as run() has
// it: who is in a hurry presses Ctrl-C again.
task<result<>> first_signal(signal_set signals) {
    const auto number = co_await signals.next();
    if (!number) co_return fail(number);
    std::cout << (*number == SIGINT ? "SIGINT" : "SIGTERM") << std::endl;
    co_return result<>{};
}
//! [signals]

//! [shutdown]
task<result<>> serve_until_signal(tcp_listener listener, signal_set signals) {
    task_group clients;
    // The first to end stops the other. A server that can accept nobody does not wait for a signal.
    const auto first =
        co_await when_any(first_signal(std::move(signals)), accept_clients(listener, clients));
    const result<> why = first.index == 0 ? *std::get<0>(first.values) : *std::get<1>(first.values);

    // No more guests: whoever connects from here on is refused by the kernel.
    listener.close();
    (void)co_await listener.closed();

    // The limit stops the join, and with it every client that is left; all of them are joined.
    std::cout << "waiting for " << clients.size() << " clients" << std::endl;
    const auto ended = co_await with_timeout(clients.join(), grace);
    std::cout << (ended ? "all of them have left" : "the others were shown out") << std::endl;
    co_return why;
}
//! [shutdown]

task<result<>> listen(tcp_listener listener) {
    signal_set signals{SIGINT, SIGTERM}; // before anybody can know that we are here
    example::announce(listener);
    co_return co_await serve_until_signal(std::move(listener), std::move(signals));
}

} // namespace

int main(int argc, char** argv) {
    const auto options = example::read_server_options(argc, argv, "graceful_shutdown");
    auto listener = tcp_listener::bind(options.at);
    if (!listener) {
        return example::failed("cannot listen on " + options.at.to_string(), listener.error());
    }
    try {
        const auto ended = run(listen(*std::move(listener)), {.backend = options.backend});
        if (!ended && ended.error() != std::errc::operation_canceled) { // a second signal
            return example::failed("cannot go on", ended.error());
        }
    } catch (const std::system_error& error) { // no loop could be made
        return example::failed("cannot run", error.code());
    }
}
