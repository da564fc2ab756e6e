// A server that shows what each of its tasks waits for: `kill -USR1 <its process>`.
// Lesson: names for tasks, the dump on a signal, and a report when the loop does not turn.
//
// A client that sends "dump" receives the list. A client that sends "block" blocks the loop for a
// while, which the watchdog reports on standard error. Both are for trying it out.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <csignal>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

task<result<>> answer(tcp_stream& client, std::string_view command) {
    if (command.starts_with("dump")) {
        std::ostringstream tasks;
        dump_tasks(tasks); // the other tasks; this one is "running"
        co_await or_return(async_write_all(client, tasks.str()));
    } else if (command.starts_with("block")) {
        std::this_thread::sleep_for(200ms); // blocks all other tasks: never do this
        co_await or_return(async_write_all(client, "blocked\n"));
    } else {
        co_await or_return(async_write_all(client, "dump or block?\n"));
    }
    co_return result<>{};
}

task<result<>> serve(tcp_stream client) {
    const endpoint peer = co_await or_return(client.remote_endpoint());
    this_task::set_name("client " + peer.to_string());
    while (true) {
        const auto bytes = co_await or_return(client.receive());
        co_await or_return(answer(client, bytes.text()));
    }
}

// An error that ends one client does not fail the others.
task<> serve_and_forget(tcp_stream client) {
    static_cast<void>(co_await serve(std::move(client)));
}

task<result<>> listen(tcp_listener listener) {
    this_task::set_name("main");
    example::announce(listener);
    co_return co_await with_group([&](task_group& clients) -> task<result<>> {
        this_task::set_name("listener");
        while (true)
            clients.spawn(serve_and_forget(co_await or_return(listener.accept())));
    });
}

int main(int argc, char** argv) {
    const auto arguments = example::read_server_options(argc, argv, "task_dump");
    auto listener = tcp_listener::bind(arguments.at);
    if (!listener) {
        return example::failed("cannot listen on " + arguments.at.to_string(), listener.error());
    }
    //! [options]
    loop_options options{.backend = arguments.backend};
    options.dump_signal = SIGUSR1;  // prints the tasks to standard error
    options.stall_threshold = 50ms; // a longer turn is reported there too, with the stack
    //! [options]
    try {
        const auto ended = run(listen(*std::move(listener)), options);
        if (!ended && ended.error() != std::errc::operation_canceled) {
            return example::failed("cannot accept connections", ended.error());
        }
    } catch (const std::system_error& error) { // the loop could not be created
        return example::failed("cannot make an event loop", error.code());
    }
}
