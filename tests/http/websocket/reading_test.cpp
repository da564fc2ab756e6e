#include "http/websocket/websocket_ends.hpp"
#include "support/backend_test.hpp"
#include "support/coroutines.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/time/deadline.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using namespace std::string_literals;
using namespace std::string_view_literals;

class websocket_reading_test : public backend_test {};

TEST_P(websocket_reading_test, reads_messages_of_both_kinds) {
    run([]() -> task<> {
        auto ends = tcp_websocket_ends();
        co_await ends.send(text_frame("hello") + frame(0x82, "\xff\x00"sv) + text_frame(""));

        EXPECT_EQ(told(co_await ends.ours.read_message()), "text:hello");
        EXPECT_EQ(told(co_await ends.ours.read_message()), "binary:\xff\x00"sv);
        EXPECT_EQ(told(co_await ends.ours.read_message()), "text:");
    });
}

TEST_P(websocket_reading_test, a_client_reads_frames_without_masks) {
    run([]() -> task<> {
        auto ends = tcp_websocket_ends({}, websocket_role::client);
        co_await ends.send(text_frame("hello", false));

        EXPECT_EQ(told(co_await ends.ours.read_message()), "text:hello");
    });
}

TEST_P(websocket_reading_test, bytes_from_the_handshake_come_first) {
    run([]() -> task<> {
        auto [source, sink] = duplex();
        auto [ours, theirs] = duplex();
        const auto sent = co_await async_write_all(sink, text_frame("first", false));
        EXPECT_TRUE(sent);
        auto lease = source.try_receive();
        auto client = http::detail::websocket_access::make(
            any_stream{std::move(ours)}, websocket_role::client, {}, std::move(*lease), "chat");

        EXPECT_EQ(told(co_await client.read_message()), "text:first");
        EXPECT_EQ(client.protocol(), "chat");
    });
}

TEST_P(websocket_reading_test, assembles_fragments_around_control_frames) {
    run([]() -> task<> {
        auto ends = tcp_websocket_ends();
        co_await ends.send(frame(0x01, "one ") + ping_frame("?") + frame(0x00, "") +
                           frame(0x8a, "unasked") + frame(0x80, "two"));

        EXPECT_EQ(told(co_await ends.ours.read_message()), "text:one two");
        EXPECT_EQ(co_await ends.next(), (seen_frame{0x8a, "?"}));
    });
}

TEST_P(websocket_reading_test, reads_the_same_in_every_division) {
    run([]() -> task<> {
        const std::string bytes = frame(0x01, "caf\xc3") + ping_frame("ping") +
                                  frame(0x80, "\xa9") + frame(0x82, std::string(200, 'b')) +
                                  close_frame(1001, "bye");
        for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
            auto ends = memory_ends();
            auto sender = spawn([](auto& to, std::string first, std::string rest) -> task<> {
                co_await to.send(std::move(first));
                co_await turns(3);
                co_await to.send(std::move(rest));
            }(ends, bytes.substr(0, cut), bytes.substr(cut)));

            EXPECT_EQ(told(co_await ends.ours.read_message()), "text:caf\xc3\xa9");
            EXPECT_EQ(told(co_await ends.ours.read_message()), "binary:" + std::string(200, 'b'));
            const auto last = co_await ends.ours.read_message();
            EXPECT_EQ(last.error(), errc::end_of_stream);
            EXPECT_EQ(ends.ours.close_code(), 1001);
            EXPECT_EQ(ends.ours.close_reason(), "bye");
            co_await sender;
        }
    });
}

TEST_P(websocket_reading_test, reads_large_messages_and_many) {
    run([]() -> task<> {
        auto ends = tcp_websocket_ends();
        const std::string large = noise(3'000'000);
        auto sender = spawn([](auto& to, const std::string& body) -> task<> {
            co_await to.send(frame(0x02, body.substr(0, 1'000'000)) + ping_frame("in between") +
                             frame(0x80, body.substr(1'000'000)));
            for (int count = 0; count < 1000; ++count)
                co_await to.send(text_frame(std::to_string(count)));
        }(ends, large));

        const auto first = co_await ends.ours.read_message(large.size());
        EXPECT_TRUE(first && first->data == large);
        for (int count = 0; count < 1000; ++count)
            EXPECT_EQ(told(co_await ends.ours.read_message()), "text:" + std::to_string(count));
        co_await sender;
    });
}

TEST_P(websocket_reading_test, a_message_at_the_limit_is_read_and_a_larger_one_is_refused) {
    run([]() -> task<> {
        for (const bool fragmented : {false, true}) {
            auto ends = memory_ends();
            co_await ends.send(text_frame("12345"));
            const std::string larger =
                fragmented ? frame(0x01, "123") + frame(0x80, "456") : text_frame("123456");
            co_await ends.send(larger);

            EXPECT_EQ(told(co_await ends.ours.read_message(5)), "text:12345");
            const auto refused = co_await ends.ours.read_message(5);
            EXPECT_EQ(refused.error(), errc::limit_exceeded);
            EXPECT_EQ(code_of(co_await ends.next()), 1009U);
            EXPECT_EQ(co_await ends.next(), no_frame);
            EXPECT_EQ((co_await ends.ours.read_message(5)).error(), errc::limit_exceeded);
            EXPECT_EQ((co_await ends.ours.write_message("x")).error(), errc::limit_exceeded);
        }
    });
}

