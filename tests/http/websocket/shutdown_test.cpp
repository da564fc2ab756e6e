// WebSockets of a server that shuts down.

#include "http/websocket/websocket_server_test.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/server/server_stop.hpp>

#include <chrono>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace testing;
using namespace std::chrono_literals;

class websocket_shutdown_test : public websocket_server_test {
protected:
    template <class Handler>
    raw_peer open_served_by(Handler handler, const websocket_options& options = {}) {
        http::router routes;
        routes.websocket("/", std::move(handler), options);
        serve(std::move(routes));
        return open();
    }
    void begin_shutdown() { server().request_shutdown(1min); }
    /// Whether every handler has ended by itself.
    bool ends_in_order() {
        const shutdown_report report = shut_down(1min);
        return report.drained == 1 && report.cut == 0;
    }
};

TEST_P(websocket_shutdown_test, a_read_that_waits_closes_with_1001) {
    raw_peer client = open_served_by([](websocket& peer) -> task<> {
        EXPECT_EQ((co_await peer.read_message()).error(), errc::end_of_stream);
        EXPECT_EQ(peer.close_code(), 1001);
        EXPECT_TRUE(co_await this_task::server_stopping());
    });

    begin_shutdown();

    EXPECT_EQ(next(client), seen_frame(0x88, "\x03\xe9"));
    client.send(close_frame(1001));
    EXPECT_EQ(next(client), no_frame);
    client.close();
    EXPECT_TRUE(ends_in_order());
}

TEST_P(websocket_shutdown_test, a_handler_that_is_not_reading_closes_with_its_next_read) {
    raw_peer client = open_served_by([](websocket& peer) -> task<> {
        EXPECT_TRUE(co_await server_stop());
        EXPECT_TRUE(co_await peer.write_message("last words"));
        EXPECT_EQ((co_await peer.read_message()).error(), errc::end_of_stream);
    });

    begin_shutdown();

    EXPECT_EQ(next(client), seen_frame(0x81, "last words"));
    EXPECT_EQ(code_of(next(client)), 1001U);
    client.send(close_frame(1001));
    EXPECT_EQ(next(client), no_frame);
    client.close();
    EXPECT_TRUE(ends_in_order());
}

TEST_P(websocket_shutdown_test, what_the_peer_has_sent_before_its_close_is_delivered) {
    std::string heard;
    raw_peer client = open_served_by([&](websocket& peer) -> task<> {
        while (auto message = co_await peer.read_message()) {
            heard += message->data.substr(0, 5) + "|";
            EXPECT_EQ((co_await peer.write_message("late")).error(), std::errc::broken_pipe);
        }
    });
    // The server is in the middle of a message that it reads into its place.
    const std::string large = frame(0x81, std::string(100'000, 'x'));
    client.send(std::string_view{large}.substr(0, 50'000));

    begin_shutdown();

    EXPECT_EQ(code_of(next(client)), 1001U);
    client.send(std::string_view{large}.substr(50'000));
    client.send(ping_frame("no answer") + text_frame("other") + close_frame(1000));
    EXPECT_EQ(next(client), no_frame);
    client.close();
    EXPECT_TRUE(ends_in_order());
    EXPECT_EQ(heard, "xxxxx|other|");
}

TEST_P(websocket_shutdown_test, a_message_on_its_way_comes_before_the_close) {
    const std::string large(8'000'000, 'x');
    raw_peer client = open_served_by([&](websocket& peer) -> task<> {
        const auto both = co_await when_all(peer.write_message(large), peer.read_message());
        EXPECT_TRUE(std::get<0>(both));
        EXPECT_EQ(std::get<1>(both).error(), errc::end_of_stream);
    });
    EXPECT_EQ(client.receive(1), "\x81"); // it has begun, and does not fit

    begin_shutdown();

    EXPECT_EQ(client.receive(9), std::string("\x7f\0\0\0\0\0\x7a\x12\0", 9));
    EXPECT_EQ(client.receive(large.size()), large);
    EXPECT_EQ(code_of(next(client)), 1001U);
    client.send(close_frame(1001));
    EXPECT_EQ(next(client), no_frame);
    client.close();
    EXPECT_TRUE(ends_in_order());
}

TEST_P(websocket_shutdown_test, a_peer_that_does_not_answer_is_given_up) {
    raw_peer client = open_served_by(
        [](websocket& peer) -> task<> {
            EXPECT_EQ((co_await peer.read_message()).error(), std::errc::timed_out);
            EXPECT_EQ(peer.close_code(), 1006);
        },
        {.close_within = 50ms});

    begin_shutdown();

    EXPECT_EQ(code_of(next(client)), 1001U);
    EXPECT_EQ(next(client), no_frame);
    EXPECT_TRUE(ends_in_order());
}

TEST_P(websocket_shutdown_test, a_peer_that_only_goes_on_sending_is_given_up) {
    std::error_code end;
    raw_peer client = open_served_by(
        [&](websocket& peer) -> task<> {
            auto message = co_await peer.read_message();
            while (message)
                message = co_await peer.read_message();
            end = message.error();
        },
        {.close_within = 50ms});

    begin_shutdown();

    const std::string more = text_frame(std::string(1000, 'x'));
    EXPECT_THROW(for (;;) client.send(more), std::system_error);
    EXPECT_TRUE(ends_in_order());
    EXPECT_EQ(end, std::errc::timed_out);
}

TEST_P(websocket_shutdown_test, a_handler_may_close_by_itself) {
    raw_peer client = open_served_by(
        [](websocket& peer) -> task<> {
            const auto first = co_await when_any(peer.read_message(), server_stop());
            EXPECT_EQ(first.index, 1U);
            EXPECT_TRUE(co_await peer.write_message("goodbye"));
            EXPECT_TRUE(co_await peer.close(1012, "back soon"));
        },
        {.close_at_shutdown = false});

    begin_shutdown();

    EXPECT_EQ(next(client), seen_frame(0x81, "goodbye"));
    EXPECT_EQ(next(client), seen_frame(0x88, "\x03\xf4"
                                             "back soon"));
    client.send(close_frame(1012));
    EXPECT_EQ(next(client), no_frame);
    client.close();
    EXPECT_TRUE(ends_in_order());
}

TEST_P(websocket_shutdown_test, one_that_opens_during_the_shutdown_is_closed_at_once) {
    http::router routes;
    routes.get("/", [](http::request&, http::response& answer) -> task<result<>> {
        EXPECT_TRUE(co_await answer.flush());
        EXPECT_TRUE(co_await server_stop());
        auto peer = co_await answer.accept_websocket();
        if (!peer) co_return fail(peer);
        EXPECT_EQ((co_await peer->read_message()).error(), errc::end_of_stream);
        co_return co_await peer->close();
    });
    serve(std::move(routes));
    raw_peer client = connect();
    client.send(handshake());
    EXPECT_TRUE(eventually([&] { return server().statistics().requests == 1; }));

    begin_shutdown();

    EXPECT_TRUE(receive_head(client).starts_with("HTTP/1.1 101 "));
    EXPECT_EQ(code_of(next(client)), 1001U);
    client.send(close_frame(1001));
    EXPECT_EQ(next(client), no_frame);
    client.close();
    EXPECT_TRUE(ends_in_order());
}

INSTANTIATE_TEST_SUITE_P(backends, websocket_shutdown_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
