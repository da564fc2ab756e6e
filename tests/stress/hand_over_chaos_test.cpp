// Connections move from loop to loop at random, both of their ends, in the middle of an exchange in
// both directions whose reads and writes are stopped at any moment. No byte is lost, duplicated or
// reordered on the way, and if the loops end, nothing is left of those that were travelling.

#include "stress/placed_exchange.hpp"
#include "support/backend_test.hpp"
#include "support/descriptors.hpp"
#include "support/full_form.hpp"
#include "support/random_stop.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::backend_name;
using testing::real_backends;
using testing::short_or_full;

constexpr unsigned loops = 3;

/// What all ends of a round share. Any thread.
class travels {
public:
    travels(event_loop_group& group, testing::stopping_thread& stopping)
        : elsewhere{stopping}
        , group_{group} {}

    [[nodiscard]] event_loop& loop(std::size_t number) { return group_[number]; }

    void arrived() {
        count([this] { ++arrivals_; });
    }
    void over() {
        count([this] { ++over_; });
    }
    /// False: it takes too long.
    [[nodiscard]] bool wait_for(std::size_t ends, std::uint64_t arrivals) {
        std::unique_lock guard{mutex_};
        return changed_.wait_for(guard, testing::test_limit * 4,
                                 [&] { return over_ >= ends || arrivals_ >= arrivals; });
    }
    [[nodiscard]] std::uint64_t arrivals() {
        const std::scoped_lock guard{mutex_};
        return arrivals_;
    }

    testing::stopping_thread& elsewhere;
    std::atomic<bool> loops_end = false;

private:
    template <class Change>
    void count(Change change) {
        {
            const std::scoped_lock guard{mutex_};
            change();
        }
        changed_.notify_one();
    }

    event_loop_group& group_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t arrivals_ = 0; // of a stream on a loop
    std::size_t over_ = 0;       // ends of connections
};

/// One end of a connection: on one loop at a time, and used by nobody while it travels.
class traveller {
public:
    traveller(travels& in, std::uint64_t seed, std::uint64_t reads, std::uint64_t writes)
        : in_{in}
        , stops_{seed, in.elsewhere}
        , reader_{reads}
        , writer_{writes, 1 + stops_.random.up_to(128 * 1024)} {
        // Two that wait for each other in shields would never travel again.
        stops_.shields = false;
    }

    void connect_with(traveller& other) { other_ = &other; }
    void start(tcp_stream stream) { travel(std::move(stream)); }

    /// @pre The loops have ended.
    void verify() const {
        if (closed_ || other_->closed_ || in_.loops_end) return;
        EXPECT_EQ(reader_.read(), other_->writer_.written()) << "bytes were lost";
    }

private:
    // Another thread uses this object as soon as the stream has left.
    void travel(tcp_stream stream) {
        event_loop& to = in_.loop(stops_.random.up_to(loops - 1));
        auto arrive = [](tcp_stream arriving, traveller* self) {
            return self->stay(std::move(arriving));
        };
        const std::atomic<bool>& loops_end = in_.loops_end; // not of this object
        const result<> left = hand_over(to, std::move(stream), arrive, this);
        EXPECT_TRUE(left || loops_end) << left.error().message();
    }

    /// Between an arrival and the next departure.
    task<> stay(tcp_stream stream) {
        in_.arrived();
        {
            task_group both;
            both.spawn(read_a_few(stream));
            both.spawn(write_a_few(stream));
            co_await testing::turns(static_cast<int>(stops_.random.up_to(40)));
            both.request_stop();
            static_cast<void>(co_await both.join());
        }
        if (!read_over_ || !write_over_) {
            if (stops_.random.up_to(400) != 0) {
                travel(std::move(stream));
                co_return;
            }
            closed_ = true;
        }
        stream.close();
        in_.over();
    }
    task<> read_a_few(tcp_stream& stream) {
        for (std::size_t left = stops_.random.up_to(20); left != 0 && !read_over_; --left) {
            const result<> read = co_await reader_.read(stream, stops_);
            if (!read) ended(read.error(), read_over_);
            const bool stop = co_await this_task::stop_requested();
            if (stop) co_return;
        }
    }
    task<> write_a_few(tcp_stream& stream) {
        for (std::size_t left = stops_.random.up_to(10); left != 0 && !write_over_; --left) {
            const result<> written = co_await writer_.write(stream, stops_);
            if (!written) ended(written.error(), write_over_);
            if (written && writer_.finished()) {
                write_over_ = true;
                if (const result<> told = stream.shutdown_write(); !told) {
                    ended(told.error(), write_over_);
                }
            }
            const bool stop = co_await this_task::stop_requested();
            if (stop) co_return;
        }
    }
    void ended(std::error_code why, bool& over) {
        over = true;
        if (why == errc::end_of_stream) return;
        EXPECT_TRUE(other_->closed_ || in_.loops_end) << why.message();
    }

