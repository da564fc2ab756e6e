// set_idle_timeout(): the limit on how long an operation waits without any transfer.
#include <simplenet/io/async_stream.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/stream/queued_writer.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/testing/manual_clock.hpp>
#include <simplenet/time/sleep.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::noise;
using testing::turns;

using clock = std::chrono::steady_clock;

class idle_timeout_test : public testing::backend_test {
protected:
    /// Replaces the loop by one whose time advances only by time_.advance().
    void stop_the_clock() {
        time_.set_automatic(false);
        remake_loop({.clock = &time_});
    }
    /// Two ends with small buffers. They are local, because TCP may delay its ACK.
    static testing::raw_connection<local_stream> connect_narrowly(int size = 4096) {
        return testing::connect_raw_local({.ours = size, .theirs = size});
    }
    static task<transfer_result> write_all(local_stream& to, const std::string& text) {
        co_return co_await async_write_all(to, text);
    }
    static task<result<std::size_t>> read_some(local_stream& from, mutable_buffer into) {
        co_return co_await from.read_some(into);
    }
    /// Takes up to `most` bytes of those available to the peer.
    static ssize_t take_some(testing::raw_peer& peer, std::size_t most) {
        std::string some(most, '\0');
        return ::recv(peer.fd(), some.data(), some.size(), MSG_DONTWAIT);
    }

    testing::manual_clock time_;
};

TEST_P(idle_timeout_test, a_read_fails_when_nothing_moved_for_the_idle_timeout_and_not_earlier) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::array<std::byte, 8> buffer;
        ours.set_idle_timeout(20ms);
        for (int round = 0; round < 2; ++round) {
            const auto start = clock::now();
            EXPECT_EQ(error_of(co_await ours.read_some(buffer)), errc::deadline_exceeded);
            EXPECT_GE(clock::now() - start, 20ms);
        }
        const auto start = clock::now();
        EXPECT_EQ(error_of(co_await ours.receive()), errc::deadline_exceeded);
        EXPECT_GE(clock::now() - start, 20ms);

        theirs.send("alive");
        EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 5U);
    });
}

