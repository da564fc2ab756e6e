// Receive buffers run out: whom that does not keep waiting.
#include <simplenet/runtime/received.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"
#include "support/small_pool_test.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/runtime/deadline.hpp>
#include <simplenet/runtime/sleep.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/testing/manual_clock.hpp>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <linux/net_tstamp.h>
#include <poll.h>
#include <sys/socket.h>

namespace simplenet::inline v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::text_of;
using testing::turns;

class used_up_pool_test : public testing::small_pool_test {
protected:
    /// The pool, used up on io_uring by what nobody has asked for yet.
    static task<> receive_ahead(tcp_stream& unread, testing::raw_peer& theirs) {
        std::array<std::byte, 1> first;
        theirs.send("-");
        EXPECT_TRUE(co_await unread.read_some(first));
        for (int each = 0; each < 2; ++each) {
            theirs.send("ahead");
            co_await turns(5);
        }
    }

    static task<> do_nothing() { co_return; }

    /// The outcome of `receive`, whose limit the loop has noticed when "there" comes, before the
    /// kernel knows of it. On epoll that was the last attempt.
    template <class Peer, class Receive, class Meanwhile = task<> (*)()>
    static task<std::error_code> late_bytes(Peer& theirs, Receive receive,
                                            Meanwhile meanwhile = do_nothing) {
        const auto limit = std::chrono::steady_clock::now() + 20ms;
        auto receiving = spawn(receive(limit));
        co_await turns(5);
        co_await meanwhile();
        testing::pass(limit);
        co_await turns(1);
        theirs.send("there");
        const auto outcome = co_await receiving;
        if (outcome) {
            EXPECT_NE(GetParam(), backend::io_uring);
            EXPECT_EQ(outcome, errc::deadline_exceeded);
        }
        co_return outcome;
    }
};

// A read brings its own memory then. With io_uring its entry was taken back by the deadline, and
// what came before the kernel had done so did not count.
TEST_P(used_up_pool_test, bytes_beat_the_deadline_of_a_read_that_goes_on_while_all_are_held) {
    for (const bool exactly : {false, true}) {
        auto [ours, theirs] = connect_raw();
        std::array<char, 5> buffer{};
        run([&]() -> task<> {
            const auto held = co_await hold_everything();
            const auto read = [&](auto limit) -> task<std::error_code> {
                if (exactly)
                    co_return error_of(
                        co_await with_deadline(async_read_exact(ours, buffer), limit));
                co_return error_of(co_await with_deadline(ours.read_some(buffer), limit));
            };
            const auto outcome = co_await late_bytes(theirs, read);
            if (outcome) { // nothing was lost
                EXPECT_TRUE(co_await async_read_exact(ours, buffer));
            }
            EXPECT_EQ((std::string_view{buffer.data(), buffer.size()}), "there");
        });
    }
}

// The kernel has no buffer left to receive into: there are more than it gets, for this.
TEST_P(used_up_pool_test, bytes_beat_the_deadline_of_a_receive_while_others_are_received_ahead) {
    auto [unread, filling] = connect_raw();
    auto [ours, theirs] = testing::connect_raw_local();
    run([&]() -> task<> {
        received held;
        const auto use_both = [&]() -> task<> {
            filling.send("held");
            if (auto lease = co_await unread.receive()) held = *std::move(lease);
            filling.send("ahead");
            co_await turns(5);
        };
        const auto receive = [&](auto limit) -> task<std::error_code> {
            const auto lease = co_await with_deadline(ours.receive(), limit);
            if (lease) {
                EXPECT_EQ(text_of(*lease), "there");
            }
            co_return error_of(lease);
        };
        if (co_await late_bytes(theirs, receive, use_both)) { // nothing was lost
            EXPECT_TRUE(co_await ours.receive());
        }
        EXPECT_EQ(text_of(held), "held");
        EXPECT_TRUE(co_await unread.receive());
    });
}

// With io_uring there was one buffer for this, which the lease of the first kept from the second.
TEST_P(used_up_pool_test, bytes_beat_the_deadlines_of_as_many_receives_as_there_are_buffers) {
    auto [unread, filling] = connect_raw();
    auto [ours, theirs] = connect_raw();
    auto [local, local_peer] = testing::connect_raw_local();
    run([&]() -> task<> {
        co_await receive_ahead(unread, filling);
        theirs.send("first");
        local_peer.send("second");
        const auto first = co_await with_timeout(ours.receive(), 1ms);
        EXPECT_TRUE(first) << error_of(first).message();
        const auto second = co_await with_timeout(local.receive(), 1ms);
        EXPECT_TRUE(second) << error_of(second).message();
        if (!first || !second) co_return;
        EXPECT_EQ(text_of(*first), "first");
        EXPECT_EQ(text_of(*second), "second");

        // The program holds all that it has asked for.
        theirs.send("third");
        EXPECT_EQ(error_of(co_await with_timeout(ours.receive(), 1ms)), errc::deadline_exceeded);
    });

    run([&]() -> task<> { // and they came back
        std::array<std::byte, 10> ahead;
        EXPECT_TRUE(co_await async_read_exact(unread, ahead));
        const auto lease = co_await ours.receive();
        EXPECT_TRUE(lease);
        if (lease) {
            EXPECT_EQ(text_of(*lease), "third");
        }
    });
}

