// Several loops on threads of their own, and threads without a loop, post, spawn, stop and join
// across at random, while bytes move from loop to loop. Nothing is lost, runs twice, or waits
// forever.

#include "stress/placed_exchange.hpp"
#include "support/backend_test.hpp"
#include "support/full_form.hpp"
#include "support/random_stop.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/simplenet.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::decisions;
using testing::short_or_full;

/// A loop whose run() ends at every stop(), and starts again.
class restless_loop {
public:
    explicit restless_loop(backend on) {
        std::atomic<bool> made = false;
        thread_ = std::jthread{[this, on, &made] {
            loop_.emplace(or_throw(event_loop::create({.backend = on})));
            auto for_ever = []() -> task<> {
                static_cast<void>(co_await async_sleep(std::chrono::hours{24}));
            };
            loop_->spawn(for_ever());
            made.store(true);
            made.notify_one();
            while (!over_.load()) {
                loop_->run();
                ++runs_;
            }
            may_end_.wait(false);
            loop_.reset(); // with everything in flight
        }};
        made.wait(false);
    }
    restless_loop(const restless_loop&) = delete;
    restless_loop& operator=(const restless_loop&) = delete;
    ~restless_loop() {
        over_.store(true);
        loop_->stop();
        may_end_.store(true); // no thread uses it any more
        may_end_.notify_one();
    }

    [[nodiscard]] event_loop& operator*() { return *loop_; }
    [[nodiscard]] event_loop* operator->() { return &*loop_; }
    [[nodiscard]] std::uint64_t runs() const { return runs_.load(); }

private:
    std::optional<event_loop> loop_;
    std::atomic<bool> over_ = false;
    std::atomic<bool> may_end_ = false;
    std::atomic<std::uint64_t> runs_ = 0;
    std::jthread thread_;
};

/// The fate of posts: each must run once, or be dropped with its loop.
struct post_counts {
    std::atomic<std::uint64_t> made = 0;
    std::atomic<std::uint64_t> ran = 0;
    std::atomic<std::uint64_t> gone = 0; // have run or were dropped
    std::atomic<std::uint64_t> out_of_order = 0;
};

/// A post that checks the order: a thread's posts to a loop must run in their order.
class counted_post {
public:
    counted_post(post_counts& counts, std::uint64_t number, std::uint64_t& last_seen)
        : counts_{&counts}
        , number_{number}
        , last_seen_{&last_seen} {
        ++counts.made;
    }
    counted_post(counted_post&& other) noexcept
        : counts_{std::exchange(other.counts_, nullptr)}
        , number_{other.number_}
        , last_seen_{other.last_seen_} {}
    counted_post& operator=(counted_post&&) = delete;
    ~counted_post() {
        if (counts_ != nullptr) ++counts_->gone;
    }
    void operator()() {
        ++counts_->ran;
        if (number_ <= *last_seen_) ++counts_->out_of_order;
        *last_seen_ = number_;
    }

private:
    post_counts* counts_;
    std::uint64_t number_;
    std::uint64_t* last_seen_; // by the thread; used only on the loop's thread
};

class loops_chaos_test : public testing::own_loops_test {
protected:
    static constexpr std::size_t loops = 3;
    static constexpr std::size_t threads = 3;

    using loop_set = std::vector<std::unique_ptr<restless_loop>>;

    static task<int> answer(int value, decisions random) {
        switch (random.up_to(3)) {
        case 0:
            break;
        case 1:
            co_await yield();
            break;
        default:
            static_cast<void>(co_await async_sleep(random.moment()));
        }
        co_return value;
    }
    static task<bool> sleep_until_stopped() {
        const auto slept = co_await async_sleep(24h);
        co_return !slept;
    }
    /// A task of one loop that calls another one.
    static task<int> ask(event_loop& other, int value, std::uint64_t seed) {
        co_return co_await other.spawn_remote(answer(value, decisions{seed}));
    }

    /// The work of a thread without a loop on the loops of the others.
    void disturb(loop_set& all, std::uint64_t seed, std::uint64_t actions, post_counts& posts,
                 std::vector<std::uint64_t>& last_seen) {
        decisions random{seed};
        std::vector<std::uint64_t> posted(loops, 0);
        std::vector<remote_handle<bool>> sleeping;
        for (std::uint64_t each = 0; each < actions; ++each) {
            const std::size_t at = random.up_to(loops - 1);
            event_loop& loop = **all[at];
            switch (random.up_to(9)) {
            case 0:
                loop.stop();
                break;
            case 1: {
                const int value = static_cast<int>(random.up_to(1000));
                auto handle = loop.spawn_remote(answer(value, decisions{random.up_to(9999)}));
                if (random.percent(50)) { // otherwise it is detached
                    EXPECT_EQ(handle.get(), value);
                }
                break;
            }
            case 2: {
                sleeping.push_back(loop.spawn_remote(sleep_until_stopped()));
                if (sleeping.size() < 8) break;
                const std::size_t which = random.up_to(sleeping.size() - 1);
                sleeping[which].request_stop();
                EXPECT_TRUE(sleeping[which].get()) << "it was not stopped";
                sleeping.erase(sleeping.begin() + static_cast<std::ptrdiff_t>(which));
                break;
            }
            case 3: {
                // Any loop may call any other, but never in a circle.
                const int value = static_cast<int>(random.up_to(1000));
                event_loop& other = **all[random.up_to(loops - 1)];
                EXPECT_EQ(loop.spawn_remote(ask(other, value, random.up_to(9999))).get(), value);
                break;
            }
            case 4: {
                std::stop_source source;
                auto stoppable = [](std::stop_token token) -> task<bool> {
                    const auto slept = co_await with_stop(token, async_sleep(24h));
                    co_return !slept;
                };
                auto handle = loop.spawn_remote(stoppable(source.get_token()));
                if (random.percent(50)) std::this_thread::yield();
                source.request_stop();
                EXPECT_TRUE(handle.get()) << "the stop was lost";
                break;
            }
            default:
                loop.post(counted_post{posts, ++posted[at], last_seen[at]});
            }
        }
        for (auto& each : sleeping) {
            each.request_stop();
            EXPECT_TRUE(each.get());
        }
    }

