// Requests and answers that pass through a reverse proxy, byte by byte.

#include "proxy_test.hpp"
#include "support/temporary_directory.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <sys/un.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

class passing_test : public proxy_test {};

constexpr std::string_view bad_gateway =
    "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain; charset=utf-8\r\n"
    "Content-Length: 16\r\n\r\n502 Bad Gateway\n";

// --- requests ------------------------------------------------------------------------------------

TEST_P(passing_test, a_request_and_its_answer_pass) {
    serve_proxy();
    raw_peer client = connect();
    client.send("GET /a?b HTTP/1.1\r\nHost: h\r\nAccept: x\r\n\r\n");
    std::string head;
    raw_peer at = take_request(head);
    at.send("HTTP/1.1 201 Made\r\nServer: s\r\nDate: today\r\nX-A: 1\r\nX-A: 2\r\n"
            "Content-Length: 2\r\n\r\nok");
    const std::string whole = receive_until(client, "ok");
    EXPECT_EQ(head, "GET /a?b HTTP/1.1\r\nHost: h\r\nAccept: x\r\n" + std::string{added} + "\r\n");
    EXPECT_EQ(whole, "HTTP/1.1 201 Created\r\nServer: s\r\nDate: today\r\nX-A: 1\r\nX-A: 2\r\n"
                     "Content-Length: 2\r\n\r\nok");
}

struct wire_case {
    std::string_view request;
    std::string_view line;   // that the backend gets
    std::string_view fields; // before those of the proxy
    std::string_view framing = {};
};

TEST_P(passing_test, whatever_a_client_sends_the_backend_gets_one_request_of_the_proxys_own) {
    constexpr std::string_view chunked = "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n";
    const std::string with_trailer =
        "POST / HTTP/1.1\r\nHost: h\r\nTrailer: X-T\r\n" + std::string{chunked} + "X-T: 1\r\n\r\n";
    const std::string with_extension = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
                                       "chunked\r\n\r\n5;a=\"b\"\r\nhello\r\n0\r\n\r\n";
    const wire_case cases[]{
        {"GET http://h/a/../b?c HTTP/1.1\r\nHost: other\r\n\r\n", "GET /b?c HTTP/1.1", ""},
        {"\r\n\r\nGET //a/./%2e%2e/b%2Fc HTTP/1.1\r\nHost: h\r\n\r\n", "GET /b%2Fc HTTP/1.1", ""},
        {"GET / HTTP/1.9\r\nhOST:\th \r\nA:b \t\r\n\r\n", "GET / HTTP/1.1", "A: b\r\n"},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, X-A\r\nX-A: 1\r\n"
         "Keep-Alive: 5\r\n\r\n",
         "GET / HTTP/1.1", ""},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: host, content-length\r\n\r\n", "GET / HTTP/1.1",
         ""},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"
         "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n",
         "GET / HTTP/1.1", ""},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 777\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
         "GET / HTTP/1.1",
         "Sec-WebSocket-Version: 777\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"},
        {"GET / HTTP/1.1\r\nHost: h\r\nProxy: http://evil\r\nX_Forwarded_For: 1\r\n\r\n",
         "GET / HTTP/1.1", ""},
        {"GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nProxy-Authorization: x\r\n\r\n",
         "GET / HTTP/1.1", ""},
        {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", "POST / HTTP/1.1", "",
         "Content-Length: 5\r\n"},
        {"POST / HTTP/1.1\r\nHost: h\r\n\r\n", "POST / HTTP/1.1", "", "Content-Length: 0\r\n"},
        {"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "GET / HTTP/1.1", ""},
        {with_trailer, "POST / HTTP/1.1", "", "Content-Length: 5\r\n"},
        {with_extension, "POST / HTTP/1.1", "", "Content-Length: 5\r\n"},
        {"OPTIONS /a HTTP/1.1\r\nHost: h\r\nMax-Forwards: 3\r\n\r\n", "OPTIONS /a HTTP/1.1",
         "Max-Forwards: 2\r\n"},
        {"PROPFIND /a HTTP/1.1\r\nHost: h\r\nMax-Forwards: 3\r\n\r\n", "PROPFIND /a HTTP/1.1",
         "Max-Forwards: 3\r\n"},
    };
    serve_proxy();
    for (const wire_case& each : cases) {
        EXPECT_EQ(head_for(each.request), std::string{each.line} + "\r\nHost: h\r\n" +
                                              std::string{each.fields} + std::string{added} +
                                              std::string{each.framing} + "\r\n")
            << each.request;
    }
}