// With io_uring it waited until they were read, which is for ever where nobody does.
TEST_P(used_up_pool_test, what_is_received_ahead_keeps_no_receive_waiting) {
    auto [unread, filling] = connect_raw();
    auto [ours, theirs] = connect_raw();
    auto [local, local_peer] = testing::connect_raw_local();
    run([&]() -> task<> {
        co_await receive_ahead(unread, filling);
        theirs.send("there");
        EXPECT_EQ(co_await receive_text(ours), "there");

        for (const std::string_view sent : {"later", "and again"}) {
            auto waiting = spawn(receive_text(ours));
            auto waiting_too = spawn(receive_text(local));
            co_await turns(5);
            theirs.send(sent);
            local_peer.send(sent);
            EXPECT_EQ(co_await waiting, sent);
            EXPECT_EQ(co_await waiting_too, sent);
        }
    });
}

TEST_P(used_up_pool_test, nobody_is_served_beyond_the_pool_before_who_waits_longest) {
    auto [unread, filling] = connect_raw();
    auto [ours, theirs] = connect_raw();
    auto [other, others_peer] = connect_raw();
    run([&]() -> task<> {
        co_await receive_ahead(unread, filling);
        std::string order;
        theirs.send("W");
        auto waiting = spawn([&]() -> task<> { order += co_await receive_text(ours); });
        co_await turns(5);
        for (int each = 0; each < 3; ++each) {
            others_peer.send("o");
            const auto lease = co_await with_timeout(other.receive(), 1ms);
            if (lease) order += text_of(*lease);
        }
        co_await waiting;
        EXPECT_EQ(order, "Wooo");
    });
}

// With io_uring it made up for the one beyond the pool, and nobody got it.
TEST_P(used_up_pool_test, a_lease_that_comes_back_serves_who_waits_whatever_is_received_ahead) {
    auto [unread, filling] = connect_raw();
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        co_await receive_ahead(unread, filling);
        auto held = co_await hold_everything();
        theirs.send("patience");
        auto waiting = spawn(receive_text(ours));
        co_await turns(20);
        EXPECT_FALSE(waiting.done());
        held.pop_back();
        EXPECT_EQ(co_await waiting, "patience");
    });
}

TEST_P(used_up_pool_test,
       a_lease_that_comes_back_as_a_limit_passes_goes_to_the_next_whatever_is_received_ahead) {
    auto [unread, filling] = connect_raw();
    auto [one, first] = connect_raw();
    auto [two, second] = connect_raw();
    run([&]() -> task<> {
        co_await receive_ahead(unread, filling);
        auto held = co_await hold_everything();
        first.send("1");
        second.send("2");
        const auto limit = std::chrono::steady_clock::now() + 20ms;
        auto limited = spawn([&]() -> task<std::string> {
            const auto lease = co_await with_deadline(one.receive(), limit);
            co_return std::string{lease ? text_of(*lease) : ""};
        });
        co_await turns(5);
        auto waiting = spawn(receive_text(two));
        co_await turns(5);
        testing::pass(limit);
        held.pop_back();
        const auto outcome = co_await limited;
        EXPECT_EQ(co_await waiting, "2");
        if (outcome.empty()) { // nothing was lost
            EXPECT_EQ(co_await receive_text(one), "1");
        }
    });
}

// Had the kernel got it, what is received ahead would hold more than the pool has, and the last
// receive() would wait for that.
TEST_P(used_up_pool_test, a_buffer_that_came_back_for_nobody_is_not_for_receiving_ahead) {
    auto [armed, trickle] = connect_raw();
    auto [unread, filling] = connect_raw();
    auto [one, first] = connect_raw();
    auto [two, second] = connect_raw();
    run([&]() -> task<> {
        std::array<std::byte, 1> byte;
        trickle.send("-");
        EXPECT_TRUE(co_await armed.read_some(byte));
        co_await receive_ahead(unread, filling);
        auto held = co_await hold_everything();
        first.send("1");
        auto stopped = spawn(receive_text(one));
        co_await turns(5);
        held.pop_back();
        stopped.request_stop();
        const auto outcome = co_await stopped;
        trickle.send("ahead");
        co_await turns(5);

        second.send("2");
        EXPECT_EQ(co_await receive_text(two), "2");
        if (outcome.empty()) { // nothing was lost
            EXPECT_EQ(co_await receive_text(one), "1");
        }
        EXPECT_EQ(co_await receive_text(armed), "ahead");
    });
}

