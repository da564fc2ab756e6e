#include "http/websocket/websocket_ends.hpp"
#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/testing/manual_clock.hpp>
#include <simplenet/time/deadline.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace testing;
using namespace std::chrono_literals;

class websocket_closing_test : public backend_test {};

/// A success if the read ends because the peer has closed.
task<result<>> read_to_the_end(websocket& peer) {
    const auto read = co_await peer.read_message();
    if (read) co_return fail(std::errc::protocol_error);
    if (read.error() != errc::end_of_stream) co_return fail(read);
    co_return result<>{};
}

TEST_P(websocket_closing_test, close_waits_for_the_close_frame_of_the_peer) {
    run([]() -> task<> {
        for (const websocket_role role : {websocket_role::server, websocket_role::client}) {
            auto ends = tcp_websocket_ends({}, role);
            auto closing = spawn(ends.ours.close(1001, "going"));

            EXPECT_EQ(code_of(co_await ends.next()), 1001U);
            co_await turns(3);
            EXPECT_FALSE(closing.done());
            co_await ends.send(close_frame(4000, "fine", ends.peer_is_client));
            ends.theirs.close();

            EXPECT_TRUE(co_await closing);
            EXPECT_EQ(ends.ours.close_code(), 4000);
            EXPECT_EQ(ends.ours.close_reason(), "fine");
        }
    });
}

TEST_P(websocket_closing_test, a_close_of_the_peer_is_answered_and_ends_reads) {
    run([]() -> task<> {
        auto ends = tcp_websocket_ends();
        co_await ends.send(close_frame(1001, "going"));

        EXPECT_EQ((co_await ends.ours.read_message()).error(), errc::end_of_stream);

        EXPECT_EQ(co_await ends.next(), seen_frame(0x88, "\x03\xe9"));
        EXPECT_EQ(co_await ends.next(), no_frame); // a server ends the connection
        EXPECT_EQ((co_await ends.ours.write_message("x")).error(), std::errc::broken_pipe);
        EXPECT_EQ((co_await ends.ours.read_message()).error(), errc::end_of_stream);
        ends.theirs.close();
        EXPECT_TRUE(co_await ends.ours.close());
    });
}

TEST_P(websocket_closing_test, an_answer_that_is_stopped_in_the_middle_is_completed) {
    run([]() -> task<> {
        for (const bool by_close : {false, true}) {
            auto ends = memory_ends({}, websocket_role::server, 3);
            auto sender = spawn(ends.send(close_frame(1001)));
            auto stopped = spawn(ends.ours.read_message());
            co_await sender;
            co_await turns(5); // three bytes of four have left
            stopped.request_stop();
            EXPECT_EQ((co_await stopped).error(), std::errc::operation_canceled);
            auto rest = by_close ? spawn(ends.ours.close()) : spawn(read_to_the_end(ends.ours));

            EXPECT_EQ(co_await ends.next(), seen_frame(0x88, "\x03\xe9"));
            EXPECT_EQ(co_await ends.next(), no_frame);
            ends.theirs.close();
            EXPECT_TRUE(co_await rest);
        }
    });
}

TEST_P(websocket_closing_test, a_close_that_follows_that_of_the_peer_repeats_its_code) {
    run([]() -> task<> {
        auto ends = memory_ends({}, websocket_role::server, 8);
        const std::string body(100, 'x');
        auto writer = spawn(ends.ours.write_message(body));
        co_await turns(3);
        auto reader = spawn(ends.ours.read_message());
        co_await ends.send(close_frame(1000));
        co_await turns(5);
        reader.request_stop(); // its answer waits for the writer
        EXPECT_EQ((co_await reader).error(), std::errc::operation_canceled);

        auto closing = spawn(ends.ours.close(1008, "slow"));

        EXPECT_EQ(co_await ends.next(), seen_frame(0x81, body));
        EXPECT_EQ(co_await ends.next(), seen_frame(0x88, "\x03\xe8"));
        ends.theirs.close();
        EXPECT_TRUE(co_await closing);
        EXPECT_TRUE(co_await writer);
    });
}

