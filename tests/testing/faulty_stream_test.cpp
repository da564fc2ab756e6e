#include <simplenet/testing/faulty_stream.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/stream/buffered_reader.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Le;

const auto reset = std::make_error_code(std::errc::connection_reset);

static_assert(async_reader<faulty_stream<duplex_stream>>);
static_assert(async_writer<faulty_stream<duplex_stream>>);

/// The bytes that each read returns, until the first error.
template <class Stream>
task<std::vector<std::size_t>> counts_of(Stream& from) {
    std::vector<std::size_t> counts;
    std::array<char, 64> buffer;
    while (auto count = co_await from.read_some(buffer))
        counts.push_back(*count);
    co_return counts;
}

class faulty_stream_test : public backend_test {};

TEST_P(faulty_stream_test, without_a_script_nothing_changes) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        faulty_stream faulty{std::move(ours)};
        EXPECT_EQ((co_await faulty.write_some("hello")).value_or(0), 5U);
        EXPECT_TRUE(co_await async_shutdown_write(faulty));
        EXPECT_THAT(co_await counts_of(theirs), ElementsAre(5U));
        EXPECT_TRUE(co_await theirs.write_some("answer"));
        theirs.close();
        EXPECT_THAT(co_await counts_of(faulty), ElementsAre(6U));
        EXPECT_EQ(faulty.reads().calls(), 2U);
        EXPECT_EQ(faulty.reads().bytes(), 6U);
        EXPECT_EQ(faulty.writes().bytes(), 5U);
    });
}

TEST_P(faulty_stream_test, reads_and_writes_can_be_short) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        faulty_stream faulty{std::move(ours)};
        faulty.reads().at_most(2).pieces({1, 3});
        faulty.writes().at_most(3);
        EXPECT_TRUE(co_await theirs.write_some("0123456"));
        EXPECT_TRUE(theirs.shutdown_write());
        EXPECT_THAT(co_await counts_of(faulty), ElementsAre(1U, 2U, 2U, 2U));

        EXPECT_EQ((co_await faulty.write_some("abcdef")).value_or(0), 3U);
        const std::array<const_buffer, 3> parts{const_buffer{}, const_buffer{"gh"},
                                                const_buffer{"ij"}};
        EXPECT_EQ((co_await faulty.write_some(std::span{parts})).value_or(0), 2U);
        EXPECT_EQ(
            (co_await async_write_all(faulty, std::span<const const_buffer>{parts})).value_or(0),
            4U);
    });
}

TEST_P(faulty_stream_test, random_pieces_are_the_same_for_the_same_seed) {
    run([&]() -> task<> {
        std::vector<std::vector<std::size_t>> runs;
        for (const std::uint32_t seed : {1U, 1U, 2U}) {
            auto [ours, theirs] = duplex();
            faulty_stream faulty{std::move(ours)};
            faulty.reads().random_pieces(seed, 5);
            EXPECT_TRUE(co_await async_write_all(theirs, std::string(200, 'x')));
            theirs.close();
            runs.push_back(co_await counts_of(faulty));
            EXPECT_THAT(runs.back(), Each(Le(5U)));
        }
        EXPECT_EQ(runs[0], runs[1]);
        EXPECT_NE(runs[0], runs[2]);
    });
}

TEST_P(faulty_stream_test, a_call_can_fail_once) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        faulty_stream faulty{std::move(ours)};
        faulty.reads().fail_call(2, make_error_code(errc::deadline_exceeded)).at_most(2);
        faulty.writes().fail_call(1, reset);
        EXPECT_TRUE(co_await theirs.write_some("0123"));
        EXPECT_TRUE(theirs.shutdown_write());
        EXPECT_THAT(co_await counts_of(faulty), ElementsAre(2U));
        EXPECT_THAT(co_await counts_of(faulty), ElementsAre(2U)); // nothing was lost
        EXPECT_EQ(error_of(co_await faulty.write_some("x")), reset);
        EXPECT_TRUE(co_await faulty.write_some("x"));
    });
}

TEST_P(faulty_stream_test, a_connection_can_break_at_a_byte) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        faulty_stream faulty{std::move(ours)};
        faulty.reads().fail_at_byte(5, make_error_code(errc::end_of_stream)).at_most(3);
        faulty.writes().fail_at_byte(3, reset);
        EXPECT_TRUE(co_await theirs.write_some("0123456789"));
        EXPECT_THAT(co_await counts_of(faulty), ElementsAre(3U, 2U));
        EXPECT_THAT(co_await counts_of(faulty), ElementsAre());
        const auto written = co_await async_write_all(faulty, "abcdef");
        EXPECT_EQ(error_of(written), reset);
        EXPECT_EQ(written.error().transferred, 3U);
        EXPECT_EQ(error_of(co_await faulty.write_some("x")), reset);
    });
}

TEST_P(faulty_stream_test, calls_can_be_delayed_and_a_limit_or_a_stop_ends_the_wait) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        faulty_stream faulty{std::move(ours)};
        EXPECT_TRUE(co_await theirs.write_some("0123456789"));
        faulty.reads().at_most(2).delay_call(1, 5ms).delay_each(1h);
        std::array<char, 4> buffer;
        const auto start = std::chrono::steady_clock::now();
        EXPECT_EQ((co_await faulty.read_some(buffer)).value_or(0), 2U);
        EXPECT_GE(std::chrono::steady_clock::now() - start, 5ms);
        EXPECT_EQ(error_of(co_await with_timeout(faulty.read_some(buffer), 1ms)),
                  errc::deadline_exceeded);
        auto reading = spawn(
            [&]() -> task<> { EXPECT_EQ(error_of(co_await faulty.read_some(buffer)), canceled); });
        co_await turns(3);
        reading.request_stop();
        co_await reading;
        faulty.reads().delay_each(0ms);
        EXPECT_EQ((co_await faulty.read_some(buffer)).value_or(0), 2U);
    });
}

