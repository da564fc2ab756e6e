#include <simplenet/io/received.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/stream/transfer.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace simplenet::v0 {
namespace {

using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::noise;
using testing::text_of;
using testing::turns;

class received_test : public testing::backend_test {};

TEST_P(received_test, a_lease_shows_the_bytes_of_the_peer) {
    auto [ours, theirs] = connect_raw();
    theirs.send("hello");
    run([&]() -> task<> {
        auto lease = co_await ours.receive();
        EXPECT_TRUE(lease);
        if (!lease) co_return;
        EXPECT_EQ(text_of(*lease), "hello");
        EXPECT_EQ(lease->size(), 5U);
        EXPECT_EQ(lease->bytes().size(), 5U);
        EXPECT_FALSE(lease->empty());
        EXPECT_TRUE(co_await async_write_all(ours, *lease)); // a lease is a buffer for a write
    });
    EXPECT_EQ(theirs.receive(5), "hello");
}

TEST_P(received_test, a_lease_can_be_moved_and_released_early) {
    auto [ours, theirs] = connect_raw();
    theirs.send("hello");
    run([&]() -> task<> {
        auto outcome = co_await ours.receive();
        EXPECT_TRUE(outcome);
        if (!outcome) co_return;
        received first = *std::move(outcome);
        received second = std::move(first);
        EXPECT_TRUE(first.empty()); // NOLINT(bugprone-use-after-move)
        EXPECT_EQ(text_of(second), "hello");
        first = std::move(second);
        EXPECT_EQ(text_of(first), "hello");
        first.release();
        EXPECT_TRUE(first.empty());
        first.release();
    });
}

TEST_P(received_test, held_leases_keep_their_bytes_while_more_arrives) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::vector<received> held;
        for (int round = 0; round < 100; ++round) {
            theirs.send(noise(1000, round));
            for (std::size_t have = 0; have < 1000;) {
                auto lease = co_await ours.receive();
                EXPECT_TRUE(lease);
                if (!lease) co_return;
                have += lease->size();
                held.push_back(*std::move(lease));
            }
        }
        std::string all;
        for (const received& each : held)
            all += text_of(each);
        std::string sent;
        for (int round = 0; round < 100; ++round)
            sent += noise(1000, round);
        EXPECT_TRUE(all == sent);
    });
}

TEST_P(received_test, a_lease_outlives_its_stream_and_its_loop) {
    received kept;
    {
        auto [ours, theirs] = connect_raw();
        theirs.send("survivor");
        run([&]() -> task<> {
            auto lease = co_await ours.receive();
            if (lease) kept = *std::move(lease);
        });
    }
    EXPECT_EQ(text_of(kept), "survivor");
    destroy_loop();
    EXPECT_EQ(text_of(kept), "survivor");
    received moved = std::move(kept);
    moved.release();
}

// By the time the coroutine resumes, the record may belong to another socket that has no loop yet.
TEST_P(received_test, the_parts_of_a_lease_outlive_its_stream_and_keep_one_buffer) {
    received head;
    std::optional<received> rest;
    {
        auto [ours, theirs] = connect_raw();
        run([&]() -> task<> {
            theirs.send("a head and the body");
            const auto before = loop().metrics().receive_pool_leased;
            auto lease = co_await ours.receive();
            EXPECT_TRUE(lease);
            if (!lease) co_return;
            rest = *std::move(lease);
            head = rest->split(7);
            EXPECT_EQ(loop().metrics().receive_pool_leased, before + 1);
            theirs.send("more");
            EXPECT_EQ(text_of((co_await ours.receive()).value()), "more");
            rest = rest->split(8); // drops the last bytes
            EXPECT_EQ(loop().metrics().receive_pool_leased, before + 1);
        });
    }
    EXPECT_EQ(text_of(head), "a head ");
    EXPECT_EQ(text_of(*rest), "and the ");
    rest.reset();
    EXPECT_EQ(loop().metrics().receive_pool_leased, 1U);
    head.release();
    EXPECT_EQ(loop().metrics().receive_pool_leased, 0U);
}

TEST_P(received_test, a_lease_stays_valid_when_its_stream_is_destroyed) {
    auto [ours, theirs] = testing::connect_raw_local();
    auto [next, unused] = testing::local_ends();
    run([&]() -> task<> {
        std::optional<local_stream> stream{std::move(ours)};
        auto reading = spawn([&]() -> task<> {
            const auto lease = co_await stream->receive();
            if (lease) {
                EXPECT_EQ(text_of(*lease), "hello");
            } else {
                EXPECT_EQ(error_of(lease), canceled); // the loop had not seen it yet
            }
        });
        co_await turns(5);
        theirs.send("hello");
        co_await testing::next_event(loop());
        stream.reset();
        const auto another = testing::make_local_stream(std::move(next));
        co_await reading;
    });
}

TEST_P(received_test, receive_and_read_some_take_turns_without_losing_order) {
    auto [ours, theirs] = connect_raw();
    const std::string sent = noise(100000);
    run([&]() -> task<> {
        testing::dice dice{7};
        std::string got;
        std::size_t offset = 0;
        while (got.size() < sent.size()) {
            const std::size_t size = std::min(dice.up_to(3000), sent.size() - offset);
            theirs.send(std::string_view{sent}.substr(offset, size));
            offset += size;
            while (got.size() < offset) {
                if (dice.one_in(2)) {
                    auto lease = co_await ours.receive();
                    EXPECT_TRUE(lease);
                    if (!lease) co_return;
                    got += text_of(*lease);
                } else {
                    std::string buffer(1 + dice.up_to(500), '\0');
                    auto count = co_await ours.read_some(buffer);
                    EXPECT_TRUE(count);
                    if (!count) co_return;
                    got.append(buffer, 0, *count);
                }
            }
        }
        EXPECT_TRUE(got == sent);
    });
}

TEST_P(received_test, receive_reports_the_end_every_time) {
    auto [ours, theirs] = connect_raw();
    theirs.send("last");
    theirs.shutdown_write();
    run([&]() -> task<> {
        auto lease = co_await ours.receive();
        EXPECT_TRUE(lease);
        for (int times = 0; times < 3; ++times)
            EXPECT_EQ(error_of(co_await ours.receive()), errc::end_of_stream);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, received_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
