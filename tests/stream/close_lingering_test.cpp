#include <simplenet/stream/close_lingering.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/stream/any_stream.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/testing/faulty_stream.hpp>
#include <simplenet/testing/manual_clock.hpp>
#include <simplenet/time/sleep.hpp>

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::connect_raw_local;
using testing::noise;
using testing::turns;

/// A peer that sends until its stream fails, and then ends.
template <class Stream>
task<> send_for_ever(Stream& stream) {
    const std::string text(10'000, 'x');
    while (co_await async_write_all(stream, text)) {
    }
}

class close_lingering_test : public testing::backend_test {};

TEST_P(close_lingering_test, the_peer_reads_our_last_words_although_it_was_still_sending) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        theirs.send(noise(50'000));
        EXPECT_TRUE(co_await async_write_all(ours, "413 too large"));
        auto closing = spawn(async_close_lingering(ours));
        for (int more = 0; more < 5; ++more) {
            co_await turns(2);
            theirs.send(noise(20'000));
        }

        EXPECT_EQ(theirs.receive(13), "413 too large");
        EXPECT_EQ(theirs.receive_to_the_end(), errc::end_of_stream); // and no reset
        EXPECT_FALSE(closing.done());

        theirs.close();
        EXPECT_TRUE(co_await closing);
        EXPECT_EQ(ours.native_handle(), -1);
    });
}

TEST_P(close_lingering_test, a_task_can_own_the_stream) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        theirs.send("request");
        EXPECT_TRUE(co_await async_write_all(ours, "answer"));
        spawn(async_close_lingering(std::move(ours))).detach();
        co_await turns(3);
        EXPECT_EQ(theirs.receive(7), "answer");
        theirs.close();
    });
}

TEST_P(close_lingering_test, every_kind_of_stream_is_closed) {
    auto [ours, theirs] = connect_raw_local();
    run([&]() -> task<> {
        theirs.send("unread");
        theirs.shutdown_write();
        EXPECT_TRUE(co_await async_close_lingering(ours));
        EXPECT_EQ(ours.native_handle(), -1);

        auto [first, second] = duplex();
        second.close();
        any_stream any{std::move(first)};
        EXPECT_TRUE(co_await async_close_lingering(any));
        EXPECT_FALSE(any.target<duplex_stream>()->is_open());

        auto [left, right] = duplex();
        EXPECT_TRUE(co_await right.write_some("unread"));
        EXPECT_TRUE(right.shutdown_write());
        EXPECT_TRUE(co_await async_close_lingering(left));
        EXPECT_FALSE(left.is_open());
    });
}

TEST_P(close_lingering_test, a_peer_that_sends_for_ever_meets_the_limit_of_bytes) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        auto sending = spawn(send_for_ever(theirs));
        testing::faulty_stream counted{std::move(ours)};
        EXPECT_EQ(error_of(co_await async_close_lingering(counted)), errc::limit_exceeded);
        EXPECT_GE(counted.reads().bytes(), 1024U * 1024);
        EXPECT_LE(counted.reads().bytes(), 1024U * 1024 + 2048);
        co_await sending; // its write fails: the stream is closed
    });
}

TEST_P(close_lingering_test, a_socket_drops_as_many_bytes_as_the_limit_and_not_much_more) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        theirs.send("0123456789");
        theirs.shutdown_write();
        EXPECT_TRUE(co_await async_close_lingering(ours, {.bytes = 10}));
    });
    auto [second, other] = connect_raw();
    run([&]() -> task<> {
        other.send("0123456789");
        EXPECT_EQ(error_of(co_await async_close_lingering(second, {.bytes = 9})),
                  errc::limit_exceeded);
        EXPECT_EQ(second.native_handle(), -1);
    });
}

TEST_P(close_lingering_test, a_peer_that_drips_or_says_nothing_meets_the_limit_of_time) {
    for (const auto pause : {std::chrono::nanoseconds{100ms}, std::chrono::nanoseconds{1h}}) {
        testing::manual_clock clock;
        remake_loop({.clock = &clock});
        run([&]() -> task<> {
            auto [ours, theirs] = duplex();
            auto drip = spawn([&]() -> task<> {
                while (co_await theirs.write_some("x"))
                    co_await async_sleep(pause);
            });
            EXPECT_EQ(error_of(co_await async_close_lingering(ours)), errc::deadline_exceeded);
            EXPECT_FALSE(ours.is_open());
            EXPECT_GE(clock.elapsed(), 2s);
            EXPECT_LT(clock.elapsed(), 2s + 1ms);
            drip.request_stop();
            co_await drip;
        });
    }
}

// The shutdown of such a stream has to write, which a peer that does not read prevents.
class slow_to_shut_down {
public:
    explicit slow_to_shut_down(duplex_stream below)
        : below_{std::move(below)} {}
    auto read_some(mutable_buffer into) { return below_.read_some(into); }
    task<result<>> shutdown_write() {
        const transfer_result told = co_await async_write_all(below_, "goodbye");
        if (!told) co_return fail(told);
        co_return below_.shutdown_write();
    }
    void close() { below_.close(); }

private:
    duplex_stream below_;
};

TEST_P(close_lingering_test, the_limit_of_time_includes_telling_the_peer) {
    testing::manual_clock clock;
    remake_loop({.clock = &clock});
    run([&]() -> task<> {
        auto [ours, theirs] = duplex(1);
        slow_to_shut_down slow{std::move(ours)};
        EXPECT_EQ(error_of(co_await async_close_lingering(slow, {.time = 5s})),
                  errc::deadline_exceeded);
        EXPECT_GE(clock.elapsed(), 5s);
        EXPECT_LT(clock.elapsed(), 5s + 1ms);
    });
}

TEST_P(close_lingering_test, a_stop_closes_at_once) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto closing = spawn(async_close_lingering(ours, {.time = 1h}));
        co_await turns(2);
        closing.request_stop();
        EXPECT_EQ(error_of(co_await closing), canceled);
        EXPECT_EQ(ours.native_handle(), -1);
        EXPECT_EQ(theirs.receive_to_the_end(), errc::end_of_stream);
    });
}

TEST_P(close_lingering_test, a_connection_that_is_over_is_closed_with_its_error) {
    auto [ours, theirs] = connect_raw();
    theirs.reset();
    run([&]() -> task<> {
        EXPECT_NE(error_of(co_await async_close_lingering(ours)), std::error_code{});
        EXPECT_EQ(ours.native_handle(), -1);
        EXPECT_EQ(error_of(co_await async_close_lingering(ours)), std::errc::bad_file_descriptor);
    });
}

TEST_P(close_lingering_test, an_exception_of_the_stream_closes_it_too) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        testing::faulty_stream faulty{std::move(ours)};
        faulty.reads().before_call(1, [] { throw std::runtime_error{"the stream"}; });
        try {
            static_cast<void>(co_await async_close_lingering(faulty));
            ADD_FAILURE() << "nothing was thrown";
        } catch (const std::runtime_error&) {
        }
        EXPECT_EQ(error_of(co_await theirs.write_some("x")), std::errc::broken_pipe);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, close_lingering_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
