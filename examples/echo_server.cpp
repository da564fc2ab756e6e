// A TCP server: sends every client back what it says, any number of them at once on one thread.
// Lesson: a coroutine for each connection, in a group that never loses one.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <string>
#include <system_error>
#include <utility>

using namespace simplenet;

//! [serve]
// One client, from its first byte to its last. The stream is a parameter by value: it lives in the
// coroutine's frame and is closed when the coroutine ends, in whatever way.
task<> serve(tcp_stream client) {
    // What arrives lies in a buffer of the loop that is leased to us, so a client that is silent
    // holds no memory. The end of the stream is an error value: it ends this loop by itself.
    while (auto bytes = co_await client.receive()) {
        // Waits while the client does not read. Until then nothing more is taken from it, which is
        // all there is to back-pressure.
        if (!co_await async_write_all(client, *bytes)) break;
    }
}
//! [serve]

//! [accept]
// Ends when accepting fails or is stopped; the group then stops every client and joins it.
task<result<>> accept_clients(tcp_listener& listener) {
    co_return co_await with_group([&](task_group& clients) -> task<result<>> {
        while (true) {
            // Running out of descriptors is no error: accept() waits for some and goes on.
            auto client = co_await listener.accept();
            if (!client) co_return fail(client);
            clients.spawn(serve(*std::move(client)));
        }
    });
}
//! [accept]

task<result<>> listen(tcp_listener listener) {
    // For its clients too: the end of an echo leaves at once. Otherwise TCP keeps it until the rest
    // is acknowledged, which a client may take 40 ms for.
    if (auto set = listener.set_no_delay(true); !set) co_return fail(set);
    example::announce(listener);
    co_return co_await accept_clients(listener);
}

int main(int argc, char** argv) {
    const auto options = example::read_server_options(argc, argv, "echo_server");

    auto listener = tcp_listener::bind(options.at);
    if (!listener) {
        return example::failed("cannot listen on " + options.at.to_string(), listener.error());
    }
    try {
        // Makes a loop, runs listen() on it to its end, and hands its result back.
        const auto ended = run(listen(*std::move(listener)), {.backend = options.backend});
        if (!ended && ended.error() != std::errc::operation_canceled) { // a stop is a good end
            return example::failed("cannot accept connections", ended.error());
        }
    } catch (const std::system_error& error) { // no loop could be made
        return example::failed("cannot make an event loop", error.code());
    }
}
