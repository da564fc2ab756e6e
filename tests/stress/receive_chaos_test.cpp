// Many streams and few receive buffers: however a receive() or a read ends, and however long leases
// are held, no byte is lost, no reader hangs, and in the end the whole pool is available again.

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/full_form.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::noise;
using testing::text_of;
using testing::turns;

constexpr std::size_t buffers = 3;
constexpr std::size_t streams = 10;
constexpr int steps = 250;
constexpr std::size_t most_sent = 150'000; // per stream: more than a socket buffers

class receive_chaos_test : public testing::backend_test {
protected:
    struct connection {
        testing::raw_connection<tcp_stream> ends = connect_raw();
        std::string sent;
        std::string got;
        bool closed = false;
    };

    void SetUp() override {
        backend_test::SetUp();
        if (!IsSkipped()) remake_loop({.read_ahead = 1, .receive_pool = buffers * 16 * 1024});
    }

    task<> pause(std::size_t most_turns) {
        if (dice_->one_in(3)) {
            co_await async_sleep(std::chrono::microseconds{dice_->up_to(1500)});
        } else {
            co_await turns(static_cast<int>(dice_->up_to(most_turns)));
        }
    }

    task<result<received>> receive_and_stop(tcp_stream& from) {
        auto receiving =
            spawn([&]() -> task<result<received>> { co_return co_await from.receive(); });
        co_await pause(4);
        receiving.request_stop();
        co_return co_await receiving;
    }
    /// Waits without taking anything; what is there is then taken without waiting.
    task<result<received>> receive_when_readable(tcp_stream& from) {
        const auto limit = std::chrono::microseconds{dice_->up_to(3000)};
        auto waiting = with_timeout(from.readable(), limit);
        const result<> there = co_await std::move(waiting);
        if (!there) co_return fail(there);
        if (dice_->one_in(3)) co_await pause(3);
        auto taken = from.try_receive();
        EXPECT_FALSE(error_of(taken) == std::errc::operation_would_block);
        co_return taken;
    }
    task<result<received>> receive(tcp_stream& from) {
        switch (dice_->up_to(5)) {
        case 4:
            co_return co_await receive_when_readable(from);
        case 5: {
            auto taken = from.try_receive();
            if (error_of(taken) == std::errc::operation_would_block) {
                co_return co_await from.receive();
            }
            co_return taken;
        }
        case 0: {
            auto limited =
                with_timeout(from.receive(), std::chrono::microseconds{dice_->up_to(1500)});
            co_return co_await std::move(limited);
        }
        case 1:
            co_return co_await receive_and_stop(from);
        default:
            co_return co_await from.receive();
        }
    }
    /// Reads or receives once, and may keep the lease. False: the stream has ended.
    task<bool> take(connection& from) {
        std::error_code error;
        received lease;
        if (dice_->one_in(3)) {
            std::string scratch(1 + dice_->up_to(40'000), '\0');
            auto limited = with_timeout(from.ends.ours.read_some(mutable_buffer{scratch}),
                                        std::chrono::microseconds{100 + dice_->up_to(3000)});
            const auto some = co_await std::move(limited);
            error = error_of(some);
            if (some) from.got.append(scratch, 0, *some);
        } else {
            auto outcome = co_await receive(from.ends.ours);
            error = error_of(outcome);
            if (outcome) {
                from.got += text_of(*outcome);
                lease = *std::move(outcome);
                if (dice_->one_in(3)) {
                    received front = lease.split(dice_->up_to(lease.size()));
                    if (dice_->one_in(2)) std::swap(front, lease);
                }
            }
        }
        if (dice_->one_in(3)) co_await pause(20);
        if (from.closed || error == errc::end_of_stream) co_return false;
        EXPECT_TRUE(!error || error == errc::deadline_exceeded || error == canceled)
            << error.message();
        co_return !error || error == errc::deadline_exceeded || error == canceled;
    }
    task<> take_all(connection& from) {
        // Not a coroutine that is only a loop with an await in its condition: g++ 12 puts that
        // condition where the frame stores its resume address.
        while (true) {
            const bool more = co_await take(from);
            if (!more) co_return;
        }
    }

    task<> send_here_and_there(std::vector<connection>& all) {
        for (int step = 0; step < steps; ++step) {
            connection& to = all[dice_->up_to(streams - 1)];
            if (to.sent.size() < most_sent && !to.closed) {
                const std::size_t size = 1 + dice_->up_to(dice_->one_in(4) ? 20'000 : 300);
                const std::string part = noise(size, static_cast<std::uint32_t>(step));
                to.sent += part;
                to.ends.theirs.send(part);
            }
            if (dice_->one_in(300) && !to.closed) {
                to.closed = true;
                to.ends.ours.close();
            }
            if (dice_->one_in(3)) co_await pause(3);
        }
        for (connection& each : all) {
            if (!each.closed) each.ends.theirs.shutdown_write();
        }
    }

    void round(std::uint32_t seed) {
        testing::dice dice{seed};
        dice_ = &dice;
        std::vector<connection> all(streams);
        run([&]() -> task<> {
            std::vector<join_handle<void>> readers;
            for (connection& each : all)
                readers.push_back(spawn(take_all(each)));
            co_await send_here_and_there(all);
            for (auto& each : readers)
                co_await each;
        });
        for (const connection& each : all) {
            EXPECT_TRUE(each.closed || each.got == each.sent)
                << each.got.size() << " of " << each.sent.size() << " bytes";
        }
    }

    /// The heap is needed only after as many leases as the pool has buffers.
    void expect_whole_pool() {
        std::vector<connection> all(buffers + 1);
        run([&]() -> task<> {
            std::vector<received> held;
            EXPECT_EQ(loop().metrics().receive_pool_leased, 0U);
            const auto before = loop().metrics().receive_pool_overflow;
            for (connection& each : all) {
                EXPECT_EQ(loop().metrics().receive_pool_overflow, before);
                each.ends.theirs.send("x");
                auto lease = co_await each.ends.ours.receive();
                EXPECT_TRUE(lease);
                if (lease) held.push_back(*std::move(lease));
            }
            EXPECT_EQ(loop().metrics().receive_pool_overflow, before + 1);
        });
    }

private:
    testing::dice* dice_ = nullptr;
};

TEST_P(receive_chaos_test, no_byte_is_lost_and_no_reader_hangs) {
    const auto first = static_cast<std::uint32_t>(testing::first_seed());
    const std::uint32_t rounds = testing::short_or_full<std::uint32_t>(4, 1000);
    for (std::uint32_t seed = first; seed < first + rounds && !HasFailure(); ++seed) {
        still_alive();
        round(seed);
        expect_whole_pool();
    }
}

INSTANTIATE_TEST_SUITE_P(backends, receive_chaos_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
