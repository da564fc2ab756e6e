#include <simplenet/stream/frame_reader.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/pieces.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/stream/any_stream.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/stream/frame_writer.hpp>
#include <simplenet/testing/faulty_stream.hpp>
#include <simplenet/time/deadline.hpp>

#include <bit>
#include <limits>
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
using testing::connect_raw;
using ::testing::ElementsAre;
using testing::noise;
using testing::pieces;

constexpr std::size_t any_length = std::numeric_limits<std::size_t>::max();
constexpr frame_format byte_lengths{.prefix = frame_prefix::u8};

static_assert(async_reader<frame_reader<duplex_stream>>);
static_assert(async_reader<frame_reader<tcp_stream&>>);

// A limit around read_frame() needs no scope of its own if the stream's reads need none.
static_assert(detail::leaf<decltype(std::declval<frame_reader<tcp_stream>&>().read_frame(1))>);

std::string_view body_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Everything that a reader gets from a stream, frame by frame.
struct frames {
    std::vector<std::string> whole;
    std::error_code end;
    std::string tail;
};

template <class Reader>
task<frames> read_frames(Reader& reader, std::size_t limit) {
    frames got;
    for (;;) {
        const auto body = co_await reader.read_frame(limit);
        if (!body) {
            got.end = body.error();
            break;
        }
        got.whole.emplace_back(body_text(*body));
    }
    got.tail = body_text(reader.peek());
    co_return got;
}

std::string encode(std::string_view body, frame_format format) {
    const detail::frame_head head = detail::encode_prefix(body.size(), format);
    std::string text{reinterpret_cast<const char*>(head.bytes.data()), head.size};
    return text.append(body);
}

class frame_reader_test : public testing::backend_test {};

// --- frames --------------------------------------------------------------------------------------

TEST_P(frame_reader_test, frames_come_without_their_prefixes) {
    run([&]() -> task<> {
        frame_reader reader{pieces{{std::string{"\0\0\0\3one\0\0\0\0\0\0\0\5three"sv}}}};
        const frames got = co_await read_frames(reader, 5);
        EXPECT_THAT(got.whole, ElementsAre("one", "", "three"));
        EXPECT_EQ(got.end, errc::end_of_stream);
        EXPECT_EQ(got.tail, "");
    });
}

