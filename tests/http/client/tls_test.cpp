// https and wss: verification, reuse, and connections that are cut.

#include "http/client/upload.hpp"
#include "limited_writes.hpp"
#include "scripted_server.hpp"
#include "tls/tls_pair.hpp"

#include <simplenet/http.hpp>
#include <simplenet/runtime/event_loop_group.hpp>
#include <simplenet/stream/any_stream.hpp>
#include <simplenet/sync/async_event.hpp>
#include <simplenet/testing/manual_clock.hpp>
#include <simplenet/tls/errc.hpp>
#include <simplenet/tls/stream.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

/// What happens to the connection behind an answer.
enum class tls_end : std::uint8_t { closed, cut };

/// Serves one request over TLS with `answer`.
task<> serve_secure(scripted_server& server, const tls::context& with, std::string answer,
                    tls_end how) {
    tls::stream<tcp_stream> stream{co_await server.accept(), with};
    std::array<std::byte, 4096> buffer;
    if (!co_await stream.read_some(buffer)) co_return;
    const auto sent = co_await async_write_all(stream, answer);
    EXPECT_TRUE(sent);
    if (how == tls_end::cut) {
        stream.transport().close();
    } else {
        EXPECT_TRUE(co_await stream.shutdown_write());
    }
}

task<std::string> text_of(result<http::client_response> answer) {
    if (!answer) co_return "failed: " + answer.error().message();
    auto body = co_await answer->read_all(1000);
    if (!body) co_return "failed: " + body.error().message();
    co_return *std::move(body);
}

class client_tls_test : public backend_test {
protected:
    /// GET https://localhost, answered with `answer` by a server with a certificate of that name.
    std::string get(const tls::context& trust, std::string answer, tls_end how = tls_end::closed,
                    const std::string& certificate = "server") {
        std::string outcome;
        run([&]() -> task<> {
            scripted_server server;
            const tls::context with = server_with(certificate);
            http::client web{{.tls = &trust}};
            auto serving = spawn(serve_secure(server, with, std::move(answer), how));
            const std::string port = server.authority().substr(9);
            auto got = co_await web.get("https://localhost" + port + "/");
            outcome = co_await text_of(std::move(got));
            serving.request_stop();
            co_await serving;
        });
        return outcome;
    }
    /// In memory, after the handshake: it holds 4 KiB that have not been read.
    static task<tls_ends> small_connection() {
        tls_ends ends =
            connected(server_with("server"), client(), {.server_name = "localhost"}, 4096);
        const handshake_errors errors = co_await shake_hands(ends);
        EXPECT_FALSE(errors.client || errors.server);
        co_return ends;
    }
    static const_buffer bytes_of(std::string_view text) {
        return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
    }
    static std::string failed(std::error_code why) { return "failed: " + why.message(); }
};

TEST_P(client_tls_test, a_server_that_is_trusted_answers) {
    EXPECT_EQ(get(client(), answer_with("secret")), "secret");
}

TEST_P(client_tls_test, a_server_that_is_not_trusted_gets_nothing) {
    const auto made = tls::context::client();
    ASSERT_TRUE(made);
    EXPECT_EQ(get(*made, answer_with("secret")), failed(tls::errc::certificate_untrusted_issuer));
}

TEST_P(client_tls_test, a_certificate_for_another_name_is_refused) {
    EXPECT_EQ(get(client(), answer_with("secret"), tls_end::closed, "other_host"),
              failed(tls::errc::certificate_host_mismatch));
}

TEST_P(client_tls_test, a_body_without_a_length_ends_with_a_close_notify_only) {
    const std::string bytes = "HTTP/1.1 200 OK\r\n\r\nbody";
    EXPECT_EQ(get(client(), bytes, tls_end::closed), "body");
    EXPECT_EQ(get(client(), bytes, tls_end::cut), failed(http::errc::incomplete_message));
}

