#include <simplenet/stream/any_stream.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/stream/buffered_reader.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::turns;

static_assert(async_reader<any_stream> && async_writer<any_stream>);
static_assert(detail::leaf<detail::any_transfer>);

// The operations of the library's own streams are stored in the awaitable.
template <class Operation>
constexpr bool in_place =
    detail::startable_leaf<Operation> && detail::erased_place::fits<detail::erased_leaf<Operation>>;
static_assert(in_place<detail::read_some_operation> && in_place<detail::write_some_operation>);
static_assert(in_place<detail::duplex_some> && in_place<detail::any_transfer> == false);

/// A foreign stream: each operation suspends a few times, and does not give up at the first stop.
class stubborn_stream {
public:
    explicit stubborn_stream(duplex_stream below)
        : below_{std::move(below)} {}

    task<result<std::size_t>> read_some(mutable_buffer into) {
        result<> slept = co_await async_sleep(0ms);
        slept = co_await async_sleep(0ms); // a stop of only the first one would be lost
        if (throws) throw std::runtime_error{"the stream"};
        co_return co_await below_.read_some(into);
    }
    task<result<std::size_t>> write_some(const_buffer from) {
        co_await yield();
        co_return co_await below_.write_some(from);
    }

    bool throws = false;

private:
    duplex_stream below_;
};

/// Exercises everything that a stream does behind an any_stream. `theirs` is the other end.
task<> exercise(any_stream ours, duplex_stream theirs) {
    EXPECT_EQ((co_await async_write_all(ours, "hello")).value_or(0), 5U);
    std::string got(5, '\0');
    EXPECT_TRUE(co_await async_read_exact(theirs, got));
    EXPECT_EQ(got, "hello");

    const std::vector<const_buffer> parts{const_buffer{}, const_buffer{"ab"}, const_buffer{"cde"}};
    EXPECT_EQ((co_await async_write_all(ours, std::span{parts})).value_or(0), 5U);
    EXPECT_GE((co_await ours.write_some(std::span{parts})).value_or(0), 2U);
    EXPECT_EQ((co_await ours.write_some(std::span<const const_buffer>{})).value_or(9), 0U);
    EXPECT_EQ((co_await ours.write_some(const_buffer{})).value_or(9), 0U);
    EXPECT_TRUE(co_await async_read_exact(theirs, std::span{got}.first(5)));
    EXPECT_EQ(got, "abcde");

    // Waits, limits, stops.
    std::array<char, 4> buffer{};
    EXPECT_EQ(error_of(co_await with_timeout(ours.read_some(buffer), 1ms)),
              errc::deadline_exceeded);
    auto reading = spawn([&]() -> task<> {
        EXPECT_EQ(error_of(co_await ours.read_some(buffer)), canceled);
        EXPECT_EQ(error_of(co_await ours.read_some(buffer)), canceled);
        EXPECT_EQ(error_of(co_await ours.write_some("x")), canceled);
    });
    co_await turns(5);
    reading.request_stop();
    co_await reading;
    auto raced = co_await when_any(ours.read_some(buffer), async_sleep(2ms));
    EXPECT_EQ(raced.index, 1U);

    auto moving =
        spawn([&]() -> task<result<std::size_t>> { co_return co_await ours.read_some(buffer); });
    co_await turns(5);
    any_stream moved{std::move(ours)};
    EXPECT_TRUE(co_await theirs.write_some("1234"));
    EXPECT_EQ((co_await moving).value_or(0), 4U);

    EXPECT_TRUE(co_await theirs.write_some("tail\n"));
    theirs.close();
    buffered_reader lines{std::move(moved)};
    EXPECT_EQ((co_await with_timeout(lines.read_line(10), 1h)).value_or("?"), "tail");
    EXPECT_EQ(error_of(co_await lines.read_line(10)), errc::end_of_stream);
    EXPECT_EQ(error_of(co_await lines.stream().write_some("x")), std::errc::broken_pipe);
}

