// Peers that never read: the memory for each of them is bounded, peers that do read are served at
// the same time, and a timeout disconnects the others.

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/full_form.hpp"
#include "support/raw_peer.hpp"
#include "support/resources.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::short_or_full;

/// The resident memory of this process.
std::size_t resident_bytes() {
    std::ifstream file{"/proc/self/statm"};
    std::size_t total = 0;
    std::size_t resident = 0;
    file >> total >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

class slow_readers_test : public testing::backend_test {
protected:
    static constexpr watermarks marks{.low = 8 * 1024, .high = 16 * 1024, .limit = 64 * 1024};

    struct slow_reader {
        queued_writer<tcp_stream> writer;
        testing::raw_peer peer; // never reads
        bool closed = false;
    };

    static std::vector<slow_reader> connect(std::size_t count) {
        std::vector<slow_reader> readers;
        readers.reserve(count);
        for (std::size_t each = 0; each < count; ++each) {
            auto [ours, theirs] = testing::connect_raw({.ours = 4096, .theirs = 2048});
            readers.push_back(
                {.writer = queued_writer{std::move(ours), marks}, .peer = std::move(theirs)});
        }
        return readers;
    }

    /// Ignores back-pressure, like a bad server: enqueues until refused.
    static std::size_t flood(slow_reader& reader, const std::string& block) {
        std::size_t taken = 0;
        for (int each = 0; each < 100; ++each) {
            const auto outcome = reader.writer.enqueue(const_buffer{block});
            if (!outcome) {
                EXPECT_EQ(outcome.error(), errc::queue_full);
                return taken;
            }
            taken += block.size();
        }
        ADD_FAILURE() << "the queue has no limit";
        return taken;
    }

    static task<> drain_or_close(slow_reader& reader) {
        const auto drained = co_await with_timeout(reader.writer.writable(), 30ms);
        EXPECT_EQ(error_of(drained), errc::deadline_exceeded);
        reader.writer.stream().close();
        reader.closed = true;
    }

    static task<int> round_trips(testing::stream_pair& pair, const bool& over) {
        int count = 0;
        std::array<char, 8> buffer;
        while (!over || count == 0) {
            const auto sent = co_await async_write_all(pair.ours, "ping");
            if (!sent) break;
            const auto asked = co_await async_read_exact(pair.theirs, std::span{buffer}.first(4));
            if (!asked) break;
            const auto answered = co_await async_write_all(pair.theirs, "pong");
            if (!answered) break;
            const auto read = co_await async_read_exact(pair.ours, std::span{buffer}.first(4));
            if (!read) break;
            ++count;
        }
        co_return count;
    }
};

TEST_P(slow_readers_test, cost_no_more_than_their_limit_and_slow_down_no_one_else) {
    const std::size_t count = short_or_full<std::size_t>(100, 1000);
    auto readers = connect(count);
    auto healthy = testing::connected_pair();
    const std::string block(4096, 'x');
    const std::size_t resident_before = resident_bytes();
    std::size_t most_queued = 0;
    std::size_t grown = 0;
    int served = 0;

    run([&]() -> task<> {
        bool over = false;
        auto serving = spawn(round_trips(healthy, over));
        const int rounds = short_or_full(5, 50);
        for (int round = 0; round < rounds; ++round) {
            std::size_t queued = 0;
            for (auto& each : readers) {
                flood(each, block);
                EXPECT_LE(each.writer.queued_bytes(), marks.limit);
                EXPECT_TRUE(each.writer.high_watermark_active());
                queued += each.writer.queued_bytes();
            }
            most_queued = std::max(most_queued, queued);
            co_await testing::turns(20);
        }
        grown = resident_bytes() - std::min(resident_bytes(), resident_before);

        task_group closing;
        for (auto& each : readers)
            closing.spawn(drain_or_close(each));
        EXPECT_TRUE(co_await closing.join());
        over = true;
        served = co_await serving;
    });

    EXPECT_GE(served, short_or_full(50, 500)) << "the reading peer starved";
    for (const auto& each : readers) {
        EXPECT_TRUE(each.closed);
        EXPECT_EQ(each.writer.queued_bytes(), 0U) << "memory that no peer will read is kept";
    }
    if (testing::full_form() && testing::patience == 1) { // not with the memory of a sanitizer
        EXPECT_LT(grown, count * marks.limit * 3 / 2);
    }
    testing::report_figures(std::to_string(count) + " slow readers, at most " +
                            std::to_string(most_queued >> 10U) + " KiB queued (limit " +
                            std::to_string((count * marks.limit) >> 10U) + "), grown by " +
                            std::to_string(grown >> 10U) + " KiB, " + std::to_string(served) +
                            " round trips beside them");
}

INSTANTIATE_TEST_SUITE_P(backends, slow_readers_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
