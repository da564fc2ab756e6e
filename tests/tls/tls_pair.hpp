#pragma once
// Certificates, contexts and connected streams for the tests of TLS.

#include "support/error_of.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/tls/context.hpp>
#include <simplenet/tls/stream.hpp>

#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {

/// The path of a file that make_certificates.sh has made.
inline std::string certificate(const std::string& name) {
    return std::string{TLS_CERTIFICATES} + '/' + name;
}
inline std::string content(const std::string& path) {
    std::ifstream file{path};
    return {std::istreambuf_iterator<char>{file}, {}};
}

/// A server with the certificate `name`; `change` changes the configuration.
template <class Change>
tls::context server_with(const std::string& name, Change change) {
    const std::string chain = certificate(name + ".pem");
    const std::string key = certificate(name + ".key");
    tls::server_config config;
    config.certificate_chain_file = chain;
    config.private_key_file = key;
    change(config);
    std::string detail;
    auto made = tls::context::server(config, &detail);
    if (!made) ADD_FAILURE() << name << ": " << made.error().message() << ": " << detail;
    return or_throw(std::move(made));
}
inline tls::context server_with(const std::string& name = "server") {
    return server_with(name, [](tls::server_config&) {});
}

/// A client that trusts the tests' root.
template <class Change>
tls::context client_with(Change change) {
    const std::string root = certificate("root.pem");
    tls::client_config config;
    config.ca_file = root;
    change(config);
    std::string detail;
    auto made = tls::context::client(config, &detail);
    if (!made) ADD_FAILURE() << made.error().message() << ": " << detail;
    return or_throw(std::move(made));
}
inline tls::context client() {
    return client_with([](tls::client_config&) {});
}

using memory_stream = tls::stream<duplex_stream>;

struct tls_ends {
    memory_stream server;
    memory_stream client;
};

/// Both ends of a connection in memory, before the handshake.
inline tls_ends connected(const tls::context& server, const tls::context& client,
                          tls::stream_options options = {.server_name = "localhost"},
                          std::size_t capacity = std::size_t{64} * 1024) {
    auto [left, right] = duplex(capacity);
    return {memory_stream{std::move(left), server},
            memory_stream{std::move(right), client, options}};
}

/// The errors of both sides of a handshake; zero: success.
struct handshake_errors {
    std::error_code server;
    std::error_code client;
};

/// A side that fails closes its stream, so that the other one does not wait.
inline task<result<>> handshake_or_close(memory_stream& end) {
    const auto made = co_await end.handshake();
    if (!made) end.close();
    co_return made;
}

inline task<handshake_errors> shake_hands(tls_ends& ends) {
    const auto [server, client] =
        co_await when_all(handshake_or_close(ends.server), handshake_or_close(ends.client));
    co_return handshake_errors{server ? std::error_code{} : server.error(),
                               client ? std::error_code{} : client.error()};
}

/// Reads until the end of the stream or an error, which is appended to `error`.
template <class S>
task<std::string> read_all(S& from, std::error_code& error) {
    std::string all;
    std::array<char, 5000> buffer;
    for (;;) {
        const auto count = co_await from.read_some(mutable_buffer{buffer});
        if (!count) {
            error = count.error();
            co_return all;
        }
        all.append(buffer.data(), *count);
    }
}

} // namespace simplenet::v0::testing