TEST_P(websocket_reading_test, a_stop_in_the_middle_of_a_message_loses_nothing) {
    run([]() -> task<> {
        auto ends = tcp_websocket_ends();
        const std::string bytes = frame(0x01, "one ") + frame(0x80, "two");
        for (const char each : bytes.substr(0, bytes.size() - 1)) {
            co_await ends.send(std::string(1, each));
            const auto early = co_await with_timeout(ends.ours.read_message(), 1us);
            EXPECT_EQ(early.error(), errc::deadline_exceeded);
        }
        co_await ends.send(bytes.substr(bytes.size() - 1));

        EXPECT_EQ(told(co_await ends.ours.read_message()), "text:one two");
    });
}

TEST_P(websocket_reading_test, a_stop_in_the_middle_of_a_large_payload_loses_nothing) {
    run([]() -> task<> {
        auto ends = tcp_websocket_ends();
        const std::string body = noise(200'000);
        const std::string bytes = frame(0x82, body);
        for (std::size_t at = 0; at < bytes.size(); at += 50'000) {
            const auto early = co_await with_timeout(ends.ours.read_message(), 1us);
            EXPECT_EQ(early.error(), errc::deadline_exceeded);
            co_await ends.send(bytes.substr(at, 50'000));
        }

        const auto read = co_await ends.ours.read_message();
        EXPECT_TRUE(read && read->data == body);
    });
}

TEST_P(websocket_reading_test, a_lower_limit_applies_to_a_message_that_has_begun) {
    run([]() -> task<> {
        auto ends = memory_ends();
        co_await ends.send(frame(0x01, "12345"));
        const auto early = co_await with_timeout(ends.ours.read_message(10), 1us);
        EXPECT_EQ(early.error(), errc::deadline_exceeded);

        EXPECT_EQ((co_await ends.ours.read_message(4)).error(), errc::limit_exceeded);
    });
}

TEST_P(websocket_reading_test, a_peer_that_vanishes_is_no_end_of_the_messages) {
    run([]() -> task<> {
        for (const std::string& bytes : {text_frame("whole"), frame(0x01, "part"), ""s}) {
            auto ends = tcp_websocket_ends();
            co_await ends.send(bytes);
            ends.theirs.close();

            auto read = co_await ends.ours.read_message();
            if (read) read = co_await ends.ours.read_message();
            EXPECT_EQ(read.error(), http::errc::incomplete_message);
            EXPECT_EQ(ends.ours.close_code(), 1006);
            EXPECT_EQ((co_await ends.ours.write_message("x")).error(),
                      http::errc::incomplete_message);
        }
    });
}

TEST_P(websocket_reading_test, a_handle_that_is_destroyed_ends_a_read_in_flight) {
    run([]() -> task<> {
        std::optional<websocket_ends<tcp_stream>> ends{tcp_websocket_ends()};
        auto reader = spawn(ends->ours.read_message());
        co_await turns(3);

        {
            const websocket gone = std::move(ends->ours);
        }

        const auto read = co_await reader;
        EXPECT_EQ(read.error(), std::errc::operation_canceled);
        EXPECT_EQ(co_await ends->next(), no_frame);
    });
}

// A stream that can only read and write: not even a wait without a buffer is possible.
TEST_P(websocket_reading_test, works_over_a_stream_that_cannot_wait_without_taking) {
    run([]() -> task<> {
        auto [ours, theirs] = duplex();
        websocket_ends<duplex_stream> ends{
            make_websocket(plain_stream_of{std::move(ours)}, websocket_role::server),
            std::move(theirs), true};
        const std::string body = noise(60'000);
        auto reader = spawn(ends.ours.read_message());
        co_await turns(3);
        co_await ends.send(ping_frame("?"));
        EXPECT_EQ(co_await ends.next(), (seen_frame{0x8a, "?"}));
        co_await ends.send(frame(0x82, body));

        const auto read = co_await reader;
        EXPECT_TRUE(read && read->data == body);
    });
}

TEST_P(websocket_reading_test, a_peer_that_floods_cannot_hold_up_a_stop) {
    run([]() -> task<> {
        for (const std::string& again : {frame(0x00, ""), ping_frame("?")}) {
            auto ours =
                make_websocket(endless_stream{frame(0x01, ""), again}, websocket_role::server);
            const auto read = co_await with_timeout(ours.read_message(), 20ms);
            EXPECT_EQ(read.error(), errc::deadline_exceeded);
        }
    });
}

INSTANTIATE_TEST_SUITE_P(backends, websocket_reading_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
