// The handshakes of a server: router::websocket() and response::accept_websocket().

#include <simplenet/http/router.hpp>

#include "http/websocket/websocket_server_test.hpp"

#include <gmock/gmock.h>
#include <stdexcept>
#include <string>
#include <string_view>

namespace simplenet::v0 {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class websocket_route_test : public websocket_server_test {
protected:
    void serve_echo(const http::websocket_options& options = {}) {
        http::router routes;
        routes.websocket("/", echo_messages, options);
        serve(std::move(routes));
    }
    /// Answers 401 to requests without a cookie.
    void serve_those_with_a_cookie() {
        http::router routes;
        routes.get("/", [](http::request& asked, http::response& answer) -> task<result<>> {
            const auto cookie = asked.fields().find("Cookie");
            if (!cookie) co_return co_await answer.status(401).send("text/plain", "who?\n");
            answer.set("Set-Cookie", "seen=1");
            auto peer = co_await answer.accept_websocket();
            if (!peer) co_return fail(peer);
            const auto sent = co_await peer->write_message(*cookie);
            if (!sent) co_return fail(sent);
            co_return co_await peer->close();
        });
        serve(std::move(routes));
    }
};

TEST_P(websocket_route_test, messages_follow_the_handshake) {
    serve_echo();
    raw_peer client = connect();
    // A masked text frame with "Hello" (RFC 6455, section 5.7), and a close frame.
    client.send(handshake() + "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58" +
                std::string{"\x88\x80\0\0\0\0", 6});

    const std::string expected =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
        "\x81\x05Hello" +
        std::string{"\x88\0", 2};
    EXPECT_EQ(rest_of(client), expected);
}

TEST_P(websocket_route_test, an_ordinary_request_is_told_to_upgrade) {
    serve_echo();

    const std::string all = ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n");

    EXPECT_THAT(all, StartsWith("HTTP/1.1 426"));
    EXPECT_THAT(all, HasSubstr("\r\nUpgrade: websocket\r\n"));
}

TEST_P(websocket_route_test, pages_of_other_origins_are_refused) {
    const std::string_view origins[]{"https://friend.example"};
    serve_echo({.origins = origins});
    const auto from = [&](const char* origin) {
        return ask(handshake("/", "Origin: " + std::string{origin} + "\r\n"));
    };

    EXPECT_THAT(from("https://other.example"), StartsWith("HTTP/1.1 403"));
    EXPECT_THAT(from("https://friend.example"), StartsWith("HTTP/1.1 101"));
    EXPECT_THAT(from("http://h"), StartsWith("HTTP/1.1 101"));
}

TEST_P(websocket_route_test, a_handshake_with_a_body_is_refused) {
    serve_echo();

    EXPECT_THAT(ask(handshake("/", "Content-Length: 0\r\n")), StartsWith("HTTP/1.1 101"));
    EXPECT_THAT(ask(handshake("/", "Content-Length: 2\r\n") + "hi"), StartsWith("HTTP/1.1 400"));
    EXPECT_THAT(ask(handshake("/", "Transfer-Encoding: chunked\r\n") + "0\r\n\r\n"),
                StartsWith("HTTP/1.1 400"));
    EXPECT_EQ(server().statistics().failed, 0U);
}

TEST_P(websocket_route_test, a_handler_that_asks_for_the_request_has_it_to_its_end) {
    http::router routes;
    routes.websocket("/rooms/{name}", [](http::request& asked, http::websocket& peer) -> task<> {
        const auto message = co_await peer.read_message(); // the head is long gone elsewhere
        if (!message) co_return;
        std::string text = message->data;
        const std::string_view cookie = asked.fields().find("Cookie").value_or("");
        for (const std::string_view each : {asked.parameter("name"), asked.path(), asked.query(),
                                            asked.host(), cookie, asked.method()}) {
            text.append("|").append(each);
        }
        text += asked.secure() ? "|secure|" : "|plain|";
        text += asked.peer().address().is_loopback() ? "here" : "there";
        EXPECT_TRUE(co_await peer.write_message(text));
    });
    serve(std::move(routes));
    raw_peer client = connect();
    client.send(handshake("/rooms/a%20b?x=1", "Cookie: id=7\r\n"));
    static_cast<void>(receive_head(client));
    client.send(text_frame("hi"));

    EXPECT_EQ(next(client), seen_frame(0x81, "hi|a b|/rooms/a b|x=1|h|id=7|GET|plain|here"));
    EXPECT_EQ(code_of(next(client)), 1000U);
}

TEST_P(websocket_route_test, a_handler_that_fails_closes_with_1011) {
    http::router routes;
    routes.websocket(
        "/fails", [](http::websocket&) -> task<result<>> { co_return fail(std::errc::io_error); });
    routes.websocket("/throws", [](http::request&, http::websocket&) -> task<> {
        throw std::runtime_error{"oh"};
        co_return;
    });
    serve(std::move(routes));

    for (const char* const each : {"/fails", "/throws"}) {
        raw_peer client = open(each);
        EXPECT_EQ(code_of(next(client)), 1011U) << each;
        client.send(close_frame(1011));
        EXPECT_EQ(next(client), no_frame);
    }
    EXPECT_TRUE(eventually([&] { return server().statistics().failed == 2; }));
}

TEST_P(websocket_route_test, routes_may_be_replaced_while_a_handler_runs) {
    http::router routes;
    routes.websocket("/", [text = std::string(100, 'x')](http::websocket& peer) -> task<> {
        while (auto message = co_await peer.read_message()) {
            const auto sent = co_await peer.write_message(text);
            if (!sent) break;
        }
    });
    serve(std::move(routes));
    raw_peer client = open();

    server().replace({});
    EXPECT_THAT(ask(handshake()), StartsWith("HTTP/1.1 404"));
    client.send(text_frame("still there?"));

    EXPECT_EQ(next(client), seen_frame(0x81, std::string(100, 'x')));
}

TEST_P(websocket_route_test, a_handler_may_refuse_a_handshake) {
    serve_those_with_a_cookie();

    const std::string refused = ask(handshake());
    EXPECT_THAT(refused, StartsWith("HTTP/1.1 401"));
    EXPECT_THAT(refused, HasSubstr("who?"));
    raw_peer client = connect();
    client.send(handshake("/", "Cookie: id=7\r\n"));
    const std::string accepted = receive_head(client);
    EXPECT_THAT(accepted, StartsWith("HTTP/1.1 101"));
    EXPECT_THAT(accepted, HasSubstr("\r\nSet-Cookie: seen=1\r\n"));
    EXPECT_EQ(next(client), seen_frame(0x81, "id=7"));
    EXPECT_EQ(code_of(next(client)), 1000U);
    client.send(close_frame(1000));
    EXPECT_EQ(next(client), no_frame);
    EXPECT_EQ(server().statistics().failed, 0U);
}

TEST_P(websocket_route_test, what_is_no_handshake_is_answered_and_the_connection_goes_on) {
    serve_those_with_a_cookie();
    raw_peer client = connect();
    client.send("GET / HTTP/1.1\r\nHost: h\r\nCookie: id=7\r\n\r\n" +
                handshake("/", "Cookie: id=7\r\n"));

    const std::string first = receive_head(client);
    EXPECT_THAT(first, StartsWith("HTTP/1.1 426"));
    EXPECT_THAT(first, HasSubstr("\r\nUpgrade: websocket\r\n"));
    EXPECT_THAT(first, Not(HasSubstr("Set-Cookie")));
    static_cast<void>(receive_until(client, "426 Upgrade Required\n"));
    EXPECT_THAT(receive_head(client), StartsWith("HTTP/1.1 101"));
    EXPECT_EQ(next(client), seen_frame(0x81, "id=7"));
    EXPECT_EQ(server().statistics().failed, 0U);
}

TEST_P(websocket_route_test, nothing_is_accepted_behind_an_answer) {
    http::router routes;
    routes.get("/", [](http::request&, http::response& answer) -> task<> {
        EXPECT_TRUE(co_await answer.send("text/plain", "no"));
        const auto late = co_await answer.accept_websocket();
        EXPECT_EQ(error_of(late), std::errc::operation_not_permitted);
    });
    serve(std::move(routes));

    EXPECT_THAT(ask(handshake()), StartsWith("HTTP/1.1 200"));
}

INSTANTIATE_TEST_SUITE_P(backends, websocket_route_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
