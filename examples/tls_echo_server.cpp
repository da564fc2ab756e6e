// A TLS server on every core: sends every client's bytes back. SIGTERM ends it in order, SIGHUP
// reads its certificates again.
// Lesson: a handler for TLS looks like one for TCP. The handshake is complete when it is called.

#include "tls_arguments.hpp"

#include <simplenet/simplenet.hpp>
#include <simplenet/tls.hpp>

#include <chrono>
#include <tuple>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

//! [serve]
task<> serve(tls::stream<tcp_stream> client) {
    for (;;) {
        // A silent client holds no buffer, and does not delay the end of the server.
        const auto first = co_await when_any(client.receive(), server_stop());
        if (first.index == 1) break;
        const auto& bytes = *std::get<0>(first.values);
        if (!bytes) break; // the end of the stream, or an error
        if (!co_await async_write_all(client, *bytes)) co_return;
    }
    // The client learns that this is the end, and that nobody has cut the connection.
    std::ignore = co_await client.async_close(2s);
}
//! [serve]

int main(int argc, char** argv) {
    const std::string usage = "tls_echo_server" + std::string{example::tls_server_usage};
    example::arguments given{argc, argv, usage};
    const auto chosen = example::read_tls_server_arguments(given);

    run_server_options options;
    options.server.max_connections = 10'000;
    options.server.idle_timeout = 5min; // no data in either direction
    options.grace = 5s;
    return example::run_with_reload(chosen, options, [&](const run_server_options& with) {
        return tls::run_server(chosen.at, chosen.certificates, serve, with);
    });
}