class any_stream_test : public testing::backend_test {};

TEST_P(any_stream_test, a_stream_with_awaitable_operations) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        co_await exercise(any_stream{std::move(ours)}, std::move(theirs));
    });
}

TEST_P(any_stream_test, a_stream_with_coroutine_operations) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        co_await exercise(any_stream{stubborn_stream{std::move(ours)}}, std::move(theirs));
    });
}

TEST_P(any_stream_test, a_stream_with_operations_that_are_too_large) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        any_stream inner{std::move(ours)};
        struct wrapped {
            explicit wrapped(any_stream from)
                : stream{std::move(from)} {}
            any_stream stream;
            auto read_some(mutable_buffer into) { return stream.read_some(into); }
            auto write_some(const_buffer from) { return stream.write_some(from); }
        };
        static_assert(!in_place<detail::any_transfer>);
        co_await exercise(any_stream{wrapped{std::move(inner)}}, std::move(theirs));
    });
}

TEST_P(any_stream_test, an_exception_of_the_stream_is_passed_on) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        stubborn_stream thrower{std::move(ours)};
        thrower.throws = true;
        any_stream stream{std::move(thrower)};
        std::array<char, 4> buffer;
        bool thrown = false;
        try {
            static_cast<void>(co_await stream.read_some(buffer));
        } catch (const std::runtime_error&) {
            thrown = true;
        }
        EXPECT_TRUE(thrown);
        stream.target<stubborn_stream>()->throws = false;
        EXPECT_TRUE(co_await theirs.write_some("x"));
        EXPECT_TRUE(co_await stream.read_some(buffer));
    });
}

TEST_P(any_stream_test, half_close_and_close_reach_the_stream) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        any_stream socket{std::move(ours)};
        EXPECT_TRUE(co_await socket.write_some("x"));
        EXPECT_TRUE(co_await async_shutdown_write(socket));
        EXPECT_EQ(theirs.receive(100), "x");
        EXPECT_NE(socket.target<tcp_stream>(), nullptr);
        EXPECT_EQ(socket.target<duplex_stream>(), nullptr);
        socket.close();
        std::array<char, 4> buffer;
        EXPECT_EQ(error_of(co_await socket.read_some(buffer)), std::errc::bad_file_descriptor);

        auto [left, right] = duplex();
        {
            any_stream gone{std::move(left)};
        }
        EXPECT_EQ(error_of(co_await right.write_some("x")), std::errc::broken_pipe);
        any_stream endless{stubborn_stream{std::move(right)}};
        EXPECT_EQ(error_of(co_await async_shutdown_write(endless)),
                  std::errc::operation_not_supported);
        endless.close();
    });
}

TEST_P(any_stream_test, the_loop_may_end_with_operations_in_flight) {
    auto [ours, theirs] = duplex();
    std::vector<any_stream> streams;
    streams.emplace_back(std::move(ours));
    streams.emplace_back(stubborn_stream{std::move(theirs)});
    for (any_stream& each : streams) {
        loop().spawn([](any_stream& stream) -> task<> {
            std::array<char, 4> buffer;
            for (;;) // until it is resumed no more
                static_cast<void>(co_await stream.read_some(buffer));
        }(each));
    }
    for (int turn = 0; turn < 5; ++turn)
        loop().poll();
    destroy_loop();
}

TEST_P(any_stream_test, misuse_stops_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    any_stream stream{duplex().first};
    EXPECT_DEATH(static_cast<void>(stream.read_some(mutable_buffer{})), "into an empty buffer");
    any_stream taken{std::move(stream)};
    EXPECT_DEATH(run([&]() -> task<> { static_cast<void>(co_await stream.write_some("x")); }),
                 "moved from");
    EXPECT_DEATH(static_cast<void>(stream.shutdown_write()), "moved from");
    stream.close();
}

INSTANTIATE_TEST_SUITE_P(backends, any_stream_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
