// A TCP server: sends every client's bytes back, any number of clients at once on one thread.
// Lesson: a coroutine for each connection, in a group that never loses one.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <string>
#include <system_error>
#include <utility>

using namespace simplenet;

//! [serve]
// Serves one client from its first byte to its last. The stream is a parameter by value: it lives
// in the coroutine's frame and is closed when the coroutine ends, for whatever reason.
task<> serve(tcp_stream client) {
    // The bytes are in a buffer that the loop leases to us, so a silent client holds no memory. The
    // end of the stream is an error value, so it ends this loop.
    while (auto bytes = co_await client.receive()) {
        // Waits while the client does not read. Meanwhile nothing more is read from the client:
        // that is back-pressure.
        if (!co_await async_write_all(client, *bytes)) break;
    }
}
//! [serve]

//! [accept]
// Ends when accepting fails or is stopped; the group then stops every client and joins it.
task<result<>> accept_clients(tcp_listener& listener) {
    co_return co_await with_group([&](task_group& clients) -> task<result<>> {
        while (true) {
            // Running out of descriptors is not an error: accept() waits for one and continues.
            auto client = co_await listener.accept();
            if (!client) co_return fail(client);
            clients.spawn(serve(*std::move(client)));
        }
    });
}
//! [accept]

task<result<>> listen(tcp_listener listener) {
    // Accepted sockets inherit this: the last bytes of an echo are sent at once. Otherwise TCP
    // holds them until the rest is acknowledged, which a client may delay by 40 ms.
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
        // Creates a loop, runs listen() on it to its end, and returns its result.
        const auto ended = run(listen(*std::move(listener)), {.backend = options.backend});
        if (!ended && ended.error() != std::errc::operation_canceled) { // a stop is a normal end
            return example::failed("cannot accept connections", ended.error());
        }
    } catch (const std::system_error& error) { // the loop could not be created
        return example::failed("cannot make an event loop", error.code());
    }
}
