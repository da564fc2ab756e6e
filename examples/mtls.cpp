// Both sides have a certificate: tells each client who it is, and prints it. A client without a
// certificate of --client-ca is refused, and the reason is printed.
// Lesson: a server knows its clients by their certificates. on_handshake_failed tells why others
// were refused.

#include "tls_arguments.hpp"

#include <simplenet/simplenet.hpp>
#include <simplenet/tls.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

namespace {

//! [identity]
/// Who the holder of a certificate is. The handshake has verified it; which clients may do what is
/// up to the program.
std::string identity(const tls::peer_certificate& certificate) {
    std::string text = certificate.subject();
    for (const std::string& name : certificate.names())
        text += ", " + name;
    return text + ", number " + certificate.serial() + " of " + certificate.issuer();
}
//! [identity]

//! [serve]
task<> serve(tls::stream<tcp_stream> client, connection_info from) {
    // A server that requires a certificate has one after the handshake.
    const std::string name = identity(*client.info().peer_certificate);
    std::cout << from.peer.to_string() + ": " + name + '\n' << std::flush;
    if (!co_await async_write_all(client, "you are " + name + '\n')) co_return;
    std::ignore = co_await client.async_close(2s);
}

// Called on the loop of the connection. A server on the internet would limit these lines: anybody
// can cause them.
void tell_why(const tls::handshake_failure& failure, void*) {
    example::tls_failed(failure.connection.peer.to_string(), failure.error, failure.detail);
}

task<result<>> serve_until_stopped(example::tls_server_arguments given) {
    signal_set hangups{SIGHUP}; // before any thread starts: threads inherit the mask
    signal_set ends{SIGINT, SIGTERM};
    auto loops = event_loop_group::create({.loop = {.backend = given.backend}});
    if (!loops) co_return fail(loops);
    tls::server_options options;
    options.server.max_connections = 10'000;
    options.on_handshake_failed = tell_why;
    auto server = tls::server::listen(*loops, given.at, given.certificates, options);
    if (!server) co_return fail(server);
    if (const auto serves = server->serve(serve); !serves) co_return serves;
    example::announce(*server, (*loops)[0].selected_backend());

    auto until_the_end = [&](task_group& group) -> task<> {
        group.spawn(example::reload_at_hangup(given.certificates, hangups));
        std::ignore = co_await ends.next();
        group.request_stop();
    };
    std::ignore = co_await with_group(until_the_end);
    const shutdown_report report = co_await server->shutdown(5s);
    std::cout << report.drained << " connections ended, " << report.cut << " were cut" << std::endl;
    co_return result<>{};
}
//! [serve]

} // namespace

int main(int argc, char** argv) {
    const std::string usage = "mtls" + std::string{example::tls_server_usage};
    example::arguments given{argc, argv, usage};
    const auto chosen = example::read_tls_server_arguments(given, example::clients::known);
    try {
        const auto ended = run(serve_until_stopped(chosen), {.backend = chosen.backend});
        if (ended) return EXIT_SUCCESS;
        return example::failed("cannot serve at " + chosen.at.to_string(), ended.error());
    } catch (const std::system_error& error) { // the loop could not be created
        return example::failed("cannot make an event loop", error.code());
    }
}