    travels& in_;
    testing::random_stops stops_;
    testing::placed_reader reader_;
    testing::placed_writer writer_;
    traveller* other_ = nullptr;
    bool read_over_ = false;
    bool write_over_ = false;
    std::atomic<bool> closed_ = false; // before its end; the other one asks
};

class hand_over_chaos_test : public testing::own_loops_test {
protected:
    std::uint64_t one_round(std::uint64_t seed, testing::stopping_thread& stopping) {
        const ::testing::ScopedTrace trace{__FILE__, __LINE__,
                                           "to reproduce: SIMPLENET_SEED=" + std::to_string(seed)};
        testing::watchdog::restart();
        testing::decisions random{seed};
        const std::size_t before = testing::open_descriptors();
        std::vector<std::unique_ptr<traveller>> ends;
        std::uint64_t arrivals = 0;
        {
            const loop_options options{.backend = GetParam(),
                                       .read_ahead =
                                           random.one_of<std::size_t>({1, 4096, 64 * 1024}),
                                       .receive_pool = random.one_of<std::size_t>({1, 1U << 20U})};
            auto group = or_throw(event_loop_group::create({.loops = loops, .loop = options}));
            travels in{group, stopping};
            const std::size_t connections = 1 + random.up_to(5);
            std::vector<tcp_stream> streams;
            for (std::size_t each = 0; each < connections; ++each) {
                const int size = random.one_of({0, 4096, 16384});
                auto [one, other] = testing::connected_pair({.ours = size, .theirs = size});
                streams.push_back(std::move(one));
                streams.push_back(std::move(other));
                const std::uint64_t forth = 2 * (seed * 64 + each);
                ends.push_back(std::make_unique<traveller>(in, forth, forth, forth + 1));
                ends.push_back(std::make_unique<traveller>(in, forth + 1, forth + 1, forth));
                ends[2 * each]->connect_with(*ends[2 * each + 1]);
                ends[2 * each + 1]->connect_with(*ends[2 * each]);
            }
            for (std::size_t each = 0; each < ends.size(); ++each)
                ends[each]->start(std::move(streams[each]));
            const bool ends_early = random.percent(20);
            const std::uint64_t enough = ends_early ? random.up_to(100) : UINT64_MAX;
            if (!in.wait_for(ends.size(), enough)) {
                ADD_FAILURE() << "somebody waits forever";
                group.dump_tasks(std::cerr);
            }
            if (ends_early || HasFailure()) in.loops_end = true;
            group.stop();
            group.join();
            for (const auto& each : ends)
                each->verify();
            arrivals = in.arrivals();
        }
        EXPECT_EQ(testing::open_descriptors(), before) << "a stream was left behind";
        return arrivals;
    }

private:
    testing::watchdog watchdog_;
};

TEST_P(hand_over_chaos_test, no_byte_is_lost_on_the_way) {
    const std::uint64_t rounds = short_or_full<std::uint64_t>(40, 3000);
    const std::uint64_t first = testing::first_seed();
    testing::stopping_thread stopping;
    std::uint64_t arrivals = 0;
    for (std::uint64_t seed = first; seed < first + rounds; ++seed) {
        arrivals += one_round(seed, stopping);
        if (HasFailure()) return;
    }
    EXPECT_GT(arrivals, rounds * 10) << "too few hand-overs to test anything";
    testing::report_figures(std::to_string(rounds) + " rounds, " + std::to_string(arrivals) +
                            " hand-overs, seeds from " + std::to_string(first));
}

INSTANTIATE_TEST_SUITE_P(backends, hand_over_chaos_test, real_backends, backend_name);

} // namespace
} // namespace simplenet::v0
