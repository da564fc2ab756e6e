#include <simplenet/stream/split.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/stream/any_stream.hpp>
#include <simplenet/stream/buffered_reader.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <optional>
#include <string>
#include <utility>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::turns;

static_assert(async_reader<read_half<tcp_stream>> && !async_writer<read_half<tcp_stream>>);
static_assert(async_writer<write_half<tcp_stream>> && !async_reader<write_half<tcp_stream>>);
static_assert(!std::copy_constructible<read_half<tcp_stream>>);
// Each call is a single operation, as on the stream itself.
static_assert(std::same_as<decltype(async_read_exact(std::declval<read_half<tcp_stream>&>(),
                                                     mutable_buffer{})),
                           detail::read_exact_operation>);
static_assert(
    std::same_as<decltype(async_write_all(std::declval<write_half<tcp_stream>&>(), const_buffer{})),
                 detail::write_all_operation>);

// What makes them one operation is not for programs to call.
template <class Stream>
concept shows_what_algorithms_call =
    requires(Stream& stream, mutable_buffer into) { stream.read_ready(into); } ||
    requires(Stream& stream, mutable_buffer into) { stream.read_exact_operation(into); } ||
    requires(Stream& stream, const_buffer from) {
        stream.write_all_operation(from, write_options{});
    };
static_assert(!shows_what_algorithms_call<tcp_stream>);
static_assert(!shows_what_algorithms_call<local_stream>);
static_assert(!shows_what_algorithms_call<duplex_stream>);
static_assert(!shows_what_algorithms_call<read_half<tcp_stream>>);
static_assert(!shows_what_algorithms_call<write_half<tcp_stream>>);

/// A stream that writes something before it can end, like TLS.
class polite_stream {
public:
    explicit polite_stream(duplex_stream below)
        : below_{std::move(below)} {}

    auto read_some(mutable_buffer into) { return below_.read_some(into); }
    auto write_some(const_buffer from) { return below_.write_some(from); }
    task<result<>> shutdown_write() {
        if (auto said = co_await async_write_all(below_, "bye"); !said) co_return fail(said);
        co_return below_.shutdown_write();
    }

private:
    duplex_stream below_;
};
static_assert(detail::shuts_down_in_time<polite_stream> && detail::shuts_down_in_time<any_stream>);
static_assert(detail::shuts_down_at_once<tcp_stream> && detail::shuts_down_at_once<local_stream>);

task<std::string> read_to_end(auto& from) {
    std::string all;
    std::array<char, 64> buffer;
    while (auto count = co_await from.read_some(buffer))
        all.append(buffer.data(), *count);
    co_return all;
}

class split_test : public testing::backend_test {};

TEST_P(split_test, two_tasks_own_a_half_each) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto [reads, writes] = split(std::move(ours));
        std::string got;
        auto reading = spawn([](read_half<tcp_stream> from, std::string& into) -> task<> {
            into = co_await read_to_end(from);
        }(std::move(reads), got));
        auto writing = spawn([](write_half<tcp_stream> to) -> task<> {
            EXPECT_TRUE(co_await async_write_all(to, "request"));
        }(std::move(writes)));
        co_await writing;
        EXPECT_EQ(theirs.receive(100), "request"); // and the end, since its half is gone
        EXPECT_FALSE(reading.done());
        theirs.send("answer");
        theirs.shutdown_write();
        co_await reading;
        EXPECT_EQ(got, "answer");
    });
}

TEST_P(split_test, dropping_the_write_half_ends_the_stream_for_the_peer_and_reading_continues) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        auto [reads, writes] = split(std::move(ours));
        {
            const auto gone = std::move(writes);
            EXPECT_TRUE(co_await gone.write_some("x"));
        }
        EXPECT_EQ(co_await read_to_end(theirs), "x");
        EXPECT_TRUE(co_await theirs.write_some("answer"));
        std::array<char, 16> buffer;
        EXPECT_EQ((co_await reads.read_some(buffer)).value_or(0), 6U);
    });
}

TEST_P(split_test, dropping_the_read_half_does_not_affect_the_other) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        auto halves = split(std::move(ours));
        std::optional<write_half<duplex_stream>> writes{std::move(halves.second)};
        {
            const auto gone = std::move(halves.first);
        }
        EXPECT_TRUE(co_await theirs.write_some("nobody reads this"));
        EXPECT_TRUE(co_await writes->write_some("x"));
        EXPECT_TRUE(writes->stream().is_open());
        writes.reset();
        EXPECT_EQ(error_of(co_await theirs.write_some("y")), std::errc::broken_pipe);
        EXPECT_EQ(co_await read_to_end(theirs), "x");
    });
}

