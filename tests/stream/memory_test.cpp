// The memory that queued_writer and async_copy hold. The test replaces the allocation functions to
// count, so it is a program of its own.

#include <simplenet/stream/buffered_reader.hpp>
#include <simplenet/stream/copy.hpp>
#include <simplenet/stream/queued_writer.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/counted_allocations.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/net/local_stream.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <malloc.h>
#include <sys/resource.h>

namespace simplenet::v0 {
namespace {

using testing::all_backends;
using testing::allocations;
using testing::backend_name;
using testing::connect_raw;
using testing::connect_raw_local;
using testing::live_bytes;
using testing::noise;
using testing::turns;
using testing::until;

using writer = queued_writer<local_stream>;

/// Reads available bytes without waiting.
std::size_t drain(testing::raw_peer& peer) {
    char scratch[16384];
    const ssize_t count = ::recv(peer.fd(), scratch, sizeof scratch, MSG_DONTWAIT);
    return count < 0 ? 0 : static_cast<std::size_t>(count);
}

class memory_test : public testing::backend_test {};

TEST_P(memory_test, a_writer_in_steady_state_allocates_nothing) {
    if (!detail::recycles_frames) GTEST_SKIP() << "frames are not recycled under ASan";
    run(
        [&]() -> task<> {
            auto [ours, theirs] = or_throw(local_stream::pair());
            writer to{std::move(ours)};
            std::string got(64, '\0');
            std::size_t before = 0;
            for (int round = 0; round < 11'000; ++round) {
                if (round == 1000) before = allocations;
                for (int part = 0; part < 8; ++part)
                    or_throw(to.enqueue("8 bytes."));
                or_throw(co_await async_read_exact(theirs, got));
            }
            EXPECT_EQ(allocations - before, 0U);
        },
        testing::test_limit * 3);
}

TEST_P(memory_test, an_idle_writer_holds_little) {
    std::vector<testing::raw_connection<local_stream>> peers;
    std::vector<writer> writers;
    writers.reserve(100);
    run([&]() -> task<> {
        for (int count = 0; count < 100; ++count)
            peers.push_back(connect_raw_local());
        const std::size_t before = live_bytes;
        for (auto& each : peers) {
            writers.emplace_back(std::move(each.ours));
            EXPECT_TRUE(writers.back().enqueue(noise(5000)));
            EXPECT_TRUE(co_await writers.back().flush());
        }
        EXPECT_LT((live_bytes - before) / 100, 2048U);
        writers.clear();
    });
}

// At most limit x connections + 64 KiB each. A string may have twice the capacity of its size;
// taking it over would make the limit cover only half of the memory held.
TEST_P(memory_test, the_limit_counts_the_memory_that_is_held) {
    auto [ours, theirs] = connect_raw_local({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        writer to{std::move(ours), {.low = 1, .high = 2, .limit = 4 << 20}};
        const std::size_t before = live_bytes;
        for (bool taken = true; taken;) {
            std::string bytes;
            bytes.reserve(19'000);
            bytes.assign(10'000, 'x');
            taken = to.enqueue(std::move(bytes)).has_value();
        }
        EXPECT_GT(live_bytes - before, std::size_t{3} << 20);
        EXPECT_LT(live_bytes - before, std::size_t{5} << 20);
        theirs.close();
        co_await yield();
    });
}

// One long line must not cost its connection the same memory for the rest of its life.
TEST_P(memory_test, a_reader_frees_the_memory_of_a_long_line) {
    run([&]() -> task<> {
        auto [ours, theirs] = or_throw(local_stream::pair());
        buffered_reader reader{std::move(ours)};
        const std::string line = std::string(1'000'000, 'x') + '\n';
        const std::size_t before = live_bytes;
        for (int round = 0; round < 2; ++round) {
            auto send = [&]() -> task<> { (void)co_await async_write_all(theirs, line); };
            auto sending = spawn(send);
            EXPECT_EQ((co_await reader.read_line(2'000'000)).value_or("").size(), 1'000'000U);
            co_await sending;
            EXPECT_GT(live_bytes - before, 1'000'000U); // holds the line
            auto waiting = spawn([&]() -> task<> { (void)co_await reader.read_line(100); });
            co_await turns(3);
            EXPECT_LT(live_bytes - before, 20'000U);
            waiting.request_stop();
            co_await waiting;
        }
    });
}

TEST_P(memory_test, a_thousand_slow_readers_stay_within_the_limits) {
    constexpr std::size_t connections = 1000;
    constexpr watermarks marks{.low = 8 * 1024, .high = 32 * 1024, .limit = 64 * 1024};
    rlimit files{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
    if (files.rlim_cur < 3 * connections) GTEST_SKIP() << "the limit on descriptors is too low";

    std::vector<writer> writers;
    std::vector<testing::raw_peer> readers;
    writers.reserve(connections);
    testing::dice dice{1};
    run(
        [&]() -> task<> {
            for (std::size_t count = 0; count < connections; ++count) {
                auto [ours, theirs] = connect_raw_local({.ours = 4096, .theirs = 4096});
                writers.emplace_back(std::move(ours), marks);
                readers.push_back(std::move(theirs));
            }
            const std::size_t before = live_bytes;
            std::size_t queued = 0;
            for (int round = 0; round < 3; ++round) {
                queued = 0;
                for (std::size_t at = 0; at < connections; ++at) {
                    writer& to = writers[at];
                    bool full = false;
                    while (!full) { // of every size and kind, until refused
                        const std::size_t most = dice.one_in(4) ? 20'000 : 300;
                        std::string text(1 + dice.up_to(most), 'x');
                        full = !(dice.one_in(2) ? to.enqueue(text) : to.enqueue(std::move(text)));
                    }
                    queued += to.queued_bytes();
                    EXPECT_LE(to.queued_bytes(), marks.limit);
                }
                EXPECT_LE(live_bytes - before, connections * (marks.limit + 64U * 1024));
                EXPECT_LE(live_bytes - before, queued + queued / 2); // in practice far less
                co_await turns(5);
                for (auto& reader : readers) // reads a little, so that some of every queue is sent
                    static_cast<void>(reader.receive(1000));
                co_await turns(5);
            }
            writers.clear();
            co_await turns(5);
            EXPECT_LE(live_bytes, before + (8U << 20U)); // the memory of free lists
        },
        testing::test_limit * 4);
}

TEST_P(memory_test, idle_copies_hold_no_buffers) {
    constexpr std::size_t pairs = 50;
    std::vector<testing::raw_connection<tcp_stream>> lefts;
    std::vector<testing::raw_connection<local_stream>> rights;
    for (std::size_t count = 0; count < pairs; ++count) {
        lefts.push_back(connect_raw());
        rights.push_back(connect_raw_local());
    }
    run([&]() -> task<> {
        const std::size_t before = live_bytes;
        std::vector<join_handle<std::expected<copy_counts, copy_error>>> copies;
        for (std::size_t at = 0; at < pairs; ++at)
            copies.push_back(spawn(async_copy_bidirectional(lefts[at].ours, rights[at].ours)));
        const std::string much = noise(100'000);
        for (std::size_t at = 0; at < pairs; ++at) {
            lefts[at].theirs.send(much);
            std::size_t got = 0;
            co_await until([&] {
                got += drain(rights[at].theirs);
                return got == much.size();
            });
        }
        co_await turns(3);
        // Frames, and the spare block of the thread.
        EXPECT_LE(live_bytes - before, pairs * 4096 + 2 * detail::copy_block::capacity);
        for (auto& copy : copies) {
            copy.request_stop();
            static_cast<void>(co_await copy);
        }
    });
}

TEST(copy_block_test, a_thread_keeps_one_spare_buffer_and_frees_the_others) {
    const std::size_t before = live_bytes;
    detail::copy_block first;
    detail::copy_block second;
    EXPECT_GE(live_bytes - before,
              detail::copy_block::capacity); // the other may have been the spare one
    first.give_back();
    second.give_back();
    EXPECT_LE(live_bytes, before + detail::copy_block::capacity * 3 / 2); // overhead of malloc
}

// After a large amount a copy waits at another point, where it must not keep its block.
TEST_P(memory_test, copies_that_are_idle_after_a_large_amount_hold_no_buffers) {
    constexpr std::size_t pairs = 10;
    remake_loop({.read_ahead = 1}); // so that io_uring leaves the bytes to splice(2)
    std::vector<testing::raw_connection<tcp_stream>> from;
    std::vector<testing::raw_connection<tcp_stream>> to;
    for (std::size_t count = 0; count < pairs; ++count) {
        from.push_back(connect_raw());
        to.push_back(connect_raw());
    }
    run([&]() -> task<> {
        const std::string much(1 << 20, 'x');
        const std::size_t before = live_bytes;
        std::vector<join_handle<transfer_result>> copies;
        for (std::size_t at = 0; at < pairs; ++at) {
            copies.push_back(spawn(async_copy(from[at].ours, to[at].ours)));
            for (std::size_t sent = 0, got = 0; got < 4U << 20U || got < sent;) {
                if (got < 4U << 20U) sent += from[at].theirs.send_until_full(much);
                co_await turns(5);
                got += drain(to[at].theirs);
            }
        }
        EXPECT_LE(live_bytes - before, pairs * 4096 + 2 * detail::copy_block::capacity);
        for (auto& copy : copies) {
            copy.request_stop();
            static_cast<void>(co_await copy);
        }
    });
}

INSTANTIATE_TEST_SUITE_P(backends, memory_test, testing::real_backends, backend_name);

} // namespace
} // namespace simplenet::v0
