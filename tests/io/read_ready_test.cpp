// Reading available bytes, and waiting for more without taking them: the basis of async_copy() and
// of streams on top of another one.

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <chrono>
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

class read_ready_test : public testing::backend_test {
protected:
    /// Takes `size` bytes as they arrive; returns them and the number of waits.
    template <class Stream>
    task<std::pair<std::string, int>> take(Stream& stream, std::size_t size) {
        std::string got;
        std::array<char, 1000> buffer{};
        int waits = 0;
        while (got.size() < size && waits < 1000) {
            const result<std::size_t> count = detail::stream_access::read_ready(stream, buffer);
            if (count) {
                got.append(buffer.data(), *count);
                continue;
            }
            EXPECT_EQ(count.error(), std::errc::operation_would_block);
            ++waits;
            EXPECT_TRUE(co_await stream.readable());
        }
        co_return std::pair{std::move(got), waits};
    }
    template <class Stream>
    task<> expect_all(testing::raw_connection<Stream>& connection) {
        for (std::uint32_t round = 0; round < 5; ++round) {
            const std::string sent = noise(round % 2 == 0 ? 30'000 : 3, round);
            connection.theirs.send(sent);
            const auto [got, waits] = co_await take(connection.ours, sent.size());
            EXPECT_TRUE(got == sent) << got.size() << " of " << sent.size();
            // Each wait ends for some bytes, or because the coroutine has used its inline turns.
            EXPECT_LT(waits, 50);
        }
    }
};

// If the wait found bytes that the read does not find, the two would loop forever.
TEST_P(read_ready_test, bytes_found_by_a_wait_are_read) {
    run([&]() -> task<> {
        auto connection = connect_raw();
        co_await expect_all(connection);
    });
}

TEST_P(read_ready_test, bytes_found_by_a_wait_are_read_from_a_local_stream) {
    run([&]() -> task<> {
        auto connection = connect_raw_local();
        co_await expect_all(connection);
    });
}

TEST_P(read_ready_test, bytes_found_by_a_wait_are_read_after_other_reads) {
    run([&]() -> task<> {
        auto connection = connect_raw();
        auto& [ours, theirs] = connection;
        std::array<char, 10> buffer{};
        theirs.send("first and");
        EXPECT_EQ((co_await ours.read_some(std::span{buffer}.first(5))).value_or(0), 5U);
        const auto [got, waits] = co_await take(ours, 4);
        EXPECT_EQ(got, " and");
        co_await expect_all(connection); // on io_uring with a receive in the kernel
        auto leasing = [&]() -> task<result<received>> { co_return co_await ours.receive(); };
        auto lease = spawn(leasing);
        co_await testing::turns(3);
        theirs.send("a lease");
        EXPECT_TRUE(co_await lease);
        co_await expect_all(connection);
    });
}

TEST_P(read_ready_test, a_wait_ends_when_bytes_are_received_ahead) {
    run([&]() -> task<> {
        auto [ours, theirs] = connect_raw();
        auto leasing = [&]() -> task<result<received>> { co_return co_await ours.receive(); };
        auto lease = spawn(leasing); // on io_uring it leaves a receive in the kernel
        co_await testing::turns(3);
        theirs.send("x");
        EXPECT_TRUE(co_await lease);
        for (int pieces = 1; pieces < 20; ++pieces) {
            std::array<char, 100> buffer{};
            auto waiting = spawn([&]() -> task<result<>> { co_return co_await ours.readable(); });
            co_await testing::turns(3);
            for (int sent = 0; sent < pieces; ++sent)
                theirs.send("y");
            EXPECT_TRUE(co_await with_timeout(std::move(waiting), 1s)) << pieces << " at once";
            std::size_t got = 0;
            co_await testing::until([&] { // TCP may delay the last ones
                while (const auto count = detail::stream_access::read_ready(ours, buffer))
                    got += *count;
                return got == static_cast<std::size_t>(pieces);
            });
        }
    });
}

TEST_P(read_ready_test, a_wait_for_bytes_lets_the_loop_sleep) {
    run([&]() -> task<> {
        auto connection = connect_raw();
        co_await expect_all(connection);
        auto waiting =
            spawn([&]() -> task<> { EXPECT_EQ((co_await take(connection.ours, 1)).first, "x"); });
        const auto before = loop().metrics().turns;
        EXPECT_TRUE(co_await async_sleep(30ms));
        EXPECT_LT(loop().metrics().turns - before, 10U);
        connection.theirs.send("x");
        co_await waiting;
    });
}

INSTANTIATE_TEST_SUITE_P(backends, read_ready_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
