// The code in the table about asio::ssl of docs/usage/coming-from.md, so that it is compiled.

#include <simplenet/simplenet.hpp>
#include <simplenet/tls.hpp>

#include <array>
#include <chrono>
#include <string_view>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

namespace snippets {

task<> serve_securely(tls::stream<tcp_stream> client);

result<tls::server> listen_securely(event_loop_group& group, tls::server_config config) {
    static constexpr std::array<std::string_view, 1> protocols{"h2"};
    config.alpn = protocols;
    return tls::server::listen(group, endpoint::any(8443), or_throw(tls::context::server(config)));
}

task<bool> tls_streams(tcp_stream socket, tls::context certificates) {
    (void)tls::context::client({.ca_file = "root.pem"});
    const tls::context context = or_throw(tls::context::client());
    tls::stream<tcp_stream> stream{std::move(socket), context, {.server_name = "example.org"}};
    (void)co_await tls::async_connect("example.org", 443, context);
    const auto made = co_await stream.handshake();
    if (!made && made.error() == tls::errc::truncated) co_return false;
    (void)stream.transport();
    const bool agreed = stream.info().alpn == "h2" && !stream.info().cipher.empty();
    (void)co_await stream.async_close(1s);
    (void)tls::run_server(endpoint::any(8443), certificates, serve_securely);
    co_return agreed;
}

} // namespace snippets
