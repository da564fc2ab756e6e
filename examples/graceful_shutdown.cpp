// An echo server with a clean shutdown: at SIGINT or SIGTERM it stops accepting, gives its clients
// two seconds to finish, and then disconnects the rest.
// Lesson: a signal can be awaited, and a group with a time limit is a grace period.

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
// Returns at the first signal. The set is then destroyed, so the next signal stops main, as run()
// does by default: press Ctrl-C again to skip the grace period.
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
    // The first to end stops the other. A server that cannot accept does not wait for a signal.
    const auto first =
        co_await when_any(first_signal(std::move(signals)), accept_clients(listener, clients));
    const result<> why = first.index == 0 ? *std::get<0>(first.values) : *std::get<1>(first.values);

    // From here on the kernel refuses new clients.
    listener.close();
    (void)co_await listener.closed();

    // The limit stops the join, and with it every remaining client; all of them are joined.
    std::cout << "waiting for " << clients.size() << " clients" << std::endl;
    const auto ended = co_await with_timeout(clients.join(), grace);
    std::cout << (ended ? "all clients have left" : "the others were disconnected") << std::endl;
    co_return why;
}
//! [shutdown]

task<result<>> listen(tcp_listener listener) {
    signal_set signals{SIGINT, SIGTERM}; // before anybody can know that we are running
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
            return example::failed("cannot continue", ended.error());
        }
    } catch (const std::system_error& error) { // the loop could not be created
        return example::failed("cannot run", error.code());
    }
}
