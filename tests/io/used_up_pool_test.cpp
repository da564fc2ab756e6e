// A lack of receive buffers delays no operation.
#include <simplenet/io/received.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"
#include "support/small_pool_test.hpp"
#include "sys/seam.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <linux/net_tstamp.h>
#include <malloc.h>
#include <poll.h>
#include <sys/socket.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::text_of;
using testing::turns;

class used_up_pool_test : public testing::small_pool_test {
protected:
    /// On io_uring, uses up the pool with bytes that the program has not requested yet.
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

    /// The result of `receive`. The loop notices its limit before "there" arrives, but the kernel
    /// does not know yet. On epoll the loop has then made the last attempt.
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

// Such a read uses memory of its own. Bytes that arrive before the kernel has handled the
// deadline's cancel count.
TEST_P(used_up_pool_test, bytes_beat_the_deadline_of_a_read_while_all_buffers_are_held) {
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
            if (outcome) { // no byte was lost
                EXPECT_TRUE(co_await async_read_exact(ours, buffer));
            }
            EXPECT_EQ((std::string_view{buffer.data(), buffer.size()}), "there");
        });
    }
}

// The kernel has no buffer left for receiving.
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
        if (co_await late_bytes(theirs, receive, use_both)) { // no byte was lost
            EXPECT_TRUE(co_await ours.receive());
        }
        EXPECT_EQ(text_of(held), "held");
        EXPECT_TRUE(co_await unread.receive());
    });
}

// On io_uring the receive would otherwise wait until they are read, perhaps forever.
TEST_P(used_up_pool_test, receiving_ahead_keeps_no_receive_waiting) {
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

// A nonempty error queue makes every poll(2) report POLLERR.
TEST_P(used_up_pool_test, an_unread_error_queue_does_not_spin_while_others_receive_ahead) {
    auto [unread, filling] = connect_raw();
    auto [ours, theirs] = connect_raw();
    constexpr int stamps = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
    testing::checked(
        ::setsockopt(ours.native_handle(), SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof stamps));
    run([&]() -> task<> {
        co_await receive_ahead(unread, filling);
        EXPECT_TRUE(co_await async_write_all(ours, "stamped"));
        pollfd asked{.fd = ours.native_handle(), .events = 0, .revents = 0};
        EXPECT_EQ(::poll(&asked, 1, 1000), 1) << "the error queue is empty, so this shows nothing";

        auto waiting = spawn(receive_text(ours));
        co_await turns(20);
        const auto before = loop().metrics().turns;
        co_await async_sleep(30ms);
        EXPECT_LT(loop().metrics().turns - before, 20U);
        theirs.send("bytes");
        EXPECT_EQ(co_await waiting, "bytes");
    });
}

TEST_P(used_up_pool_test, read_some_continues_when_all_buffers_are_held) {
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

// In an echo server each coroutine holds a lease while it waits to write. A thousand peers that
// send and never read must not freeze the server forever.
TEST_P(used_up_pool_test, a_receive_does_not_wait_for_the_leases_of_others) {
    auto [ours, theirs] = connect_raw();
    auto [local, local_peer] = testing::connect_raw_local();
    run([&]() -> task<> {
        const auto held = co_await hold_everything();
        for (const std::string_view sent : {"one", "two", "three"}) {
            auto waiting = spawn(receive_text(ours));
            auto waiting_too = spawn(receive_text(local));
            if (sent != "two") co_await turns(5); // "two" is available before the read
            theirs.send(sent);
            local_peer.send(sent);
            EXPECT_EQ(co_await waiting, sent);
            EXPECT_EQ(co_await waiting_too, sent);
        }
    });
}

TEST_P(used_up_pool_test, bytes_that_arrived_before_the_first_receive_do_not_wait_for_leases) {
    auto [ours, theirs] = connect_raw();
    auto [local, local_peer] = testing::connect_raw_local();
    theirs.send("there");
    local_peer.send("there");
    run([&]() -> task<> {
        const auto held = co_await hold_everything();
        EXPECT_EQ(co_await receive_text(ours), "there");
        EXPECT_EQ(co_await receive_text(local), "there");
    });
}

TEST_P(used_up_pool_test, the_end_and_a_reset_are_reported_while_leases_hold_the_pool) {
    auto [ended, ends] = connect_raw();
    auto [broken, breaks] = connect_raw();
    run([&]() -> task<> {
        const auto held = co_await hold_everything();
        auto ending = spawn([&]() -> task<> {
            for (int each = 0; each < 2; ++each)
                EXPECT_EQ(error_of(co_await ended.receive()), errc::end_of_stream);
        });
        auto breaking = spawn([&]() -> task<> {
            EXPECT_EQ(error_of(co_await broken.receive()), std::errc::connection_reset);
        });
        co_await turns(5);
        ends.shutdown_write();
        breaks.reset();
        co_await ending;
        co_await breaking;
    });
}

TEST_P(used_up_pool_test, memory_beyond_the_pool_is_counted_and_no_larger_than_the_data) {
    std::vector<testing::raw_connection<tcp_stream>> streams;
    for (int each = 0; each < 10; ++each)
        streams.push_back(connect_raw());
    run([&]() -> task<> {
        auto held = co_await hold_everything();
        EXPECT_EQ(loop().metrics().receive_pool_overflow, 0U);
        for (auto& each : streams) {
            each.theirs.send("few bytes");
            auto lease = co_await each.ours.receive();
            EXPECT_TRUE(lease);
            if (!lease) continue;
            // In front of the bytes is the count of the leases that share them.
            auto* const block = const_cast<std::byte*>(lease->data()) - detail::lease_overhead;
            EXPECT_LT(::malloc_usable_size(block), 1024U);
            held.push_back(*std::move(lease));
        }
        EXPECT_EQ(loop().metrics().receive_pool_overflow, streams.size());
        EXPECT_EQ(loop().metrics().receive_pool_leased, streams.size() + 2);
        held.clear();
        EXPECT_EQ(loop().metrics().receive_pool_leased, 0U);
    });
}

TEST_P(used_up_pool_test, returned_leases_make_the_pool_usable_again) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto held = co_await hold_everything();
        theirs.send("beyond");
        EXPECT_EQ(co_await receive_text(ours), "beyond");
        held.clear();
        for (int each = 0; each < 5; ++each) {
            auto waiting = spawn(receive_text(ours));
            co_await turns(5);
            theirs.send("within");
            EXPECT_EQ(co_await waiting, "within");
        }
        EXPECT_EQ(loop().metrics().receive_pool_overflow, 1U);
    });
}

