// What becomes of the answers of FastCGI applications, good ones and bad ones.

#include "responder.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sys/socket.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

class answer_test : public responder_test {};

TEST_P(answer_test, an_answer_in_any_records_is_passed_on) {
    serve_scripts({.keep_connections = 0});
    const std::string whole = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                              "Content-Length: 5\r\nConnection: close\r\n\r\nhello";
    std::string in_bytes;
    for (const char each : hello)
        in_bytes += out({&each, 1}, 1) + err("x");

    EXPECT_EQ(answer_to(out(hello) + end()), whole);
    EXPECT_EQ(answer_to(out(hello, 255) + out("", 255) + end(0, 0, 255)), whole);
    EXPECT_EQ(answer_to(in_bytes + end()), whole);
}

TEST_P(answer_test, pieces_of_any_size_make_one_answer) {
    serve_scripts({.keep_connections = 0});
    const std::string bytes = answer_of(hello);
    for (std::size_t piece = 1; piece < bytes.size(); ++piece) {
        raw_peer client = request();
        raw_peer backend = responder_.accept();
        static_cast<void>(take_request(backend));

        for (std::size_t at = 0; at < bytes.size(); at += piece)
            backend.send(std::string_view{bytes}.substr(at, piece));

        const std::string answer = everything(client);
        EXPECT_TRUE(has_status(answer, 200)) << answer;
        EXPECT_TRUE(looks_complete(answer)) << answer;
    }
}

TEST_P(answer_test, a_backend_that_dies_at_any_byte_leaves_no_answer_that_looks_complete) {
    serve_scripts({.keep_connections = 0});
    const std::string bytes = answer_of("Content-Type: text/plain\n\nhello");
    // Without the padding of the end the connection cannot be used again, so it is awaited too.
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        const std::string answer = answer_to(std::string_view{bytes}.substr(0, size));

        EXPECT_TRUE(has_status(answer, 502) || !looks_complete(answer)) << size << answer;
    }
    EXPECT_TRUE(has_status(answer_to(bytes), 200));
}

TEST_P(answer_test, a_length_is_kept_and_makes_a_cut_answer_incomplete) {
    serve_scripts({.keep_connections = 0});
    const std::string head = "Content-Type: text/plain\r\nContent-Length: 10\r\n\r\n";

    EXPECT_TRUE(answer_to(answer_of(head + "0123456789")).ends_with("\r\n\r\n0123456789"));
    // All of it at hand, and not what was promised.
    EXPECT_TRUE(has_status(answer_to(answer_of(head + "short")), 502));
    EXPECT_TRUE(has_status(answer_to(answer_of(head + "longer than that")), 502));
    // A part has left before that is known.
    raw_peer client = request();
    raw_peer backend = responder_.accept();
    static_cast<void>(take_request(backend));
    backend.send(out(head + "01234"));
    EXPECT_TRUE(receive_until(client, "01234").ends_with("01234"));
    backend.send(end());
    EXPECT_EQ(client.receive_to_the_end(), std::errc::connection_reset);
}

TEST_P(answer_test, what_is_no_answer_is_502) {
    serve_scripts({.keep_connections = 0});
    std::string other_version = answer_of(hello);
    other_version[0] = 2;
    std::string other_request = answer_of(hello);
    other_request[3] = 2;
    const std::vector<std::string> bad{
        other_version,
        other_request,
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        record(10, "values") + answer_of(hello),
        out("") + out(hello) + end(),
        end(),
        out("") + end(),
        end(3),
        end(9),
        out(hello) + record(3, "short"),
        out(hello) + end(1),
        answer_of("hello"),
        answer_of("\r\nhello"),
        answer_of("no colon\r\n\r\n"),
        answer_of("Bad Name: x\r\n\r\n"),
        answer_of("X: a\rb\r\n\r\n"),
        answer_of("X: a\0b\r\n\r\n"s),
        answer_of("X: a\r\n b\r\n\r\n"),
        answer_of("Status: 100\r\n\r\n"),
        answer_of("Status: 600\r\n\r\n"),
        answer_of("Status: 20\r\n\r\n"),
        answer_of("Status: okay\r\n\r\n"),
        answer_of("Status: 200\r\nStatus: 200\r\n\r\n"),
        answer_of("Content-Length: -1\r\n\r\n"),
        answer_of("Content-Length: 1, 1\r\n\r\n"),
        answer_of("Content-Length: 1\r\nContent-Length: 1\r\n\r\nx"),
        answer_of("Location:\r\n\r\n"),
    };
    for (const std::string& each : bad)
        EXPECT_TRUE(has_status(answer_to(each), 502)) << ::testing::PrintToString(each);
}

