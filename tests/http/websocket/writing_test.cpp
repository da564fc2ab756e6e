#include "http/websocket/websocket_ends.hpp"
#include "support/backend_test.hpp"
#include "support/coroutines.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/testing/manual_clock.hpp>
#include <simplenet/time/deadline.hpp>

#include <chrono>
#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace testing;
using namespace std::chrono_literals;

class websocket_writing_test : public backend_test {};

TEST_P(websocket_writing_test, a_server_sends_messages_in_one_frame_without_a_mask) {
    run([]() -> task<> {
        auto ends = tcp_websocket_ends();
        const std::array<std::byte, 2> bytes{std::byte{0xff}, std::byte{0}};

        EXPECT_TRUE(co_await ends.ours.write_message("hello"));
        EXPECT_TRUE(co_await ends.ours.write_message(std::span{bytes}));
        EXPECT_TRUE(co_await ends.ours.write_message(""));

        EXPECT_EQ(co_await ends.next(), seen_frame(0x81, "hello"));
        EXPECT_EQ(co_await ends.next(), seen_frame(0x82, std::string_view{"\xff\0", 2}));
        EXPECT_EQ(co_await ends.next(), seen_frame(0x81, ""));
    });
}

TEST_P(websocket_writing_test, a_client_masks_every_frame_with_another_mask) {
    run([]() -> task<> {
        auto ends = memory_ends({}, websocket_role::client);
        std::set<std::string> masks;
        for (int count = 0; count < 200; ++count) {
            EXPECT_TRUE(co_await ends.ours.write_message("...."));
            std::string bytes(10, '\0');
            const auto read = co_await async_read_exact(ends.theirs, bytes);
            EXPECT_TRUE(read);
            masks.insert(bytes.substr(2, 4));
            EXPECT_EQ(bytes.substr(0, 2), "\x81\x84");
        }
        // 2^32 values: two are the same once in 200 000 runs.
        EXPECT_GE(masks.size(), 199U);
    });
}

TEST_P(websocket_writing_test, sends_large_messages_of_both_sides) {
    run([]() -> task<> {
        for (const websocket_role role : {websocket_role::server, websocket_role::client}) {
            auto ends = tcp_websocket_ends({}, role, small_buffers);
            const std::string body = noise(1'000'000);
            auto writer = spawn(ends.ours.write_message(websocket::message::kind::binary, body));

            const seen_frame seen = co_await ends.next();

            EXPECT_TRUE(seen == seen_frame(0x82, body));
            EXPECT_TRUE(co_await writer);
        }
    });
}

TEST_P(websocket_writing_test, text_that_is_not_utf8_is_not_sent) {
    run([]() -> task<> {
        auto ends = memory_ends();

        EXPECT_EQ((co_await ends.ours.write_message("\xff")).error(),
                  std::errc::illegal_byte_sequence);
        EXPECT_TRUE(co_await ends.ours.write_message("good"));

        EXPECT_EQ(co_await ends.next(), seen_frame(0x81, "good"));
    });
}

TEST_P(websocket_writing_test, messages_of_several_writers_do_not_mix) {
    run([]() -> task<> {
        auto ends = memory_ends({}, websocket_role::server, 7);
        const std::string first(100, '1');
        const std::string second(100, '2');
        auto one = spawn(ends.ours.write_message(first));
        auto two = spawn(ends.ours.write_message(second));
        auto three = spawn(ends.ours.ping("3"));

        EXPECT_EQ(co_await ends.next(), seen_frame(0x81, first));
        EXPECT_EQ(co_await ends.next(), seen_frame(0x81, second));
        EXPECT_EQ(co_await ends.next(), seen_frame(0x89, "3"));
        EXPECT_TRUE(co_await one);
        EXPECT_TRUE(co_await two);
        EXPECT_TRUE(co_await three);
    });
}

TEST_P(websocket_writing_test, a_pong_waits_for_the_message_that_is_being_written) {
    run([]() -> task<> {
        auto ends = memory_ends({}, websocket_role::server, 16);
        const std::string body(200, 'x');
        auto writer = spawn(ends.ours.write_message(body));
        auto reader = spawn(ends.ours.read_message());
        co_await turns(3);
        co_await ends.send(ping_frame("?"));
        co_await turns(3);

        EXPECT_EQ(co_await ends.next(), seen_frame(0x81, body));
        EXPECT_EQ(co_await ends.next(), seen_frame(0x8a, "?"));
        co_await ends.send(text_frame("end"));
        EXPECT_EQ(told(co_await reader), "text:end");
        EXPECT_TRUE(co_await writer);
    });
}

