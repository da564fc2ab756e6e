// Waiting without taking, taking and writing without waiting: the same on every stream of the
// library (ready_reader and ready_writer in transfer.hpp). Those of sockets are tested in
// io/readable_test.cpp.

#include <simplenet/stream/transfer.hpp>

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
#include <simplenet/stream/frame_reader.hpp>
#include <simplenet/stream/split.hpp>
#include <simplenet/testing/faulty_stream.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::faulty_stream;
using testing::turns;

/// Can only be read and written.
class minimal_stream {
public:
    explicit minimal_stream(duplex_stream below)
        : below_{std::move(below)} {}
    auto read_some(mutable_buffer into) { return below_.read_some(into); }
    auto write_some(const_buffer from) { return below_.write_some(from); }

private:
    duplex_stream below_;
};

template <class Stream>
constexpr bool is_ready_stream = ready_reader<Stream> && ready_writer<Stream>;
static_assert(is_ready_stream<tcp_stream> && is_ready_stream<local_stream>);
static_assert(is_ready_stream<duplex_stream> && is_ready_stream<any_stream>);
static_assert(is_ready_stream<faulty_stream<duplex_stream>>);
static_assert(ready_reader<read_half<any_stream>> && ready_writer<write_half<any_stream>>);
static_assert(!ready_reader<minimal_stream> && !ready_writer<minimal_stream>);
static_assert(!ready_reader<faulty_stream<minimal_stream>>);
static_assert(!ready_reader<read_half<minimal_stream>> &&
              !ready_writer<write_half<minimal_stream>>);

// The wait needs no coroutine.
static_assert(detail::erased_place::fits<detail::erased_leaf<detail::readable_operation>>);
static_assert(detail::erased_place::fits<detail::erased_leaf<detail::duplex_readable>>);

/// `ours` is under test; `theirs` is the other end of it.
// What is awaited has a name: in a template GCC 12 does not know the type of some such expressions.
template <class Reader, class Writer>
task<> exercise(Reader& ours, Writer& ours_too, duplex_stream theirs) {
    // Nothing is there.
    EXPECT_EQ(error_of(ours.try_receive()), std::errc::operation_would_block);
    result<> there = co_await with_timeout(ours.readable(), 1ms);
    EXPECT_EQ(there.error(), errc::deadline_exceeded);
    auto waiting = spawn([&]() -> task<result<>> { co_return co_await ours.readable(); });
    co_await turns(3);
    EXPECT_FALSE(waiting.done());
    waiting.request_stop();
    there = co_await waiting;
    EXPECT_EQ(there.error(), std::errc::operation_canceled);

    // A wait takes nothing, however often.
    auto woken = spawn([&]() -> task<result<>> { co_return co_await ours.readable(); });
    co_await turns(3);
    const auto sent = co_await theirs.write_some("hello");
    EXPECT_EQ(sent.value_or(0), 5U);
    there = co_await woken;
    EXPECT_TRUE(there);
    there = co_await ours.readable();
    EXPECT_TRUE(there);
    std::array<char, 2> two{};
    const result<std::size_t> count = co_await ours.read_some(two);
    EXPECT_EQ(count.value_or(0), 2U);
    result<received> rest = ours.try_receive();
    EXPECT_TRUE(rest);
    if (rest) {
        received front = rest->split(1);
        EXPECT_EQ(front.text(), "l");
        EXPECT_EQ(rest->text(), "lo");
    }
    EXPECT_EQ(error_of(ours.try_receive()), std::errc::operation_would_block);

    // Writes take what there is room for.
    EXPECT_EQ(ours_too.try_write_some(const_buffer{}).value_or(9), 0U);
    EXPECT_EQ(ours_too.try_write_some("0123").value_or(0), 4U);
    const std::array<const_buffer, 3> several{const_buffer{}, const_buffer{"4567"},
                                              const_buffer{"89abcdef"}};
    std::size_t written = 4;
    written += ours_too.try_write_some(std::span<const const_buffer>{several}).value_or(0);
    EXPECT_GE(written, 8U);
    while (const auto more = ours_too.try_write_some("f"))
        written += *more;
    EXPECT_EQ(written, 16U);
    EXPECT_EQ(error_of(ours_too.try_write_some("x")), std::errc::operation_would_block);
    std::string got(written, '\0');
    const auto arrived = co_await async_read_exact(theirs, got);
    EXPECT_TRUE(arrived);
    EXPECT_EQ(got.substr(0, 8), "01234567");

    // The end, which every later call finds.
    theirs.close();
    there = co_await ours.readable();
    EXPECT_TRUE(there);
    EXPECT_EQ(error_of(ours.try_receive()), errc::end_of_stream);
    EXPECT_EQ(error_of(ours.try_receive()), errc::end_of_stream);
    EXPECT_EQ(error_of(ours_too.try_write_some("x")), std::errc::broken_pipe);
}

