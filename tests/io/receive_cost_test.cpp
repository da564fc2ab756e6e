// What io_uring receives ahead, and where it does not: the cost, in calls, entries and buffers.
#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/raw_peer.hpp"
#include "support/receive_counter.hpp"
#include "support/small_pool_test.hpp"

#include <simplenet/io/received.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::backend_name;
using testing::connect_raw;
using testing::connect_raw_local;
using testing::receive_counter;
using testing::turns;

class receive_cost_test : public testing::small_pool_test {};

// Streams that found the pool used up are read with recv(2) for as long as that lasts.
TEST_P(receive_cost_test, is_that_of_receiving_ahead_again_when_leases_were_returned) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::array<char, 100> buffer{};
        const auto read = [&]() -> task<> { EXPECT_TRUE(co_await ours.read_some(buffer)); };
        const auto read_sent = [&]() -> task<> {
            auto child = loop().spawn(read);
            co_await turns(5);
            theirs.send("bytes");
            co_await std::move(child);
        };
        auto held = co_await hold_everything();
        co_await read_sent();
        held.clear();
        co_await read_sent();

        receive_counter asked;
        const detail::sys::intercepting now{asked};
        for (int round = 0; round < 10; ++round)
            co_await read_sent();
        EXPECT_EQ(asked.bytes, GetParam() == backend::io_uring ? 0U : 50U);
    });
}

TEST_P(receive_cost_test, of_what_is_left_in_a_local_stream_is_a_call) {
    auto [ours, theirs] = connect_raw_local();
    run([&]() -> task<> {
        receive_counter asked;
        const detail::sys::intercepting now{asked};
        std::array<char, 100> buffer{};
        theirs.send(std::string(10 * buffer.size(), '-'));
        for (int round = 0; round < 10; ++round)
            EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), buffer.size());
        EXPECT_LE(asked.entries, 1U);
    });
}

TEST_P(receive_cost_test, of_small_messages_that_nobody_reads_is_a_part_of_the_pool) {
    constexpr std::size_t buffer_size = std::size_t{16} * 1024;
    remake_loop({.receive_pool = 128 * buffer_size});
    auto [unread, filling] = connect_raw();
    auto [ours, theirs] = connect_raw();
    const int at_once = 1;
    testing::checked(
        ::setsockopt(filling.fd(), IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once));
    run([&]() -> task<> {
        // The kernel gets the whole pool.
        std::vector<received> held;
        for (int each = 0; each < 128; ++each) {
            filling.send("-");
            if (auto lease = co_await unread.receive()) held.push_back(*std::move(lease));
        }
        held.clear();
        for (int each = 0; each < 200; ++each) {
            filling.send("-");
            co_await async_sleep(100us);
        }
        theirs.send("bytes");
        EXPECT_TRUE(co_await ours.receive());
        EXPECT_EQ(loop().metrics().receive_pool_overflow, 0U);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, receive_cost_test, testing::real_backends, backend_name);

} // namespace
} // namespace simplenet::v0
