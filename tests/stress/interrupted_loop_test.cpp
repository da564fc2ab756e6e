// SIGUSR1 at the highest possible rate, to a loop that does everything loops do, has no effect.

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/full_form.hpp"
#include "support/placed_bytes.hpp"
#include "support/raw_peer.hpp"
#include "support/signal_storm.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <span>
#include <string>
#include <thread>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::placed_bytes;
using testing::short_or_full;

class interrupted_loop_test : public testing::backend_test {
protected:
    task<> write_placed(auto& stream) {
        const placed_bytes content{1};
        std::uint64_t offset = 0;
        while (!over_) {
            const auto piece = content.piece(offset, 1 + offset % 20'000);
            const auto sent = co_await async_write_all(stream, const_buffer{piece});
            EXPECT_TRUE(sent) << sent.error().message();
            if (!sent) co_return;
            offset += *sent;
            co_await testing::turns(2); // until reads wait and the loop sleeps
        }
        EXPECT_TRUE(stream.shutdown_write());
    }
    task<> read_placed(auto& stream) {
        const placed_bytes content{1};
        std::array<std::byte, 5000> memory;
        std::uint64_t offset = 0;
        for (;;) {
            const auto count = co_await stream.read_some(memory);
            if (!count) {
                EXPECT_EQ(count.error(), errc::end_of_stream);
                co_return;
            }
            const auto mistake = content.mistake(offset, std::span{memory}.first(*count));
            EXPECT_FALSE(mistake) << *mistake;
            offset += *count;
            ++operations_;
        }
    }
    task<> connect_again_and_again() {
        auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
        const endpoint at = or_throw(listener.local_endpoint());
        while (!over_) {
            auto accepting = spawn([&]() -> task<> { EXPECT_TRUE(co_await listener.accept()); });
            const auto stream = co_await async_connect(at);
            EXPECT_TRUE(stream);
            co_await accepting;
            ++operations_;
            EXPECT_TRUE(co_await async_sleep(500us)); // to use fewer ports
        }
    }
    task<> sleep_again_and_again() {
        while (!over_) {
            const auto before = std::chrono::steady_clock::now();
            EXPECT_TRUE(co_await async_sleep(300us));
            EXPECT_GE(std::chrono::steady_clock::now() - before, 300us) << "a timer was early";
            ++operations_;
        }
    }

    bool over_ = false;
    std::uint64_t operations_ = 0;
};

TEST_P(interrupted_loop_test, continues_unaffected) {
    const int signals = short_or_full(2000, 200'000);
    auto [tcp, tcp_peer] = testing::connected_pair({.ours = 8192, .theirs = 8192});
    auto [one, other] = testing::local_ends();
    local_stream local = testing::make_local_stream(std::move(one));
    local_stream local_peer = testing::make_local_stream(std::move(other));
    const auto start = std::chrono::steady_clock::now();
    const testing::signal_rain rain{50us};
    run(
        [&]() -> task<> {
            task_group all;
            all.spawn(write_placed(tcp));
            all.spawn(read_placed(tcp_peer));
            all.spawn(write_placed(local));
            all.spawn(read_placed(local_peer));
            all.spawn(connect_again_and_again());
            all.spawn(sleep_again_and_again());
            while (rain.handled() < signals) {
                still_alive();
                EXPECT_TRUE(co_await async_sleep(1ms));
            }
            over_ = true;
            static_cast<void>(co_await all.join());
        },
        short_or_full<std::chrono::seconds>(40s, 600s));
    EXPECT_GT(operations_, 0U);
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                        std::chrono::steady_clock::now() - start)
                        .count();
    testing::report_figures(std::to_string(rain.handled()) + " signals, " +
                            std::to_string(operations_) + " operations in " + std::to_string(ms) +
                            " ms");
}

// The loop only sleeps: each signal ends its wait, and it sleeps on.
TEST_P(interrupted_loop_test, sleeps_on) {
    const int signals = short_or_full(1000, 20'000);
    bool woken = false;
    auto [ours, theirs] = testing::connect_raw();
    const testing::signal_rain rain{50us};
    const std::jthread sending{[&] {
        while (rain.handled() < signals)
            std::this_thread::sleep_for(1ms); // without spinning: no order depends on it
        theirs.send("!");
    }};
    run(
        [&]() -> task<> {
            std::array<char, 1> buffer;
            woken = (co_await ours.read_some(buffer)).has_value();
        },
        40s);
    EXPECT_TRUE(woken);
}

INSTANTIATE_TEST_SUITE_P(backends, interrupted_loop_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
