// An echo server on every core. Ctrl-C lets its clients finish for ten seconds; a second one kills.
// Lesson: a handler and run_server() are a whole server.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

using namespace simplenet;

//! [server]
task<> serve(tcp_stream client) {
    while (auto bytes = co_await client.receive()) {
        if (!co_await async_write_all(client, *bytes)) break;
    }
}

int main(int argc, char** argv) {
    const auto given = example::read_server_options(argc, argv, "multicore_echo");
    run_server_options options;
    options.group.loop.backend = given.backend;
    options.on_listening = [](tcp_server& server, void*) {
        example::announce(server, event_loop::current()->selected_backend());
    };
    const auto ended = run_server(given.at, serve, options);
    return ended ? 0 : example::failed("cannot serve", ended.error());
}
//! [server]