TEST_P(frame_reader_test, every_format_gives_the_same_frames_in_reads_of_any_size) {
    constexpr frame_format formats[] = {
        {.prefix = frame_prefix::u16},
        {.prefix = frame_prefix::u32, .order = std::endian::little},
        {.prefix = frame_prefix::u64},
        {.prefix = frame_prefix::varint},
    };
    run([&]() -> task<> {
        testing::dice dice{3};
        for (const frame_format format : formats) {
            for (unsigned most : {1U, 2U, 9U, 700U}) {
                std::vector<std::string> sent;
                std::string text;
                for (const std::size_t size : {0U, 1U, 127U, 128U, 5000U, 0U, 70U, 20'000U}) {
                    sent.push_back(noise(size));
                    text += encode(sent.back(), format);
                }
                pieces from{text, [&] { return 1 + dice.up_to(most - 1); }};
                frame_reader reader{std::move(from), format};
                const frames got = co_await read_frames(reader, 20'000);
                EXPECT_TRUE(got.whole == sent);
                EXPECT_EQ(got.end, errc::end_of_stream);
            }
        }
    });
}

TEST_P(frame_reader_test, one_read_brings_many_frames) {
    run([&]() -> task<> {
        std::string text;
        for (int count = 0; count < 500; ++count)
            text += encode("hello", {});
        auto [ours, theirs] = duplex();
        EXPECT_TRUE(co_await async_write_all(theirs, text));
        theirs.close();
        testing::faulty_stream observed{std::move(ours)};
        frame_reader reader{observed};
        const frames got = co_await read_frames(reader, 5);
        EXPECT_EQ(got.whole.size(), 500U);
        EXPECT_LE(observed.reads().calls(), 3U);
    });
}

TEST_P(frame_reader_test, a_long_frame_arrives_byte_by_byte_in_linear_time) {
    run([&]() -> task<> {
        const std::string body = noise(200'000);
        frame_reader reader{pieces{encode(body, {}), [] { return 1U; }}};
        EXPECT_TRUE(body_text((co_await reader.read_frame(any_length)).value()) == body);
    });
}

TEST_P(frame_reader_test, frames_cross_tcp_and_unknown_streams) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        frame_reader reader{any_stream{std::move(ours)}};
        auto reading = spawn([&]() -> task<> {
            const frames got = co_await read_frames(reader, 300'000);
            EXPECT_THAT(got.whole, ElementsAre("a", "", noise(300'000)));
            EXPECT_EQ(got.end, errc::end_of_stream);
        });
        for (const char each : encode("a", {}) + encode("", {})) {
            theirs.send({&each, 1});
            co_await yield();
        }
        const std::string last = encode(noise(300'000), {});
        for (std::size_t at = 0; at < last.size(); at += 10'000) {
            theirs.send(std::string_view{last}.substr(at, 10'000));
            co_await yield();
        }
        theirs.close();
        co_await reading;
    });
}

TEST_P(frame_reader_test, a_view_lasts_until_the_next_call) {
    run([&]() -> task<> {
        frame_reader reader{pieces{{"\3one\3two"}}, byte_lengths};
        const auto first = co_await reader.read_frame(3);
        EXPECT_EQ(body_text(reader.peek()), "\3two");
        frame_reader moved{std::move(reader)};
        EXPECT_EQ(body_text(first.value()), "one");
        EXPECT_EQ(body_text((co_await moved.read_frame(3)).value()), "two");
    });
}

TEST_P(frame_reader_test, what_follows_the_last_frame_is_read_through_the_reader) {
    run([&]() -> task<> {
        frame_reader reader{pieces{{"\3onerest", "more"}}, byte_lengths};
        EXPECT_TRUE(co_await reader.read_frame(3));
        std::string rest(8, '\0');
        EXPECT_TRUE(co_await async_read_exact(reader, rest));
        EXPECT_EQ(rest, "restmore");
    });
}

// --- limits --------------------------------------------------------------------------------------

TEST_P(frame_reader_test, a_frame_above_the_limit_stays_for_a_call_with_a_higher_one) {
    run([&]() -> task<> {
        frame_reader reader{pieces{{"\4four\1x"}}, byte_lengths};
        EXPECT_EQ(error_of(co_await reader.read_frame(3)), errc::limit_exceeded);
        EXPECT_EQ(error_of(co_await reader.read_frame(0)), errc::limit_exceeded);
        EXPECT_EQ(body_text(reader.peek()), "\4four\1x");
        EXPECT_EQ(body_text((co_await reader.read_frame(4)).value()), "four");
        EXPECT_EQ(body_text((co_await reader.read_frame(1)).value()), "x");
    });
}

TEST_P(frame_reader_test, a_limit_is_noticed_before_the_body_arrives) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        frame_reader reader{ours};
        EXPECT_TRUE(co_await theirs.write_some("\x7f\xff\xff\xff"));
        EXPECT_EQ(error_of(co_await reader.read_frame(1000)), errc::limit_exceeded);
    });
}

TEST_P(frame_reader_test, the_largest_announcements_neither_overflow_nor_take_memory) {
    run([&]() -> task<> {
        constexpr frame_format format{.prefix = frame_prefix::u64};
        frame_reader huge{pieces{{std::string(8, '\xff') + "x"}}, format};
        EXPECT_EQ(error_of(co_await huge.read_frame(any_length)), errc::limit_exceeded);

        frame_reader large{pieces{{"\x3f" + std::string(7, '\xff') + "x"}}, format};
        EXPECT_EQ(error_of(co_await large.read_frame(any_length)), errc::end_of_stream);
        EXPECT_EQ(large.peek().size(), 9U);
    });
}

TEST_P(frame_reader_test, an_endless_varint_is_a_bad_message) {
    run([&]() -> task<> {
        frame_reader reader{pieces{std::string(20, '\x80'), [] { return 1U; }},
                            {.prefix = frame_prefix::varint}};
        EXPECT_EQ(error_of(co_await reader.read_frame(any_length)), std::errc::bad_message);
        EXPECT_EQ(reader.peek().size(), 10U);
        EXPECT_EQ(error_of(co_await reader.read_frame(any_length)), std::errc::bad_message);
    });
}

// --- errors, stops and deadlines -----------------------------------------------------------------

TEST_P(frame_reader_test, peek_tells_a_stream_that_ended_between_frames_from_one_that_was_cut) {
    const std::string text = encode("one", {}) + encode("two", {});
    run([&]() -> task<> {
        for (std::size_t size = 0; size <= text.size(); ++size) {
            pieces from{std::string_view{text}.substr(0, size), [] { return 100U; }};
            frame_reader reader{std::move(from)};
            const frames got = co_await read_frames(reader, 3);
            EXPECT_EQ(got.whole.size(), size / 7);
            EXPECT_EQ(got.end, errc::end_of_stream);
            EXPECT_EQ(got.tail, text.substr(size / 7 * 7, size % 7));
        }
    });
}

TEST_P(frame_reader_test, errors_of_the_stream_follow_the_frames_received_before) {
    run([&]() -> task<> {
        frame_reader reader{
            pieces{{"\3one\3tw"}, std::make_error_code(std::errc::connection_reset)}, byte_lengths};
        const frames got = co_await read_frames(reader, 3);
        EXPECT_THAT(got.whole, ElementsAre("one"));
        EXPECT_EQ(got.end, std::errc::connection_reset);
        EXPECT_EQ(got.tail, "\3tw");
    });
}

TEST_P(frame_reader_test, a_call_that_ran_out_of_time_loses_nothing_and_can_be_repeated) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        frame_reader reader{ours};
        for (const std::string_view part : {"\0\0"sv, "\0\5he"sv, "ll"sv}) {
            EXPECT_TRUE(co_await theirs.write_some(part));
            EXPECT_EQ(error_of(co_await with_timeout(reader.read_frame(5), 1ms)),
                      errc::deadline_exceeded);
        }
        EXPECT_TRUE(co_await theirs.write_some("o"));
        EXPECT_EQ(body_text((co_await with_timeout(reader.read_frame(5), 1ms)).value()), "hello");
    });
}

TEST_P(frame_reader_test, frames_that_arrived_together_leave_other_tasks_their_turn) {
    run([&]() -> task<> {
        std::string text;
        for (int count = 0; count < 1000; ++count)
            text += encode("", {});
        frame_reader reader{pieces{{text}}};
        int other = 0;
        auto turning = spawn([&]() -> task<> {
            for (;; ++other) {
                if (co_await this_task::stop_requested()) co_return;
                co_await yield();
            }
        });
        for (int count = 0; count < 1000; ++count)
            EXPECT_TRUE(co_await reader.read_frame(0));
        EXPECT_GE(other, 1000 / 64 - 1);
        turning.request_stop();
        co_await turning;
    });
}

TEST_P(frame_reader_test, a_call_while_another_one_is_in_flight_is_a_violation) {
    EXPECT_DEATH(run([&]() -> task<> {
                     auto [ours, theirs] = duplex();
                     frame_reader reader{ours};
                     auto first = spawn(
                         [&]() -> task<> { static_cast<void>(co_await reader.read_frame(1)); });
                     co_await yield();
                     static_cast<void>(co_await reader.read_frame(1));
                 }),
                 "reader was used while a read is in flight");
}

INSTANTIATE_TEST_SUITE_P(backends, frame_reader_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
