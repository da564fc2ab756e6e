#include "http/websocket/websocket_server_test.hpp"
#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "tls/tls_pair.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/tls/stream.hpp>

#include <chrono>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace testing;

class websocket_tls_test : public backend_test {};

using tls_over_tcp = tls::stream<tcp_stream>;

struct secure_ends {
    websocket server;
    websocket client;
};

secure_ends connect_securely(const tls::context& at_server, const tls::context& at_client,
                             buffer_sizes sizes = {}) {
    auto [first, second] = connected_pair(sizes);
    const tls::stream_options options{.server_name = "localhost"};
    tls_over_tcp server{std::move(first), at_server};
    tls_over_tcp secured{std::move(second), at_client, options};
    return {make_websocket(std::move(server), websocket_role::server),
            make_websocket(std::move(secured), websocket_role::client)};
}

task<> echo_to_the_end(websocket& peer) {
    co_await echo_messages(peer);
    const auto closed = co_await peer.close();
    EXPECT_TRUE(closed);
}

TEST_P(websocket_tls_test, messages_of_all_sizes_and_the_close_go_over_tls) {
    const auto at_server = server_with();
    const auto at_client = client();
    run([&]() -> task<> {
        auto ends = connect_securely(at_server, at_client);
        auto server = spawn(echo_to_the_end(ends.server));
        for (const std::size_t size : {0U, 1U, 125U, 16'384U, 100'000U, 1'000'000U}) {
            const std::string body = noise(size);
            const auto kind = websocket::message::kind::binary;
            auto writing = spawn(ends.client.write_message(kind, body));
            const auto answer = co_await ends.client.read_message();
            EXPECT_TRUE(answer && answer->data == body) << size;
            const auto written = co_await writing;
            EXPECT_TRUE(written);
        }
        const auto closed = co_await ends.client.close(3000, "bye");
        EXPECT_TRUE(closed);
        co_await server;
        EXPECT_EQ(ends.server.close_reason(), "bye");
    });
}

TEST_P(websocket_tls_test, pings_are_answered_while_a_message_waits_for_room) {
    const auto at_server = server_with();
    const auto at_client = client();
    run([&]() -> task<> {
        auto ends = connect_securely(at_server, at_client, small_buffers);
        const std::string body(500'000, 'x');
        auto reading = spawn(ends.server.read_message());
        auto writing = spawn(ends.server.write_message(body)); // more than fits
        co_await turns(5);
        const auto pinged = co_await ends.client.ping("?");
        EXPECT_TRUE(pinged);

        // The pong follows the message; the next read consumes it.
        EXPECT_EQ(told(co_await ends.client.read_message()), "text:" + body);
        const auto sent = co_await ends.client.write_message("end");
        EXPECT_TRUE(sent);
        EXPECT_EQ(told(co_await reading), "text:end");
        const auto written = co_await writing;
        EXPECT_TRUE(written);
    });
}

class websocket_tls_server_test : public websocket_server_test {};

TEST_P(websocket_tls_server_test, a_server_that_shuts_down_closes_with_1001) {
    const auto at_server = server_with();
    const auto at_client = client();
    http::router routes;
    routes.websocket("/", [](http::request& asked, http::websocket& peer) -> task<> {
        EXPECT_TRUE(asked.secure());
        co_await echo_messages(peer);
    });
    serve(std::move(routes), {.tls = &at_server});
    const auto talk = [&]() -> task<> {
        http::client web{{.tls = &at_client}};
        const auto port = std::to_string(server().local_endpoint().port());
        auto opened = co_await web.websocket("wss://localhost:" + port + "/");
        http::websocket peer = or_throw(std::move(opened));
        EXPECT_TRUE(co_await peer.write_message("hello"));
        EXPECT_EQ(told(co_await peer.read_message()), "text:hello");

        server().request_shutdown(std::chrono::minutes{1});

        EXPECT_EQ((co_await peer.read_message()).error(), errc::end_of_stream);
        EXPECT_EQ(peer.close_code(), 1001);
        EXPECT_TRUE(co_await peer.close());
    };
    simplenet::run(talk(), {.backend = GetParam()});
    EXPECT_EQ(shut_down(std::chrono::minutes{1}).drained, 1U);
}

INSTANTIATE_TEST_SUITE_P(backends, websocket_tls_test, all_backends, backend_name);
INSTANTIATE_TEST_SUITE_P(backends, websocket_tls_server_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
