#include "http/websocket/websocket_ends.hpp"
#include "support/backend_test.hpp"
#include "support/coroutines.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/testing/manual_clock.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace testing;
using namespace std::chrono_literals;

class websocket_keep_alive_test : public backend_test {
protected:
    void SetUp() override {
        backend_test::SetUp();
        if (!IsSkipped()) remake_loop({.clock = &clock_});
    }
    void TearDown() override { destroy_loop(); }

    [[nodiscard]] std::chrono::nanoseconds elapsed() const { return clock_.elapsed(); }

private:
    manual_clock clock_;
};

TEST_P(websocket_keep_alive_test, a_silent_peer_is_pinged_and_is_gone_without_an_answer) {
    run([this]() -> task<> {
        auto ends = memory_ends({.ping_interval = 30s, .pong_within = 20s});
        auto reader = spawn(ends.ours.read_message());

        EXPECT_EQ(co_await ends.next(), seen_frame(0x89, ""));
        EXPECT_GE(elapsed(), 30s);
        EXPECT_EQ((co_await reader).error(), std::errc::timed_out);
        EXPECT_GE(elapsed(), 50s);
        EXPECT_LT(elapsed(), 51s);
        EXPECT_EQ(ends.ours.close_code(), 1006);
        EXPECT_EQ(co_await ends.next(), no_frame);
    });
}

TEST_P(websocket_keep_alive_test, any_bytes_of_the_peer_show_that_it_lives) {
    run([this]() -> task<> {
        auto ends = memory_ends({.ping_interval = 30s, .pong_within = 20s});
        auto reader = spawn(ends.ours.read_message());
        for (const auto& answer : {frame(0x8a, ""), frame(0x01, "part"), std::string{"\x80"}}) {
            EXPECT_EQ(co_await ends.next(), seen_frame(0x89, ""));
            static_cast<void>(co_await async_sleep(19s));
            co_await ends.send(answer);
        }
        EXPECT_GE(elapsed(), 3 * (30s + 19s));
        co_await ends.send(frame(0x80, "").substr(1));
        EXPECT_EQ(told(co_await reader), "text:part");
    });
}

TEST_P(websocket_keep_alive_test, no_ping_is_sent_if_that_is_off) {
    run([]() -> task<> {
        auto ends = memory_ends({.ping_interval = 0s});

        const auto read = co_await with_timeout(ends.ours.read_message(), 24h);

        EXPECT_EQ(read.error(), errc::deadline_exceeded);
        EXPECT_EQ(ends.theirs.try_receive().error(), std::errc::operation_would_block);
    });
}

TEST_P(websocket_keep_alive_test, limits_of_the_caller_are_none_of_the_websocket) {
    run([this]() -> task<> {
        auto ends = memory_ends({.ping_interval = 30s, .pong_within = 20s});
        // The silence counts from the first of these reads.
        for (int count = 0; count < 4; ++count) {
            const auto read = co_await with_timeout(ends.ours.read_message(), 8s);
            EXPECT_EQ(read.error(), errc::deadline_exceeded);
        }
        EXPECT_EQ(co_await ends.next(), seen_frame(0x89, ""));
        EXPECT_LT(elapsed(), 33s);
        EXPECT_EQ((co_await ends.ours.read_message()).error(), std::errc::timed_out);
        EXPECT_LT(elapsed(), 51s);
    });
}

TEST_P(websocket_keep_alive_test, a_peer_that_cannot_even_be_pinged_is_gone_as_soon) {
    run([this]() -> task<> {
        auto ends = memory_ends({.ping_interval = 30s, .pong_within = 20s, .write_idle = 0s},
                                websocket_role::server, 4);
        EXPECT_TRUE(co_await ends.ours.write_message("ab")); // fills the stream

        EXPECT_EQ((co_await ends.ours.read_message()).error(), std::errc::timed_out);

        EXPECT_LT(elapsed(), 51s);
    });
}

TEST_P(websocket_keep_alive_test, a_peer_that_pings_and_never_reads_is_gone_after_the_limit) {
    run([this]() -> task<> {
        auto ends = memory_ends({.write_idle = 10s}, websocket_role::server, 16);
        auto reader = spawn(ends.ours.read_message());
        while (!reader.done() && elapsed() < 1min) {
            co_await ends.send(ping_frame("?"));
            static_cast<void>(co_await async_sleep(1s));
        }

        EXPECT_EQ((co_await reader).error(), std::errc::timed_out);
        EXPECT_GE(elapsed(), 10s);
        EXPECT_LT(elapsed(), 20s);
    });
}

TEST_P(websocket_keep_alive_test, a_peer_that_takes_a_byte_now_and_then_is_none_of_those) {
    run([this]() -> task<> {
        auto ends = memory_ends({.write_idle = 10s}, websocket_role::server, 16);
        auto reader = spawn(ends.ours.read_message());
        while (elapsed() < 1min) {
            co_await ends.send(ping_frame(std::string(8, '?')));
            static_cast<void>(co_await async_sleep(6s));
            EXPECT_EQ((co_await ends.next()).first, 0x8aU);
        }

        EXPECT_FALSE(reader.done());
        reader.request_stop();
        EXPECT_EQ((co_await reader).error(), std::errc::operation_canceled);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, websocket_keep_alive_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
