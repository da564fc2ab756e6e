// Which requests are sent again, and to whom.

#include "proxy_test.hpp"

#include "support/descriptor_limit.hpp"

#include <simplenet/coro/this_task.hpp>

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

class retry_test : public proxy_test {
protected:
    static std::string request_of(std::string_view method, std::string_view body = {}) {
        return std::string{method} +
               " / HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) +
               "\r\n\r\n" + std::string{body};
    }
    /// A connection of the proxy to backend() that it keeps.
    raw_peer keep_connection(raw_peer& client) {
        client.send(get_root);
        std::string head;
        raw_peer at = take_request(head);
        at.send(answer_of("first"));
        EXPECT_TRUE(receive_until(client, "first").ends_with("first"));
        return at;
    }
    /// The first backend that is asked, of two; the other one.
    std::pair<raw_listener*, raw_listener*>
    ask_one_of_two(raw_peer& client, std::string_view request, std::optional<raw_peer>& asked) {
        client.send(request);
        for (;;) {
            for (auto [one, other] : {std::pair{&backend(), &second_}, {&second_, &backend()}}) {
                pollfd ready{.fd = one->fd(), .events = POLLIN, .revents = 0};
                if (::poll(&ready, 1, 1) != 1) continue;
                asked.emplace(one->accept());
                return {one, other};
            }
        }
    }
    raw_listener second_;
};

TEST_P(retry_test, a_connection_that_ended_while_it_was_unused_fails_no_request) {
    serve_proxy();
    for (const std::string_view method : {"GET", "POST"}) {
        raw_peer client = connect();
        keep_connection(client).close();
        client.send(request_of(method, "body"));
        std::string head;
        raw_peer at = take_request(head);
        EXPECT_EQ(at.receive(4), "body");
        at.send(answer_of("second"));
        EXPECT_TRUE(receive_until(client, "second").ends_with("second"));
        at.close();
    }
}

TEST_P(retry_test, a_kept_connection_that_ends_under_a_request_fails_no_idempotent_one) {
    serve_proxy();
    for (const std::string_view method : {"GET", "PUT", "DELETE"}) {
        raw_peer client = connect();
        raw_peer at = keep_connection(client);
        client.send(request_of(method, "body"));
        static_cast<void>(receive_request(at));
        at.reset();
        std::string head;
        raw_peer again = take_request(head);
        EXPECT_EQ(again.receive(4), "body");
        again.send(answer_of("second"));
        EXPECT_TRUE(receive_until(client, "second").ends_with("second"));
        again.close();
    }
}

TEST_P(retry_test, a_post_that_may_have_had_an_effect_is_not_repeated) {
    serve_proxy();
    for (const std::string_view method : {"POST", "PATCH", "LOCK"}) {
        raw_peer client = connect();
        raw_peer at = keep_connection(client);
        client.send(request_of(method, "body"));
        static_cast<void>(receive_request(at));
        at.reset();
        EXPECT_TRUE(receive_head(client).starts_with("HTTP/1.1 502 "));
        EXPECT_FALSE(backend().has_caller());
    }
}

TEST_P(retry_test, nothing_is_repeated_once_an_answer_has_begun) {
    serve_proxy({}, {}, {&backend(), &second_});
    raw_peer client = connect();
    std::optional<raw_peer> at;
    const auto [asked, other] = ask_one_of_two(client, get_root, at);
    static_cast<void>(receive_request(*at));
    at->send("H");
    at->close();
    EXPECT_TRUE(receive_head(client).starts_with("HTTP/1.1 502 "));
    EXPECT_FALSE(other->has_caller());
}

