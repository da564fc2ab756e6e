// Answers of backends that lie, break off, or make no sense.

#include "proxy_test.hpp"

#include <atomic>
#include <string>
#include <string_view>
#include <system_error>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

class bad_answer_test : public proxy_test {
protected:
    /// How the client's connection ends, and what it got.
    struct outcome {
        std::string text;
        bool is_reset = false;
    };
    outcome outcome_of(std::string_view request, std::string_view answer) {
        raw_peer client = connect();
        client.send(request);
        std::string head;
        raw_peer at = take_request(head);
        at.send(answer);
        at.close();
        outcome seen;
        for (char byte = 0;;) {
            const ssize_t count = restarted([&] { return ::recv(client.fd(), &byte, 1, 0); });
            if (count <= 0) {
                seen.is_reset = count < 0 && errno == ECONNRESET;
                return seen;
            }
            seen.text += byte;
            if (is_complete(seen.text)) return seen;
        }
    }
    /// Whether a client takes `text` for a whole answer.
    static bool is_complete(std::string_view text) {
        const std::size_t end = text.find("\r\n\r\n");
        if (end == std::string_view::npos) return false;
        if (text.find("chunked\r\n") < end) return text.ends_with("\r\n0\r\n\r\n");
        constexpr std::string_view name = "Content-Length: ";
        const std::size_t at = text.find(name);
        const auto length = std::stoul(std::string{text.substr(at + name.size(), 8)});
        return text.size() - end - 4 == length;
    }
};

TEST_P(bad_answer_test, what_is_no_answer_becomes_502) {
    serve_proxy();
    for (const std::string_view answer :
         {"",
          "\r\n",
          "nonsense\r\n\r\n",
          "HTTP/1.1\r\n\r\n",
          "HTTP/1.1 99 Low\r\n\r\n",
          "HTTP/1.1 600 High\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 2000 OK\r\n\r\n",
          "HTTP/2.0 200 OK\r\n\r\n",
          "HTTP/1.1 200 OK\nContent-Length: 1\n\na",
          "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
          "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
          "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
          "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
          "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 200 OK\r\nA : b\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 200 OK\r\nA: \x01\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
          "HTTP/1.1 205 Reset\r\nContent-Length: 1\r\n\r\na",
          "HTTP/1.1 205 Reset\r\n\r\na",
          "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
          "HTTP/1.1 101 Switching Protocols\r\n\r\n",
          "HTTP/1.1 100 Continue\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Le"}) {
        const outcome seen = outcome_of(get_root, answer);
        EXPECT_TRUE(seen.text.starts_with("HTTP/1.1 502 Bad Gateway\r\n")) << answer << seen.text;
        EXPECT_TRUE(seen.text.ends_with("\r\n\r\n502 Bad Gateway\n")) << answer << seen.text;
    }
}

TEST_P(bad_answer_test, heads_beyond_the_limits_become_502) {
    serve_proxy({.status_line = 100, .header_bytes = 1000, .header_count = 10});
    std::string many = "HTTP/1.1 200 OK\r\n";
    for (int count = 0; count < 10; ++count)
        many += "A: b\r\n";
    for (const std::string& answer :
         {"HTTP/1.1 200 " + std::string(100, 'x') + "\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 200 OK\r\nA: " + std::string(1000, 'x') + "\r\nContent-Length: 0\r\n\r\n",
          many + "Content-Length: 0\r\n\r\n"}) {
        const outcome seen = outcome_of(get_root, answer);
        EXPECT_TRUE(seen.text.starts_with("HTTP/1.1 502 ")) << seen.text;
    }
}

TEST_P(bad_answer_test, an_endless_row_of_interim_answers_becomes_502) {
    serve_proxy();
    std::string answer;
    for (int count = 0; count < 100; ++count)
        answer += "HTTP/1.1 100 Continue\r\n\r\n";
    EXPECT_TRUE(outcome_of(get_root, answer).text.starts_with("HTTP/1.1 502 "));
}

TEST_P(bad_answer_test, an_answer_that_is_cut_anywhere_never_looks_complete) {
    serve_proxy();
    for (const std::string_view answer : {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
                                          "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
                                          "chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"}) {
        for (std::size_t size = 0; size < answer.size(); ++size) {
            const outcome seen = outcome_of(get_root, answer.substr(0, size));
            if (seen.text.starts_with("HTTP/1.1 502 ")) continue;
            EXPECT_TRUE(seen.is_reset) << size << ' ' << seen.text;
            EXPECT_FALSE(is_complete(seen.text)) << size << ' ' << seen.text;
        }
        EXPECT_TRUE(outcome_of(get_root, answer).text.ends_with("hello"));
    }
}

TEST_P(bad_answer_test, an_answer_that_turns_bad_is_cut) {
    serve_proxy();
    raw_peer client = connect();
    client.send(get_root);
    std::string head;
    raw_peer at = take_request(head);
    at.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
    EXPECT_TRUE(receive_until(client, "1\r\na\r\n").ends_with("1\r\na\r\n"));
    at.send("nonsense\r\n");
    EXPECT_EQ(client.receive_to_the_end(), std::errc::connection_reset);
}

TEST_P(bad_answer_test, bytes_behind_an_answer_are_never_an_answer) {
    serve_proxy();
    raw_peer client = connect();
    client.send(get_root);
    std::string head;
    raw_peer at = take_request(head);
    at.send(answer_of("one") + answer_of("smuggled"));
    EXPECT_TRUE(receive_until(client, "one").ends_with("one"));
    client.send(get_root);
    raw_peer second = take_request(head); // the first connection is not used again
    second.send(answer_of("two"));
    EXPECT_TRUE(receive_until(client, "two").ends_with("\r\n\r\ntwo"));
}

TEST_P(bad_answer_test, bytes_on_an_unused_connection_are_never_an_answer) {
    serve_proxy();
    raw_peer client = connect();
    client.send(get_root);
    std::string head;
    raw_peer at = take_request(head);
    at.send(answer_of("one"));
    EXPECT_TRUE(receive_until(client, "one").ends_with("one"));
    at.send(answer_of("smuggled"));
    client.send(get_root);
    raw_peer second = take_request(head);
    second.send(answer_of("two"));
    EXPECT_TRUE(receive_until(client, "two").ends_with("\r\n\r\ntwo"));
}

TEST_P(bad_answer_test, people_are_told) {
    std::atomic<int> bad = 0;
    http::proxy_options options;
    options.report = [](const http::gateway_report& report, void* context) {
        if (report.kind == http::gateway_event::bad_answer)
            ++*static_cast<std::atomic<int>*>(context);
    };
    options.context = &bad;
    serve_proxy(options);
    static_cast<void>(outcome_of(get_root, "nonsense\r\n\r\n"));
    EXPECT_EQ(bad, 1);
    end_loops();
}

INSTANTIATE_TEST_SUITE_P(backends, bad_answer_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