    // --- bytes from loop to loop ---

    static task<std::uint64_t> write_placed(tcp_stream stream, std::uint64_t seed,
                                            std::uint64_t bytes,
                                            testing::stopping_thread& elsewhere) {
        testing::placed_writer writer{seed, bytes};
        testing::random_stops stops{seed, elsewhere};
        while (!writer.finished()) {
            const result<> written = co_await writer.write(stream, stops);
            if (!written) break;
        }
        co_return writer.written();
    }
    static task<std::uint64_t> read_placed(tcp_stream stream, std::uint64_t seed,
                                           testing::stopping_thread& elsewhere) {
        testing::placed_reader reader{seed};
        testing::random_stops stops{seed + 1, elsewhere};
        for (;;) {
            const result<> read = co_await reader.read(stream, stops);
            if (!read) break;
        }
        co_return reader.read();
    }

private:
    testing::watchdog watchdog_;
};

TEST_P(loops_chaos_test, nothing_is_lost_between_threads) {
    const std::uint64_t actions = short_or_full<std::uint64_t>(1500, 20'000);
    const std::uint64_t bytes = short_or_full<std::uint64_t>(1U << 20U, 8U << 20U);
    const int rounds = short_or_full(2, 25);
    const std::uint64_t first = testing::first_seed();
    std::uint64_t posted = 0;
    std::uint64_t dropped = 0;
    std::uint64_t runs = 0;
    std::uint64_t seed = first;
    for (; seed < first + static_cast<std::uint64_t>(rounds); ++seed) {
        const ::testing::ScopedTrace trace{__FILE__, __LINE__,
                                           "to reproduce: SIMPLENET_SEED=" + std::to_string(seed)};
        testing::watchdog::restart();
        post_counts posts;
        std::vector<std::vector<std::uint64_t>> last_seen(threads,
                                                          std::vector<std::uint64_t>(loops, 0));
        {
            testing::stopping_thread elsewhere;
            loop_set all;
            for (std::size_t each = 0; each < loops; ++each)
                all.push_back(std::make_unique<restless_loop>(GetParam()));
            std::vector<remote_handle<std::uint64_t>> writing;
            std::vector<remote_handle<std::uint64_t>> reading;
            for (std::size_t each = 0; each < loops; ++each) {
                auto [ours, theirs] = testing::connected_pair({.ours = 16384, .theirs = 16384});
                writing.push_back((*all[each])
                                      ->spawn_remote(write_placed(std::move(ours), 10 * seed + each,
                                                                  bytes, elsewhere)));
                reading.push_back((*all[(each + 1) % loops])
                                      ->spawn_remote(read_placed(std::move(theirs),
                                                                 10 * seed + each, elsewhere)));
            }
            {
                std::vector<std::jthread> disturbing;
                for (std::size_t each = 0; each < threads; ++each) {
                    disturbing.emplace_back([&, each] {
                        disturb(all, seed * 100 + each, actions, posts, last_seen[each]);
                    });
                }
            }
            for (std::size_t each = 0; each < loops; ++each)
                EXPECT_EQ(writing[each].get(), reading[each].get()) << "bytes were lost";
            for (const auto& each : all)
                runs += each->runs();
            // The loops end here, with posts that have not run yet.
        }
        EXPECT_EQ(posts.gone.load(), posts.made.load()) << "posts were neither run nor dropped";
        EXPECT_EQ(posts.out_of_order.load(), 0U);
        posted += posts.made.load();
        dropped += posts.made.load() - posts.ran.load();
        if (HasFailure()) return;
    }
    testing::report_figures(std::to_string(rounds) + " rounds, " + std::to_string(posted) +
                            " posts (" + std::to_string(dropped) + " dropped with their loop), " +
                            std::to_string(runs) + " runs of loops, seeds " +
                            std::to_string(first) + " to " + std::to_string(seed - 1));
}

INSTANTIATE_TEST_SUITE_P(backends, loops_chaos_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