TEST_P(split_test, a_destroyed_half_leaves_operations_of_the_other_in_flight) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        auto halves = split(std::move(ours));
        std::optional<read_half<duplex_stream>> reads{std::move(halves.first)};
        auto reading = spawn([&]() -> task<result<std::size_t>> {
            std::array<char, 4> buffer;
            co_return co_await reads->read_some(buffer);
        });
        co_await turns(2);
        {
            const auto gone = std::move(halves.second);
        }
        co_await turns(2);
        EXPECT_FALSE(reading.done());
        auto moved = std::move(*reads);
        EXPECT_TRUE(co_await theirs.write_some("x"));
        EXPECT_EQ((co_await reading).value_or(0), 1U);
    });
}

TEST_P(split_test, closing_either_half_closes_the_stream) {
    run([&]() -> task<> {
        for (const bool by_reader : {false, true}) {
            auto [ours, theirs] = duplex();
            auto [reads, writes] = split(std::move(ours));
            by_reader ? reads.close() : writes.close();
            std::array<char, 4> buffer;
            EXPECT_EQ(error_of(co_await reads.read_some(buffer)), std::errc::bad_file_descriptor);
            EXPECT_EQ(error_of(co_await writes.write_some("x")), std::errc::bad_file_descriptor);
            EXPECT_EQ(error_of(co_await theirs.write_some("x")), std::errc::broken_pipe);
        }
    });
}

TEST_P(split_test, assigning_to_a_half_ends_the_previous_one) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        auto [others, their_others] = duplex();
        auto [reads, writes] = split(std::move(ours));
        auto [other_reads, other_writes] = split(std::move(others));
        writes = std::move(other_writes);
        EXPECT_EQ(co_await read_to_end(theirs), "");
        EXPECT_TRUE(co_await writes.write_some("x"));
        reads = std::move(other_reads);
        EXPECT_EQ(error_of(co_await theirs.write_some("x")), std::errc::broken_pipe);
        EXPECT_TRUE(co_await their_others.write_some("y"));
    });
}

TEST_P(split_test, the_halves_can_be_joined_again) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        auto [reads, writes] = split(std::move(ours));
        duplex_stream whole = reunite(std::move(reads), std::move(writes));
        EXPECT_TRUE(co_await whole.write_some("x"));
        EXPECT_TRUE(whole.is_open());
        whole.close();
        EXPECT_EQ(co_await read_to_end(theirs), "x");
    });
}

TEST_P(split_test, buffered_reader_takes_a_half) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto [reads, writes] = split(std::move(ours));
        buffered_reader lines{std::move(reads)};
        static_assert(detail::leaf<decltype(lines.read_line(1))>);
        theirs.send("one\ntwo\n");
        EXPECT_EQ((co_await lines.read_line(10)).value_or("?"), "one");
        EXPECT_TRUE(co_await async_shutdown_write(writes));
        EXPECT_EQ((co_await with_timeout(lines.read_line(10), 1h)).value_or("?"), "two");
        auto lease = co_await with_timeout(lines.stream().receive(), 1ms);
        EXPECT_EQ(error_of(lease), errc::deadline_exceeded);
    });
}

TEST_P(split_test, halves_that_outlive_their_loop_are_safe) {
    auto [ours, theirs] = connect_raw();
    auto [reads, writes] = split(std::move(ours));
    run([&]() -> task<> { EXPECT_TRUE(co_await writes.write_some("x")); });
    destroy_loop();
    EXPECT_FALSE(reads.stream().is_open());
}

TEST_P(split_test, async_shutdown_write_works_for_every_stream) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto shutting_down = async_shutdown_write(ours);
        EXPECT_TRUE(co_await ours.write_some("x")); // the shutdown is lazy: it has not happened yet
        EXPECT_TRUE(co_await std::move(shutting_down));
        EXPECT_EQ(theirs.receive(100), "x");

        auto [left, right] = duplex();
        EXPECT_TRUE(co_await async_shutdown_write(left));
        EXPECT_EQ(co_await read_to_end(right), "");
        left.close();
        EXPECT_EQ(error_of(co_await async_shutdown_write(left)), std::errc::bad_file_descriptor);

        auto [polite, end] = duplex();
        polite_stream stream{std::move(polite)};
        EXPECT_TRUE(co_await with_timeout(async_shutdown_write(stream), 1h));
        EXPECT_EQ(co_await read_to_end(end), "bye");
    });
}

TEST_P(split_test, misuse_stops_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto one = split(duplex().first);
    auto two = split(duplex().first);
    EXPECT_DEATH(static_cast<void>(reunite(std::move(one.first), std::move(two.second))),
                 "two different streams");
    auto taken = std::move(one.first);
    std::array<char, 4> buffer;
    EXPECT_DEATH(static_cast<void>(one.first.read_some(buffer)), "moved from");
}

INSTANTIATE_TEST_SUITE_P(backends, split_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
