#include <simplenet/http/request.hpp>

#include "http/server/http_test.hpp"

#include <atomic>
#include <gmock/gmock.h>
#include <string>
#include <tuple>
#include <vector>

#if SIMPLENET_SEAMS
#include "http/server/unknown_peers.hpp"
#endif

namespace simplenet::v0 {
namespace {

using testing::echo_body;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::plain_answer;
using ::testing::StartsWith;
using testing::tell_request;

class http_request_test : public testing::http_test {
protected:
    void serve_echo(const http::server_options& options = {}) {
        http::router routes;
        routes.any("/echo", echo_body).any("/tell/{rest...}", tell_request);
        serve(std::move(routes), options);
    }
    /// The status of the answer, and that nothing comes behind it but the end.
    std::string status_of(std::string_view text) {
        return ask(text).substr(0, sizeof "HTTP/1.1 200" - 1);
    }
};

TEST_P(http_request_test, tells_method_path_query_and_host) {
    serve_echo();

    const std::string all = ask("GET /tell/a//b/../%63%2Fd?x=%20 HTTP/1.1\r\nHost: h:80\r\n\r\n");

    EXPECT_EQ(all, plain_answer("GET\n/tell/a/c%2Fd\nx=%20\nh:80\n"));
}

TEST_P(http_request_test, parameters_are_decoded) {
    http::router routes;
    routes.get("/a/{one}/{rest...}",
               [](http::request& asked, http::response& answer) -> task<result<>> {
                   const std::string text = std::string{asked.parameter("one")} + "|" +
                                            std::string{asked.parameter("rest")} + "|" +
                                            std::string{asked.parameter("none")};
                   co_return co_await answer.send("text/plain", text);
               });
    serve(std::move(routes));

    EXPECT_THAT(ask("GET /a/x%2fy/b%20c/%252F HTTP/1.1\r\nHost: h\r\n\r\n"),
                EndsWith("\r\n\r\nx/y|b c/%2F|"));
    EXPECT_THAT(ask("GET /a/x/ HTTP/1.1\r\nHost: h\r\n\r\n"), EndsWith("\r\n\r\nx||"));
}

#if SIMPLENET_SEAMS

// It could evade rules about addresses.
TEST_P(http_request_test, a_client_of_unknown_address_is_not_served) {
    serve_echo();
    testing::unknown_peers kernel;
    const detail::sys::intercepting installed{kernel};

    testing::raw_peer client = connect_from("127.0.0.1"); // connect() asks for addresses itself
    constexpr std::string_view text = "GET /tell/a HTTP/1.0\r\n\r\n";
    // It may have been closed already.
    static_cast<void>(::send(client.fd(), text.data(), text.size(), MSG_NOSIGNAL));

    EXPECT_EQ(rest_of(client), "");
    EXPECT_EQ(server().statistics().requests, 0U);
}

#endif

TEST_P(http_request_test, a_url_as_target_overrides_the_host) {
    serve_echo();

    const std::string all = ask("GET http://other/tell/ HTTP/1.1\r\nHost: h\r\n\r\n");

    EXPECT_THAT(all, EndsWith("GET\n/tell/\n\nother\n"));
}

TEST_P(http_request_test, refused_requests_end_the_connection) {
    serve_echo();
    const std::string next = "GET /tell/ HTTP/1.1\r\nHost: h\r\n\r\n";
    const std::vector<std::tuple<std::string, std::string>> table{
        {"GET / HTTP/1.1\r\n\r\n", "400"},
        {"GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", "400"},
        {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "400"},
        {"GET / HTTP/1.1\nHost: h\n\n", "400"},
        {"GET / HTTP/1.1\r\nHost : h\r\n\r\n", "400"},
        {"GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", "400"},
        {"GET /../a HTTP/1.1\r\nHost: h\r\n\r\n", "400"},
        {"GET * HTTP/1.1\r\nHost: h\r\n\r\n", "400"},
        {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
         "0\r\n\r\n",
         "400"},
        {"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
         "501"},
        {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n", "413"},
        {"CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n", "501"},
        {"GET / HTTP/2.0\r\nHost: h\r\n\r\n", "505"},
        {"GET / HTTP/1.1\r\nHost: h\r\nExpect: tea\r\n\r\n", "417"},
        {"GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: h\r\n\r\n", "414"},
        {"GET / HTTP/1.1\r\nHost: h\r\nA: " + std::string(40000, 'a') + "\r\n\r\n", "431"},
        {"\x16\x03\x01\x02", "400"},
    };
    for (const auto& [request, status] : table) {
        const std::string all = ask(request + next);
        EXPECT_THAT(all, StartsWith("HTTP/1.1 " + status)) << request.substr(0, 100);
        EXPECT_THAT(all, HasSubstr("Connection: close\r\n")) << request.substr(0, 100);
        EXPECT_EQ(all.find("HTTP/1.1", 1), std::string::npos) << request.substr(0, 100);
    }
}

TEST_P(http_request_test, later_minor_versions_are_served_as_1_1) {
    serve_echo();

    EXPECT_EQ(status_of("GET /tell/ HTTP/1.2\r\nHost: h\r\n\r\n"), "HTTP/1.1 200");
}

TEST_P(http_request_test, empty_lines_between_requests_are_skipped) {
    serve_echo();
    const std::string request = "GET /tell/ HTTP/1.1\r\nHost: h\r\n\r\n";

    const std::string all = ask("\r\n" + request + "\r\n\r\n" + request + "\r\n");

    const std::string one = plain_answer("GET\n/tell/\n\nh\n");
    EXPECT_EQ(all, one + one);
}

TEST_P(http_request_test, every_split_gives_the_same_answers) {
    serve_echo();
    const std::string requests =
        "\r\nPOST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
        "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3;e\r\nabc\r\n1\r\nd\r\n0\r\nT: 1\r\n\r\nGET /tell/ HTTP/1.1\r\nHost: h\r\n\r\n";
    const std::string expected =
        plain_answer("abc") + plain_answer("abcd") + plain_answer("GET\n/tell/\n\nh\n");
    for (std::size_t at = 1; at < requests.size(); at += 3) {
        testing::raw_peer client = connect();
        client.send(requests.substr(0, at));
        std::this_thread::yield();
        client.send(requests.substr(at));
        client.shutdown_write();
        EXPECT_EQ(rest_of(client), expected) << at;
    }
}

TEST_P(http_request_test, a_request_may_arrive_byte_by_byte) {
    serve_echo();
    testing::raw_peer client = connect();
    const std::string request =
        "\r\nPOST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
    for (const char each : request)
        client.send({&each, 1});
    client.shutdown_write();

    EXPECT_EQ(rest_of(client), plain_answer("abc"));
}

TEST_P(http_request_test, a_hundred_thousand_pipelined_requests_are_answered_in_order) {
    http::router routes;
    routes.get("/{number}", [](http::request& asked, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", asked.parameter("number"));
    });
    serve(std::move(routes));
    constexpr int count = 100'000;
    testing::raw_peer client = connect();
    std::jthread sender{[&] {
        std::string some;
        for (int each = 0; each < count; ++each) {
            some += "GET /" + std::to_string(each) + " HTTP/1.1\r\nHost: h\r\n\r\n";
            if (some.size() > 50'000 || each + 1 == count) {
                client.send(some);
                some.clear();
            }
        }
    }};

    for (int each = 0; each < count; ++each) {
        const std::string number = std::to_string(each);
        const std::string date = "Date: Thu, 26 Nov 2026 11:12:05 GMT\r\n";
        const std::string answer = client.receive(plain_answer(number).size() + date.size());
        ASSERT_TRUE(answer.ends_with("\r\n\r\n" + number)) << answer;
    }
}

TEST_P(http_request_test, pipelined_requests_leave_others_their_turn) {
    std::atomic<int> answered = 0;
    std::atomic<int> in_first_turn = 0;
    http::router routes;
    routes.get("/", [&](http::request&, http::response&) -> task<> {
        if (answered++ == 0) {
            event_loop::current()->post([&] { in_first_turn = answered.load(); });
        }
        co_return;
    });
    serve(std::move(routes));
    std::string all;
    for (int each = 0; each < 2000; ++each)
        all += "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

    static_cast<void>(ask(all));

    EXPECT_EQ(answered, 2000);
    EXPECT_LE(in_first_turn, 130);
}

TEST_P(http_request_test, the_client_may_end_its_side_before_the_answer) {
    serve_echo();

    EXPECT_EQ(ask("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx"),
              plain_answer("x"));
}

TEST_P(http_request_test, a_body_that_is_cut_gets_no_answer) {
    serve_echo();

    EXPECT_EQ(ask("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nx"), "");
}

TEST_P(http_request_test, the_first_read_sends_continue) {
    serve_echo();
    testing::raw_peer client = connect();
    client.send(
        "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");

    EXPECT_EQ(receive_head(client), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("abc");
    client.shutdown_write();
    EXPECT_EQ(rest_of(client), plain_answer("abc"));
}

TEST_P(http_request_test, continue_is_not_sent_if_the_body_has_begun) {
    serve_echo();

    EXPECT_EQ(ask("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n"
                  "Expect: 100-continue\r\n\r\nabc"),
              plain_answer("abc"));
}

TEST_P(http_request_test, a_client_that_awaits_continue_is_closed_after_an_early_answer) {
    http::router routes;
    routes.post("/", [](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.status(403).send("", {});
    });
    serve(std::move(routes));
    testing::raw_peer client = connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");

    EXPECT_EQ(rest_of(client),
              "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

TEST_P(http_request_test, trailers_follow_the_end_of_the_body) {
    http::router routes;
    routes.post("/", [](http::request& asked, http::response& answer) -> task<result<>> {
        EXPECT_TRUE(asked.trailers().empty());
        const auto body = co_await asked.read_all(100);
        const std::string trailer{asked.trailers().find("t").value_or("none")};
        co_return co_await answer.send("text/plain", *body + trailer);
    });
    serve(std::move(routes));

    EXPECT_EQ(ask("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "1\r\na\r\n0\r\nT: b\r\n\r\n"),
              plain_answer("ab"));
}

TEST_P(http_request_test, malformed_chunks_are_answered_with_400) {
    serve_echo();

    const std::string all =
        ask("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
            "1\r\nab\r\n0\r\n\r\n");

    EXPECT_THAT(all, StartsWith("HTTP/1.1 400"));
    EXPECT_THAT(all, HasSubstr("Connection: close\r\n"));
}

TEST_P(http_request_test, a_chunked_body_beyond_the_limit_is_answered_with_413) {
    serve_echo({.limits = {.body = 3}});

    EXPECT_EQ(status_of("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "4\r\nabcd\r\n0\r\n\r\n"),
              "HTTP/1.1 413");
}

TEST_P(http_request_test, read_all_beyond_its_limit_is_answered_with_413) {
    http::router routes;
    routes.post("/", [](http::request& asked, http::response&) -> task<result<>> {
        const auto body = co_await asked.read_all(3);
        EXPECT_FALSE(body);
        co_return fail(body);
    });
    serve(std::move(routes));

    EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nabcd"),
              "HTTP/1.1 413");
}

TEST_P(http_request_test, an_incomplete_head_is_answered_with_408) {
    serve_echo({.limits = {.headers_within = std::chrono::milliseconds{50}}});
    testing::raw_peer client = connect();
    client.send("GET /tell/ HTTP/1.1\r\n");

    EXPECT_THAT(rest_of(client), StartsWith("HTTP/1.1 408"));
}

TEST_P(http_request_test, a_silent_client_is_closed) {
    serve_echo({.limits = {.headers_within = std::chrono::milliseconds{50}}});
    testing::raw_peer client = connect();

    EXPECT_EQ(rest_of(client), "");
}

TEST_P(http_request_test, an_idle_connection_is_closed) {
    serve_echo({.limits = {.keep_alive = std::chrono::milliseconds{50}}});
    testing::raw_peer client = connect();
    client.send("GET /tell/ HTTP/1.1\r\nHost: h\r\n\r\n");

    EXPECT_EQ(rest_of(client), plain_answer("GET\n/tell/\n\nh\n"));
}

// Empty lines are no requests, but each of them used to begin `keep_alive` anew.
TEST_P(http_request_test, a_client_that_sends_only_empty_lines_is_closed) {
    serve_echo();
    testing::raw_peer client = connect();

    EXPECT_TRUE(eventually([&] {
        static_cast<void>(::send(client.fd(), "\r\n", 2, MSG_NOSIGNAL));
        return client.peek() == 0 || client.peek() == -ECONNRESET;
    }));
}

TEST_P(http_request_test, a_body_that_stops_is_answered_with_408) {
    serve_echo({.limits = {.body_idle = std::chrono::milliseconds{50}}});
    testing::raw_peer client = connect();
    client.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nx");

    EXPECT_THAT(rest_of(client), StartsWith("HTTP/1.1 408"));
}

TEST_P(http_request_test, an_unread_body_is_drained_for_the_next_request) {
    http::router routes;
    routes.post("/", [](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", "x");
    });
    serve(std::move(routes));
    const std::string one =
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 50000\r\n\r\n" + std::string(50000, 'b');

    EXPECT_EQ(ask(one + one), plain_answer("x") + plain_answer("x"));
}

// It used to have the time of a body that a handler waits for.
TEST_P(http_request_test, an_unread_body_that_stops_ends_the_connection_after_linger_idle) {
    http::router routes;
    routes.post("/", [](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", "x");
    });
    serve(std::move(routes), {.limits = {.body_idle = std::chrono::hours{1},
                                         .linger_idle = std::chrono::milliseconds{50}}});
    testing::raw_peer client = connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab");

    EXPECT_EQ(rest_of(client), "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                               "Content-Length: 1\r\n\r\nx");
}

TEST_P(http_request_test, the_answer_to_a_large_unread_body_can_be_read) {
    http::router routes;
    routes.post("/",
                [](http::request&, http::response& answer) -> task<result<>> {
                    co_return co_await answer.status(403).send("", {});
                },
                {.body = 0});
    serve(std::move(routes));
    testing::raw_peer client = connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5000000\r\n\r\n");
    for (int each = 0; each < 50; ++each)
        client.send(std::string(100'000, 'b'));
    client.shutdown_write();

    EXPECT_EQ(rest_of(client),
              "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

TEST_P(http_request_test, a_client_that_floods_behind_an_early_answer_is_cut) {
    serve_echo();
    testing::raw_peer client = connect();
    client.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 10000000000\r\n\r\n");
    EXPECT_THAT(receive_until(client, "\r\n\r\n"), StartsWith("HTTP/1.1 413"));
    const std::string block(1'000'000, 'b');

    std::size_t sent = 0;
    while (sent < 300'000'000) {
        const ssize_t count = ::send(client.fd(), block.data(), block.size(), MSG_NOSIGNAL);
        if (count < 0) break;
        sent += static_cast<std::size_t>(count);
    }

    EXPECT_GE(sent, std::size_t{64} * 1024 * 1024);
    EXPECT_LT(sent, 300'000'000U);
}

TEST_P(http_request_test, a_server_that_accepts_no_field_does_not_begin) {
    auto group = make_group(1);

    const auto made =
        http::server::listen(group, endpoint::loopback(0), {}, {.limits = {.header_count = 0}});

    EXPECT_EQ(error_of(made), std::errc::invalid_argument);
}

TEST_P(http_request_test, http_1_0_closes_unless_it_is_asked_not_to) {
    serve_echo();

    EXPECT_EQ(ask("GET /tell/ HTTP/1.0\r\n\r\nGET /tell/ HTTP/1.0\r\n\r\n"),
              plain_answer("GET\n/tell/\n\n\n", "Connection: close\r\n"));
    const std::string kept = "GET /tell/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    const std::string answer = plain_answer("GET\n/tell/\n\n\n", "Connection: keep-alive\r\n");
    EXPECT_EQ(ask(kept + kept), answer + answer);
}

INSTANTIATE_TEST_SUITE_P(backends, http_request_test, testing::all_backends, testing::backend_name);

} // namespace
} // namespace simplenet::v0
