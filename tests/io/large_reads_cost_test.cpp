// The cost of large reads: system calls and io_uring entries, counted.
#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/large_reads.hpp"
#include "support/raw_peer.hpp"
#include "support/receive_counter.hpp"

#include <simplenet/io/received.hpp>
#include <simplenet/stream/copy.hpp>
#include <simplenet/stream/transfer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using testing::backend_name;
using testing::connect_raw;
using testing::large;
using testing::noise;
using testing::read_much;
using testing::receive_counter;

class large_reads_cost_test : public testing::backend_test {};

TEST_P(large_reads_cost_test, are_received_in_place) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        co_await read_much(ours, theirs);
        receive_counter asked;
        const detail::sys::intercepting now{asked};
        co_await read_much(ours, theirs);
        EXPECT_EQ(asked.bytes, 4 * large);
        EXPECT_EQ(asked.entries, 0U);
    });
}

TEST_P(large_reads_cost_test, are_received_in_place_one_at_a_time) {
    constexpr std::size_t size = 16 * 1024;
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        receive_counter asked;
        const detail::sys::intercepting now{asked};
        const std::string sent = noise(size);
        const auto read = [&]() -> task<> {
            std::string buffer(size, '\0');
            for (std::size_t got = 0; got < 10 * size;) {
                const auto count = co_await ours.read_some(mutable_buffer{buffer});
                if (!count) break;
                got += *count;
            }
        };
        auto child = loop().spawn(read);
        for (int round = 0; round < 10; ++round) {
            co_await testing::turns(5);
            theirs.send(sent);
        }
        co_await std::move(child);
        EXPECT_GE(asked.bytes, 7 * size); // the first ones are received ahead and copied
        EXPECT_LE(asked.cancels, 1U);
    });
}

TEST_P(large_reads_cost_test, a_small_message_behind_them_costs_a_call_or_two) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        co_await read_much(ours, theirs);
        receive_counter asked;
        const detail::sys::intercepting now{asked};
        auto read = [&]() -> task<> {
            std::array<char, 1000> buffer;
            for (int round = 0; round < 10; ++round)
                EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 5U);
        };
        auto child = loop().spawn(read);
        for (int round = 0; round < 10; ++round) {
            co_await testing::turns(5);
            theirs.send("small");
        }
        co_await std::move(child);
        // Only on epoll does a short read prove that the socket is empty.
        EXPECT_LE(asked.calls, GetParam() == backend::epoll ? 11U : 21U);
        EXPECT_EQ(asked.entries, 0U);
    });
}

TEST_P(large_reads_cost_test, a_receive_that_waits_returns_its_stream_to_receiving_ahead) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        co_await read_much(ours, theirs);
        auto receive = [&]() -> task<> { EXPECT_TRUE(co_await ours.receive()); };
        auto child = loop().spawn(receive);
        co_await testing::turns(5);
        theirs.send("to a lease");
        co_await std::move(child);

        receive_counter asked;
        const detail::sys::intercepting now{asked};
        std::array<char, 1000> buffer;
        for (int round = 0; round < 10; ++round) {
            theirs.send("small");
            EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 5U);
        }
        // On io_uring the loop receives ahead again.
        EXPECT_EQ(asked.bytes, GetParam() == backend::io_uring ? 0U : 50U);
        EXPECT_EQ(asked.cancels, 0U);
    });
}

TEST_P(large_reads_cost_test, a_copy_continues_to_receive_ahead) {
    constexpr std::size_t size = 26'000;
    auto [ours, theirs] = connect_raw();
    auto [out, sink] = connect_raw();
    run([&]() -> task<> {
        auto copy = [&]() -> task<> { EXPECT_TRUE(co_await async_copy(ours, out)); };
        auto child = loop().spawn(copy);
        receive_counter asked;
        const detail::sys::intercepting now{asked};
        for (std::uint32_t round = 0; round < 10; ++round) {
            const std::string sent = noise(size, round);
            theirs.send(sent);
            co_await testing::until([&] { return sink.peek() > 0; });
            EXPECT_TRUE(sink.receive(size) == sent) << "round " << round;
            co_await testing::turns(5);
        }
        EXPECT_EQ(asked.cancels, 0U);
        theirs.close();
        co_await std::move(child);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, large_reads_cost_test, testing::real_backends, backend_name);

} // namespace
} // namespace simplenet::v0