TEST_P(passing_test, what_could_be_framed_in_two_ways_never_reaches_a_backend) {
    serve_proxy();
    for (const std::string_view request :
         {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +4\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n",
          "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
          "GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
          "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", "GET / HTTP/1.1\nHost: h\n\n",
          "GET /\x01 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /../a HTTP/1.1\r\nHost: h\r\n\r\n",
          "GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", "CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n",
          "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n"}) {
        const std::string answer = ask(request);
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 400") || answer.starts_with("HTTP/1.1 501"))
            << request << answer;
    }
    EXPECT_FALSE(backend().has_caller());
}

TEST_P(passing_test, requests_that_are_pipelined_arrive_one_after_the_other) {
    serve_proxy();
    raw_peer client = connect();
    client.send("POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 24\r\n\r\n"
                "GET /x HTTP/1.1\r\nHost: h"
                "GET /2 HTTP/1.1\r\nHost: h\r\n\r\n");
    std::string first;
    raw_peer at = take_request(first);
    EXPECT_TRUE(first.starts_with("POST /1 "));
    EXPECT_EQ(at.receive(24), "GET /x HTTP/1.1\r\nHost: h");
    at.send(answer_of("one"));
    EXPECT_TRUE(receive_request(at).starts_with("GET /2 "));
    at.send(answer_of("two"));
    EXPECT_TRUE(receive_until(client, "one").ends_with("\r\n\r\none"));
    EXPECT_TRUE(receive_until(client, "two").ends_with("\r\n\r\ntwo"));
}

