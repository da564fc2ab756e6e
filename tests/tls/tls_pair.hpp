#pragma once
// Certificates, contexts and connected streams for the tests of TLS.

#include "support/error_of.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/stream/split.hpp>
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

inline std::string pattern(std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t each = 0; each < size; ++each)
        text[each] = static_cast<char>('a' + each * 31 % 26);
    return text;
}

template <class S>
task<result<>> send_and_end(S& into, std::string_view text) {
    const auto sent = co_await async_write_all(into, text);
    if (!sent) co_return fail(sent);
    co_return co_await async_shutdown_write(into);
}

/// Both sides send `text` at the same time, and read what the other one sends.
template <class S>
task<> exchange(S& one, S& other, const std::string& text) {
    std::error_code end_of_one;
    std::error_code end_of_other;
    const auto [sent, answered, at_one, at_other] =
        co_await when_all(send_and_end(one, text), send_and_end(other, text),
                          read_all(one, end_of_one), read_all(other, end_of_other));
    EXPECT_TRUE(sent);
    EXPECT_TRUE(answered);
    EXPECT_EQ(end_of_one, errc::end_of_stream);
    EXPECT_EQ(end_of_other, errc::end_of_stream);
    EXPECT_TRUE(at_one == text);
    EXPECT_TRUE(at_other == text);
}

/// Both ends of a TCP connection, before the handshake.
struct tls_tcp_ends {
    tls::stream<tcp_stream> server;
    tls::stream<tcp_stream> client;
};
inline task<tls_tcp_ends> connected_over_tcp(tls::context server, tls::context client) {
    auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    auto [accepted, made] =
        co_await when_all(listener.accept(), async_connect(or_throw(listener.local_endpoint())));
    tls::stream<tcp_stream> serving{or_throw(std::move(accepted)), server};
    tls::stream<tcp_stream> asking{or_throw(std::move(made)), client, {.server_name = "localhost"}};
    tls_tcp_ends ends{std::move(serving), std::move(asking)};
    co_return ends;
}

} // namespace simplenet::v0::testing
