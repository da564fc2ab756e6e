// Both sides have a certificate: tells each client who it is, and prints it. A client without a
// certificate of --client-ca is refused, and the reason is printed.
// Lesson: a server knows its clients by their certificates. If the handler makes the handshake
// itself, it also learns why one has failed.

#include "tls_arguments.hpp"

#include <simplenet/simplenet.hpp>
#include <simplenet/tls.hpp>

#include <chrono>
#include <iostream>
#include <string>
#include <tuple>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

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
task<> serve(tcp_stream transport, connection_info from, tls::context certificates) {
    tls::stream<tcp_stream> client{std::move(transport), certificates};
    const auto shaken = co_await with_timeout(client.handshake(), 10s);
    if (!shaken) {
        example::tls_failed(from.peer.to_string(), shaken.error(), client.error_detail());
        // The client shall read the alert that names the reason.
        std::ignore = co_await async_close_lingering(client.transport());
        co_return;
    }
    // A server that requires a certificate has one after the handshake.
    const std::string name = identity(*client.info().peer_certificate);
    std::cout << from.peer.to_string() + ": " + name + '\n' << std::flush;
    if (!co_await async_write_all(client, "you are " + name + '\n')) co_return;
    std::ignore = co_await client.async_close(2s);
}
//! [serve]

int main(int argc, char** argv) {
    const std::string usage = "mtls" + std::string{example::tls_server_usage};
    example::arguments given{argc, argv, usage};
    const auto chosen = example::read_tls_server_arguments(given, example::clients::known);

    run_server_options options;
    options.server.max_connections = 10'000;
    options.grace = 5s;
    return example::run_with_reload(chosen, options, [&](const run_server_options& with) {
        const auto handler = [&](tcp_stream transport, connection_info from) {
            return serve(std::move(transport), from, chosen.certificates);
        };
        return run_server(chosen.at, handler, with);
    });
}