TEST_P(passing_test, a_client_of_http_1_0_is_served) {
    serve_proxy();
    const std::string answer =
        exchange("GET / HTTP/1.0\r\n\r\n",
                 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n");
    EXPECT_EQ(answer, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\na");
}

TEST_P(passing_test, a_body_is_read_before_a_backend_is_asked) {
    serve_proxy();
    raw_peer client = connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n"
                "Expect: 100-continue\r\n\r\n");
    EXPECT_EQ(receive_head(client), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("abc");
    EXPECT_FALSE(backend().has_caller());
    client.send("def");
    std::string head;
    raw_peer at = take_request(head);
    EXPECT_EQ(head.find("Expect"), std::string::npos);
    EXPECT_EQ(at.receive(6), "abcdef");
    at.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" +
            answer_of("ok"));
    EXPECT_EQ(without_date(receive_until(client, "ok")), answer_of("ok"));
}

TEST_P(passing_test, a_streamed_body_is_passed_on_while_it_arrives) {
    serve_proxy({.streamed = true});
    raw_peer client = connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    std::string head;
    raw_peer at = take_request(head);
    EXPECT_TRUE(head.ends_with("\r\nTransfer-Encoding: chunked\r\n\r\n"));
    EXPECT_EQ(at.receive(8), "3\r\nabc\r\n");
    client.send("2\r\nde\r\n0\r\n\r\n");
    EXPECT_EQ(at.receive(12), "2\r\nde\r\n0\r\n\r\n");
    at.send(answer_of("ok"));
    EXPECT_TRUE(receive_until(client, "ok").ends_with("\r\n\r\nok"));
}

// Used to be an error of attempt(), which the server answered without the fields of the handler.
TEST_P(passing_test, a_body_that_turns_out_too_large_is_left_to_the_handler) {
    for (const bool streamed : {false, true}) {
        const http::backend to[]{{backend().name()}};
        const http::proxy_handler proxy{{.backends = to, .streamed = streamed}};
        http::router routes;
        routes.post("/", [proxy](http::request& asked, http::response& answer) -> task<result<>> {
            answer.set("X-Site", "s");
            const result<unsigned> left = co_await proxy.attempt(asked, answer);
            if (!left) co_return fail(left);
            co_return co_await answer.status(*left).send("text/plain", "own page");
        });
        serve(std::move(routes), {.limits = {.body = 4}});
        raw_peer client = connect();
        client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
        std::optional<raw_peer> at;
        std::string head;
        if (streamed) at.emplace(take_request(head));
        client.send("2\r\nde\r\n0\r\n\r\n");

        const std::string answer = receive_until(client, "own page");
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 413 ")) << answer;
        EXPECT_NE(answer.find("\r\nX-Site: s\r\n"), std::string::npos) << answer;
        EXPECT_NE(answer.find("\r\nConnection: close\r\n"), std::string::npos) << answer;
        end_loops();
    }
}

TEST_P(passing_test, large_bodies_pass_both_ways) {
    serve_proxy({}, {.limits = {.body = 0}});
    const std::string body(3'000'000, 'b');
    raw_peer client = connect();
    std::thread sending{[&] {
        client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n" + body);
    }};
    std::string head;
    raw_peer at = take_request(head);
    sending.join();
    EXPECT_TRUE(at.receive(body.size()) == body);
    std::thread answering{[&] { at.send(answer_of(body)); }};
    const std::string answer = receive_head(client);
    EXPECT_EQ(answer, "HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n");
    EXPECT_TRUE(client.receive(body.size()) == body);
    answering.join();
}

TEST_P(passing_test, a_backend_may_answer_before_it_has_read_the_request) {
    serve_proxy({}, {.limits = {.body = 0}});
    const std::string body(3'000'000, 'b');
    raw_peer client = connect();
    client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n" + body);
    std::string head;
    raw_peer at = take_request(head);
    at.send("HTTP/1.1 413 Too much\r\nConnection: close\r\nContent-Length: 3\r\n\r\nno\n");
    EXPECT_EQ(receive_until(client, "no\n").substr(0, 12), "HTTP/1.1 413");
}

TEST_P(passing_test, a_backend_behind_a_unix_socket_is_asked) {
    const temporary_directory folder;
    const std::string path = folder / "backend";
    unique_fd listening{checked(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))};
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    checked(::bind(listening.get(), reinterpret_cast<sockaddr*>(&address), sizeof address));
    checked(::listen(listening.get(), 1));
    const std::string name = "unix:" + path;
    const http::backend to[]{{name}};
    http::router routes;
    routes.proxy("/", {.backends = to});
    serve(std::move(routes));
    raw_peer client = connect();
    client.send("GET / HTTP/1.0\r\n\r\n");
    raw_peer at{unique_fd{checked(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC))}};
    EXPECT_TRUE(receive_request(at).starts_with("GET / HTTP/1.1\r\nHost: localhost\r\n"));
    at.send(answer_of("ok"));
    EXPECT_TRUE(rest_of(client).ends_with("\r\n\r\nok"));
}

// --- answers -------------------------------------------------------------------------------------

struct answer_case {
    std::string_view answer;
    std::string_view passed;
};

TEST_P(passing_test, answers_are_framed_anew) {
    constexpr answer_case cases[]{
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n"
         "2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\nX-T: 1\r\n\r\n",
         "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"},
        {"HTTP/1.1 200 OK\r\nConnection: X-A, close\r\nX-A: 1\r\nKeep-Alive: 1\r\n"
         "Proxy-Connection: close\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\na",
         "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"},
        {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
         "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"},
        {"HTTP/1.0 200 OK\r\n\r\nabc",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"},
        {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nxyz",
         "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nxyz"},
        {"HTTP/1.1 204 None\r\nContent-Length: 3\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"},
        {"HTTP/1.1 304 Same\r\nETag: \"a\"\r\nContent-Length: 3\r\n\r\n",
         "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n"},
        {"HTTP/1.1 205 Reset\r\nContent-Length: 0\r\n\r\n",
         "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n"},
        {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/x\r\nContent-Length: 0\r\n\r\n",
         "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/x\r\nContent-Length: 0\r\n\r\n"},
        {"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n",
         "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n"},
        {"HTTP/1.1 429 Slow down\r\nContent-Length: 0\r\n\r\n",
         "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"},
    };
    serve_proxy();
    for (const answer_case& each : cases)
        EXPECT_EQ(exchange(get_root, each.answer), each.passed) << each.answer;
}