// What lies in an error queue makes every poll(2) say POLLERR.
TEST_P(used_up_pool_test,
       an_error_queue_that_nobody_reads_does_not_spin_while_others_are_received_ahead) {
    auto [unread, filling] = connect_raw();
    auto [ours, theirs] = connect_raw();
    constexpr int stamps = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
    testing::checked(
        ::setsockopt(ours.native_handle(), SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof stamps));
    run([&]() -> task<> {
        co_await receive_ahead(unread, filling);
        EXPECT_TRUE(co_await async_write_all(ours, "stamped"));
        pollfd asked{.fd = ours.native_handle(), .events = 0, .revents = 0};
        EXPECT_EQ(::poll(&asked, 1, 1000), 1) << "there is no error to trip over";

        auto waiting = spawn(receive_text(ours));
        co_await turns(20);
        const auto before = loop().metrics().turns;
        co_await async_sleep(30ms);
        EXPECT_LT(loop().metrics().turns - before, 20U);
        theirs.send("bytes");
        EXPECT_EQ(co_await waiting, "bytes");
    });
}

TEST_P(used_up_pool_test, read_some_goes_on_when_all_buffers_are_held) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto held = co_await hold_everything();
        std::string buffer(100, '\0');
        for (int round = 0; round < 20; ++round) {
            auto reading = spawn(
                [&]() -> task<result<std::size_t>> { co_return co_await ours.read_some(buffer); });
            if (round % 2 == 0) co_await turns(3);
            theirs.send("bytes");
            EXPECT_EQ((co_await reading).value_or(0), 5U);
        }
        theirs.send("0123456789");
        EXPECT_EQ((co_await async_read_exact(ours, mutable_buffer{buffer}.first(10))).value_or(0),
                  10U);
        EXPECT_EQ(buffer.substr(0, 10), "0123456789");
        theirs.shutdown_write();
        EXPECT_EQ(error_of(co_await ours.read_some(buffer)), errc::end_of_stream);
    });
}

// On io_uring the stream used to remain in the queue for buffers, which read_some() does not need.
TEST_P(used_up_pool_test, read_some_goes_on_after_a_receive_that_waited_for_a_buffer_was_stopped) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto held = co_await hold_everything();
        theirs.send("bytes");
        EXPECT_EQ(error_of(co_await with_timeout(ours.receive(), 1ms)), errc::deadline_exceeded);

        std::array<std::byte, 8> buffer;
        EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 5U);
    });
}

TEST_P(used_up_pool_test, a_read_without_a_buffer_that_is_stopped_leaves_its_memory_alone) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto held = co_await hold_everything();
        std::string buffer(100, '?');
        theirs.send("x");
        EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 1U);
        buffer.assign(100, '?');
        auto reading = spawn(
            [&]() -> task<result<std::size_t>> { co_return co_await ours.read_some(buffer); });
        co_await turns(5);
        reading.request_stop();
        EXPECT_EQ(error_of(co_await reading), canceled);
        theirs.send("for the next");
        co_await turns(5);
        EXPECT_EQ(buffer, std::string(100, '?'));
        EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 12U);
    });
}

TEST_P(used_up_pool_test, a_read_without_a_buffer_is_canceled_by_close) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto held = co_await hold_everything();
        std::array<std::byte, 8> buffer;
        theirs.send("x");
        EXPECT_TRUE(co_await ours.read_some(buffer));
        auto reading = spawn(
            [&]() -> task<> { EXPECT_EQ(error_of(co_await ours.read_some(buffer)), canceled); });
        auto closing = spawn([&]() -> task<> {
            co_await turns(5);
            ours.close();
        });
        co_await reading;
        co_await closing;
        EXPECT_TRUE(co_await ours.closed());
        EXPECT_EQ(theirs.receive_to_the_end(), errc::end_of_stream);
    });
}

TEST_P(used_up_pool_test, a_buffer_that_came_back_before_a_limit_is_for_who_waits_longest) {
    testing::manual_clock clock;
    clock.set_automatic(false);
    remake_loop({.receive_pool = 1, .clock = &clock});
    auto [one, first] = connect_raw();
    auto [two, second] = connect_raw();
    run([&]() -> task<> {
        auto held = co_await hold_everything();
        first.send("1");
        second.send("2");
        auto limited = spawn([&]() -> task<std::string> {
            const auto lease = co_await with_timeout(one.receive(), 10ms);
            co_return std::string{lease ? text_of(*lease) : error_of(lease).message()};
        });
        co_await turns(5);
        auto waiting = spawn(receive_text(two));
        co_await turns(5);
        held.pop_back();
        clock.advance(20ms); // in the same turn
        EXPECT_EQ(co_await limited, "1");
        EXPECT_EQ(co_await waiting, "2");
    });
    remake_loop(); // before the clock ends
}

INSTANTIATE_TEST_SUITE_P(backends, used_up_pool_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::inline v0