TEST_P(websocket_writing_test, a_pong_that_had_to_wait_needs_no_further_read) {
    run([]() -> task<> {
        auto ends = memory_ends({}, websocket_role::server, 30);
        const std::string body(200, 'x');
        auto writer = spawn(ends.ours.write_message(body));
        co_await turns(3);
        co_await ends.send(ping_frame("?") + text_frame("read"));
        EXPECT_EQ(told(co_await ends.ours.read_message()), "text:read");

        EXPECT_EQ(co_await ends.next(), seen_frame(0x81, body));
        EXPECT_TRUE(co_await writer);
        EXPECT_EQ(co_await ends.next(), seen_frame(0x8a, "?"));
    });
}

TEST_P(websocket_writing_test, a_peer_that_pings_and_does_not_read_gets_the_last_pong) {
    run([]() -> task<> {
        auto ends = memory_ends({}, websocket_role::server, 64);
        auto reader = spawn(ends.ours.read_message());
        for (int count = 0; count < 1000; ++count)
            co_await ends.send(ping_frame("ping " + std::to_string(count)));
        co_await ends.send(text_frame("read nevertheless"));
        EXPECT_EQ(told(co_await reader), "text:read nevertheless");

        // What fit into the stream, what had begun to leave, and the last one.
        reader = spawn(ends.ours.read_message());
        seen_frame seen = no_frame;
        int pongs = 0;
        do {
            seen = co_await ends.next();
            ++pongs;
        } while (seen != seen_frame(0x8a, "ping 999") && seen != no_frame);
        EXPECT_EQ(seen, seen_frame(0x8a, "ping 999"));
        EXPECT_LE(pongs, 10);
        reader.request_stop();
        static_cast<void>(co_await reader);
    });
}

TEST_P(websocket_writing_test, a_stop_before_the_first_byte_sends_nothing) {
    run([]() -> task<> {
        auto ends = memory_ends({}, websocket_role::server, 8);
        auto blocked = spawn(ends.ours.write_message("0123456789"));
        co_await turns(3);

        const auto stopped = co_await with_timeout(ends.ours.write_message("never"), 1us);
        const auto not_sent = co_await with_timeout(ends.ours.ping("never"), 1us);

        EXPECT_EQ(stopped.error(), errc::deadline_exceeded);
        EXPECT_EQ(not_sent.error(), errc::deadline_exceeded);
        EXPECT_EQ(co_await ends.next(), seen_frame(0x81, "0123456789"));
        EXPECT_TRUE(co_await blocked);
        EXPECT_TRUE(co_await ends.ours.write_message("next"));
        EXPECT_EQ(co_await ends.next(), seen_frame(0x81, "next"));
    });
}

class websocket_stopped_write_test : public backend_test {
protected:
    static constexpr std::string_view body = "a message that does not fit into the stream at once";
    /// Stops a write in the middle of its frame.
    static task<> stop_a_write(websocket_ends<duplex_stream>& ends) {
        const auto stopped = co_await with_timeout(ends.ours.write_message(body), 1us);
        EXPECT_TRUE(stopped); // it will leave
    }
};

TEST_P(websocket_stopped_write_test, its_rest_leaves_before_the_next_message) {
    run([]() -> task<> {
        for (const websocket_role role : {websocket_role::server, websocket_role::client}) {
            auto ends = memory_ends({}, role, 20);
            co_await stop_a_write(ends);
            auto next = spawn(ends.ours.write_message("next"));

            EXPECT_EQ(co_await ends.next(), seen_frame(0x81, body));
            EXPECT_EQ(co_await ends.next(), seen_frame(0x81, "next"));
            EXPECT_TRUE(co_await next);
        }
    });
}

TEST_P(websocket_stopped_write_test, its_rest_leaves_while_a_read_waits) {
    run([]() -> task<> {
        auto ends = memory_ends({}, websocket_role::client, 20);
        co_await stop_a_write(ends);
        auto reader = spawn(ends.ours.read_message());

        EXPECT_EQ(co_await ends.next(), seen_frame(0x81, body));
        co_await ends.send(text_frame("end", false));
        EXPECT_EQ(told(co_await reader), "text:end");
    });
}

