// The smallest rings: 8 submission entries, 16 completions, two receive buffers, one byte received
// ahead. Slow, but otherwise like large ones: no completion is lost, and no task hangs.

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/full_form.hpp"
#include "support/placed_bytes.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::placed_bytes;
using testing::short_or_full;

class tiny_rings_test : public testing::backend_test {
protected:
    void make_tiny_loop() {
        remake_loop({.queue_depth = 8, .completion_depth = 16, .read_ahead = 1, .receive_pool = 1});
    }
    const std::uint64_t enough_ = short_or_full<std::uint64_t>(10'000, 100'000);
    std::uint64_t operations_ = 0;

    template <class Stream>
    task<> write_placed(Stream& stream, placed_bytes content, std::uint64_t rounds) {
        std::uint64_t offset = 0;
        for (std::uint64_t round = 0; round < rounds; ++round) {
            const auto piece = content.piece(offset, 1 + (round * 7919) % 5000);
            const auto sent = co_await async_write_all(stream, const_buffer{piece});
            EXPECT_TRUE(sent);
            if (!sent) co_return;
            offset += *sent;
            ++operations_;
        }
        EXPECT_TRUE(stream.shutdown_write());
    }
    template <class Stream>
    task<> read_placed(Stream& stream, placed_bytes content) {
        std::uint64_t offset = 0;
        std::array<std::byte, 3000> memory;
        const auto check = [&](std::span<const std::byte> bytes) {
            const auto mistake = content.mistake(offset, bytes);
            EXPECT_FALSE(mistake) << *mistake;
            offset += bytes.size();
            ++operations_;
        };
        for (std::uint64_t round = 0;; ++round) {
            if (round % 2 == 0) {
                const auto lease = co_await stream.receive();
                if (!lease) break;
                check(lease->bytes());
            } else {
                const auto count = co_await stream.read_some(memory);
                if (!count) break;
                check(std::span{memory}.first(*count));
            }
        }
    }
    task<> sleep_often(const bool& over) {
        while (!over) {
            EXPECT_TRUE(co_await async_sleep(100us));
            ++operations_;
        }
    }
};

TEST_P(tiny_rings_test, carry_as_much_as_large_ones) {
    make_tiny_loop();
    constexpr std::size_t connections = 40;
    std::vector<testing::stream_pair> pairs;
    for (std::size_t each = 0; each < connections; ++each)
        pairs.push_back(testing::connected_pair({.ours = 4096, .theirs = 4096}));
    const std::uint64_t rounds = enough_ / connections / 2; // for writes alone

    run(
        [&]() -> task<> {
            bool over = false;
            auto sleeping = spawn(sleep_often(over));
            task_group all;
            for (std::size_t each = 0; each < connections; ++each) {
                testing::stream_pair& pair = pairs[each];
                all.spawn(write_placed(pair.ours, placed_bytes{2 * each}, rounds));
                all.spawn(read_placed(pair.theirs, placed_bytes{2 * each}));
                all.spawn(write_placed(pair.theirs, placed_bytes{2 * each + 1}, rounds));
                all.spawn(read_placed(pair.ours, placed_bytes{2 * each + 1}));
            }
            EXPECT_TRUE(co_await all.join());
            over = true;
            co_await sleeping;
        },
        std::max<std::chrono::seconds>(testing::test_limit, 45s));

    EXPECT_GE(operations_, enough_);
    testing::report_figures(std::to_string(operations_) + " operations");
}

// More connections at once than there is room for completions.
TEST_P(tiny_rings_test, accept_a_whole_backlog) {
    make_tiny_loop();
    auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    const endpoint at = or_throw(listener.local_endpoint());
    const int storms = short_or_full(5, 200);
    constexpr int many = 100;
    int greeted = 0;
    run(
        [&]() -> task<> {
            for (int storm = 0; storm < storms; ++storm) {
                auto accepting = spawn([&]() -> task<> {
                    for (int each = 0; each < many; ++each) {
                        auto stream = co_await listener.accept();
                        EXPECT_TRUE(stream);
                        if (!stream) co_return;
                        EXPECT_TRUE(co_await stream->write_some("!"));
                    }
                });
                task_group all;
                for (int each = 0; each < many; ++each) {
                    all.spawn([&]() -> task<> {
                        auto stream = co_await async_connect(at);
                        EXPECT_TRUE(stream);
                        if (!stream) co_return;
                        std::array<char, 1> buffer;
                        greeted +=
                            static_cast<int>((co_await stream->read_some(buffer)).value_or(0));
                    });
                }
                EXPECT_TRUE(co_await all.join());
                co_await accepting;
            }
        },
        std::max<std::chrono::seconds>(testing::test_limit, 45s));
    EXPECT_EQ(greeted, storms * many);
    testing::report_figures(std::to_string(greeted) + " connections");
}

INSTANTIATE_TEST_SUITE_P(backends, tiny_rings_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