TEST_P(answer_test, a_head_without_end_is_502) {
    serve_scripts({.keep_connections = 0});
    raw_peer client = request();
    raw_peer backend = responder_.accept();
    static_cast<void>(take_request(backend));

    for (int each = 0; each < 70; ++each)
        send_in_vain(backend, out("X: " + std::string(1021, 'x')));

    EXPECT_TRUE(has_status(everything(client), 502));
}

TEST_P(answer_test, fields_of_the_connection_and_of_other_servers_are_dropped) {
    serve_scripts({.keep_connections = 0});

    const std::string answer = answer_to(answer_of(
        "Status: 201 Made\nConnection: keep-alive\nTransfer-Encoding: chunked\nKeep-Alive: 5\n"
        "X-Sendfile: /etc/passwd\nX-Accel-Redirect: /x\nUpgrade: h2c\nX-Kept: 1\nX-Kept: 2\n\nx"));

    EXPECT_EQ(answer, "HTTP/1.1 201 Created\r\nX-Kept: 1\r\nX-Kept: 2\r\nContent-Length: 1\r\n"
                      "Connection: close\r\n\r\nx");
    EXPECT_TRUE(reports_.has("X-Sendfile are not supported"));
}

TEST_P(answer_test, a_location_redirects_the_client) {
    serve_scripts({.keep_connections = 0});

    EXPECT_TRUE(has_status(answer_to(answer_of("Location: http://h/b\n\n")), 302));
    EXPECT_TRUE(has_status(answer_to(answer_of("Location: /b\n\n")), 302));
    EXPECT_TRUE(has_status(answer_to(answer_of("Status: 201\nLocation: /b\n\n")), 201));
}

TEST_P(answer_test, the_status_of_the_application_says_nothing) {
    serve_scripts({.keep_connections = 0});

    EXPECT_TRUE(has_status(answer_to(out(hello) + end(0, 255)), 200));
}

TEST_P(answer_test, some_answers_have_no_body) {
    serve_scripts({.keep_connections = 0});
    for (const std::string_view status : {"204", "304"}) {
        const std::string answer =
            answer_to(answer_of("Status: " + std::string{status} + "\nContent-Length: 5\n\nhello"));
        EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
        EXPECT_EQ(answer.find("Content-Length"), std::string::npos) << answer;
    }
    const std::string with_length =
        answer_to(answer_of("Content-Type: x/y\nContent-Length: 5\n\nhello"), "HEAD");
    EXPECT_TRUE(with_length.ends_with("\r\n\r\n")) << with_length;
    EXPECT_NE(with_length.find("Content-Length: 5\r\n"), std::string::npos) << with_length;
    const std::string without = answer_to(answer_of("Content-Type: x/y\n\n"), "HEAD");
    EXPECT_EQ(without.find("Content-Length"), std::string::npos) << without;
}

