// WebSockets through a reverse proxy.

#include "proxy_test.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/runtime/run.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

/// The key of RFC 6455, section 1.3, and the answer to it.
constexpr std::string_view handshake =
    "GET /chat?a HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n";
constexpr std::string_view accepted =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
    "Sec-WebSocket-Extensions: permessage-deflate\r\nX-A: 1\r\n\r\n";

class proxy_websocket_test : public proxy_test {
protected:
    struct ends {
        raw_peer client;
        raw_peer backend;
    };
    /// A tunnel.
    ends open(http::proxy_options options = {}) {
        serve_proxy(options);
        raw_peer client = connect();
        client.send(handshake);
        std::string head;
        raw_peer at = take_request(head);
        at.send(accepted);
        EXPECT_TRUE(receive_head(client).starts_with("HTTP/1.1 101 "));
        return {std::move(client), std::move(at)};
    }
    /// What the client gets if the backend answers a handshake so.
    std::string answered_with(std::string_view answer) { return exchange(handshake, answer); }
};

TEST_P(proxy_websocket_test, a_handshake_passes_with_its_fields) {
    serve_proxy();
    raw_peer client = connect();
    client.send(handshake);
    std::string head;
    raw_peer at = take_request(head);
    EXPECT_EQ(head, "GET /chat?a HTTP/1.1\r\nHost: h\r\nSec-WebSocket-Version: 13\r\n"
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                    "Sec-WebSocket-Extensions: permessage-deflate\r\n" +
                        std::string{added} + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    at.send(accepted);
    EXPECT_EQ(receive_head(client),
              "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
              "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
              "Sec-WebSocket-Extensions: permessage-deflate\r\nX-A: 1\r\n\r\n");
}

TEST_P(proxy_websocket_test, bytes_pass_both_ways_and_so_do_the_ends) {
    auto [client, at] = open();
    client.send("ping");
    EXPECT_EQ(at.receive(4), "ping");
    at.send("pong");
    EXPECT_EQ(client.receive(4), "pong");
    client.shutdown_write();
    EXPECT_EQ(at.receive(1), ""); // the end
    at.send("last words");
    EXPECT_EQ(client.receive(10), "last words");
    at.close();
    EXPECT_EQ(client.receive_to_the_end(), errc::end_of_stream);
}

TEST_P(proxy_websocket_test, bytes_behind_the_handshake_are_not_lost) {
    serve_proxy();
    raw_peer client = connect();
    client.send(std::string{handshake} + "early");
    std::string head;
    raw_peer at = take_request(head);
    at.send(std::string{accepted} + "early, too");
    EXPECT_EQ(at.receive(5), "early");
    static_cast<void>(receive_head(client));
    EXPECT_EQ(client.receive(10), "early, too");
}

TEST_P(proxy_websocket_test, a_reset_of_one_side_ends_the_other) {
    auto [client, at] = open();
    at.reset();
    EXPECT_NE(client.receive_to_the_end(), std::error_code{});
}

TEST_P(proxy_websocket_test, only_an_answer_to_the_key_opens_a_tunnel) {
    serve_proxy();
    for (const std::string_view answer :
         {"HTTP/1.1 101 Switching Protocols\r\n\r\n",
          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
          "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n"
          "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"}) {
        EXPECT_TRUE(answered_with(answer).starts_with("HTTP/1.1 502 ")) << answer;
    }
}

TEST_P(proxy_websocket_test, a_backend_may_refuse) {
    serve_proxy();
    EXPECT_EQ(answered_with("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno"),
              "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
}

TEST_P(proxy_websocket_test, a_silent_tunnel_ends) {
    auto [client, at] = open({.websocket_idle = 50ms});
    EXPECT_EQ(client.receive_to_the_end(), errc::end_of_stream);
    EXPECT_EQ(at.receive_to_the_end(), errc::end_of_stream);
}

TEST_P(proxy_websocket_test, a_direction_that_moves_keeps_the_other_one_open) {
    auto [client, at] = open({.websocket_idle = 400ms});
    for (int count = 0; count < 8; ++count) {
        at.send("x");
        EXPECT_EQ(client.receive(1), "x");
        pollfd ended{.fd = client.fd(), .events = POLLIN, .revents = 0};
        EXPECT_EQ(::poll(&ended, 1, 100), 0);
    }
}

TEST_P(proxy_websocket_test, the_end_of_the_server_closes_both_sides) {
    auto [client, at] = open();
    server().request_shutdown(10s);
    EXPECT_EQ(client.receive_to_the_end(), errc::end_of_stream);
    EXPECT_EQ(at.receive_to_the_end(), errc::end_of_stream);
}

TEST_P(proxy_websocket_test, a_tunnel_counts_as_a_request_in_progress) {
    const http::backend to[]{{backend().name()}};
    const http::proxy_handler handler{{.backends = to, .connections = 1}};
    http::router routes;
    routes.any("/{path...}", handler);
    serve(std::move(routes));
    raw_peer client = connect();
    client.send(handshake);
    std::string head;
    std::optional<raw_peer> at{take_request(head)};
    at->send(accepted);
    static_cast<void>(receive_head(client));
    EXPECT_EQ(handler.backends().at(0).active, 1U);
    raw_peer other = connect(); // the only connection is free again
    other.send(get_root);
    raw_peer second = take_request(head);
    second.send(answer_of("ok"));
    EXPECT_TRUE(receive_until(other, "ok").ends_with("ok"));
    at->close();
    client.close();
    EXPECT_TRUE(eventually([&] { return handler.backends().at(0).active == 0; }));
}

TEST_P(proxy_websocket_test, the_librarys_own_ends_talk_through_it) {
    event_loop_group group = make_group(1);
    http::router echoing;
    echoing.websocket("/", [](http::websocket& peer) -> task<> {
        while (auto message = co_await peer.read_message()) {
            const auto sent = co_await peer.write_message(message->kind, message->data);
            if (!sent) break;
        }
    });
    const auto behind =
        or_throw(http::server::listen(group, endpoint::loopback(0), std::move(echoing)));
    const std::string name = "127.0.0.1:" + std::to_string(behind.local_endpoint().port());
    const http::backend to[]{{name}};
    http::router routes;
    routes.proxy("/", {.backends = to});
    serve(std::move(routes));
    const std::string url =
        "ws://127.0.0.1:" + std::to_string(server().local_endpoint().port()) + "/";
    const auto talk = [&]() -> task<> {
        http::client web;
        auto opened = co_await web.websocket(url);
        http::websocket socket = or_throw(std::move(opened));
        for (const std::size_t size : {std::size_t{0}, std::size_t{5}, std::size_t{500'000}}) {
            const std::string text(size, 't');
            EXPECT_TRUE(co_await socket.write_message(text));
            auto back = co_await socket.read_message();
            EXPECT_TRUE(back && back->data == text) << size;
        }
        EXPECT_TRUE(co_await socket.close());
    };
    simplenet::run(talk(), {.backend = GetParam()});
}

INSTANTIATE_TEST_SUITE_P(backends, proxy_websocket_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
