// FastCGI backends that fail, are busy, or take too long; and the ends of servers meanwhile.

#include "responder.hpp"

#include "support/full_listener.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

class failure_test : public responder_test {
protected:
    /// Sends messages for people until `client` has an answer.
    static void talk_until_answered(raw_peer& backend, raw_peer& client) {
        const auto begin = std::chrono::steady_clock::now();
        while (client.peek() == -EAGAIN && std::chrono::steady_clock::now() < begin + 8s)
            send_in_vain(backend, err("still here\n"));
        EXPECT_NE(client.peek(), -EAGAIN);
    }
    /// Answers a request on a connection that is kept.
    raw_peer used_connection() {
        raw_peer client = request();
        raw_peer backend = responder_.accept();
        EXPECT_TRUE(take_request(backend).keeps);
        backend.send(answer_of(hello));
        EXPECT_TRUE(has_status(everything(client), 200));
        return backend;
    }
};

TEST_P(failure_test, a_connection_is_used_again) {
    serve_scripts();
    raw_peer backend = used_connection();

    raw_peer client = request();
    EXPECT_TRUE(take_request(backend).is_complete);
    backend.send(answer_of(hello));

    EXPECT_TRUE(has_status(everything(client), 200));
}

// With as many kept connections as it has processes, PHP-FPM took no other for as long as they were
// used.
TEST_P(failure_test, no_connection_is_kept_when_others_have_waited_for_a_process) {
    const std::string address = address_of(responder_);
    const std::array backends{http::backend{address}};
    const std::string root = root_path();
    const http::fastcgi_handler php{
        {.backends = backends, .root = root, .idle = std::chrono::hours{1}}};
    http::router routes;
    routes.fallback(php);
    serve(std::move(routes));
    raw_peer client = request();
    raw_peer busy = responder_.accept(); // by the only process
    static_cast<void>(take_request(busy));
    std::vector<raw_peer> waiting;
    for (int each = 0; each < 2; ++each)
        waiting.push_back(request());
    ASSERT_TRUE(eventually([&] { return php.backends().front().active == 3; }));

    // For as long as its connection is kept, the next request gets it, and the others wait.
    bool is_kept = true;
    EXPECT_TRUE(eventually([&] {
        busy.send(answer_of(hello));
        EXPECT_TRUE(has_status(everything(client), 200));
        client = request();
        is_kept = take_request(busy).is_complete;
        return !is_kept;
    }));
    if (is_kept) return;

    waiting.push_back(std::move(client));
    for (raw_peer& each : waiting) {
        raw_peer next = responder_.accept();
        static_cast<void>(take_request(next));
        next.send(answer_of(hello));
        EXPECT_TRUE(has_status(everything(each), 200));
    }
}

// One that had its share of the connections got each that was kept, and with it the only process.
TEST_P(failure_test, a_client_that_waits_for_its_share_does_not_keep_the_processes) {
    const std::string address = address_of(responder_);
    const std::array backends{http::backend{address}};
    const std::string root = root_path();
    const http::fastcgi_handler php{
        {.backends = backends, .root = root, .connections = 4, .idle = std::chrono::hours{1}}};
    http::router routes;
    routes.fallback(php);
    serve(std::move(routes));
    std::uint64_t asked = 0;
    const auto ask = [&](raw_peer client) {
        raw_peer sent = request_by(std::move(client));
        ++asked;
        EXPECT_TRUE(eventually([&] { return php.backends().front().active == asked; }));
        return sent;
    };
    raw_peer served = ask(connect_from("127.0.0.2"));
    raw_peer busy = responder_.accept(); // by the only process
    static_cast<void>(take_request(busy));
    const raw_peer second = ask(connect_from("127.0.0.2")); // waits for the process
    raw_peer other = ask(connect());                        // likewise
    raw_peer waiting = ask(connect_from("127.0.0.2"));      // waits for a place

    bool is_kept = true;
    EXPECT_TRUE(eventually([&] {
        busy.send(answer_of(hello));
        EXPECT_TRUE(has_status(everything(served), 200));
        served = std::move(waiting);
        --asked;
        waiting = ask(connect_from("127.0.0.2"));
        is_kept = take_request(busy).is_complete;
        return !is_kept;
    }));
    if (is_kept) return;

    for (bool is_answered = false; !is_answered;) {
        raw_peer next = responder_.accept();
        static_cast<void>(take_request(next));
        next.send(answer_of(hello));
        next.shutdown_write();
        pollfd answered{.fd = other.fd(), .events = POLLIN, .revents = 0};
        is_answered = ::poll(&answered, 1, 100) == 1;
    }
    EXPECT_TRUE(has_status(everything(other), 200));
}