TEST_P(websocket_stopped_write_test, its_rest_leaves_while_a_read_waits_that_had_begun_before) {
    run([]() -> task<> {
        auto ends = memory_ends({}, websocket_role::server, 20);
        auto reader = spawn(ends.ours.read_message());
        co_await turns(3);
        co_await stop_a_write(ends);

        EXPECT_EQ(co_await ends.next(), seen_frame(0x81, body));
        co_await ends.send(text_frame("end"));
        EXPECT_EQ(told(co_await reader), "text:end");
    });
}

TEST_P(websocket_stopped_write_test, of_a_large_message_of_a_client_over_tcp) {
    run([]() -> task<> {
        auto ends = tcp_websocket_ends({}, websocket_role::client, small_buffers);
        const std::string large = noise(500'000);
        const auto kind = websocket::message::kind::binary;
        const auto stopped = co_await with_timeout(ends.ours.write_message(kind, large), 1us);
        EXPECT_TRUE(stopped);
        auto next = spawn(ends.ours.write_message("next"));

        const seen_frame seen = co_await ends.next();
        EXPECT_TRUE(seen == seen_frame(0x82, large));
        EXPECT_EQ(co_await ends.next(), seen_frame(0x81, "next"));
        EXPECT_TRUE(co_await next);
    });
}

TEST_P(websocket_writing_test, a_peer_that_takes_nothing_has_failed_after_the_idle_limit) {
    manual_clock clock;
    remake_loop({.clock = &clock});
    run([&]() -> task<> {
        auto ends =
            memory_ends({.ping_interval = 0s, .write_idle = 60s}, websocket_role::server, 16);
        auto reader = spawn(ends.ours.read_message());

        const auto written = co_await ends.ours.write_message(std::string(100, 'x'));

        EXPECT_EQ(written.error(), std::errc::timed_out);
        EXPECT_NE(written.error(), errc::deadline_exceeded);
        EXPECT_GE(clock.elapsed(), 60s);
        EXPECT_EQ((co_await reader).error(), std::errc::timed_out);
        EXPECT_EQ((co_await ends.ours.write_message("x")).error(), std::errc::timed_out);
        EXPECT_EQ(ends.ours.close_code(), 1006);
    });
}

TEST_P(websocket_writing_test, a_peer_that_takes_a_little_from_time_to_time_is_not_idle) {
    manual_clock clock;
    remake_loop({.clock = &clock});
    run([&]() -> task<> {
        auto ends = memory_ends({.write_idle = 60s}, websocket_role::server, 16);
        const std::string body(100, 'x');
        auto writer = spawn(ends.ours.write_message(body));
        std::string seen;
        while (seen.size() < 102) {
            static_cast<void>(co_await async_sleep(50s));
            std::string some(10, '\0');
            const auto count = co_await ends.theirs.read_some(some);
            seen.append(some, 0, count.value_or(0));
        }
        EXPECT_TRUE(co_await writer);
    });
}

TEST_P(websocket_writing_test, pings_have_a_payload_of_limited_size) {
    run([]() -> task<> {
        auto ends = memory_ends();
        const std::string longest(125, 'p');

        EXPECT_TRUE(co_await ends.ours.ping());
        EXPECT_TRUE(co_await ends.ours.ping(longest));
        EXPECT_EQ((co_await ends.ours.ping(longest + "p")).error(), std::errc::message_size);

        EXPECT_EQ(co_await ends.next(), seen_frame(0x89, ""));
        EXPECT_EQ(co_await ends.next(), seen_frame(0x89, longest));
    });
}

TEST_P(websocket_writing_test, a_write_that_fails_loses_nothing_that_has_arrived) {
    run([]() -> task<> {
        auto ends = memory_ends();
        co_await ends.send(ping_frame("?") + text_frame("last words") + close_frame(1001));
        ends.theirs.close();

        EXPECT_FALSE(co_await ends.ours.write_message("too late"));

        EXPECT_EQ(told(co_await ends.ours.read_message()), "text:last words");
        EXPECT_EQ((co_await ends.ours.read_message()).error(), errc::end_of_stream);
        EXPECT_EQ(ends.ours.close_code(), 1001);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, websocket_writing_test, all_backends, backend_name);
INSTANTIATE_TEST_SUITE_P(backends, websocket_stopped_write_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
