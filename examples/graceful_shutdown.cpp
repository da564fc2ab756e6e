// An echo server that ends well: at SIGINT or SIGTERM it accepts nobody any more, gives the clients
// it has two seconds to finish, and then shows them out.
// Lesson: a signal is something to await, and a group with a limit is a grace period.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <csignal>
#include <iostream>
#include <system_error>
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

task<> accept_clients(tcp_listener& listener, task_group& clients) {
    while (auto client = co_await listener.accept())
        clients.spawn(serve(*std::move(client)));
}

//! [signals]
// Returns with the first signal. Then the set is gone, and the next signal stops main, as run() has
// it: who is in a hurry presses Ctrl-C again.
task<> first_signal(signal_set signals) {
    if (const auto number = co_await signals.next()) {
        std::cout << (*number == SIGINT ? "SIGINT" : "SIGTERM") << std::endl;
    }
}
//! [signals]

//! [shutdown]
task<> serve_until_signal(tcp_listener listener, signal_set signals) {
    task_group clients;
    clients.spawn(accept_clients(listener, clients));
    co_await first_signal(std::move(signals));

    // No more guests: whoever connects from here on is refused by the kernel.
    listener.close();
    (void)co_await listener.closed(); // accept_clients() has ended

    // The limit stops the join, and with it every client that is left; all of them are joined.
    std::cout << "waiting for " << clients.size() << " clients" << std::endl;
    const auto ended = co_await with_timeout(clients.join(), grace);
    std::cout << (ended ? "all of them have left" : "the others were shown out") << std::endl;
}
//! [shutdown]

task<> listen(tcp_listener listener) {
    signal_set signals{SIGINT, SIGTERM}; // before anybody can know that we are here
    example::announce(listener);
    co_await serve_until_signal(std::move(listener), std::move(signals));
}

} // namespace

int main(int argc, char** argv) {
    const auto options = example::read_server_options(argc, argv, "graceful_shutdown");
    auto listener = tcp_listener::bind(options.at);
    if (!listener) {
        return example::failed("cannot listen on " + options.at.to_string(), listener.error());
    }
    try {
        run(listen(*std::move(listener)), {.backend = options.backend});
    } catch (const std::system_error& error) { // no loop could be made
        return example::failed("cannot run", error.code());
    }
}
