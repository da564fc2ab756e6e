// The code of docs/usage/tls.md, of coming-from.md and of the headers of TLS.

#include <simplenet/simplenet.hpp>
#include <simplenet/tls.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

namespace {

//! [connect]
task<result<std::string>> first_line(const tls::context& context, std::string_view host) {
    auto stream = co_await tls::async_connect(host, 443, context, {.timeout = 10s});
    if (!stream) co_return fail(stream);
    const std::string request = "HEAD / HTTP/1.0\r\nHost: " + std::string{host} + "\r\n\r\n";
    if (const auto sent = co_await async_write_all(*stream, request); !sent) co_return fail(sent);
    buffered_reader reader{*std::move(stream)};
    const auto line = co_await reader.read_line(4096);
    if (!line) co_return fail(line);
    co_return std::string{*line};
}

int ask(std::string_view host) {
    std::string detail;
    const auto context = tls::context::client({}, &detail); // once, for all connections
    if (!context) {
        std::fprintf(stderr, "%s: %s\n", context.error().message().c_str(), detail.c_str());
        return 1;
    }
    const auto line = run(first_line(*context, host));
    std::puts(line ? line->c_str() : line.error().message().c_str());
    return line ? 0 : 1;
}
//! [connect]

//! [echo]
task<> echo(tls::stream<tcp_stream> client) {
    while (auto bytes = co_await client.receive()) {
        if (!co_await async_write_all(client, *bytes)) co_return;
    }
    // The peer has finished: finish too, and close.
    (void)co_await client.async_close(1s);
}
//! [echo]

//! [run_server]
int echo_securely() {
    std::string detail;
    const auto context = tls::context::server(
        {.certificate_chain_file = "fullchain.pem", .private_key_file = "privkey.pem"}, &detail);
    if (!context) {
        std::fprintf(stderr, "%s: %s\n", context.error().message().c_str(), detail.c_str());
        return 1;
    }
    const auto ended = tls::run_server(endpoint::any(8443), *context, echo);
    if (!ended) std::fprintf(stderr, "cannot serve: %s\n", ended.error().message().c_str());
    return ended ? 0 : 1;
}
//! [run_server]

//! [server]
result<> serve(event_loop_group& group, const tls::context& context) {
    auto server = tls::server::listen(
        group, endpoint::any(8443), context,
        {.server = {.max_connections = 10'000, .idle_timeout = 5min}, .handshake_timeout = 5s});
    if (!server) return fail(server);
    if (const auto serves = server->serve(echo); !serves) return serves;
    std::puts("press Enter to end");
    std::getchar();
    const shutdown_report report = run(server->shutdown(10s));
    const tls::server_statistics all = server->statistics();
    std::printf("%zu clients were cut off; of %llu, %llu never finished the handshake\n",
                report.cut, static_cast<unsigned long long>(all.accepted),
                static_cast<unsigned long long>(all.handshakes_failed));
    return {};
}
//! [server]

//! [over any stream]
task<result<>> upgrade(tcp_stream plain, const tls::context& context, std::string_view host) {
    // What was agreed on in plain text comes first, for example STARTTLS.
    tls::stream<tcp_stream> stream{std::move(plain), context, {.server_name = host}};
    const auto made = co_await with_timeout(stream.handshake(), 10s);
    if (!made) {
        std::cerr << made.error().message() << ": " << stream.error_detail() << '\n';
        co_return fail(made);
    }
    std::cout << stream.info().cipher << ", " << stream.info().alpn << '\n';
    co_return result<>{};
}
//! [over any stream]

//! [mutual]
result<tls::context> context_for_known_clients() {
    return tls::context::server({.certificate_chain_file = "fullchain.pem",
                                 .private_key_file = "privkey.pem",
                                 .ask = tls::client_certificate::required,
                                 .client_ca_file = "clients.pem"});
}

task<> greet(tls::stream<tcp_stream> client) {
    const auto& certificate = client.info().peer_certificate; // there, since it is required
    const std::string text = "hello, " + certificate->subject() + "\n";
    if (co_await async_write_all(client, text)) (void)co_await client.async_close(1s);
}
//! [mutual]

//! [names]
result<tls::context> context_for_two_sites() {
    const std::array<tls::certificate_files, 1> others{
        {{.chain_file = "example.net.pem", .key_file = "example.net.key"}}};
    const std::array<std::string_view, 2> protocols{"h2", "http/1.1"};
    return tls::context::server({.certificate_chain_file = "example.org.pem",
                                 .private_key_file = "example.org.key",
                                 .more_certificates = others,
                                 .alpn = protocols});
}
//! [names]

//! [reload]
task<> reload_at_hangup(signal_set& hangups, tls::context context, std::stop_token stop) {
    while (auto hangup = co_await with_stop(stop, hangups.next())) {
        std::string detail;
        const auto read = context.reload(&detail);
        if (!read) std::cerr << "the old certificate stays: " << detail << '\n';
    }
}

result<shutdown_report> serve_and_reload(const tls::context& context) {
    signal_set hangups{SIGHUP}; // before any thread starts: threads inherit the mask
    const std::jthread reloading{
        [&](std::stop_token stop) { run(reload_at_hangup(hangups, context, std::move(stop))); }};
    return tls::run_server(endpoint::any(8443), context, echo);
}
//! [reload]

//! [verify_peer]
bool is_pinned(const tls::peer_certificate& peer, std::error_code, void* wanted) {
    return peer.fingerprint_sha256() == *static_cast<const std::string*>(wanted);
}

result<tls::context> context_with_a_pin(std::string& fingerprint) {
    return tls::context::client({.verify_peer = is_pinned, .verify_data = &fingerprint});
}
//! [verify_peer]

//! [ends]
template <class S>
task<result<std::string>> read_document(S& stream) {
    std::string document;
    for (;;) {
        auto bytes = co_await stream.receive();
        if (bytes) {
            document += bytes->text();
        } else if (bytes.error() == errc::end_of_stream) {
            co_return document; // complete: the peer said so
        } else {
            co_return fail(bytes); // tls::errc::truncated or another error: it may be incomplete
        }
    }
}
//! [ends]

} // namespace

namespace snippets {

int all_of_tls(event_loop_group& group) {
    tls::context context = or_throw(context_for_two_sites());
    (void)serve(group, context);
    std::string pin;
    (void)context_with_a_pin(pin);
    (void)context_for_known_clients();
    (void)serve_and_reload(context);
    (void)upgrade;
    (void)greet;
    (void)&read_document<tls::stream<tcp_stream>>;
    return echo_securely() + ask("example.org");
}

} // namespace snippets
