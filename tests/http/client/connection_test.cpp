// Connections that are used again, or not, and requests that are repeated, or not.

#include "scripted_server.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/this_task.hpp>

#include <string>
#include <utility>

namespace simplenet::v0::testing {
namespace {

using namespace std::string_literals;

class client_connection_test : public client_test {};

TEST_P(client_connection_test, requests_follow_each_other_on_one_connection) {
    talk({{answer_with("one"), "HTTP/1.1 204 No Content\r\n\r\n",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nthree\r\n0\r\n\r\n"}},
         [](scripted_server& server, http::client& web) -> task<> {
             EXPECT_EQ(co_await body_of_get(web, server.url()), "one");
             EXPECT_EQ(co_await body_of_get(web, server.url()), "");
             EXPECT_EQ(co_await body_of_get(web, server.url()), "three");
             EXPECT_EQ(server.accepted_count, 1);
             EXPECT_EQ(web.idle_connections(), 1U);
         });
}

TEST_P(client_connection_test, an_answer_that_is_dropped_early_closes_its_connection) {
    talk({{answer_with("dropped")}, {answer_with("read")}},
         [](scripted_server& server, http::client& web) -> task<> {
             {
                 auto answer = or_throw(co_await web.get(server.url()));
                 EXPECT_EQ(web.connections(), 1U);
             }
             EXPECT_EQ(web.connections(), 0U);
             EXPECT_EQ(co_await body_of_get(web, server.url()), "read");
             EXPECT_EQ(server.accepted_count, 2);
         });
}

TEST_P(client_connection_test, the_connection_is_free_with_the_last_byte_of_a_known_length) {
    talk(
        {{answer_with("x")}},
        [](scripted_server& server, http::client& web) -> task<> {
            auto answer = or_throw(co_await web.get(server.url()));
            std::array<std::byte, 1> byte;

            EXPECT_EQ(or_throw(co_await answer.read_some(byte)), 1U);

            EXPECT_EQ(web.idle_connections(), 1U);
            EXPECT_EQ(error_of(co_await answer.read_some(byte)), errc::end_of_stream);
        },
        {}, true);
}

TEST_P(client_connection_test, a_connection_that_either_side_ends_is_not_kept) {
    for (const std::string& bytes : {answer_with("x", "Connection: close\r\n"),
                                     "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx"s}) {
        talk(
            {{bytes}},
            [](scripted_server& server, http::client& web) -> task<> {
                EXPECT_EQ(co_await body_of_get(web, server.url()), "x");
                EXPECT_EQ(web.connections(), 0U);
            },
            {}, true);
    }
    talk(
        {{answer_with("x")}},
        [](scripted_server& server, http::client& web) -> task<> {
            http::fields fields;
            fields.add("Connection", "close");
            const std::string url = server.url();
            auto answer = or_throw(co_await web.send({.url = url, .fields = &fields}));
            EXPECT_EQ(or_throw(co_await answer.read_all(1)), "x");
            EXPECT_EQ(web.connections(), 0U);
        },
        {}, true);
}

TEST_P(client_connection_test, an_origin_gets_no_more_connections_than_it_may) {
    talk({{answer_with("1"), answer_with("2"), answer_with("3"), answer_with("4")}},
         [](scripted_server& server, http::client& web) -> task<> {
             const auto [a, b, c, d] =
                 co_await when_all(body_of_get(web, server.url()), body_of_get(web, server.url()),
                                   body_of_get(web, server.url()), body_of_get(web, server.url()));
             EXPECT_EQ(a + b + c + d, "1234");
             EXPECT_EQ(server.accepted_count, 1);
         },
         {.per_origin = 1});
}

TEST_P(client_connection_test, answers_may_outlive_the_client) {
    talk({{answer_with("late")}}, [](scripted_server& server, http::client&) -> task<> {
        std::optional<http::client> other{std::in_place};
        auto answer = or_throw(co_await other->get(server.url()));
        other.reset();
        EXPECT_EQ(or_throw(co_await answer.read_all(10)), "late");
    });
}

TEST_P(client_connection_test, a_client_that_is_destroyed_ends_the_calls_that_wait) {
    talk({{answer_with("only")}}, [](scripted_server& server, http::client&) -> task<> {
        std::optional<http::client> other{std::in_place, http::client_options{.per_origin = 1}};
        auto holds = or_throw(co_await other->get(server.url()));
        auto waiting = spawn(error_of_get(*other, server.url()));
        co_await yield();
        co_await yield();
        other.reset();
        EXPECT_EQ(co_await waiting, canceled);
    });
}

// --- repetition ----------------------------------------------------------------------------------

/// Serves one request, then ends the connection when the second one has come; then `more`.
task<> end_at_second_request(scripted_server& server, std::string before_end,
                             std::vector<answers> more) {
    {
        tcp_stream stream = co_await server.accept();
        co_await server.take_request(stream);
        const std::string first = answer_with("first");
        EXPECT_TRUE(co_await async_write_all(stream, first));
        co_await server.take_request(stream);
        const auto sent = co_await async_write_all(stream, before_end);
        EXPECT_TRUE(sent);
    }
    co_await server.serve(std::move(more));
}

/// Serves one request, and returns when the connection is closed.
task<> end_behind_answer(scripted_server& server) {
    tcp_stream stream = co_await server.accept();
    co_await server.take_request(stream);
    const std::string one = answer_with("one");
    EXPECT_TRUE(co_await async_write_all(stream, one));
    stream.close();
    co_await stream.closed();
}

class client_repetition_test : public client_test {
protected:
    /// The error of the second request, `asked`, on a connection that ends when it comes.
    std::error_code second(http::client_request asked, std::string before_end,
                           std::vector<answers> more, std::size_t requests) {
        std::error_code outcome;
        run([&]() -> task<> {
            scripted_server server;
            http::client web;
            auto serving =
                spawn(end_at_second_request(server, std::move(before_end), std::move(more)));
            EXPECT_EQ(co_await body_of_get(web, server.url()), "first");
            const std::string url = server.url();
            asked.url = url;
            outcome = error_of(co_await web.send(asked));
            EXPECT_EQ(server.requests.size(), requests);
            serving.request_stop();
            co_await serving;
        });
        return outcome;
    }
};

TEST_P(client_repetition_test, an_idempotent_request_is_sent_again_when_its_connection_was_over) {
    for (const char* const method : {"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"}) {
        EXPECT_EQ(second({.method = method}, "", {{answer_with("")}}, 3), std::error_code{})
            << method;
    }
    EXPECT_EQ(second({.method = "PUT", .body = "again"}, "", {{answer_with("")}}, 3),
              std::error_code{});
}

TEST_P(client_repetition_test, other_requests_are_never_sent_again) {
    for (const char* const method : {"POST", "PATCH", "X-OTHER", "get"}) {
        EXPECT_EQ(second({.method = method}, "", {{answer_with("")}}, 2),
                  http::errc::incomplete_message)
            << method;
    }
}

TEST_P(client_repetition_test, a_request_is_not_sent_again_when_an_answer_has_begun) {
    EXPECT_EQ(second({}, "H", {{answer_with("")}}, 2), http::errc::incomplete_message);
}

TEST_P(client_repetition_test, a_new_connection_that_ends_is_no_reason_to_repeat) {
    talk({{""}, {answer_with("")}}, [](scripted_server& server, http::client& web) -> task<> {
        EXPECT_EQ(co_await error_of_get(web, server.url()), http::errc::incomplete_message);
        EXPECT_EQ(server.requests.size(), 1U);
    });
}

TEST_P(client_repetition_test, a_request_is_sent_again_once) {
    EXPECT_EQ(second({}, "", {{""}, {answer_with("")}}, 3), http::errc::incomplete_message);
}

TEST_P(client_repetition_test, a_connection_that_ended_while_idle_is_not_used) {
    run([]() -> task<> {
        scripted_server server;
        http::client web;
        auto serving = spawn(end_behind_answer(server));
        EXPECT_EQ(co_await body_of_get(web, server.url()), "one");
        co_await serving;
        auto more = spawn(server.serve({{answer_with("two")}}));

        const std::string url = server.url();
        EXPECT_TRUE(co_await web.send({.method = "POST", .url = url}));

        EXPECT_EQ(server.accepted_count, 2);
        co_await more;
    });
}

INSTANTIATE_TEST_SUITE_P(backends, client_connection_test, all_backends, backend_name);
INSTANTIATE_TEST_SUITE_P(backends, client_repetition_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