TEST_P(passing_test, answers_to_head_have_no_body) {
    constexpr std::string_view head_root = "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n";
    constexpr answer_case cases[]{
        {"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
         "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {"HTTP/1.1 204 None\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n",
         "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n", bad_gateway},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n", bad_gateway},
    };
    serve_proxy();
    for (const answer_case& each : cases) {
        std::string passed{each.passed};
        if (each.passed == bad_gateway) passed.resize(passed.find("\r\n\r\n") + 4);
        EXPECT_EQ(exchange(head_root, each.answer), passed) << each.answer;
    }
}

TEST_P(passing_test, what_a_backend_sends_slowly_is_passed_on_at_once) {
    serve_proxy();
    raw_peer client = connect();
    client.send(get_root);
    std::string head;
    raw_peer at = take_request(head);
    at.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            "Transfer-Encoding: chunked\r\n\r\n");
    EXPECT_EQ(receive_head(client), "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                                    "Transfer-Encoding: chunked\r\n\r\n");
    at.send("3\r\na\n\n\r\n");
    EXPECT_EQ(client.receive(8), "3\r\na\n\n\r\n");
    at.send("3\r\nb\n\n\r\n0\r\n\r\n");
    EXPECT_EQ(client.receive(13), "3\r\nb\n\n\r\n0\r\n\r\n");
}

TEST_P(passing_test, an_answer_that_is_read_ahead_releases_its_backend) {
    serve_proxy({.connections = 1});
    const std::string body(600'000, 'b');
    raw_peer client = connect();
    set_buffers(client.fd(), 8192);
    client.send(get_root);
    std::string head;
    raw_peer at = take_request(head);
    at.send(answer_of(body)); // the client reads nothing of it
    raw_peer second = connect();
    second.send(get_root);
    EXPECT_TRUE(receive_request(at).starts_with("GET / "));
    at.send(answer_of("two"));
    EXPECT_TRUE(receive_until(second, "two").ends_with("\r\n\r\ntwo"));
    static_cast<void>(receive_head(client));
    EXPECT_TRUE(client.receive(50'000) == body.substr(0, 50'000));
}

TEST_P(passing_test, trace_and_options_end_here_when_their_forwards_are_used_up) {
    serve_proxy();
    EXPECT_EQ(ask("OPTIONS / HTTP/1.1\r\nHost: h\r\nMax-Forwards: 0\r\n\r\n"),
              "HTTP/1.1 204 No Content\r\n\r\n");
    EXPECT_TRUE(
        ask("TRACE / HTTP/1.1\r\nHost: h\r\nMax-Forwards: 0\r\n\r\n").starts_with("HTTP/1.1 501 "));
    EXPECT_TRUE(
        ask("TRACE / HTTP/1.1\r\nHost: h\r\nMax-Forwards: x\r\n\r\n").starts_with("HTTP/1.1 400 "));
    EXPECT_FALSE(backend().has_caller());
}

TEST_P(passing_test, a_client_that_ends_its_side_early_gets_its_answer) {
    serve_proxy();
    raw_peer client = connect();
    client.send(get_root);
    client.shutdown_write();
    std::string head;
    raw_peer at = take_request(head);
    at.send(answer_of("late"));
    EXPECT_TRUE(rest_of(client).ends_with("\r\n\r\nlate"));
}

TEST_P(passing_test, when_a_client_is_gone_its_backend_is_let_go) {
    serve_proxy();
    raw_peer client = connect();
    client.send(get_root);
    std::string head;
    raw_peer at = take_request(head);
    at.send("HTTP/1.1 200 OK\r\n\r\nbegin");
    static_cast<void>(receive_head(client));
    client.reset();
    const std::string part(100'000, 'x');
    while (at.peek() == -EAGAIN)
        at.send_until_full(part);
    EXPECT_NE(at.receive_to_the_end(), std::error_code{});
}

INSTANTIATE_TEST_SUITE_P(backends, passing_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