TEST_P(retry_test, another_backend_gets_the_whole_body_again) {
    serve_proxy({}, {}, {&backend(), &second_});
    for (const std::size_t size : {std::size_t{10}, std::size_t{300'000}}) {
        const std::string body(size, 'b');
        raw_peer client = connect();
        std::optional<raw_peer> at;
        const auto [asked, other] = ask_one_of_two(client, request_of("PUT", body), at);
        static_cast<void>(receive_request(*at));
        static_cast<void>(at->receive(size / 2));
        at->reset();
        raw_peer again = other->accept();
        EXPECT_TRUE(receive_request(again).find("\r\nContent-Length: " + std::to_string(size)) !=
                    std::string::npos);
        EXPECT_TRUE(again.receive(size) == body);
        again.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
        EXPECT_TRUE(receive_until(client, "ok").ends_with("ok"));
    }
}

TEST_P(retry_test, a_streamed_body_is_not_repeated_once_it_has_begun) {
    serve_proxy({.streamed = true}, {}, {&backend(), &second_});
    raw_peer client = connect();
    std::optional<raw_peer> at;
    const auto [asked, other] = ask_one_of_two(client, request_of("PUT", "body"), at);
    static_cast<void>(receive_request(*at));
    static_cast<void>(at->receive(4));
    at->reset();
    EXPECT_TRUE(receive_head(client).starts_with("HTTP/1.1 502 "));
    EXPECT_FALSE(other->has_caller());
}

// It looked like a failure of the backend, and of the handler.
TEST_P(retry_test, a_client_that_breaks_off_behind_an_early_answer_is_no_failure_of_the_backend) {
    std::atomic<int> failed = 0;
    const auto count = [](const http::gateway_report& report, void* context) {
        if (report.kind == http::gateway_event::failed) ++*static_cast<std::atomic<int>*>(context);
    };
    serve_proxy({.streamed = true, .report = count, .context = &failed});
    std::optional client{connect()};
    client->send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf");
    std::string head;
    raw_peer at = take_request(head);
    at.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nearly");
    EXPECT_TRUE(receive_until(*client, "early").ends_with("early"));

    client.reset();

    EXPECT_TRUE(eventually([&] { return server().statistics().open == 0; }));
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(server().statistics().failed, 0U);
}

TEST_P(retry_test, whoever_refuses_connections_gets_no_requests) {
    serve_proxy({}, {}, {&backend(), &second_});
    second_.close();
    for (int count = 0; count < 4; ++count) {
        raw_peer client = connect();
        client.send(request_of("POST", "body")); // nothing of it has left
        std::string head;
        raw_peer at = take_request(head);
        at.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
        EXPECT_TRUE(receive_until(client, "ok").ends_with("ok"));
    }
}

TEST_P(retry_test, without_any_backend_the_answer_is_502) {
    serve_proxy({}, {}, {&backend(), &second_});
    backend().close();
    second_.close();
    EXPECT_EQ(ask(get_root), "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain; charset=utf-8"
                             "\r\nContent-Length: 16\r\n\r\n502 Bad Gateway\n");
}

// An answer without a body is over with its head, and used to count as none.
TEST_P(retry_test, an_answer_without_a_body_counts) {
    const std::array<http::backend, 1> one{{{backend().name()}}};
    const http::proxy_handler passes{{.backends = one}};
    http::router routes;
    routes.fallback(passes);
    serve(std::move(routes));
    testing::raw_peer client = connect();
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    testing::raw_peer peer = backend().accept();
    static_cast<void>(receive_request(peer));

    peer.send("HTTP/1.1 204 No Content\r\n\r\n");

    EXPECT_THAT(receive_head(client), ::testing::StartsWith("HTTP/1.1 204 "));
    EXPECT_EQ(passes.backends().front().answered, 1U);
}

TEST_P(retry_test, a_shortage_of_descriptors_is_no_failure_of_a_backend) {
    raw_listener second;
    std::optional<http::proxy_handler> passes;
    const std::array<http::backend, 2> both{{{backend().name()}, {second.name()}}};
    passes.emplace(http::proxy_options{.backends = both});
    http::router routes;
    routes.fallback(*passes);
    serve(std::move(routes));
    testing::raw_peer client = connect();
    client.send("GET /none HTTP/1.1\r\nHost: h\r\n");
    ASSERT_TRUE(eventually([&] { return server().statistics().open == 1; }));

    const testing::descriptor_limit none;
    client.send("\r\n");

    EXPECT_THAT(receive_head(client), ::testing::StartsWith("HTTP/1.1 503 "));
    for (const http::backend_status& each : passes->backends())
        EXPECT_EQ(each.failures, 0U);
}

TEST_P(retry_test, a_program_sees_the_state_of_its_backends_and_answers_by_itself) {
    const http::backend to[]{{backend().name()}};
    const http::proxy_handler handler{{.backends = to}};
    http::router routes;
    routes.any("/{path...}",
               [handler](http::request& asked, http::response& answer) -> task<result<>> {
                   const auto status = co_await handler.attempt(asked, answer);
                   if (!status) co_return fail(status);
                   if (*status == 0) co_return result<>{};
                   answer.status(*status);
                   co_return co_await answer.send("text/plain", "own page");
               });
    serve(std::move(routes));
    EXPECT_TRUE(exchange(get_root, answer_of("ok")).ends_with("ok"));
    EXPECT_EQ(handler.backends().at(0).answered, 1U);
    EXPECT_EQ(exchange(get_root, "nonsense\r\n\r\n"),
              "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\n"
              "own page");
    backend().close();
    EXPECT_TRUE(ask(get_root).ends_with("own page"));
    EXPECT_EQ(handler.backends().at(0).failures, 1U);
    EXPECT_EQ(handler.backends().at(0).active, 0U);
    EXPECT_TRUE(handler.backends().at(0).left_out);
}

TEST_P(retry_test, what_a_program_has_set_stays) {
    const http::backend to[]{{backend().name()}};
    const http::proxy_handler handler{{.backends = to}};
    http::router routes;
    routes.any("/{path...}",
               [handler](http::request& asked, http::response& answer) -> task<result<>> {
                   answer.set("Server", "mine").set("X-Frame-Options", "DENY");
                   co_return co_await handler(asked, answer);
               });
    serve(std::move(routes));
    EXPECT_EQ(exchange(get_root, answer_of("ok", "Server: theirs\r\nSet-Cookie: a\r\n"
                                                 "Set-Cookie: b\r\n")),
              "HTTP/1.1 200 OK\r\nServer: mine\r\nX-Frame-Options: DENY\r\nSet-Cookie: a\r\n"
              "Set-Cookie: b\r\nContent-Length: 2\r\n\r\nok");
}

TEST_P(retry_test, options_that_cannot_be_used_are_refused) {
    const http::backend good[]{{"127.0.0.1:1"}};
    const http::backend bad[]{{"127.0.0.1"}};
    const http::field host[]{{"Host", "h"}};
    const http::field forged[]{{"X_Forwarded_For", "1"}};
    const http::field torn[]{{"A", "b\r\nC: d"}};
    for (const http::proxy_options& options :
         {http::proxy_options{}, http::proxy_options{.backends = bad},
          http::proxy_options{.backends = good, .host = "a b"},
          http::proxy_options{.backends = good, .fields = host},
          http::proxy_options{.backends = good, .fields = forged},
          http::proxy_options{.backends = good, .fields = torn},
          http::proxy_options{.backends = good, .via = "a b"}}) {
        EXPECT_THROW(http::proxy_handler{options}, std::system_error);
    }
}

// --- many clients --------------------------------------------------------------------------------

/// A server of the library as a backend.
class served_backend {
public:
    explicit served_backend(event_loop_group group)
        : group_{std::move(group)} {
        http::router routes;
        routes.get("/", [](http::request&, http::response& answer) -> task<result<>> {
            co_await yield();
            co_return co_await answer.send("text/plain", "hello");
        });
        server_.emplace(
            or_throw(http::server::listen(group_, endpoint::loopback(0), std::move(routes))));
        name = "127.0.0.1:" + std::to_string(server_->local_endpoint().port());
    }
    std::string name;

private:
    event_loop_group group_;
    std::optional<http::server> server_;
};

TEST_P(retry_test, no_get_fails_when_one_of_two_backends_dies) {
    std::optional<served_backend> dying{make_group(1)};
    served_backend living{make_group(1)};
    const http::backend to[]{{dying->name}, {living.name}};
    http::router routes;
    routes.proxy("/", {.backends = to});
    serve(std::move(routes));
    std::atomic<int> answered = 0;
    std::atomic<int> failed = 0;
    const auto talk = [&] {
        std::vector<raw_peer> clients = served_test::connect(server().local_endpoint(), 16);
        for (int round = 0; round < 40; ++round) {
            for (raw_peer& each : clients)
                each.send(get_root);
            for (raw_peer& each : clients) {
                const std::string answer = receive_until(each, "hello");
                ++(answer.starts_with("HTTP/1.1 200 ") ? answered : failed);
            }
        }
    };
    {
        std::vector<std::jthread> talking;
        for (int count = 0; count < 4; ++count)
            talking.emplace_back(talk);
        while (answered < 64 * 10)
            std::this_thread::yield();
        dying.reset();
    }
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(answered, 64 * 40);
}

INSTANTIATE_TEST_SUITE_P(backends, retry_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