// Every part must count, not only a complete transfer: a slow download is not a dead one.
TEST_P(idle_timeout_test, a_transfer_that_moves_slowly_is_not_idle) {
    stop_the_clock();
    auto [ours, theirs] = connect_narrowly();
    const std::string much = noise(200'000);
    const auto slowly = [&](const join_handle<transfer_result>& transfer,
                            const std::function<void()>& move) -> task<> {
        for (co_await turns(200); !transfer.done(); co_await turns(200)) {
            time_.advance(6ms);
            move();
        }
    };
    run([&]() -> task<> {
        ours.set_idle_timeout(50ms);
        std::array<std::byte, 8> buffer;
        auto reading = spawn(read_some(ours, buffer));
        auto sending = spawn(write_all(ours, much));
        const std::function<void()> take = [&] { static_cast<void>(take_some(theirs, 4000)); };
        co_await slowly(sending, take);
        EXPECT_TRUE(co_await sending);
        EXPECT_FALSE(reading.done());
        reading.request_stop();
        EXPECT_EQ(error_of(co_await reading), std::errc::operation_canceled);

        std::string all(40, '\0');
        auto receive = [&]() -> task<transfer_result> {
            co_return co_await async_read_exact(ours, all);
        };
        auto receiving = spawn(receive);
        const std::function<void()> give = [&] { theirs.send("x"); };
        co_await slowly(receiving, give);
        EXPECT_TRUE(co_await receiving);
        EXPECT_GT(time_.elapsed(), 500ms);
    });
}

// Bytes moved before the wait count like those that follow it.
TEST_P(idle_timeout_test, bytes_that_a_write_moves_before_it_waits_count) {
    stop_the_clock();
    auto [ours, theirs] = connect_narrowly();
    const std::string much = noise(200'000);
    run([&]() -> task<> {
        ours.set_idle_timeout(50ms);
        std::array<std::byte, 8> buffer;
        auto reading = spawn(read_some(ours, buffer));
        co_await turns(200);
        time_.advance(40ms);
        auto sending = spawn(write_all(ours, much));
        co_await turns(200);
        time_.advance(40ms);
        co_await turns(200);
        EXPECT_FALSE(reading.done());
        time_.advance(20ms);
        EXPECT_EQ(error_of(co_await reading), errc::deadline_exceeded);
        EXPECT_EQ(error_of(co_await sending), errc::deadline_exceeded);
    });
}

// The limit holds even if the first attempt is put off to a later turn and finds nothing.
TEST_P(idle_timeout_test, a_read_that_starts_without_inline_turns_left_is_limited_too) {
    auto [ours, theirs] = connect_raw();
    auto [other, sink] = connect_raw();
    run([&]() -> task<> {
        ours.set_idle_timeout(20ms);
        std::array<std::byte, 8> buffer;
        theirs.send("8 bytes.");
        EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 8U); // more may follow
        co_await async_sleep(50ms); // longer than the timeout, but no operation is waiting
        for (unsigned each = 0; each < detail::run_queue::inline_turns_per_resume; ++each)
            EXPECT_TRUE(co_await other.write_some("x"));
        EXPECT_EQ(error_of(co_await ours.read_some(buffer)), errc::deadline_exceeded);
    });
}

TEST_P(idle_timeout_test, movement_in_either_direction_prolongs_the_idle_timeout) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::array<std::byte, 8> buffer;
        ours.set_idle_timeout(30ms);
        // On a busy machine a movement may come late, even in the turn in which the limit passes.
        // The test can only assert that there was a silence of that length.
        clock::time_point last = clock::now();
        clock::duration longest_silence{};
        const auto moves = [&] {
            const auto now = clock::now();
            longest_silence = std::max(longest_silence, now - std::exchange(last, now));
        };
        auto writing = spawn([&]() -> task<> {
            for (int round = 0; round < 8; ++round) {
                co_await async_sleep(10ms);
                moves();
                EXPECT_TRUE(co_await ours.write_some("x"));
            }
        });
        EXPECT_EQ(error_of(co_await ours.read_some(buffer)), errc::deadline_exceeded);
        moves();
        EXPECT_GE(longest_silence, 30ms);
        co_await writing;

        longest_silence = {};
        last = clock::now();
        auto sending = spawn([&]() -> task<> {
            for (int round = 0; round < 8; ++round) {
                co_await async_sleep(5ms);
                theirs.send("x");
            }
        });
        result<std::size_t> count;
        while ((count = co_await ours.read_some(buffer)))
            moves();
        moves();
        EXPECT_EQ(error_of(count), errc::deadline_exceeded);
        // Bytes arrive slightly before the read that waits for them starts its clock.
        EXPECT_GE(longest_silence, 29ms);
        co_await sending;
    });
}

TEST_P(idle_timeout_test, an_idle_timeout_of_zero_is_none) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::array<std::byte, 8> buffer;
        for (const auto none : {0ms, -5ms}) {
            ours.set_idle_timeout(1ms);
            EXPECT_EQ(error_of(co_await ours.read_some(buffer)), errc::deadline_exceeded);
            ours.set_idle_timeout(none);
            auto reading = spawn(
                [&]() -> task<result<std::size_t>> { co_return co_await ours.read_some(buffer); });
            co_await async_sleep(5ms);
            theirs.send("x");
            EXPECT_EQ((co_await reading).value_or(0), 1U);
        }
    });
}

TEST_P(idle_timeout_test, an_idle_timeout_may_be_set_while_a_read_waits) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto reading = spawn([&]() -> task<> {
            EXPECT_EQ(error_of(co_await ours.receive()), errc::deadline_exceeded);
        });
        co_await turns(3);
        const auto start = clock::now();
        ours.set_idle_timeout(5ms);
        co_await reading;
        EXPECT_GE(clock::now() - start, 5ms);
    });
}

TEST_P(idle_timeout_test, a_stop_beats_an_idle_timeout_that_comes_later) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        ours.set_idle_timeout(1h);
        auto reading =
            spawn([&]() -> task<> { EXPECT_EQ(error_of(co_await ours.receive()), canceled); });
        co_await turns(3);
        reading.request_stop();
        co_await reading;
    });
}

