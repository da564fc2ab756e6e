// Speaks TLS with clients and plain TCP with a server: `tls_terminator --cert FILE --key FILE --to
// localhost:80`. SIGTERM ends it in order, SIGHUP reads its certificates again.
// Lesson: what one side does, the other side sees; an end that is not one of TLS becomes a reset.

#include "tls_arguments.hpp"

#include <simplenet/simplenet.hpp>
#include <simplenet/tls.hpp>

#include <chrono>
#include <iostream>
#include <string>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

constexpr auto longest_silence = 1h;

//! [abort]
// Ends a connection so that the client does not take it for the end of the data: close() would send
// a close_notify first.
void abort(tls::stream<tcp_stream>& client) {
    static_cast<void>(client.transport().set_linger(0s));
    client.transport().close();
}
//! [abort]

//! [terminate]
// The client's close_notify is the end of its stream, and becomes a FIN for the server. The
// server's FIN becomes a close_notify.
task<> terminate(tls::stream<tcp_stream> client, example::host_and_port to) {
    auto server = co_await async_connect(to.host, to.port, {.no_delay = true, .timeout = 10s});
    if (!server) {
        example::failed("cannot connect to " + to.to_string(), server.error());
        abort(client);
        co_return;
    }
    server->set_idle_timeout(longest_silence);
    const auto moved = co_await async_copy_bidirectional(client, *server);
    if (moved) co_return;
    const copy_counts& counts = moved.error().counts;
    example::tls_failed("after " + std::to_string(counts.a_to_b) + " bytes to the server and " +
                            std::to_string(counts.b_to_a) + " back",
                        moved.error().code, client.error_detail());
    // Neither side may take this for an orderly end.
    static_cast<void>(server->set_linger(0s));
    abort(client);
}
//! [terminate]

int main(int argc, char** argv) {
    const std::string usage =
        "tls_terminator --to HOST:PORT" + std::string{example::tls_server_usage};
    example::arguments given{argc, argv, usage};
    const auto to = example::read_host_and_port(given, "--to", given.option("--to").value_or(""));
    const auto chosen = example::read_tls_server_arguments(given);

    run_server_options options;
    options.server.max_connections = 10'000;
    options.server.idle_timeout = longest_silence;
    options.grace = 10s;
    return example::run_with_reload(chosen, options, [&](const run_server_options& with) {
        const auto handler = [&to](tls::stream<tcp_stream> client) {
            return terminate(std::move(client), to);
        };
        return tls::run_server(chosen.at, chosen.certificates, handler, with);
    });
}