TEST_P(websocket_closing_test, a_peer_may_take_its_time_to_end_its_side) {
    run([]() -> task<> {
        auto ends = tcp_websocket_ends();
        co_await ends.send(close_frame(1000));
        EXPECT_EQ((co_await ends.ours.read_message()).error(), errc::end_of_stream);
        auto closing = spawn(ends.ours.close());
        co_await turns(5);
        EXPECT_FALSE(closing.done());

        ends.theirs.close();

        EXPECT_TRUE(co_await closing);
    });
}

TEST_P(websocket_closing_test, the_end_of_the_stream_after_a_close_is_no_failure) {
    run([]() -> task<> {
        auto [ours, theirs] = duplex();
        websocket_ends<duplex_stream> ends{
            make_websocket(plain_stream_of{std::move(ours)}, websocket_role::client),
            std::move(theirs), false};
        co_await ends.send(close_frame(1000, {}, false));
        EXPECT_EQ((co_await ends.ours.read_message()).error(), errc::end_of_stream);
        auto closing = spawn(ends.ours.close());
        co_await turns(5);
        EXPECT_FALSE(closing.done());
        ends.theirs.close();

        EXPECT_TRUE(co_await closing);
        EXPECT_EQ((co_await ends.ours.read_message()).error(), errc::end_of_stream);
    });
}

TEST_P(websocket_closing_test, both_sides_close_at_once) {
    run([]() -> task<> {
        auto [first, second] = connected_pair();
        auto server = make_websocket(std::move(first), websocket_role::server);
        auto client = make_websocket(std::move(second), websocket_role::client);

        const auto both = co_await when_all(server.close(1000), client.close(1001));

        EXPECT_TRUE(std::get<0>(both));
        EXPECT_TRUE(std::get<1>(both));
        EXPECT_EQ(server.close_code(), 1001);
        EXPECT_EQ(client.close_code(), 1000);
    });
}

TEST_P(websocket_closing_test, one_side_closes_while_the_other_reads) {
    run([]() -> task<> {
        for (const bool server_closes : {false, true}) {
            auto [first, second] = connected_pair();
            auto server = make_websocket(std::move(first), websocket_role::server);
            auto client = make_websocket(std::move(second), websocket_role::client);
            websocket& closes = server_closes ? server : client;
            websocket& reads = server_closes ? client : server;
            auto closing = spawn(closes.close(3000));

            EXPECT_EQ((co_await reads.read_message()).error(), errc::end_of_stream);
            EXPECT_TRUE(co_await reads.close());
            EXPECT_TRUE(co_await closing);
            EXPECT_EQ(reads.close_code(), 3000);
            EXPECT_EQ(closes.close_code(), 3000);
        }
    });
}

