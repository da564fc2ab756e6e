// Many operations at once: none starves, and a small queue is enough for all.

#include <simplenet/io/detail/operation.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/stream/transfer.hpp>

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::connected_pair;
using testing::turns;
using testing::until;
using clock = std::chrono::steady_clock;

class operation_load_test : public testing::backend_test {};

// --- starvation ----------------------------------------------------------------------------------

TEST_P(operation_load_test, a_connection_that_always_has_bytes_cannot_starve_another) {
    auto [hot, flood] = connect_raw();
    auto [ours, theirs] = connect_raw();
    const std::size_t there = flood.send_until_full(std::string(65536, 'x'));
    theirs.send("ping");
    testing::await(hot.native_handle(), POLLIN);
    testing::await(ours.native_handle(), POLLIN);
    run([&]() -> task<> {
        std::size_t read_by_hot = 0;
        auto busy = spawn([&]() -> task<> {
            std::array<std::byte, 1> buffer;
            while (read_by_hot < there) {
                if (!co_await hot.read_some(buffer)) co_return;
                ++read_by_hot;
            }
        });
        std::array<std::byte, 8> buffer;
        EXPECT_TRUE(co_await ours.read_some(buffer));

        EXPECT_LT(read_by_hot, 1000U); // a few turns with a bounded number of inline completions
        EXPECT_GT(there, 2000U);
        busy.request_stop();
        co_await busy;
    });
}

TEST_P(operation_load_test, one_resumption_makes_a_bounded_number_of_inline_completions) {
    auto [hot, flood] = connect_raw();
    flood.send_until_full(std::string(65536, 'x'));
    testing::await(hot.native_handle(), POLLIN);
    run([&]() -> task<> {
        std::size_t reads = 0;
        auto busy = spawn([&]() -> task<> {
            std::array<std::byte, 1> buffer;
            while (co_await hot.read_some(buffer))
                ++reads;
        });
        co_await until([&] { return reads > 0; });
        std::size_t most = 0;
        for (int turn = 0; turn < 50; ++turn) {
            const std::size_t before = reads;
            co_await yield();
            most = std::max(most, reads - before);
        }
        EXPECT_GT(most, 1U);
        EXPECT_LE(most, 66U);
        busy.request_stop();
        co_await busy;
    });
}

TEST_P(operation_load_test, a_writer_that_never_blocks_cannot_starve_another) {
    auto [hot, drain] = connect_raw();
    run([&]() -> task<> {
        std::size_t writes = 0;
        bool enough = false;
        auto busy = spawn([&]() -> task<> {
            std::array<char, 65536> scratch;
            while (!enough) {
                EXPECT_TRUE(co_await hot.write_some("x"));
                if (++writes % 256 == 0) {
                    while (::recv(drain.fd(), scratch.data(), scratch.size(), MSG_DONTWAIT) > 0) {
                    }
                }
            }
        });
        co_await turns(20);
        enough = true;
        co_await busy;

        EXPECT_LE(writes, 66U * 21);
    });
}

TEST_P(operation_load_test, pings_take_few_turns_beside_a_flood) {
    auto [hot, flooding] = connected_pair();
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        const std::string block(65536, 'x');
        auto flood = spawn([&]() -> task<> {
            while (co_await async_write_all(flooding, block)) {
            }
        });
        auto sink = spawn([&]() -> task<> {
            while (co_await hot.receive()) {
            }
        });
        for (int round = 0; round < 50; ++round) {
            std::array<std::byte, 8> buffer;
            theirs.send("ping");
            if (round == 0) testing::await(ours.native_handle(), POLLIN);
            const auto before = loop().metrics().turns;
            EXPECT_TRUE(co_await ours.read_some(buffer));
            EXPECT_LE(loop().metrics().turns - before, 20U);
        }
        flood.request_stop();
        sink.request_stop();
        co_await flood;
        co_await sink;
    });
}

// --- small rings and many operations -------------------------------------------------------------

TEST_P(operation_load_test, a_queue_of_eight_entries_is_enough_for_thousands_of_operations) {
    remake_loop({.queue_depth = 8});
    constexpr std::size_t connections = 300;
    std::vector<testing::stream_pair> pairs;
    for (std::size_t each = 0; each < connections; ++each)
        pairs.push_back(connected_pair());
    std::size_t done = 0;
    run([&]() -> task<> {
        auto all = [&](task_group& group) -> task<> {
            for (auto& pair : pairs) {
                group.spawn([&]() -> task<> {
                    std::array<std::byte, 8> buffer;
                    while (auto count = co_await pair.theirs.read_some(buffer)) {
                        EXPECT_TRUE(
                            co_await async_write_all(pair.theirs, std::span{buffer}.first(*count)));
                    }
                });
                group.spawn([&]() -> task<> {
                    std::array<std::byte, 4> buffer;
                    for (int round = 0; round < 10; ++round) {
                        EXPECT_TRUE(co_await async_write_all(pair.ours, "ping"));
                        EXPECT_TRUE(co_await async_read_exact(pair.ours, buffer));
                        ++done;
                    }
                    pair.ours.close();
                });
            }
            co_return;
        };
        EXPECT_TRUE(co_await with_group(all));
    });
    EXPECT_EQ(done, connections * 10);
}

TEST_P(operation_load_test, thousands_of_operations_stop_at_once_through_a_queue_of_eight_entries) {
    remake_loop({.queue_depth = 8});
    constexpr std::size_t connections = 400;
    std::vector<testing::stream_pair> pairs;
    for (std::size_t each = 0; each < connections; ++each)
        pairs.push_back(connected_pair({.ours = 4096, .theirs = 4096}));
    const std::string much(1 << 20, 'x');
    std::size_t ended = 0;
    run([&]() -> task<> {
        auto waiting = spawn([&]() -> task<> {
            task_group group;
            for (auto& pair : pairs) {
                group.spawn([&]() -> task<> {
                    std::array<std::byte, 8> buffer;
                    EXPECT_EQ(error_of(co_await pair.ours.read_some(buffer)), canceled);
                    ++ended;
                });
                group.spawn([&]() -> task<> {
                    EXPECT_EQ(error_of(co_await async_write_all(pair.ours, much)), canceled);
                    ++ended;
                });
            }
            static_cast<void>(co_await group.join());
        });
        co_await until([&] { return loop().metrics().live_operations == 2 * connections; });
        waiting.request_stop();
        co_await waiting;
        EXPECT_EQ(loop().metrics().live_operations, 0U);
    });
    EXPECT_EQ(ended, 2 * connections);
}

INSTANTIATE_TEST_SUITE_P(backends, operation_load_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