TEST_P(used_up_pool_test, large_amounts_arrive_in_leases_of_16_KiB) {
    auto [ours, theirs] = connect_raw();
    std::string sent(50'000, '?');
    for (std::size_t each = 0; each < sent.size(); ++each)
        sent[each] = static_cast<char>('a' + each % 26);
    run([&]() -> task<> {
        const auto held = co_await hold_everything();
        theirs.send(sent);
        theirs.shutdown_write();
        std::string got;
        while (auto lease = co_await ours.receive()) {
            EXPECT_LE(lease->size(), 16U * 1024);
            got += text_of(*lease);
        }
        EXPECT_TRUE(got == sent);
    });
}

TEST_P(used_up_pool_test, leases_beyond_the_pool_outlive_their_stream_and_their_loop) {
    std::vector<received> held;
    run([&]() -> task<> {
        held = co_await hold_everything();
        auto [ours, theirs] = connect_raw();
        theirs.send("beyond");
        if (auto lease = co_await ours.receive()) held.push_back(*std::move(lease));
    });
    destroy_loop();
    ASSERT_EQ(held.size(), 3U);
    EXPECT_EQ(text_of(held[2]), "beyond");
    held.pop_back();
    EXPECT_EQ(text_of(held[1]), "held");
}

TEST_P(used_up_pool_test, receives_that_wait_without_a_buffer_end_with_their_loop) {
    auto [ours, theirs] = connect_raw();
    auto [local, local_peer] = testing::connect_raw_local();
    std::vector<received> held;
    int ended = 0;
    const auto wait = [&](auto& stream) -> task<> {
        EXPECT_EQ(error_of(co_await stream.receive()), canceled);
        ++ended;
    };
    loop().spawn([&]() -> task<> {
        held = co_await hold_everything();
        auto waiting = spawn(wait(ours));
        auto waiting_too = spawn(wait(local));
        co_await turns(20);
        loop().stop();
        co_await waiting;
        co_await waiting_too;
    });
    loop().run();
    EXPECT_EQ(ended, 0);
    destroy_loop();
    EXPECT_EQ(ended, 2);
}

TEST_P(used_up_pool_test, a_receive_without_a_buffer_that_is_stopped_or_closed_loses_nothing) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        const auto held = co_await hold_everything();
        auto stopped =
            spawn([&]() -> task<> { EXPECT_EQ(error_of(co_await ours.receive()), canceled); });
        co_await turns(5);
        stopped.request_stop();
        co_await stopped;
        EXPECT_EQ(error_of(co_await with_timeout(ours.receive(), 1ms)), errc::deadline_exceeded);
        theirs.send("for the next");
        EXPECT_EQ(co_await receive_text(ours), "for the next");

        auto closed =
            spawn([&]() -> task<> { EXPECT_EQ(error_of(co_await ours.receive()), canceled); });
        co_await turns(5);
        ours.close();
        co_await closed;
    });
}

