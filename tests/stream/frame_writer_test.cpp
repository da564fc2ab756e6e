#include <simplenet/stream/frame_writer.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"
#include "support/scripted_stream.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/stream/frame_reader.hpp>
#include <simplenet/time/deadline.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connected_pair;
using ::testing::ElementsAre;
using testing::noise;
using testing::plain_stream;
using testing::rich_stream;
using testing::script;

class frame_writer_test : public testing::backend_test {};

TEST_P(frame_writer_test, prefix_and_body_leave_in_one_write) {
    run([&]() -> task<> {
        script seen;
        frame_writer writer{rich_stream{seen}};
        EXPECT_TRUE(co_await writer.write_frame("hello"));
        EXPECT_TRUE(co_await writer.write_frame(""));
        EXPECT_EQ(seen.written, "\0\0\0\5hello\0\0\0\0"sv);
        EXPECT_THAT(seen.buffers, ElementsAre(2U, 2U));
    });
}

TEST_P(frame_writer_test, a_body_in_pieces_becomes_one_frame_in_one_write) {
    run([&]() -> task<> {
        for (const std::size_t count : {0U, 1U, 7U, 8U, 15U}) {
            script seen;
            frame_writer writer{rich_stream{seen}, {.prefix = frame_prefix::varint}};
            const std::vector<const_buffer> body(count, const_buffer{"ab"});
            EXPECT_TRUE(co_await writer.write_frame(std::span{body}));
            std::string want(1, static_cast<char>(2 * count));
            for (std::size_t each = 0; each < count; ++each)
                want += "ab";
            EXPECT_EQ(seen.written, want);
            EXPECT_THAT(seen.buffers, ElementsAre(count + 1));
        }
    });
}

TEST_P(frame_writer_test, a_stream_of_single_buffers_gets_the_same_bytes) {
    run([&]() -> task<> {
        script seen;
        seen.piece = 1;
        frame_writer writer{plain_stream{seen}, {.prefix = frame_prefix::u16}};
        EXPECT_TRUE(co_await writer.write_frame("hello"));
        EXPECT_TRUE(co_await writer.write_frame("x"));
        EXPECT_EQ(seen.written, "\0\5hello\0\1x"sv);
    });
}

TEST_P(frame_writer_test, a_body_longer_than_the_prefix_can_express_is_not_written) {
    run([&]() -> task<> {
        script seen;
        frame_writer writer{rich_stream{seen}, {.prefix = frame_prefix::u8}};
        const std::string body(256, 'x');
        EXPECT_EQ(error_of(co_await writer.write_frame(body)), errc::limit_exceeded);
        const std::array<const_buffer, 2> halves{const_buffer{body}, const_buffer{body}};
        EXPECT_EQ(error_of(co_await writer.write_frame(std::span<const const_buffer>{halves})),
                  errc::limit_exceeded);
        EXPECT_EQ(seen.written, "");
        EXPECT_FALSE(writer.is_cut());
        EXPECT_TRUE(co_await writer.write_frame(std::string_view{body}.substr(1)));
        EXPECT_EQ(seen.written.size(), 256U);
    });
}

TEST_P(frame_writer_test, a_frame_that_was_cut_ends_the_writer) {
    run([&]() -> task<> {
        script seen;
        seen.room = 6;
        frame_writer writer{rich_stream{seen}};
        EXPECT_EQ(error_of(co_await with_timeout(writer.write_frame("hello"), 1ms)), canceled);
        EXPECT_TRUE(writer.is_cut());
        seen.make_room(1000);
        EXPECT_EQ(error_of(co_await writer.write_frame("again")), std::errc::broken_pipe);
        EXPECT_EQ(seen.written, "\0\0\0\5he"sv);

        frame_writer moved{std::move(writer)};
        EXPECT_TRUE(moved.is_cut());
    });
}

TEST_P(frame_writer_test, a_stop_before_the_first_byte_leaves_the_writer_intact) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex(4);
        EXPECT_TRUE(co_await theirs.write_some("full"));
        frame_writer writer{theirs};
        EXPECT_EQ(error_of(co_await with_timeout(writer.write_frame("x"), 1ms)),
                  errc::deadline_exceeded);
        EXPECT_FALSE(writer.is_cut());

        std::string text(9, '\0');
        auto reading =
            spawn([&]() -> task<> { EXPECT_TRUE(co_await async_read_exact(ours, text)); });
        EXPECT_TRUE(co_await writer.write_frame("x"));
        co_await reading;
        EXPECT_EQ(text, "full\0\0\0\1x"sv);
    });
}

TEST_P(frame_writer_test, a_peer_that_is_gone_is_an_error) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        theirs.close();
        frame_writer writer{ours};
        EXPECT_EQ(error_of(co_await writer.write_frame("x")), std::errc::broken_pipe);
    });
}

TEST_P(frame_writer_test, a_writer_and_a_reader_share_a_tcp_stream) {
    auto [ours, theirs] = connected_pair();
    run([&]() -> task<> {
        frame_writer writer{ours};
        frame_reader reader{ours};
        const std::string large = noise(3'000'000);
        auto echoing = spawn([&]() -> task<> {
            for (const std::size_t size : {5UL, 0UL, large.size()}) {
                EXPECT_TRUE(co_await writer.write_frame(const_buffer{large.data(), size}));
            }
            EXPECT_TRUE(ours.shutdown_write());
        });
        frame_reader there{theirs};
        frame_writer back{theirs};
        for (const std::size_t size : {5UL, 0UL, large.size()}) {
            const auto body = co_await there.read_frame(large.size());
            EXPECT_TRUE(body &&
                        std::ranges::equal(*body, std::as_bytes(std::span{large}).first(size)));
            EXPECT_TRUE(co_await back.write_frame("ack"));
            EXPECT_TRUE(co_await reader.read_frame(3));
        }
        EXPECT_EQ(error_of(co_await there.read_frame(1)), errc::end_of_stream);
        co_await echoing;
    });
}

TEST_P(frame_writer_test, a_call_while_another_one_is_in_flight_is_a_violation) {
    EXPECT_DEATH(run([&]() -> task<> {
                     auto [ours, theirs] = duplex(1);
                     frame_writer writer{ours};
                     auto first = spawn(
                         [&]() -> task<> { static_cast<void>(co_await writer.write_frame("x")); });
                     co_await yield();
                     static_cast<void>(co_await writer.write_frame("y"));
                 }),
                 "a frame_writer was used while a write is in flight on it");
}

INSTANTIATE_TEST_SUITE_P(backends, frame_writer_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
