// Backends that take their time.

#include "proxy_test.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

class proxy_time_limit_test : public proxy_test {};

constexpr auto soon = 50ms;

TEST_P(proxy_time_limit_test, a_backend_that_does_not_answer_is_504) {
    serve_proxy({.head = soon});
    raw_peer client = connect();
    client.send(get_root);
    std::string head;
    raw_peer at = take_request(head);
    EXPECT_TRUE(receive_head(client).starts_with("HTTP/1.1 504 Gateway Timeout\r\n"));
    EXPECT_EQ(at.receive_to_the_end(), errc::end_of_stream); // its connection is closed
    EXPECT_FALSE(backend().has_caller());
}

TEST_P(proxy_time_limit_test, a_backend_that_stops_in_its_head_is_504) {
    serve_proxy({.head = soon});
    raw_peer client = connect();
    client.send(get_root);
    std::string head;
    raw_peer at = take_request(head);
    at.send("HTTP/1.1 200 O");
    EXPECT_TRUE(receive_head(client).starts_with("HTTP/1.1 504 "));
}

TEST_P(proxy_time_limit_test, a_backend_that_stops_in_its_body_aborts_the_answer) {
    serve_proxy({.body_idle = soon});
    for (const std::string_view answer :
         {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "HTTP/1.1 200 OK\r\n\r\nhel",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n"}) {
        raw_peer client = connect();
        client.send(get_root);
        std::string head;
        raw_peer at = take_request(head);
        at.send(answer);
        EXPECT_EQ(client.receive_to_the_end(), std::errc::connection_reset) << answer;
    }
}

TEST_P(proxy_time_limit_test, a_backend_that_reads_nothing_is_504) {
    serve_proxy({.send_idle = soon}, {.limits = {.body = 0}});
    raw_peer client = connect();
    const std::string body(12'000'000, 'b');
    client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 12000000\r\n\r\n" + body);
    std::string head;
    raw_peer at = take_request(head);
    EXPECT_TRUE(receive_head(client).starts_with("HTTP/1.1 504 "));
}

TEST_P(proxy_time_limit_test, an_answer_goes_on_although_its_request_is_not_taken) {
    constexpr auto moment = 1s * patience; // in which the answer has to begin
    serve_proxy({.send_idle = moment}, {.limits = {.body = 0}});
    raw_peer client = connect();
    const std::string body(12'000'000, 'b');
    client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 12000000\r\n\r\n" + body);
    std::string head;
    raw_peer at = take_request(head);
    at.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na");
    EXPECT_TRUE(receive_until(client, "\r\n\r\na").starts_with("HTTP/1.1 200 "));
    pollfd ended{.fd = client.fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&ended, 1, 3 * moment / 1ms), 0); // the limit, and a second until it counts
    at.send("bc");
    EXPECT_EQ(client.receive(2), "bc");
}

TEST_P(proxy_time_limit_test, a_slow_upload_is_no_fault_of_the_backend) {
    serve_proxy({.streamed = true, .send_idle = soon, .head = soon});
    raw_peer client = connect();
    client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nab");
    std::string head;
    raw_peer at = take_request(head);
    EXPECT_EQ(at.receive(2), "ab");
    pollfd ended{.fd = at.fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&ended, 1, 200), 0); // several times the limits
    client.send("cd");
    EXPECT_EQ(at.receive(2), "cd");
    at.send(answer_of("ok"));
    EXPECT_TRUE(receive_until(client, "ok").ends_with("ok"));
}

TEST_P(proxy_time_limit_test, without_a_free_connection_the_answer_is_503) {
    serve_proxy({.connections = 1, .wait = soon});
    raw_peer first = connect();
    first.send(get_root);
    std::string head;
    raw_peer at = take_request(head);
    raw_peer second = connect();
    second.send(get_root);
    EXPECT_TRUE(receive_head(second).starts_with("HTTP/1.1 503 "));
    at.send(answer_of("ok"));
    EXPECT_TRUE(receive_until(first, "ok").ends_with("ok"));
}

TEST_P(proxy_time_limit_test, whoever_waits_for_a_connection_gets_it) {
    serve_proxy({.connections = 1});
    raw_peer first = connect();
    first.send(get_root);
    std::string head;
    raw_peer at = take_request(head);
    raw_peer second = connect();
    second.send("GET /second HTTP/1.1\r\nHost: h\r\n\r\n");
    at.send(answer_of("one"));
    EXPECT_TRUE(receive_request(at).starts_with("GET /second "));
    at.send(answer_of("two"));
    EXPECT_TRUE(receive_until(second, "two").ends_with("two"));
}

// Slow answers for one client kept everybody else out.
TEST_P(proxy_time_limit_test, one_address_does_not_get_all_connections) {
    serve_proxy({.connections = 10, .wait = std::chrono::minutes{1}});
    std::vector<raw_peer> greedy;
    std::vector<raw_peer> silent;
    std::string head;
    for (int each = 0; each < 12; ++each) {
        greedy.push_back(connect_from("127.0.0.2"));
        greedy.back().send(get_root);
        if (each < 5) silent.push_back(take_request(head));
    }
    raw_peer other = connect();
    other.send("GET /other HTTP/1.1\r\nHost: h\r\n\r\n");

    raw_peer at = take_request(head);

    EXPECT_TRUE(head.starts_with("GET /other ")) << head;
    at.send(answer_of("ok"));
    EXPECT_TRUE(receive_until(other, "ok").ends_with("ok"));
}