TEST_P(used_up_pool_test, a_receive_that_waits_without_a_buffer_does_not_spin) {
    auto [ours, theirs] = connect_raw();
    auto [local, local_peer] = testing::connect_raw_local();
    run([&]() -> task<> {
        const auto held = co_await hold_everything();
        auto waiting = spawn(receive_text(ours));
        auto waiting_too = spawn(receive_text(local));
        co_await turns(20);
        const auto before = loop().metrics().turns;
        co_await async_sleep(30ms);
        EXPECT_LT(loop().metrics().turns - before, 20U);
        theirs.send("x");
        local_peer.send("x");
        EXPECT_EQ(co_await waiting, "x");
        EXPECT_EQ(co_await waiting_too, "x");
    });
}

TEST_P(used_up_pool_test, many_streams_share_two_buffers_and_lose_nothing) {
    constexpr int count = 40;
    std::vector<testing::raw_connection<tcp_stream>> streams;
    for (int each = 0; each < count; ++each)
        streams.push_back(connect_raw());
    run([&]() -> task<> {
        testing::dice dice{3};
        std::array<std::string, count> got;
        std::array<std::string, count> sent;
        std::vector<join_handle<void>> readers;
        for (int each = 0; each < count; ++each) {
            auto read_all = [&, each]() -> task<> {
                auto& ours = streams[each].ours;
                std::array<char, 100> buffer{};
                for (int round = 0;; ++round) {
                    if (each % 2 == 1 && round % 7 == 3) { // alternates the two kinds of reads
                        const auto read = co_await ours.read_some(buffer);
                        if (!read) break;
                        got[each].append(buffer.data(), *read);
                        continue;
                    }
                    auto lease = co_await ours.receive();
                    if (!lease) break;
                    got[each] += text_of(*lease);
                    if (each % 3 == 0) co_await yield(); // holds the lease for a turn
                }
            };
            readers.push_back(spawn(read_all));
        }
        for (int step = 0; step < 4000; ++step) {
            const std::size_t each = dice.up_to(count - 1);
            const std::string part(1 + dice.up_to(400), static_cast<char>('a' + step % 26));
            sent[each] += part;
            streams[each].theirs.send(part);
            if (dice.one_in(4)) co_await yield();
        }
        for (auto& each : streams)
            each.theirs.shutdown_write();
        for (auto& each : readers)
            co_await each;
        EXPECT_TRUE(got == sent);
    });
}

#if SIMPLENET_SEAMS

/// Turns the first successful poll into one that reports only an error.
class error_of_a_poll final : public detail::sys::interceptor {
    detail::sys::verdict on_completion(detail::sys::reaped_completion& seen) noexcept override {
        if (seen.res == POLLIN && seen.flags == 0 && !done_) {
            seen.res = POLLERR;
            done_ = true;
        }
        return {};
    }
    bool done_ = false;
};

// After the error the loop watches the socket for changes. The next receive must not wait for one
// while bytes of the last change are left.
TEST_P(used_up_pool_test, bytes_that_follow_an_error_are_left_to_the_next_receive) {
    auto [local, local_peer] = testing::connect_raw_local();
    run([&]() -> task<> {
        const auto held = co_await hold_everything();
        error_of_a_poll failing;
        const detail::sys::intercepting now{failing};
        auto waiting = spawn(receive_text(local));
        co_await turns(5);
        local_peer.send("x");
        EXPECT_EQ(co_await waiting, "x");

        const std::string much(50'000, 'm');
        local_peer.send(much);
        local_peer.shutdown_write();
        std::string got;
        while (auto lease = co_await local.receive())
            got += text_of(*lease);
        EXPECT_TRUE(got == much) << got.size();
    });
}

#endif

INSTANTIATE_TEST_SUITE_P(backends, used_up_pool_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