TEST_P(client_tls_test, a_body_with_a_length_needs_no_close_notify) {
    EXPECT_EQ(get(client(), answer_with("body"), tls_end::cut), "body");
    EXPECT_EQ(get(client(), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbody", tls_end::cut),
              failed(http::errc::incomplete_message));
}

TEST_P(client_tls_test, a_server_that_chooses_another_protocol_is_refused) {
    constexpr std::array<std::string_view, 1> other{"h2"};
    const auto trust = client_with([&](tls::client_config& config) { config.alpn = other; });
    run([&]() -> task<> {
        scripted_server server;
        const tls::context with =
            server_with("server", [&](tls::server_config& config) { config.alpn = other; });
        http::client web{{.tls = &trust}};
        auto serving = spawn(serve_secure(server, with, answer_with("no"), tls_end::closed));
        const std::string port = server.authority().substr(9);
        EXPECT_EQ(error_of(co_await web.get("https://localhost" + port + "/")),
                  http::errc::bad_response);
        serving.request_stop();
        co_await serving;
    });
}

TEST_P(client_tls_test, a_redirect_to_plain_http_is_refused) {
    run([]() -> task<> {
        scripted_server server;
        const tls::context with = server_with();
        const tls::context trust = client();
        http::client web{{.tls = &trust, .redirects = 5}};
        auto serving =
            spawn(serve_secure(server, with, redirect_to("http://localhost/"), tls_end::closed));
        const std::string port = server.authority().substr(9);
        EXPECT_EQ(error_of(co_await web.get("https://localhost" + port + "/")),
                  std::errc::operation_not_permitted);
        co_await serving;
    });
}

TEST_P(client_tls_test, requests_share_a_connection_and_a_websocket_gets_its_own) {
    auto group = or_throw(event_loop_group::create({.loops = 1, .loop = {.backend = GetParam()}}));
    const tls::context with = server_with();
    http::router routes;
    routes.get("/", [](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", "secure");
    });
    routes.websocket("/talk", [](http::websocket& peer) -> task<> {
        static_cast<void>(co_await peer.write_message("hello"));
    });
    auto server = or_throw(
        http::server::listen(group, endpoint::loopback(0), std::move(routes), {.tls = &with}));
    const std::string at = "localhost:" + std::to_string(server.local_endpoint().port());
    run([&]() -> task<> {
        const tls::context trust = client();
        http::client web{{.tls = &trust}};
        for (int each = 0; each < 5; ++each) {
            auto answer = or_throw(co_await web.get("https://" + at));
            EXPECT_EQ(or_throw(co_await answer.read_all(100)), "secure");
        }
        EXPECT_EQ(server.statistics().accepted, 1U);
        auto peer = or_throw(co_await web.websocket("wss://" + at + "/talk"));
        EXPECT_EQ(or_throw(co_await peer.read_message()).data, "hello");
        EXPECT_TRUE(co_await peer.close());
    });
    group.stop();
}

// TLS counts what it has sealed, and the kernel had room for a part of it: the server waited for
// the rest of the body, and the client for an answer.
TEST_P(client_tls_test, a_body_has_left_only_when_it_is_not_just_sealed) {
    run([]() -> task<> {
        tls_ends ends = co_await small_connection();
        any_stream to{std::move(ends.client)};
        const std::string body(40'000, 'b');
        http::detail::upload leaving{{.body = bytes_of(body), .is_secure = true}, 1min};

        leaving.try_send(to);
        EXPECT_EQ(leaving.moved(), body.size());
        EXPECT_FALSE(leaving.is_complete());
        EXPECT_TRUE(leaving.can_run());
        auto read = [](memory_stream& from, std::size_t size) -> task<std::string> {
            std::string text(size, '\0');
            const auto whole =
                co_await async_read_exact(from, mutable_buffer{text.data(), text.size()});
            EXPECT_TRUE(whole);
            co_return text;
        };
        auto reading = spawn(read(ends.server, body.size()));
        const result<> sent = co_await leaving.run(to);
        EXPECT_TRUE(sent);
        EXPECT_TRUE(leaving.is_complete());
        const std::string received = co_await reading;
        EXPECT_EQ(received, body);
    });
}

TEST_P(client_tls_test, a_head_that_waits_for_100_has_left) {
    run([]() -> task<> {
        tls_ends ends = co_await small_connection();
        any_stream to{std::move(ends.client)};
        http::detail::upload leaving{{.head = std::string(40'000, 'h'),
                                      .body = bytes_of("body"),
                                      .is_secure = true,
                                      .expect_continue = true},
                                     1min};

        leaving.try_send(to);
        EXPECT_FALSE(leaving.is_held());
        auto read = [](memory_stream& from) -> task<> {
            std::string text(40'000, '\0');
            const auto whole =
                co_await async_read_exact(from, mutable_buffer{text.data(), text.size()});
            EXPECT_TRUE(whole);
        };
        auto reading = spawn(read(ends.server));
        const result<> sent = co_await leaving.run(to);
        EXPECT_TRUE(sent);
        EXPECT_TRUE(leaving.is_held());
        co_await reading;
    });
}

/// Gives a piece, and the end only after that has been read.
class source_that_waits {
public:
    explicit source_that_waits(async_event& goes_on)
        : goes_on_{goes_on} {}
    task<result<std::size_t>> read_some(mutable_buffer into) {
        if (left_ == 0) {
            const result<> waited = co_await goes_on_.wait();
            if (!waited) co_return fail(waited);
            co_return fail(errc::end_of_stream);
        }
        const std::size_t count = std::min(into.size(), left_);
        std::memset(into.data(), 'p', count);
        left_ -= count;
        co_return count;
    }

private:
    async_event& goes_on_;
    std::size_t left_ = 20'000;
};

// What a stop had left of a piece waited for the next one.
TEST_P(client_tls_test, a_source_may_wait_for_what_it_has_given) {
    run([]() -> task<> {
        tls_ends ends = co_await small_connection();
        any_stream to{std::move(ends.client)};
        async_event has_come;
        source_that_waits source{has_come};
        http::detail::upload leaving{{.stream = source, .is_secure = true}, 1min};
        task<result<>> first = leaving.run(to);
        const result<> stopped = co_await with_timeout(std::move(first), 1ms);
        EXPECT_FALSE(stopped);
        EXPECT_NE(leaving.moved(), 0);

        auto read = [](memory_stream& from, async_event& done) -> task<> {
            std::string text(20'000, '\0');
            const auto whole =
                co_await async_read_exact(from, mutable_buffer{text.data(), text.size()});
            EXPECT_TRUE(whole);
            done.set();
            std::array<std::byte, 100> rest;
            static_cast<void>(co_await from.read_some(mutable_buffer{rest}));
        };
        auto reading = spawn(read(ends.server, has_come));
        const result<> sent = co_await leaving.run(to);
        EXPECT_TRUE(sent);
        co_await reading;
    });
}

// A stop by the limit itself was taken for progress.
TEST_P(client_tls_test, a_server_that_reads_nothing_is_late_after_one_limit) {
    manual_clock clock;
    loop_options options;
    options.clock = &clock;
    remake_loop(options);
    run([&]() -> task<> {
        tls_ends ends = co_await small_connection();
        any_stream to{std::move(ends.client)};
        const std::string body(1'000'000, 'b');
        http::detail::upload leaving{{.body = bytes_of(body), .is_secure = true}, 1min};

        const result<> sent = co_await leaving.run(to);

        EXPECT_EQ(sent.error(), errc::deadline_exceeded);
        EXPECT_TRUE(leaving.is_late());
        EXPECT_LT(clock.elapsed(), 61s);
    });
}

/// The client's end of a connection over TCP, and the socket of the server's.
struct secure_ends {
    any_stream to;
    tls::stream<tcp_stream> server;
};

task<secure_ends> secure_connection() {
    stream_pair ends = connected_pair(small_receiver);
    tls::stream<tcp_stream> ours{std::move(ends.ours), client(), {.server_name = "localhost"}};
    tls::stream<tcp_stream> theirs{std::move(ends.theirs), server_with()};
    const auto [first, second] = co_await when_all(ours.handshake(), theirs.handshake());
    EXPECT_TRUE(first && second);
    co_return secure_ends{any_stream{std::move(ours)}, std::move(theirs)};
}

TEST_P(client_tls_test, a_server_that_takes_nothing_from_its_socket_is_late) {
    run([]() -> task<> {
        secure_ends ends = co_await secure_connection();
        co_await expect_idle_is_late(ends.to);
    });
}

TEST_P(client_tls_test, a_server_that_takes_a_little_all_the_time_is_not_late) {
    run([]() -> task<> {
        secure_ends ends = co_await secure_connection();
        co_await expect_slow_is_not_late(ends.to, ends.server.transport().native_handle());
    });
}

INSTANTIATE_TEST_SUITE_P(backends, client_tls_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