TEST_P(faulty_stream_test, a_task_can_be_stopped_at_each_call) {
    const std::string text = "one\ntwo\nthree\n";
    run([&]() -> task<> {
        for (std::size_t stop_at = 1; stop_at <= text.size(); ++stop_at) {
            auto [ours, theirs] = duplex();
            faulty_stream faulty{std::move(ours)};
            EXPECT_TRUE(co_await async_write_all(theirs, text));
            theirs.close();
            buffered_reader reader{std::move(faulty)};
            std::vector<std::string> lines;
            const auto read = [&]() -> task<std::error_code> {
                for (;;) {
                    const auto line = co_await reader.read_line(10);
                    if (!line) co_return line.error();
                    lines.emplace_back(*line);
                }
            };
            auto reading = spawn(read());
            reader.stream().reads().at_most(1).before_call(stop_at,
                                                           [&] { reading.request_stop(); });
            EXPECT_EQ(co_await reading, canceled);
            EXPECT_EQ(reader.stream().reads().calls(), stop_at);
            EXPECT_EQ(co_await read(), errc::end_of_stream);
            EXPECT_THAT(lines, ElementsAre("one", "two", "three"));
        }
    });
}

TEST_P(faulty_stream_test, a_stop_comes_before_a_scripted_error) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        faulty_stream faulty{std::move(ours)};
        faulty.reads().fail_at_byte(0, reset);
        std::array<char, 4> buffer;
        EXPECT_EQ(error_of(co_await faulty.read_some(buffer)), reset);
        auto stopped = spawn(
            [&]() -> task<> { EXPECT_EQ(error_of(co_await faulty.read_some(buffer)), canceled); });
        stopped.request_stop();
        co_await stopped;
    });
}

// Otherwise the previous stream would stay open in the other object.
TEST_P(faulty_stream_test, assigning_to_it_closes_the_previous_stream) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        auto [others, peers] = duplex();
        faulty_stream faulty{std::move(ours)};
        faulty_stream other{std::move(others)};

        faulty = std::move(other);

        std::array<char, 8> buffer;
        EXPECT_EQ(error_of(co_await theirs.read_some(buffer)), errc::end_of_stream);
        EXPECT_TRUE(co_await faulty.write_some("hello"));
        EXPECT_EQ((co_await peers.read_some(buffer)).value_or(0), 5U);
    });
}

// Otherwise the operation would sleep on, and fail with bad_file_descriptor only then.
TEST_P(faulty_stream_test, close_ends_an_operation_that_is_delayed) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        faulty_stream faulty{std::move(ours)};
        faulty.reads().delay_each(24h);
        faulty.writes().delay_each(24h);
        std::array<char, 8> buffer;
        auto read = spawn(
            [&]() -> task<result<std::size_t>> { co_return co_await faulty.read_some(buffer); });
        auto write = spawn(
            [&]() -> task<result<std::size_t>> { co_return co_await faulty.write_some("x"); });
        co_await turns(3);

        faulty.close();

        EXPECT_EQ(error_of(co_await read), canceled);
        EXPECT_EQ(error_of(co_await write), canceled);
        EXPECT_EQ(error_of(co_await faulty.read_some(buffer)), std::errc::bad_file_descriptor);
    });
}

TEST_P(faulty_stream_test, it_may_be_moved_and_destroyed_with_operations_in_flight) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        std::optional<faulty_stream<duplex_stream>> faulty{std::in_place, std::move(ours)};
        std::array<char, 4> buffer;
        auto reading = spawn(
            [&]() -> task<result<std::size_t>> { co_return co_await faulty->read_some(buffer); });
        co_await turns(2);
        std::optional moved{std::move(*faulty)};
        faulty.reset();
        EXPECT_TRUE(co_await theirs.write_some("x"));
        EXPECT_EQ((co_await reading).value_or(0), 1U);

        auto second = spawn(
            [&]() -> task<result<std::size_t>> { co_return co_await moved->read_some(buffer); });
        co_await turns(2);
        moved.reset();
        EXPECT_EQ(error_of(co_await second), canceled);
        EXPECT_EQ(error_of(co_await theirs.write_some("x")), std::errc::broken_pipe);
    });
}

TEST_P(faulty_stream_test, misuse_stops_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto [ours, theirs] = duplex();
    faulty_stream faulty{std::move(ours)};
    EXPECT_DEATH(faulty.reads().at_most(0), "must be allowed to move a byte");
    EXPECT_DEATH(faulty.reads().pieces({1, 0}), "must be allowed to move a byte");
    EXPECT_DEATH(static_cast<void>(faulty.read_some(mutable_buffer{})), "into an empty buffer");
    EXPECT_DEATH(run([&]() -> task<> {
                     faulty.reads().delay_each(1h);
                     std::array<char, 4> buffer;
                     co_await when_all(faulty.read_some(buffer), faulty.read_some(buffer));
                 }),
                 "one in flight");
    const faulty_stream taken{std::move(faulty)};
    EXPECT_DEATH(static_cast<void>(faulty.write_some("x")), "moved from");
}

INSTANTIATE_TEST_SUITE_P(backends, faulty_stream_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