// A client that did not read kept the place of a connection that had ended.
TEST_P(proxy_time_limit_test, a_connection_that_broke_off_is_no_place) {
    serve_proxy({.connections = 1, .wait = std::chrono::minutes{1}});
    raw_peer slow = connect();
    slow.send(get_root);
    std::string head;
    std::optional<raw_peer> at{take_request(head)};
    at->send("HTTP/1.1 200 OK\r\nContent-Length: 90000000\r\n\r\n");
    const std::string part(65'536, 'x');
    for (int each = 0; each < 200; ++each) // more than the kernel holds
        at->send(part);
    at.reset();

    raw_peer other = connect();
    other.send(get_root);
    raw_peer next = take_request(head);
    next.send(answer_of("ok"));
    EXPECT_TRUE(receive_until(other, "ok").ends_with("ok"));
}

// It is cut off only if that helps those who wait.
TEST_P(proxy_time_limit_test, a_client_that_waits_for_its_share_ends_no_other) {
    serve_proxy({.connections = 4, .wait = std::chrono::minutes{1}});
    std::vector<raw_peer> greedy;
    std::vector<raw_peer> silent;
    std::string head;
    for (int each = 0; each < 3; ++each) {
        greedy.push_back(connect_from("127.0.0.2"));
        greedy.back().send(get_root);
        if (each < 2) silent.push_back(take_request(head));
    }
    raw_peer other = connect();
    other.send(get_root);
    other.shutdown_write();
    raw_peer at = take_request(head);
    pollfd answered{.fd = other.fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&answered, 1, 400), 0); // several looks at those who have left
    at.send(answer_of("ok"));
    EXPECT_TRUE(receive_until(other, "ok").ends_with("ok"));
}

TEST_P(proxy_time_limit_test, no_backend_works_for_a_client_that_left_while_it_waited) {
    serve_proxy({.connections = 1});
    raw_peer first = connect();
    first.send(get_root);
    std::string head;
    raw_peer at = take_request(head);
    for (const bool politely : {true, false}) {
        raw_peer left = connect();
        left.send("GET /left HTTP/1.1\r\nHost: h\r\n\r\n");
        politely ? left.close() : left.reset();
    }
    raw_peer stays = connect();
    stays.send("GET /stays HTTP/1.1\r\nHost: h\r\n\r\n");
    raw_peer last = connect();
    last.send("GET / HTTP/1.1\r\n\r\n"); // the loop has seen all before it
    EXPECT_TRUE(receive_head(last).starts_with("HTTP/1.1 400 "));

    at.send(answer_of("one"));
    EXPECT_TRUE(receive_request(at).starts_with("GET /stays "));
    at.send(answer_of("two"));
    EXPECT_TRUE(receive_until(stays, "two").ends_with("two"));
}

// Others got 503 for as long as the backend was silent.
TEST_P(proxy_time_limit_test, a_client_that_left_holds_no_place_that_others_wait_for) {
    serve_proxy({.keep_connections = 0, .connections = 1, .wait = std::chrono::minutes{1}});
    for (const bool politely : {true, false}) {
        raw_peer left = connect();
        left.send("GET /left HTTP/1.1\r\nHost: h\r\n\r\n");
        std::string head;
        raw_peer silent = take_request(head);
        politely ? left.close() : left.reset();

        raw_peer stays = connect();
        stays.send("GET /stays HTTP/1.1\r\nHost: h\r\n\r\n");

        EXPECT_EQ(silent.receive_to_the_end(), errc::end_of_stream);
        raw_peer at = take_request(head);
        EXPECT_TRUE(head.starts_with("GET /stays "));
        at.send(answer_of("ok"));
        EXPECT_TRUE(receive_until(stays, "ok").ends_with("ok"));
    }
}

// Places were left, but not for them: many clients may share an address.
TEST_P(proxy_time_limit_test, whoever_left_holds_no_place_that_the_same_address_waits_for) {
    serve_proxy({.keep_connections = 0, .connections = 4, .wait = std::chrono::minutes{1}});
    std::vector<raw_peer> left;
    std::vector<raw_peer> silent;
    std::string head;
    for (int each = 0; each < 2; ++each) {
        left.push_back(connect());
        left.back().send("GET /left HTTP/1.1\r\nHost: h\r\n\r\n");
        silent.push_back(take_request(head));
    }
    left.clear();

    raw_peer stays = connect();
    stays.send("GET /stays HTTP/1.1\r\nHost: h\r\n\r\n");

    raw_peer at = take_request(head);
    EXPECT_TRUE(head.starts_with("GET /stays "));
    at.send(answer_of("ok"));
    EXPECT_TRUE(receive_until(stays, "ok").ends_with("ok"));
}

INSTANTIATE_TEST_SUITE_P(backends, proxy_time_limit_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