TEST_P(answer_test, a_script_that_goes_on_behind_an_answer_without_a_body_holds_nobody_up) {
    serve_scripts();
    for (const std::string_view method : {"GET", "HEAD"}) {
        raw_peer client = connect();
        client.send(std::string{method} + " /a.php HTTP/1.1\r\nHost: h\r\n\r\n");
        raw_peer backend = responder_.accept();
        static_cast<void>(take_request(backend));

        backend.send(out(method == "GET" ? "Status: 204\r\n\r\n" : "Content-Type: x/y\r\n\r\n"));

        EXPECT_TRUE(has_status(receive_head(client), method == "GET" ? 204 : 200));
        // It gets a second, and then its connection is closed.
        ASSERT_EQ(backend.receive_to_the_end(), errc::end_of_stream);
        client.send("GET /a.php HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        raw_peer next = responder_.accept();
        EXPECT_TRUE(take_request(next).is_complete);
        next.send(answer_of(hello));
        EXPECT_TRUE(everything(client).ends_with("hello"));
    }
}

TEST_P(answer_test, a_head_leaves_before_the_body_and_each_piece_at_once) {
    serve_scripts();
    raw_peer client = request();
    raw_peer backend = responder_.accept();
    static_cast<void>(take_request(backend));

    backend.send(out("Content-Type: text/event-stream\r\n\r\n"));
    EXPECT_TRUE(has_status(receive_head(client), 200));
    for (const std::string_view each : {"one", "two"}) {
        backend.send(out(each));
        EXPECT_EQ(receive_until(client, std::string{each} + "\r\n"),
                  "3\r\n" + std::string{each} + "\r\n");
    }
    backend.send(end());

    EXPECT_EQ(rest_of(client), "0\r\n\r\n");
}

TEST_P(answer_test, messages_are_reported_line_by_line_and_a_flood_is_cut) {
    serve_scripts({.keep_connections = 0});
    std::string flood;
    for (int each = 0; each < 100; ++each)
        flood += err(std::string(60000, 'x'));

    EXPECT_TRUE(has_status(
        answer_to(err("one\ntw") + err("o\r\n\nthr") + err("ee") + out(hello) + end()), 200));
    EXPECT_EQ(reports_.count(http::gateway_event::message), 3U);
    EXPECT_TRUE(reports_.has("two"));
    EXPECT_TRUE(has_status(answer_to(flood + out(hello) + end()), 200));
    EXPECT_EQ(reports_.count(http::gateway_event::message), 4U);
    std::string lines;
    for (int each = 0; each < 5000; ++each)
        lines += "0123456789012345678901234567890123456789\n";
    EXPECT_TRUE(has_status(answer_to(err(lines.substr(0, 65535)) + err(lines.substr(65535, 65535)) +
                                     out(hello) + end()),
                           200));
    EXPECT_LT(reports_.count(http::gateway_event::message), 2000U);
    EXPECT_TRUE(reports_.has("left out"));
}

TEST_P(answer_test, a_slow_client_costs_the_backend_no_time) {
    serve_scripts({.answer_ahead = std::size_t{32} << 20U, .connections = 1});
    raw_peer client = request();
    raw_peer backend = responder_.accept();
    static_cast<void>(take_request(backend));
    backend.send(out("Content-Type: text/plain\r\n\r\n"));
    const std::string piece(60000, 'x');

    for (int each = 0; each < 200; ++each)
        backend.send(out(piece)); // blocks, unless it is read
    backend.send(end());
    raw_peer other = request(); // on the connection that is free again
    EXPECT_TRUE(take_request(backend).is_complete);
    backend.send(answer_of(hello));

    EXPECT_TRUE(everything(other).ends_with("hello"));
    EXPECT_TRUE(looks_complete(everything(client)));
}

/// A script that answers with `pieces` of 60 kB, as fast as it can.
class fast_script {
public:
    fast_script(raw_peer& backend, int pieces)
        : thread_{[&backend, pieces, this] {
            std::string bytes = out("Content-Type: text/plain\r\n\r\n");
            for (int each = 0; each < pieces; ++each)
                bytes += out(std::string(60000, 'x'));
            bytes += end();
            while (sent_ < bytes.size()) {
                const ssize_t count =
                    ::send(backend.fd(), bytes.data() + sent_,
                           std::min<std::size_t>(bytes.size() - sent_, 65536), MSG_NOSIGNAL);
                if (count <= 0) break;
                sent_ += static_cast<std::size_t>(count);
            }
        }} {}
    /// Until nobody takes more of it.
    void wait_until_stuck() const {
        std::size_t before = 0;
        while (sent_ == 0 || std::exchange(before, sent_) != sent_)
            std::this_thread::sleep_for(50ms); // no event tells
    }

private:
    std::atomic<std::size_t> sent_ = 0;
    std::jthread thread_;
};

TEST_P(answer_test, a_disk_that_stores_nothing_is_told_once_and_costs_no_answer) {
    serve_scripts({.answer_ahead = 1, .temporary_directory = "/nowhere"});
    for (int round = 0; round < 2; ++round) {
        raw_peer client = request();
        raw_peer backend = responder_.accept();
        static_cast<void>(take_request(backend));
        const fast_script script{backend, 400};
        script.wait_until_stuck();

        EXPECT_TRUE(looks_complete(everything(client)));
    }

    EXPECT_EQ(reports_.count(http::gateway_event::not_stored), 1U);
    EXPECT_TRUE(reports_.has("/nowhere"));
}

TEST_P(answer_test, a_client_that_holds_a_backend_is_cut_off_and_told) {
    serve_scripts({.answer_ahead = 1, .answer_spool = 0, .answer_hold = 50ms});
    raw_peer client = request();
    raw_peer backend = responder_.accept();
    static_cast<void>(take_request(backend));
    const fast_script script{backend, 1000};
    while (reports_.count(http::gateway_event::slow_client) == 0)
        std::this_thread::sleep_for(1ms);

    EXPECT_FALSE(looks_complete(everything(client)));
    EXPECT_EQ(reports_.count(http::gateway_event::bad_answer), 0U);
}

INSTANTIATE_TEST_SUITE_P(backends, answer_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