// An answer that was cut off is stored for a client that does not read.
TEST_P(failure_test, a_connection_that_broke_off_is_no_place) {
    serve_scripts({.connections = 1, .wait = 1min});
    raw_peer slow = request();
    std::optional<raw_peer> backend{responder_.accept()};
    static_cast<void>(take_request(*backend));
    backend->send(out("Content-Type: text/plain\r\n\r\n"));
    const std::string part(65'000, 'x');
    for (int each = 0; each < 200; ++each) // more than the kernel holds
        backend->send(out(part));
    backend.reset();

    raw_peer other = request();
    raw_peer next = responder_.accept();
    static_cast<void>(take_request(next));
    next.send(answer_of(hello));
    EXPECT_TRUE(has_status(everything(other), 200));
}

// A backend whose clients are slow looked busy, and got fewer requests.
TEST_P(failure_test, a_backend_that_has_ended_its_answer_is_not_active) {
    const std::string address = address_of(responder_);
    const std::array backends{http::backend{address}};
    const std::string root = root_path();
    const http::fastcgi_handler php{{.backends = backends, .root = root}};
    http::router routes;
    routes.fallback(php);
    serve(std::move(routes));
    raw_peer client = request(); // reads nothing yet
    raw_peer backend = responder_.accept();
    static_cast<void>(take_request(backend));
    const std::string part(65'000, 'x');
    backend.send(out("Content-Type: text/plain\r\n\r\n"));
    for (int each = 0; each < 200; ++each) // more than the kernel holds
        backend.send(out(part));
    EXPECT_EQ(php.backends().front().active, 1U);

    backend.send(end());

    EXPECT_TRUE(eventually([&] { return php.backends().front().active == 0; }));
    EXPECT_TRUE(looks_complete(everything(client)));
}

// Four clients of four processes found each other waiting at every moment.
TEST_P(failure_test, a_connection_is_kept_when_others_have_just_begun_to_wait) {
    serve_scripts();
    raw_peer first = request();
    raw_peer backend = responder_.accept();
    static_cast<void>(take_request(backend));
    raw_peer second = request();
    raw_peer other = responder_.accept();
    static_cast<void>(take_request(other));

    backend.send(answer_of(hello));
    EXPECT_TRUE(has_status(everything(first), 200));

    raw_peer third = request();
    EXPECT_TRUE(take_request(backend).is_complete);
}

// It used to look complete if the refusal came by itself.
TEST_P(failure_test, an_answer_that_is_refused_in_the_end_never_looks_complete) {
    serve_scripts({.keep_connections = 0});
    raw_peer client = request();
    raw_peer backend = responder_.accept();
    static_cast<void>(take_request(backend));
    backend.send(out("Content-Type: text/plain\r\n\r\nabc"));
    EXPECT_TRUE(receive_until(client, "abc").ends_with("abc"));

    backend.send(end(2));

    EXPECT_FALSE(everything(client).ends_with("0\r\n\r\n"));
}

TEST_P(failure_test, a_connection_with_bytes_behind_its_answer_is_not_used_again) {
    serve_scripts();
    raw_peer client = request();
    raw_peer first = responder_.accept();
    static_cast<void>(take_request(first));
    first.send(answer_of(hello) + err("more"));
    EXPECT_TRUE(has_status(everything(client), 200));

    raw_peer other = request();
    raw_peer second = responder_.accept();
    EXPECT_TRUE(take_request(second).is_complete);
    second.send(answer_of(hello));
    EXPECT_TRUE(has_status(everything(other), 200));
}

TEST_P(failure_test, a_kept_connection_that_ends_is_replaced_for_idempotent_requests) {
    serve_scripts();
    {
        raw_peer backend = used_connection();
        raw_peer client = request("PUT", {}, "body");
        EXPECT_EQ(take_request(backend).body, "body");
        backend.close();
        raw_peer other = responder_.accept();
        EXPECT_EQ(take_request(other).body, "body");
        other.send(answer_of(hello));
        EXPECT_TRUE(has_status(everything(client), 200));
        other.close();
    }
    raw_peer backend = used_connection();
    raw_peer client = request("POST", {}, "body");
    EXPECT_EQ(take_request(backend).body, "body");
    backend.close();
    EXPECT_TRUE(has_status(everything(client), 502));
}

TEST_P(failure_test, a_request_is_not_repeated_once_something_has_come) {
    serve_scripts();
    raw_peer backend = used_connection();
    raw_peer client = request();
    static_cast<void>(take_request(backend));

    backend.send(err("a"));
    ::shutdown(backend.fd(), SHUT_WR);

    EXPECT_TRUE(has_status(everything(client), 502));
}

TEST_P(failure_test, another_backend_is_asked_if_one_cannot_be_reached) {
    const closed_port closed;
    const std::string none = address_of(closed);
    const std::string good = address_of(responder_);
    const std::array backends{http::backend{none}, http::backend{good}};
    serve_scripts({.backends = backends, .keep_connections = 0});

    for (int each = 0; each < 3; ++each)
        EXPECT_TRUE(has_status(answer_to(answer_of(hello), "POST"), 200));

    EXPECT_EQ(reports_.count(http::gateway_event::failed), 1U);
}

TEST_P(failure_test, backends_that_cannot_be_reached_are_502_and_return) {
    closed_port closed;
    const std::string address = address_of(closed);
    const std::array backends{http::backend{address}};
    serve_scripts({.backends = backends, .keep_connections = 0});
    raw_peer refused = request();
    EXPECT_TRUE(has_status(everything(refused), 502));

    closed.open();
    raw_peer client = request();
    raw_peer backend = closed.accept();
    static_cast<void>(take_request(backend));
    backend.send(answer_of(hello));

    EXPECT_TRUE(has_status(everything(client), 200));
    EXPECT_EQ(reports_.count(http::gateway_event::recovered), 1U);
}

TEST_P(failure_test, an_overloaded_backend_is_503_or_another_one_is_asked) {
    serve_scripts({.keep_connections = 0});
    EXPECT_TRUE(has_status(answer_to(end(2)), 503));
    EXPECT_TRUE(has_status(answer_to(end(1)), 503));
    end_loops();
    closed_port second;
    second.open();
    const std::string one = address_of(responder_);
    const std::string two = address_of(second);
    const std::array backends{http::backend{one}, http::backend{two}};
    serve_scripts({.backends = backends, .keep_connections = 0});

    raw_peer client = request("POST", {}, "body");
    raw_peer busy = responder_.accept();
    static_cast<void>(take_request(busy));
    busy.send(end(2));
    raw_peer other = second.accept();
    EXPECT_EQ(take_request(other).body, "body");
    other.send(answer_of(hello));

    EXPECT_TRUE(has_status(everything(client), 200));
}

TEST_P(failure_test, every_stage_has_a_time_limit) {
    {
        const full_listener full;
        const std::string address = "127.0.0.1:" + std::to_string(full.at().port());
        const std::array backends{http::backend{address}};
        serve_scripts({.backends = backends, .connect = 20ms});
        raw_peer client = request();
        EXPECT_TRUE(has_status(everything(client), 504));
        end_loops();
    }
    serve_scripts({.keep_connections = 0, .send_idle = 20ms});
    raw_peer upload = request("POST", {}, std::string(20'000'000, 'x'));
    raw_peer reads_nothing = responder_.accept();
    EXPECT_TRUE(has_status(everything(upload), 504));
    end_loops();
    serve_scripts({.keep_connections = 0, .head_within = 20ms});
    raw_peer client = request();
    raw_peer says_nothing = responder_.accept();
    EXPECT_TRUE(has_status(everything(client), 504));
    end_loops();
    serve_scripts({.keep_connections = 0, .body_idle = 20ms});
    raw_peer other = request();
    raw_peer stalls = responder_.accept();
    static_cast<void>(take_request(stalls));
    stalls.send(out(hello));
    EXPECT_FALSE(looks_complete(everything(other)));
}

TEST_P(failure_test, messages_for_people_do_not_extend_the_time) {
    serve_scripts({.keep_connections = 0, .head_within = 100ms});
    raw_peer client = request();
    raw_peer backend = responder_.accept();

    talk_until_answered(backend, client);

    EXPECT_TRUE(has_status(everything(client), 504));
}

TEST_P(failure_test, a_backend_that_talks_and_reads_nothing_is_late_too) {
    serve_scripts({.keep_connections = 0, .send_idle = 100ms});
    raw_peer client = request("POST", {}, std::string(20'000'000, 'x'));
    raw_peer backend = responder_.accept();

    talk_until_answered(backend, client);

    EXPECT_TRUE(has_status(everything(client), 504));
}

TEST_P(failure_test, an_answer_goes_on_although_its_request_is_not_taken) {
    constexpr auto moment = 1s * patience; // in which the answer has to begin
    serve_scripts({.keep_connections = 0, .send_idle = moment});
    raw_peer client = request("POST", {}, std::string(20'000'000, 'x'));
    raw_peer backend = responder_.accept();
    backend.send(out("Content-Type: text/plain\r\n\r\na"));
    EXPECT_TRUE(receive_until(client, "\r\na\r\n").starts_with("HTTP/1.1 200 "));

    ::pollfd ended{.fd = client.fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&ended, 1, 3 * moment / 1ms), 0); // the limit, and a second until it counts
    backend.send(out("bc") + end());

    const std::string rest = everything(client);
    EXPECT_TRUE(looks_complete(rest)) << rest;
}

TEST_P(failure_test, a_place_is_waited_for_only_so_long) {
    serve_scripts({.connections = 1, .wait = 20ms});
    raw_peer first = request();
    raw_peer backend = responder_.accept();
    static_cast<void>(take_request(backend));

    raw_peer second = request();
    EXPECT_TRUE(has_status(everything(second), 503));

    backend.send(answer_of(hello));
    EXPECT_TRUE(has_status(everything(first), 200));
}

TEST_P(failure_test, no_backend_works_for_a_client_that_left_while_it_waited) {
    serve_scripts({.connections = 1});
    raw_peer first = request();
    raw_peer backend = responder_.accept();
    static_cast<void>(take_request(backend));
    for (const bool politely : {true, false}) {
        raw_peer left = request("GET", {}, {}, "/a.php?left");
        politely ? left.close() : left.reset();
    }
    raw_peer stays = request("GET", {}, {}, "/a.php?stays");
    raw_peer last = request("GET", {}, {}, "/none.php"); // the loop has seen all before it
    EXPECT_TRUE(has_status(everything(last), 404));

    backend.send(answer_of(hello));
    EXPECT_EQ(take_request(backend).params["QUERY_STRING"], "stays");
    backend.send(answer_of(hello));

    EXPECT_TRUE(has_status(everything(first), 200));
    EXPECT_TRUE(has_status(everything(stays), 200));
    EXPECT_TRUE(reports_.all().empty());
}

// Others got 503 for as long as the backend was silent.
TEST_P(failure_test, a_client_that_left_holds_no_place_that_others_wait_for) {
    serve_scripts({.keep_connections = 0, .connections = 1, .wait = 1min});
    for (const bool politely : {true, false}) {
        raw_peer left = request("GET", {}, {}, "/a.php?left");
        raw_peer silent = responder_.accept();
        static_cast<void>(take_request(silent));
        politely ? left.close() : left.reset();

        raw_peer stays = request("GET", {}, {}, "/a.php?stays");

        EXPECT_EQ(silent.receive_to_the_end(), errc::end_of_stream);
        raw_peer backend = responder_.accept();
        EXPECT_EQ(take_request(backend).params["QUERY_STRING"], "stays");
        backend.send(answer_of(hello));
        EXPECT_TRUE(has_status(everything(stays), 200));
    }
    EXPECT_TRUE(reports_.all().empty());
}

TEST_P(failure_test, a_place_is_waited_for_only_so_long_at_all_backends_together) {
    closed_port other;
    other.open();
    const std::string one = address_of(responder_);
    const std::string two = address_of(other);
    const std::array backends{http::backend{one}, http::backend{two}};
    serve_scripts({.backends = backends, .connections = 1, .wait = 20ms});
    std::array clients{request(), request()};
    std::array busy{responder_.accept(), other.accept()};
    for (raw_peer& each : busy)
        static_cast<void>(take_request(each));

    raw_peer third = request();
    EXPECT_TRUE(has_status(everything(third), 503));

    EXPECT_EQ(reports_.count(http::gateway_event::trouble), 1U); // one for each wait
    for (raw_peer& each : busy)
        each.send(answer_of(hello));
    for (raw_peer& each : clients)
        EXPECT_TRUE(has_status(everything(each), 200));
}

TEST_P(failure_test, a_client_that_goes_away_ends_its_request) {
    serve_scripts();
    raw_peer client = request();
    raw_peer backend = responder_.accept();
    static_cast<void>(take_request(backend));
    backend.send(out(hello));
    receive_until(client, "hello");
    client.reset();

    const std::string piece = out(std::string(60000, 'x'));
    EXPECT_TRUE(eventually([&] {
        try {
            backend.send(piece);
            return false;
        } catch (const std::system_error&) {
            return true;
        }
    }));
}

TEST_P(failure_test, a_server_may_end_at_every_stage) {
    const full_listener full;
    const std::string address = "127.0.0.1:" + std::to_string(full.at().port());
    const std::array backends{http::backend{address}};
    serve_scripts({.backends = backends});
    raw_peer connecting = request();
    end_loops();

    serve_scripts({.connections = 1});
    raw_peer asking = request();
    raw_peer backend = responder_.accept();
    static_cast<void>(take_request(backend));
    raw_peer waiting = request();
    raw_peer uploading = connect();
    uploading.send("POST /a.php HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf");
    end_loops();
    EXPECT_EQ(everything(asking), "");

    serve_scripts({.streamed = true});
    raw_peer streaming = connect();
    streaming.send("POST /a.php HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf");
    raw_peer other = responder_.accept();
    static_cast<void>(take_params(other));
    other.send(out(hello));
    receive_until(streaming, "hello");
    end_loops();
    EXPECT_FALSE(looks_complete(everything(streaming)));
}

// It looked like a failure of the backend, and of the handler.
TEST_P(failure_test, a_client_that_breaks_off_behind_an_early_answer_is_no_failure_of_the_backend) {
    serve_scripts({.streamed = true});
    std::optional client{connect()};
    client->send("POST /a.php HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf");
    raw_peer backend = responder_.accept();
    static_cast<void>(take_params(backend));
    backend.send(out(hello));
    receive_until(*client, "hello");

    client.reset();

    EXPECT_TRUE(eventually([&] { return server().statistics().open == 0; }));
    EXPECT_EQ(reports_.count(http::gateway_event::failed), 0U);
    EXPECT_EQ(server().statistics().failed, 0U);
}

TEST_P(failure_test, a_graceful_stop_waits_for_the_answer) {
    serve_scripts();
    raw_peer client = request();
    raw_peer backend = responder_.accept();
    static_cast<void>(take_request(backend));
    server().request_shutdown(10s);

    backend.send(answer_of(hello));

    EXPECT_TRUE(has_status(everything(client), 200));
}

TEST_P(failure_test, figures_tell_what_has_happened) {
    const std::string address = address_of(responder_);
    const std::array backends{http::backend{address}};
    const std::string root = root_path();
    const http::fastcgi_handler php{{.backends = backends, .root = root, .keep_connections = 0}};
    http::router routes;
    routes.any("/{path...}", php);
    serve(std::move(routes));

    EXPECT_TRUE(has_status(answer_to(answer_of(hello)), 200));
    EXPECT_TRUE(has_status(answer_to(""), 502));

    const auto status = php.backends();
    EXPECT_EQ(status[0].address, address);
    EXPECT_EQ(status[0].answered, 1U);
    EXPECT_EQ(status[0].failures, 1U);
    EXPECT_TRUE(status[0].left_out);
}

INSTANTIATE_TEST_SUITE_P(backends, failure_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
