// Copying in both directions: each direction ends on its own, an error ends both.

#include <simplenet/stream/copy.hpp>

#include "support/backend_test.hpp"
#include "support/copy_by_splice.hpp"
#include "support/copy_parts.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/time/deadline.hpp>

#include <string>
#include <thread>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::connect_raw_local;
using testing::noise;
using testing::piecemeal_stream;
using testing::readable_at;
using testing::turns;
using testing::until;

class copy_both_ways_test : public testing::backend_test {};

// --- both ways

TEST_P(copy_both_ways_test, both_ways_each_end_is_passed_on_and_the_other_direction_continues) {
    auto [a, left] = connect_raw();
    auto [b, right] = connect_raw_local();
    run([&]() -> task<> {
        auto copying = spawn(async_copy_bidirectional(a, b));
        left.send("question");
        left.shutdown_write();
        co_await until([&] { return right.peek() > 0; });
        EXPECT_EQ(right.receive(8), "question");
        co_await until([&] { return right.peek() == 0; });
        EXPECT_FALSE(copying.done());
        right.send("answer");
        co_await until([&] { return left.peek() > 0; });
        EXPECT_EQ(left.receive(6), "answer");
        EXPECT_EQ(left.peek(), -EAGAIN);
        right.shutdown_write();
        const auto counts = co_await copying;
        EXPECT_EQ(counts, (copy_counts{.a_to_b = 8, .b_to_a = 6}));
        EXPECT_EQ(left.receive_to_the_end(), errc::end_of_stream);
    });
}

TEST_P(copy_both_ways_test, both_ways_every_byte_arrives) {
    auto [a, left] = connect_raw({.ours = 8192, .theirs = 8192});
    auto [b, right] = connect_raw();
    const std::string to_right = noise(2'000'000, 1);
    const std::string to_left = noise(3'000'000, 2);
    std::string at_right;
    std::string at_left;
    std::vector<std::thread> peers;
    peers.emplace_back([&] {
        left.send(to_right);
        left.shutdown_write();
    });
    peers.emplace_back([&] { at_left = left.receive(to_left.size()); });
    peers.emplace_back([&] {
        right.send(to_left);
        right.shutdown_write();
    });
    peers.emplace_back([&] { at_right = right.receive(to_right.size()); });
    run([&]() -> task<> {
        const auto counts = co_await async_copy_bidirectional(a, b);
        EXPECT_EQ(counts, (copy_counts{.a_to_b = to_right.size(), .b_to_a = to_left.size()}));
    });
    for (std::thread& each : peers)
        each.join();
    EXPECT_TRUE(at_right == to_right);
    EXPECT_TRUE(at_left == to_left);
}

TEST_P(copy_both_ways_test, both_ways_an_error_in_one_stops_the_other_and_the_counts_are_exact) {
    auto [a, left] = connect_raw();
    auto [b, right] = connect_raw();
    run([&]() -> task<> {
        auto copying = spawn(async_copy_bidirectional(a, b));
        left.send("abcde");
        right.send("xyz");
        co_await until([&] { return right.peek() > 0 && left.peek() > 0; });
        right.reset();
        const auto outcome = co_await copying;
        EXPECT_EQ(error_of(outcome), std::errc::connection_reset);
        EXPECT_EQ(outcome.error().message(), outcome.error().code.message());
        EXPECT_EQ(outcome.error().counts, (copy_counts{.a_to_b = 5, .b_to_a = 3}));
        left.send("f"); // a is intact
        std::string rest(1, '\0');
        EXPECT_TRUE(co_await async_read_exact(a, rest));
        EXPECT_EQ(rest, "f");
    });
}

TEST_P(copy_both_ways_test, both_ways_a_limit_stops_both_and_the_counts_are_exact) {
    auto [a, left] = connect_raw();
    auto [b, right] = connect_raw_local({.ours = 4096, .theirs = 4096});
    right.send("ab");
    left.send(std::string(300'000, 'x'));
    run([&]() -> task<> {
        const auto outcome = co_await with_timeout(async_copy_bidirectional(a, b), 50ms);
        EXPECT_EQ(error_of(outcome), errc::deadline_exceeded);
        EXPECT_EQ(outcome.error().counts.a_to_b, readable_at(right));
        EXPECT_EQ(outcome.error().counts.b_to_a, 2U);
    });
}

TEST_P(copy_both_ways_test, both_ways_a_close_by_another_task_ends_it) {
    auto [a, left] = connect_raw();
    auto [b, right] = connect_raw();
    run([&]() -> task<> {
        auto copying = spawn(async_copy_bidirectional(a, b));
        co_await turns(3);
        b.close();
        EXPECT_EQ(error_of(co_await copying), std::errc::operation_canceled);
    });
}

TEST_P(copy_both_ways_test, both_ways_between_any_streams) {
    piecemeal_stream a{"from a"};
    piecemeal_stream b{"and from b"};
    run([&]() -> task<> {
        const auto counts = co_await async_copy_bidirectional(a, b);
        EXPECT_EQ(counts, (copy_counts{.a_to_b = 6, .b_to_a = 10}));
    });
    EXPECT_EQ(a.written(), "and from b");
    EXPECT_EQ(b.written(), "from a");
    EXPECT_TRUE(a.ended() && b.ended());
}

INSTANTIATE_TEST_SUITE_P(backends, copy_both_ways_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
