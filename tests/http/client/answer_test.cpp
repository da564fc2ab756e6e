// What answers say, and the lies they tell.

#include "scripted_server.hpp"

#include <array>
#include <string>

namespace simplenet::v0::testing {
namespace {

using namespace std::string_literals;

class client_answer_test : public client_test {
protected:
    /// Expects that a GET whose answer is `bytes`, before the connection ends, fails so.
    void expect_failure(const std::string& bytes, std::error_code why,
                        http::client_options options = {}) {
        const ::testing::ScopedTrace where{__FILE__, __LINE__, bytes.substr(0, 200)};
        talk(
            {{bytes}},
            [&](scripted_server& server, http::client& web) -> task<> {
                EXPECT_EQ(co_await error_of_get(web, server.url()), why);
                EXPECT_EQ(web.connections(), 0U);
            },
            options);
    }
    /// Expects that a GET gives `body`.
    void expect_body(const std::string& bytes, const std::string& body) {
        const ::testing::ScopedTrace where{__FILE__, __LINE__, bytes.substr(0, 200)};
        talk({{bytes}}, [&](scripted_server& server, http::client& web) -> task<> {
            EXPECT_EQ(co_await body_of_get(web, server.url()), body);
        });
    }
};

const std::string chunked_head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

TEST_P(client_answer_test, an_answer_has_its_parts) {
    talk({{"HTTP/1.1 418 I am a teapot\r\nX-A: 1\r\nContent-Length: 5\r\nX-A: 2\r\n\r\nshort"}},
         [](scripted_server& server, http::client& web) -> task<> {
             auto answer = or_throw(co_await web.get(server.url("/a?b#c")));
             EXPECT_EQ(answer.status(), 418U);
             EXPECT_EQ(answer.reason(), "I am a teapot");
             EXPECT_EQ(answer.version(), 11U);
             EXPECT_EQ(answer.fields().count("x-a"), 2U);
             EXPECT_EQ(answer.url(), server.url("/a?b"));
             EXPECT_EQ(answer.content_length(), 5U);
             EXPECT_EQ(or_throw(co_await answer.read_all(5)), "short");
         });
}

TEST_P(client_answer_test, a_body_ends_by_length_chunks_or_connection) {
    expect_body(answer_with("by length"), "by length");
    expect_body(chunked_head + "3\r\nby \r\n6\r\nchunks\r\n0\r\n\r\n", "by chunks");
    expect_body("HTTP/1.1 200 OK\r\n\r\nby the end", "by the end");
    expect_body("HTTP/1.0 200 OK\r\n\r\nof old", "of old");
    expect_body("HTTP/1.1 204 No Content\r\n\r\n", "");
    expect_body("HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n", "");
    expect_body(answer_with(""), "");
}

TEST_P(client_answer_test, trailers_follow_a_chunked_body) {
    talk({{chunked_head + "1\r\nx\r\n0\r\nDigest: 7\r\n\r\n"}},
         [](scripted_server& server, http::client& web) -> task<> {
             auto answer = or_throw(co_await web.get(server.url()));
             EXPECT_TRUE(answer.trailers().empty());

             EXPECT_EQ(or_throw(co_await answer.read_all(10)), "x");

             EXPECT_EQ(answer.trailers().find("Digest"), "7");
         });
}

TEST_P(client_answer_test, a_malformed_head_is_refused) {
    for (const std::string& head :
         {"HTTP/1.1 200 OK\nX: 1\r\n\r\n"s, "HTTP/1.1 200 OK\r\nX : 1\r\n\r\n"s,
          "HTTP/1.1 200 OK\r\nX: 1\r\n 2\r\n\r\n"s, "HTTP/1.1 20 OK\r\n\r\n"s,
          "HTTP/2.0 200 OK\r\n\r\n"s, "ICY 200 OK\r\n\r\n"s, "HTTP/1.1 099 OK\r\n\r\n"s,
          "HTTP/1.1 200 O\0K\r\n\r\n"s, "SSH-2.0-server\r\n"s}) {
        expect_failure(head, http::errc::bad_response);
    }
}

TEST_P(client_answer_test, a_body_that_two_could_frame_differently_is_refused) {
    for (const char* const fields :
         {"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
          "Content-Length: 1\r\nContent-Length: 2\r\n", "Content-Length: 1, 1\r\n",
          "Content-Length: -1\r\n", "Content-Length: 9223372036854775808\r\n",
          "Transfer-Encoding: chunked, identity\r\n", "Transfer-Encoding: xchunked\r\n"}) {
        const std::string head = "HTTP/1.1 200 OK\r\n" + std::string{fields} + "\r\n0\r\n\r\n";
        expect_failure(head, http::errc::bad_response);
    }
    expect_failure("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
                   http::errc::unsupported_transfer_coding);
}

TEST_P(client_answer_test, malformed_chunks_are_refused) {
    for (const char* const chunks : {"x\r\n", "1\nx\r\n", "1\r\nxy\r\n0\r\n\r\n", "-1\r\n",
                                     "10000000000000000\r\n", "0\r\nbad trailer\r\n\r\n"}) {
        expect_failure(chunked_head + chunks, http::errc::bad_response);
    }
}

TEST_P(client_answer_test, an_answer_that_is_cut_anywhere_is_incomplete) {
    const std::string by_length = answer_with("seven77");
    const std::string by_chunks = chunked_head + "3\r\nabc\r\n0\r\nX: 1\r\n\r\n";
    for (const std::string& whole : {by_length, by_chunks}) {
        expect_failure("", http::errc::incomplete_message);
        for (std::size_t size = 1; size < whole.size(); size += 3) {
            expect_failure(whole.substr(0, size), http::errc::incomplete_message);
        }
    }
}

TEST_P(client_answer_test, a_large_head_is_refused) {
    const http::client_options small{.status_line = 64, .header_bytes = 256, .header_count = 4};
    std::string many = "HTTP/1.1 200 OK\r\n";
    for (int each = 0; each < 5; ++each)
        many += "A: 1\r\n";

    expect_failure("HTTP/1.1 200 " + std::string(64, 'x'), http::errc::header_too_large, small);
    expect_failure("HTTP/1.1 200 OK\r\nX: " + std::string(300, 'x'), http::errc::header_too_large,
                   small);
    expect_failure(many + "\r\n", http::errc::header_too_large, small);
    expect_failure(chunked_head + "0\r\nX: " + std::string(300, 'x'), http::errc::header_too_large,
                   small);
}

TEST_P(client_answer_test, informational_answers_are_skipped) {
    expect_body("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" +
                    answer_with("final"),
                "final");
}

TEST_P(client_answer_test, a_flood_of_informational_answers_is_refused) {
    std::string flood;
    for (int each = 0; each < 100; ++each)
        flood += "HTTP/1.1 102 Processing\r\n\r\n";
    expect_failure(flood + answer_with("final"), http::errc::bad_response);
}

TEST_P(client_answer_test, a_switch_that_nobody_asked_for_is_refused) {
    expect_failure("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
                   http::errc::bad_response);
}

TEST_P(client_answer_test, bytes_behind_an_answer_end_the_connection) {
    for (const std::string& lie : {"HTTP/1.1 204 No Content\r\n\r\nbody"s, answer_with("x") + "y",
                                   chunked_head + "0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"}) {
        talk({{lie}, {answer_with("second")}},
             [](scripted_server& server, http::client& web) -> task<> {
                 EXPECT_EQ(co_await error_of_get(web, server.url()), std::error_code{});
                 EXPECT_EQ(co_await body_of_get(web, server.url()), "second");
                 EXPECT_EQ(server.accepted_count, 2);
             });
    }
}

TEST_P(client_answer_test, an_answer_to_head_has_no_body) {
    talk({{"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", answer_with("next")}},
         [](scripted_server& server, http::client& web) -> task<> {
             auto answer = or_throw(co_await web.send({.method = "HEAD", .url = server.url()}));
             EXPECT_EQ(answer.content_length(), 0U);
             EXPECT_EQ(or_throw(co_await answer.read_all(10)), "");
             EXPECT_EQ(co_await body_of_get(web, server.url()), "next");
             EXPECT_EQ(server.accepted_count, 1);
         });
}

TEST_P(client_answer_test, read_all_refuses_more_than_its_limit) {
    for (const std::string& bytes : {answer_with("four"), chunked_head + "4\r\nfour\r\n0\r\n\r\n",
                                     "HTTP/1.1 200 OK\r\n\r\nfour"s}) {
        talk({{bytes}}, [](scripted_server& server, http::client& web) -> task<> {
            auto answer = or_throw(co_await web.get(server.url()));
            EXPECT_EQ(error_of(co_await answer.read_all(3)), errc::limit_exceeded);
            EXPECT_EQ(web.connections(), 0U);
            EXPECT_EQ(error_of(co_await answer.read_all(3)), errc::limit_exceeded);
        });
    }
}

TEST_P(client_answer_test, read_all_reads_the_rest_of_a_body) {
    talk({{answer_with("four")}}, [](scripted_server& server, http::client& web) -> task<> {
        auto answer = or_throw(co_await web.get(server.url()));
        std::array<char, 1> first{};
        EXPECT_EQ(co_await answer.read_some(first), 1U);
        EXPECT_EQ(co_await answer.read_all(3), "our");
    });
}

INSTANTIATE_TEST_SUITE_P(backends, client_answer_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