template <class Stream>
task<> exercise(Stream ours, duplex_stream theirs) {
    co_await exercise(ours, ours, std::move(theirs));
    ours.close();
    const result<> there = co_await ours.readable();
    EXPECT_EQ(there.error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(error_of(ours.try_receive()), std::errc::bad_file_descriptor);
    EXPECT_EQ(error_of(ours.try_write_some("x")), std::errc::bad_file_descriptor);
}

class ready_streams_test : public testing::backend_test {};

TEST_P(ready_streams_test, a_duplex) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex(16);
        co_await exercise(std::move(ours), std::move(theirs));
    });
}

TEST_P(ready_streams_test, an_any_stream) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex(16);
        co_await exercise(any_stream{std::move(ours)}, std::move(theirs));
        auto [below, other] = duplex(16);
        any_stream inner{std::move(below)}; // too large to be stored in place
        any_stream outer{faulty_stream{std::move(inner)}};
        co_await exercise(std::move(outer), std::move(other));
    });
}

TEST_P(ready_streams_test, a_faulty_stream_without_a_script) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex(16);
        co_await exercise(faulty_stream{std::move(ours)}, std::move(theirs));
    });
}

TEST_P(ready_streams_test, halves) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex(16);
        auto [reads, writes] = split(any_stream{std::move(ours)});
        co_await exercise(reads, writes, std::move(theirs));
    });
}

TEST_P(ready_streams_test, an_any_stream_waits_for_a_socket) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        any_stream socket{std::move(ours)};
        EXPECT_EQ(error_of(socket.try_receive()), std::errc::operation_would_block);
        auto waiting = spawn([&]() -> task<result<>> { co_return co_await socket.readable(); });
        co_await turns(3);
        theirs.send("hello");
        EXPECT_TRUE(co_await waiting);
        const result<received> lease = socket.try_receive();
        EXPECT_TRUE(lease);
        EXPECT_EQ(lease ? lease->text() : "", "hello");
        // The kernel may lack the memory at first.
        co_await testing::until([&] { return socket.try_write_some("answer") == 6U; });
    });
    EXPECT_EQ(theirs.receive(6), "answer");
}

TEST_P(ready_streams_test, a_stream_without_these_operations_says_so_behind_an_any_stream) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        any_stream stream{minimal_stream{std::move(ours)}};
        EXPECT_TRUE(co_await theirs.write_some("x"));
        EXPECT_EQ(error_of(co_await stream.readable()), std::errc::operation_not_supported);
        EXPECT_EQ(error_of(stream.try_receive()), std::errc::operation_would_block);
        EXPECT_EQ(error_of(stream.try_write_some("x")), std::errc::operation_would_block);
        std::array<char, 2> two{};
        EXPECT_EQ((co_await stream.read_some(two)).value_or(0), 1U);
    });
}

TEST_P(ready_streams_test, a_lease_from_the_heap_outlives_stream_and_loop) {
    std::optional<received> kept;
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        EXPECT_TRUE(co_await theirs.write_some(std::string(20'000, 'x')));
        auto first = ours.try_receive();
        EXPECT_TRUE(first);
        EXPECT_EQ(first->size(), 16U * 1024);
        EXPECT_EQ(ours.try_receive()->size(), 20'000 - 16U * 1024);
        received front = first->split(10);
        received middle = first->split(10);
        front.release();
        first->release();
        kept = middle.split(5);
    });
    destroy_loop();
    EXPECT_EQ(kept->text(), "xxxxx");
}

TEST_P(ready_streams_test, a_close_ends_the_wait_of_a_duplex) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        auto waiting = spawn([&]() -> task<result<>> { co_return co_await ours.readable(); });
        co_await turns(3);
        ours.close();
        EXPECT_EQ(error_of(co_await waiting), canceled);
    });
}