// Otherwise a peer that never reads would hold a writer, and all its memory, forever.
TEST_P(idle_timeout_test, a_write_fails_when_nothing_moved_for_the_idle_timeout_and_not_earlier) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    const std::string much = noise(1'000'000);
    run([&]() -> task<> {
        ours.set_idle_timeout(20ms);
        const auto start = clock::now();
        const auto sent = co_await async_write_all(ours, much);
        EXPECT_EQ(error_of(sent), errc::deadline_exceeded);
        EXPECT_GE(clock::now() - start, 20ms);
        if (sent) co_return;

        // Nothing is lost: another write continues at that offset.
        const std::size_t moved = sent.error().transferred;
        EXPECT_GT(moved, 0U);
        ours.set_idle_timeout(10s); // a busy machine may suspend this process for longer than 20 ms
        auto rest = [&]() -> task<transfer_result> {
            co_return co_await async_write_all(ours, const_buffer{much}.subspan(moved));
        };
        auto sending = spawn(rest);
        std::string got;
        while (got.size() < much.size()) {
            std::array<char, 65536> some;
            const ssize_t count = ::recv(theirs.fd(), some.data(), some.size(), MSG_DONTWAIT);
            if (count > 0) got.append(some.data(), static_cast<std::size_t>(count));
            co_await yield();
        }
        EXPECT_TRUE(co_await sending);
        EXPECT_TRUE(got == much);
    });
}

TEST_P(idle_timeout_test, an_idle_timeout_may_be_set_while_a_write_waits) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    const std::string much = noise(1'000'000);
    run([&]() -> task<> {
        auto sending = spawn([&]() -> task<> {
            EXPECT_EQ(error_of(co_await async_write_all(ours, much)), errc::deadline_exceeded);
        });
        co_await turns(5);
        const auto start = clock::now();
        ours.set_idle_timeout(5ms);
        co_await sending;
        EXPECT_GE(clock::now() - start, 5ms);
    });
}

TEST_P(idle_timeout_test, a_queued_writer_whose_peer_never_reads_fails) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        ours.set_idle_timeout(20ms);
        queued_writer<tcp_stream> writer{std::move(ours)};
        EXPECT_TRUE(writer.enqueue(noise(1'000'000)));
        EXPECT_EQ(error_of(co_await writer.flush()), errc::deadline_exceeded);
    });
}

// The kernel wakes a writer when a good part of the send buffer is free. With a slow reader, that
// may take longer than the limit.
TEST_P(idle_timeout_test, a_peer_that_reads_without_waking_the_writer_is_not_idle) {
    stop_the_clock();
    auto [ours, theirs] = connect_narrowly(200'000);
    const std::string much = noise(4'000'000);
    run([&]() -> task<> {
        ours.set_idle_timeout(50ms);
        auto sending = spawn(write_all(ours, much));
        co_await turns(200);
        for (int each = 0; each < 3; ++each) {
            time_.advance(40ms);
            co_await turns(200);
            EXPECT_EQ(take_some(theirs, 66'000),
                      66'000); // at least what the kernel keeps in one piece
            pollfd asked{.fd = ours.native_handle(), .events = POLLOUT, .revents = 0};
            EXPECT_EQ(::poll(&asked, 1, 0), 0) << "the writer was woken, so this shows nothing";
            co_await turns(200);
            EXPECT_FALSE(sending.done());
        }
        for (int each = 0; each < 3 && !sending.done(); ++each) {
            time_.advance(40ms);
            co_await turns(200);
        }
        EXPECT_EQ(error_of(co_await sending), errc::deadline_exceeded);
    });
}

// An io_uring write that waits for everything reports nothing before all is sent, and its buffer
// stays full.
TEST_P(idle_timeout_test, a_write_that_moves_continues_when_an_idle_timeout_is_set) {
    stop_the_clock();
    auto [ours, theirs] = connect_narrowly();
    const std::string much = noise(200'000);
    run([&]() -> task<> {
        auto sending = spawn(write_all(ours, much));
        co_await turns(200);
        ours.set_idle_timeout(50ms);
        while (!sending.done()) {
            time_.advance(30ms);
            while (take_some(theirs, 4096) > 0) {
            }
            co_await turns(200);
        }
        EXPECT_TRUE(co_await sending);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, idle_timeout_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