TEST_P(websocket_closing_test, messages_that_arrive_during_a_close_are_dropped) {
    run([]() -> task<> {
        auto ends = tcp_websocket_ends();
        co_await ends.send(frame(0x01, "begun "));
        const auto early = co_await with_timeout(ends.ours.read_message(), 1us);
        EXPECT_EQ(early.error(), errc::deadline_exceeded);
        auto closing = spawn(ends.ours.close());
        EXPECT_EQ(code_of(co_await ends.next()), 1000U);

        co_await ends.send(frame(0x80, noise(100'000)) + ping_frame("no answer") +
                           frame(0x82, noise(2'000'000)) + close_frame(1000));

        EXPECT_EQ(co_await ends.next(), no_frame);
        ends.theirs.close();
        EXPECT_TRUE(co_await closing);
    });
}

TEST_P(websocket_closing_test, a_read_in_flight_ends_with_the_close_frame) {
    run([]() -> task<> {
        auto ends = tcp_websocket_ends();
        auto reader = spawn(ends.ours.read_message());
        co_await turns(3);
        auto closing = spawn(ends.ours.close());
        EXPECT_EQ(code_of(co_await ends.next()), 1000U);
        co_await ends.send(close_frame(1000));
        ends.theirs.close();

        EXPECT_EQ((co_await reader).error(), errc::end_of_stream);
        EXPECT_TRUE(co_await closing);
    });
}

TEST_P(websocket_closing_test, a_read_in_flight_may_deliver_one_more_message) {
    run([]() -> task<> {
        auto ends = tcp_websocket_ends();
        auto reader = spawn(ends.ours.read_message());
        co_await turns(3);
        auto closing = spawn(ends.ours.close());
        EXPECT_EQ(code_of(co_await ends.next()), 1000U);
        co_await ends.send(text_frame("one more") + text_frame("dropped"));

        EXPECT_EQ(told(co_await reader), "text:one more");
        EXPECT_EQ((co_await ends.ours.read_message()).error(), errc::end_of_stream);
        co_await ends.send(close_frame(1000));
        ends.theirs.close();
        EXPECT_TRUE(co_await closing);
    });
}

TEST_P(websocket_closing_test, a_close_takes_over_from_a_read_that_is_stopped) {
    run([]() -> task<> {
        auto ends = tcp_websocket_ends();
        auto reader = spawn(ends.ours.read_message());
        co_await turns(3);
        auto closing = spawn(ends.ours.close());
        EXPECT_EQ(code_of(co_await ends.next()), 1000U);
        reader.request_stop();
        EXPECT_EQ((co_await reader).error(), std::errc::operation_canceled);
        co_await ends.send(close_frame(1000));
        ends.theirs.close();

        EXPECT_TRUE(co_await closing);
    });
}

TEST_P(websocket_closing_test, a_close_waits_for_the_message_that_is_being_written) {
    run([]() -> task<> {
        auto ends = memory_ends({}, websocket_role::server, 16);
        const std::string body(200, 'x');
        auto writer = spawn(ends.ours.write_message(body));
        auto closing = spawn(ends.ours.close());
        auto late = spawn(ends.ours.write_message("late"));

        EXPECT_EQ(co_await ends.next(), seen_frame(0x81, body));
        EXPECT_EQ(code_of(co_await ends.next()), 1000U);
        EXPECT_TRUE(co_await writer);
        EXPECT_EQ((co_await late).error(), std::errc::broken_pipe);
        co_await ends.send(close_frame(1000));
        ends.theirs.close();
        EXPECT_TRUE(co_await closing);
    });
}

TEST_P(websocket_closing_test, a_peer_that_vanishes_during_a_close_is_reported) {
    run([]() -> task<> {
        auto ends = tcp_websocket_ends();
        auto closing = spawn(ends.ours.close());
        EXPECT_EQ(code_of(co_await ends.next()), 1000U);
        ends.theirs.close();

        EXPECT_EQ((co_await closing).error(), http::errc::incomplete_message);
        EXPECT_EQ(ends.ours.close_code(), 1006);
    });
}

TEST_P(websocket_closing_test, a_peer_that_does_not_answer_is_given_up_after_the_limit) {
    manual_clock clock;
    remake_loop({.clock = &clock});
    run([&]() -> task<> {
        for (const std::size_t capacity : {std::size_t{1}, std::size_t{1000}}) {
            const auto start = clock.elapsed();
            auto ends = memory_ends({.close_within = 5s}, websocket_role::server, capacity);

            EXPECT_EQ((co_await ends.ours.close()).error(), errc::deadline_exceeded);

            EXPECT_GE(clock.elapsed() - start, 5s);
            EXPECT_LT(clock.elapsed() - start, 6s);
            const unsigned expected = capacity == 1 ? 0 : 1000;
            EXPECT_EQ(code_of(co_await ends.next()), expected);
        }
    });
    destroy_loop();
}

TEST_P(websocket_closing_test, a_peer_that_closes_and_does_not_read_cannot_hold_up_the_reader) {
    manual_clock clock;
    remake_loop({.clock = &clock});
    run([&]() -> task<> {
        auto ends =
            memory_ends({.ping_interval = 0s, .close_within = 5s}, websocket_role::server, 8);
        const std::string body(100, 'x');
        auto writer = spawn(ends.ours.write_message(body));
        co_await turns(3);
        auto reader = spawn(ends.ours.read_message());
        co_await ends.send(close_frame(1000));

        EXPECT_EQ((co_await reader).error(), errc::end_of_stream);
        EXPECT_LT(clock.elapsed(), 6s);
        EXPECT_TRUE(co_await ends.ours.close()); // drops the writer
        EXPECT_FALSE(co_await writer);
    });
    destroy_loop();
}

TEST_P(websocket_closing_test, a_peer_that_never_ends_its_side_costs_no_more_than_the_limit) {
    manual_clock clock;
    remake_loop({.clock = &clock});
    run([&]() -> task<> {
        auto ends = memory_ends({.close_within = 5s});
        co_await ends.send(close_frame(1000));
        EXPECT_EQ((co_await ends.ours.read_message()).error(), errc::end_of_stream);

        EXPECT_TRUE(co_await ends.ours.close());

        EXPECT_GE(clock.elapsed(), 5s);
    });
    destroy_loop();
}

TEST_P(websocket_closing_test, a_peer_that_floods_cannot_hold_up_a_close) {
    run([]() -> task<> {
        for (const auto& [first, again, expected] :
             {std::tuple{frame(0x01, ""), frame(0x00, ""),
                         make_error_code(errc::deadline_exceeded)},
              std::tuple{ping_frame("?"), ping_frame("?"),
                         make_error_code(errc::deadline_exceeded)},
              std::tuple{close_frame(1000), noise(1000), std::error_code{}}}) {
            auto ours = make_websocket(endless_stream{first, again}, websocket_role::server,
                                       {.close_within = 20ms});
            EXPECT_EQ(error_of(co_await ours.close()), expected);
        }
    });
}

// Over TCP, bytes that were never read would turn the close into a reset.
TEST_P(websocket_closing_test, a_peer_that_broke_the_protocol_can_read_why) {
    run([]() -> task<> {
        auto ends = tcp_websocket_ends();
        auto server = spawn([](websocket& peer) -> task<> {
            EXPECT_EQ((co_await peer.read_message()).error(), http::errc::websocket_protocol);
            EXPECT_EQ((co_await peer.close()).error(), http::errc::websocket_protocol);
        }(ends.ours));
        co_await ends.send(frame(0x80, "a continuation of nothing") + noise(100'000));

        EXPECT_EQ(code_of(co_await ends.next()), 1002U);
        EXPECT_EQ(co_await ends.next(), no_frame);
        ends.theirs.close();
        co_await server;
    });
}

TEST_P(websocket_closing_test, refuses_codes_and_reasons_that_may_not_be_sent) {
    run([]() -> task<> {
        auto ends = memory_ends();
        for (const int code : {0, 999, 1004, 1005, 1006, 1015, 2999, 5000}) {
            const auto refused = co_await ends.ours.close(static_cast<std::uint16_t>(code));
            EXPECT_EQ(refused.error(), std::errc::invalid_argument) << code;
        }
        const std::string longest(123, 'r');
        EXPECT_EQ((co_await ends.ours.close(1000, longest + "r")).error(),
                  std::errc::invalid_argument);
        EXPECT_EQ((co_await ends.ours.close(1000, "\xff")).error(), std::errc::invalid_argument);

        EXPECT_TRUE(co_await ends.ours.write_message("still open"));
        EXPECT_EQ(co_await ends.next(), seen_frame(0x81, "still open"));
        auto closing = spawn(ends.ours.close(1000, longest));
        EXPECT_EQ(co_await ends.next(), seen_frame(0x88, "\x03\xe8" + longest));
        ends.theirs.close();
        static_cast<void>(co_await closing);
    });
}

TEST_P(websocket_closing_test, a_close_that_is_stopped_closes_at_once) {
    run([]() -> task<> {
        auto ends = tcp_websocket_ends();
        auto closing = spawn(ends.ours.close());
        EXPECT_EQ(code_of(co_await ends.next()), 1000U);

        closing.request_stop();

        EXPECT_EQ((co_await closing).error(), std::errc::operation_canceled);
        EXPECT_EQ(co_await ends.next(), no_frame);
        EXPECT_EQ(ends.ours.close_code(), 1006);
        EXPECT_TRUE(co_await ends.ours.close()); // the second time
    });
}

TEST_P(websocket_closing_test, a_peer_without_a_code_is_reported_as_1005) {
    run([]() -> task<> {
        auto ends = memory_ends();
        EXPECT_EQ(ends.ours.close_code(), 0);
        co_await ends.send(frame(0x88, ""));

        EXPECT_EQ((co_await ends.ours.read_message()).error(), errc::end_of_stream);

        EXPECT_EQ(ends.ours.close_code(), 1005);
        EXPECT_EQ(co_await ends.next(), seen_frame(0x88, ""));
    });
}

INSTANTIATE_TEST_SUITE_P(backends, websocket_closing_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