TEST_P(ready_streams_test, a_script_limits_and_fails_the_calls_that_do_not_wait) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        faulty_stream faulty{std::move(ours)};
        const auto reset = std::make_error_code(std::errc::connection_reset);
        faulty.reads().pieces({2, 1}).fail_call(3, reset);
        faulty.writes().at_most(3).fail_call(2, reset).delay_each(1h);
        EXPECT_TRUE(co_await theirs.write_some("hello"));
        EXPECT_EQ(faulty.try_receive()->text(), "he");
        EXPECT_TRUE(co_await faulty.readable()); // the rest of what was taken
        std::array<char, 8> buffer{};
        EXPECT_EQ((co_await faulty.read_some(buffer)).value_or(0), 1U);
        EXPECT_EQ(buffer[0], 'l');
        EXPECT_EQ(error_of(faulty.try_receive()), reset);
        EXPECT_EQ(faulty.try_receive()->text(), "lo");
        EXPECT_EQ(faulty.reads().bytes(), 5U);
        faulty.reads().fail_at_byte(5, errc::end_of_stream);
        EXPECT_TRUE(co_await faulty.readable()); // the end that the script makes
        EXPECT_EQ(error_of(faulty.try_receive()), errc::end_of_stream);

        EXPECT_EQ(faulty.try_write_some("hello").value_or(0), 3U);
        EXPECT_EQ(error_of(faulty.try_write_some("lo")), reset);
        EXPECT_EQ(faulty.writes().bytes(), 3U);
    });
}

TEST_P(ready_streams_test, readers_count_what_they_hold) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        buffered_reader lines{std::move(ours)};
        EXPECT_EQ(error_of(co_await with_timeout(lines.readable(), 1ms)), errc::deadline_exceeded);
        EXPECT_TRUE(co_await theirs.write_some("one\ntwo"));
        EXPECT_TRUE(co_await lines.readable());
        EXPECT_TRUE(lines.peek().empty());
        EXPECT_EQ((co_await lines.read_line(10)).value_or("?"), "one");
        EXPECT_TRUE(co_await lines.readable()); // the half of a line
        lines.consume(3);
        theirs.close();
        EXPECT_TRUE(co_await lines.readable());
        EXPECT_EQ(error_of(co_await lines.read_line(10)), errc::end_of_stream);

        auto [mine, other] = duplex();
        frame_reader frames{std::move(mine)};
        EXPECT_TRUE(co_await other.write_some(std::string_view{"\0\0\0\1a\0\0\0\1b", 10}));
        EXPECT_TRUE(co_await frames.read_frame(10));
        EXPECT_TRUE(co_await frames.readable()); // although the stream is empty
        EXPECT_TRUE(co_await frames.read_frame(10));
        EXPECT_EQ(error_of(co_await with_timeout(frames.readable(), 1ms)), errc::deadline_exceeded);
    });
}

TEST_P(ready_streams_test, a_stop_refuses_the_wait_of_a_reader_that_holds_bytes) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        buffered_reader lines{std::move(ours)};
        EXPECT_TRUE(co_await theirs.write_some("one\ntwo"));
        EXPECT_TRUE(co_await lines.read_line(10));
        auto stopped = spawn([&]() -> task<result<>> { co_return co_await lines.readable(); });
        stopped.request_stop();
        EXPECT_EQ(error_of(co_await stopped), canceled);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, ready_streams_test, all_backends, backend_name);

class ready_streams_death_test : public testing::backend_test {};

TEST_P(ready_streams_death_test, a_second_reader_or_writer_stops_the_program) {
    EXPECT_DEATH(run([&]() -> task<> {
                     auto [ours, theirs] = duplex();
                     auto waiting =
                         spawn([&]() -> task<result<>> { co_return co_await ours.readable(); });
                     co_await turns(3);
                     static_cast<void>(ours.try_receive());
                     static_cast<void>(co_await waiting);
                 }),
                 "a second read or write");
    EXPECT_DEATH(run([&]() -> task<> {
                     auto [ours, theirs] = duplex(1);
                     EXPECT_TRUE(ours.try_write_some("x"));
                     auto waiting = spawn(
                         [&]() -> task<> { static_cast<void>(co_await ours.write_some("y")); });
                     co_await turns(3);
                     static_cast<void>(ours.try_write_some("z"));
                     co_await waiting;
                 }),
                 "a second read or write");
}

TEST_P(ready_streams_death_test, a_stream_that_was_moved_from_stops_the_program) {
    auto [ours, theirs] = duplex();
    any_stream stream{std::move(ours)};
    any_stream taken{std::move(stream)};
    EXPECT_DEATH(static_cast<void>(stream.try_receive()), "moved from");
    EXPECT_DEATH(static_cast<void>(stream.try_write_some("x")), "moved from");
    EXPECT_DEATH(run([&]() -> task<> { static_cast<void>(co_await stream.readable()); }),
                 "moved from");
    const duplex_stream other{std::move(theirs)};
    EXPECT_DEATH(static_cast<void>(theirs.try_receive()), "moved from");
    EXPECT_DEATH(static_cast<void>(theirs.try_write_some("x")), "moved from");
}

INSTANTIATE_TEST_SUITE_P(backends, ready_streams_death_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
