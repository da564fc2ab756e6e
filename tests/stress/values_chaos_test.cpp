// Threads and loops send values through a broadcast and change a watch, while receivers on all
// loops come, go, move to other loops and are stopped at any moment. A receiver of the broadcast
// gets each value after its subscription, in order, or is told how many it missed; a receiver of
// the watch never sees an older value than before, always the latest one, and the last one in the
// end.

#include "support/backend_test.hpp"
#include "support/full_form.hpp"
#include "support/random_stop.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <expected>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::backend_name;
using testing::decisions;
using testing::real_backends;
using testing::short_or_full;

constexpr unsigned loops = 3;
constexpr std::size_t most_sent = 500; // by one sender

/// A value that counts how many of it exist.
class counted_value {
public:
    counted_value(std::size_t sender, std::uint64_t number)
        : sender_{sender}
        , number_{number} {
        ++alive;
    }
    counted_value(const counted_value& other) noexcept
        : sender_{other.sender_}
        , number_{other.number_} {
        ++alive;
    }
    counted_value& operator=(const counted_value&) = delete;
    ~counted_value() { --alive; }

    [[nodiscard]] std::size_t sender() const noexcept { return sender_; }
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

    static inline std::atomic<std::int64_t> alive = 0;

private:
    std::size_t sender_;
    std::uint64_t number_;
};

/// What all rounds of a test did.
struct value_figures {
    std::atomic<std::uint64_t> seen = 0;
    std::atomic<std::uint64_t> missed = 0;
    std::atomic<std::uint64_t> stopped = 0;
    std::atomic<std::uint64_t> moves = 0; // of receivers to another loop
};

/// What the tasks of a round share. Any thread.
struct round_of_values {
    event_loop_group& group;
    testing::stopping_thread& elsewhere;
    value_figures& figures;
    std::atomic<bool> loops_end = false;
};

/// A receiver, which is used on one loop after the other.
class wanderer {
public:
    wanderer(round_of_values& in, std::uint64_t seed)
        : in_{in}
        , stops_{seed, in.elsewhere} {}
    wanderer(const wanderer&) = delete;
    wanderer& operator=(const wanderer&) = delete;
    virtual ~wanderer() = default;

    [[nodiscard]] remote_handle<void> start() { return any_loop().spawn_remote(wander()); }

protected:
    /// Receives once. False: it has ended.
    virtual task<bool> receive() = 0;

    [[nodiscard]] decisions& random() noexcept { return stops_.random; }

    round_of_values& in_;
    testing::random_stops stops_;

private:
    task<> wander() {
        for (bool goes_on = true; goes_on;) {
            auto stay = any_loop().spawn_remote(receive_a_few());
            try {
                goes_on = co_await std::move(stay);
            } catch (const std::system_error&) {
                EXPECT_TRUE(in_.loops_end);
                goes_on = false;
            }
            ++in_.figures.moves;
        }
    }
    task<bool> receive_a_few() {
        for (std::size_t left = 1 + random().up_to(60); left != 0; --left) {
            const bool goes_on = co_await receive();
            if (!goes_on || in_.loops_end) co_return false;
            if (random().percent(10)) {
                co_await testing::turns(static_cast<int>(random().up_to(6)));
            } else if (random().percent(2)) {
                static_cast<void>(co_await async_sleep(random().moment()));
            }
        }
        co_return true;
    }
    [[nodiscard]] event_loop& any_loop() { return in_.group[random().up_to(loops - 1)]; }
};

// --- broadcast ----------------------------------------------------------------------------------

constexpr std::size_t senders = 2;
using numbers = broadcast<counted_value>;

class listener final : public wanderer {
public:
    listener(round_of_values& in, std::uint64_t seed, numbers::receiver from, bool leaves)
        : wanderer{in, seed}
        , from_{std::move(from)}
        , left_{leaves ? random().up_to(500) : SIZE_MAX} {}

    [[nodiscard]] std::uint64_t received() const noexcept { return received_; }
    [[nodiscard]] std::uint64_t missed() const noexcept { return missed_; }
    [[nodiscard]] bool heard_the_end() const noexcept { return heard_the_end_; }
    /// Depends on the order of all values.
    [[nodiscard]] std::uint64_t order() const noexcept { return order_; }

private:
    task<bool> receive() override {
        if (left_-- == 0) co_return false;
        std::expected<counted_value, broadcast_error> got = from_.try_receive();
        if (!got && got.error() == std::errc::operation_would_block) {
            std::expected<counted_value, broadcast_error> awaited =
                co_await stops_.perhaps_stopped(from_.receive(), 60);
            co_return take(awaited);
        }
        co_return take(got);
    }
    bool take(const std::expected<counted_value, broadcast_error>& got) {
        if (got) {
            expect_next(*got);
            ++received_;
            ++in_.figures.seen;
        } else if (got.error() == errc::queue_full) {
            EXPECT_NE(got.error().missed, 0U);
            missed_ += got.error().missed;
            in_.figures.missed += got.error().missed;
        } else if (got.error() == errc::end_of_stream) {
            EXPECT_EQ(from_.missed(), missed_);
            heard_the_end_ = true;
        } else {
            EXPECT_TRUE(testing::was_stopped(got)) << got.error().message();
            ++in_.figures.stopped;
        }
        return !heard_the_end_;
    }
    /// What lies between this value and the one before of the same sender, was missed.
    void expect_next(const counted_value& value) {
        const std::uint64_t number = value.number();
        last_of& last = last_[value.sender()];
        if (last.any) {
            EXPECT_GT(number, last.number) << "twice, or out of order";
            EXPECT_LE(number - last.number - 1, missed_ - last.missed) << "a gap that nobody told";
        }
        last = {.any = true, .number = number, .missed = missed_};
        order_ = (order_ ^ (number * senders + value.sender())) * 0x9e3779b97f4a7c15U;
    }

    struct last_of {
        bool any = false;
        std::uint64_t number = 0;
        std::uint64_t missed = 0; // in all, when it came
    };

    numbers::receiver from_;
    std::size_t left_; // receives until it leaves
    std::array<last_of, senders> last_;
    std::uint64_t received_ = 0;
    std::uint64_t missed_ = 0;
    std::uint64_t order_ = 0;
    bool heard_the_end_ = false;
};

/// Sends up to `count` values, until the broadcast is closed. Returns how many were taken.
std::uint64_t send_values(const numbers& to, std::size_t sender, std::uint64_t count,
                          std::uint64_t close_at, std::uint64_t seed) {
    decisions random{seed};
    numbers mine{to};
    for (std::uint64_t number = 0; number < count; ++number) {
        if (number == close_at) mine.close();
        if (mine.send({sender, number}) == 0) return number;
        if (random.percent(10)) std::this_thread::yield();
        if (random.percent(5)) mine = numbers{to};
    }
    return count;
}

// --- watch --------------------------------------------------------------------------------------

/// What the writers of a watch have done.
struct changes {
    watch<std::uint64_t> count{0};
    std::atomic<std::uint64_t> made = 0; // and finished
};

class observer final : public wanderer {
public:
    observer(round_of_values& in, std::uint64_t seed, const changes& of,
             watch<std::uint64_t>::receiver from)
        : wanderer{in, seed}
        , of_{of}
        , from_{std::move(from)} {}

    [[nodiscard]] std::uint64_t last() const noexcept { return last_; }
    [[nodiscard]] bool saw_the_end() const noexcept { return saw_the_end_; }

private:
    task<bool> receive() override {
        if (random().percent(20)) look();
        const result<> changed = co_await stops_.perhaps_stopped(from_.changed(), 60);
        if (changed) {
            const std::uint64_t before = last_;
            look();
            EXPECT_GT(last_, before) << "there was no change";
            ++in_.figures.seen;
        } else if (changed.error() == errc::end_of_stream) {
            saw_the_end_ = true;
        } else {
            EXPECT_TRUE(testing::was_stopped(changed)) << changed.error().message();
            ++in_.figures.stopped;
        }
        co_return !saw_the_end_;
    }
    void look() {
        const std::uint64_t made = of_.made;
        const std::uint64_t now = from_.get();
        EXPECT_GE(now, made) << "not the latest value";
        EXPECT_GE(now, last_) << "an older value";
        last_ = now;
    }

    const changes& of_;
    watch<std::uint64_t>::receiver from_;
    std::uint64_t last_ = 0;
    bool saw_the_end_ = false;
};

void make_changes(changes& of, watch<std::uint64_t> mine, std::uint64_t count, std::uint64_t seed) {
    decisions random{seed};
    while (count-- != 0) {
        mine.update([](std::uint64_t& value) { ++value; });
        ++of.made;
        if (random.percent(10)) std::this_thread::yield();
    }
}

// --- rounds -------------------------------------------------------------------------------------

class values_chaos_test : public testing::own_loops_test {
protected:
    /// Calls `round(seed)` until there were enough, or one has failed.
    template <class Round>
    void rage(Round round) {
        const std::uint64_t rounds = short_or_full<std::uint64_t>(15, 3000);
        const std::uint64_t first = testing::first_seed();
        for (std::uint64_t seed = first; seed < first + rounds; ++seed) {
            const ::testing::ScopedTrace trace{
                __FILE__, __LINE__, "to reproduce: SIMPLENET_SEED=" + std::to_string(seed)};
            testing::watchdog::restart();
            round(seed);
            if (HasFailure()) return;
        }
        EXPECT_GT(figures_.stopped * 50, figures_.seen) << "too few stops to test anything";
        testing::report_figures(
            std::to_string(rounds) + " rounds, " + std::to_string(figures_.seen) + " seen, " +
            std::to_string(figures_.missed) + " missed, " + std::to_string(figures_.stopped) +
            " stops, " + std::to_string(figures_.moves) + " moves, seeds from " +
            std::to_string(first));
    }
    [[nodiscard]] static event_loop_group make_group() {
        return or_throw(
            event_loop_group::create({.loops = loops, .loop = {.backend = GetParam()}}));
    }
    /// Waits for all of them, or ends the loops before.
    static void finish(round_of_values& round, std::vector<remote_handle<void>>& all, bool early) {
        const auto limit = std::chrono::steady_clock::now() + testing::test_limit * 4;
        for (const auto& each : all) {
            while (!early && !each.done()) {
                if (std::chrono::steady_clock::now() < limit) {
                    // get() would wait without a limit.
                    std::this_thread::sleep_for(100us);
                    continue;
                }
                ADD_FAILURE() << "somebody waits forever";
                round.group.dump_tasks(std::cerr);
                early = true;
            }
        }
        round.loops_end = early;
        round.group.stop();
        round.group.join();
    }

    value_figures figures_;
    testing::stopping_thread stopping_;

private:
    testing::watchdog watchdog_;
};

TEST_P(values_chaos_test, each_value_of_a_broadcast_is_received_or_counted) {
    rage([&](std::uint64_t seed) {
        decisions random{seed};
        const std::uint64_t count = 1 + random.up_to(most_sent - 1);
        const std::uint64_t close_at = random.percent(20) ? random.up_to(count) : UINT64_MAX;
        const bool early = random.percent(15);
        std::array<std::uint64_t, senders> sent{};
        std::vector<std::unique_ptr<listener>> first;
        std::vector<std::unique_ptr<listener>> late;
        {
            auto group = make_group();
            round_of_values round{group, stopping_, figures_};
            std::optional<numbers> all{random.one_of<std::size_t>({1, 4, 64, senders * most_sent})};
            std::vector<remote_handle<void>> running;
            const auto add = [&](std::vector<std::unique_ptr<listener>>& to, bool leaves) {
                to.push_back(std::make_unique<listener>(round, random.up_to(UINT32_MAX),
                                                        all->subscribe(), leaves));
                running.push_back(to.back()->start());
            };
            for (std::size_t each = 0; each < 3; ++each)
                add(first, each != 0 && random.percent(20));
            {
                std::vector<std::jthread> sending;
                for (std::size_t each = 0; each < senders; ++each) {
                    sending.emplace_back([&, each, mine = *all] {
                        sent[each] = send_values(mine, each, count, close_at, seed + each);
                    });
                }
                for (std::size_t each = random.up_to(5); each != 0; --each)
                    add(late, random.percent(40));
                if (early) finish(round, running, early);
            }
            all.reset();
            if (!early) finish(round, running, early);
        }
        for (const auto& each : first) {
            if (!each->heard_the_end()) continue;
            EXPECT_EQ(each->received() + each->missed(), sent[0] + sent[1]) << "values were lost";
            if (each->missed() == 0 && first[0]->missed() == 0 && first[0]->heard_the_end()) {
                EXPECT_EQ(each->order(), first[0]->order()) << "not the same order for all";
            }
        }
        if (!early) {
            EXPECT_TRUE(first[0]->heard_the_end());
        }
        first.clear();
        late.clear();
        EXPECT_EQ(counted_value::alive, 0) << "values were kept";
    });
}

TEST_P(values_chaos_test, the_latest_value_of_a_watch_is_seen) {
    rage([&](std::uint64_t seed) {
        decisions random{seed};
        const std::uint64_t count = 1 + random.up_to(most_sent - 1);
        const bool early = random.percent(15);
        std::vector<std::unique_ptr<observer>> all;
        auto group = make_group();
        round_of_values round{group, stopping_, figures_};
        changes of;
        std::vector<remote_handle<void>> running;
        const auto add = [&] {
            all.push_back(std::make_unique<observer>(round, random.up_to(UINT32_MAX), of,
                                                     of.count.subscribe()));
            running.push_back(all.back()->start());
        };
        add();
        {
            std::vector<std::jthread> changing;
            for (std::size_t each = 0; each < senders; ++each) {
                changing.emplace_back([&, each, mine = of.count]() mutable {
                    make_changes(of, std::move(mine), count, seed + each);
                });
            }
            for (std::size_t each = random.up_to(6); each != 0; --each)
                add();
            if (early) finish(round, running, early);
        }
        {
            const auto last = std::move(of.count);
            EXPECT_EQ(last.get(), senders * count) << "a change was lost";
        }
        if (!early) finish(round, running, early);
        for (const auto& each : all) {
            EXPECT_TRUE(early || each->saw_the_end());
            // Who came after the last change has seen the value, and may never have looked.
            EXPECT_TRUE(!each->saw_the_end() || each->last() == senders * count ||
                        each->last() == 0)
                << each->last();
        }
    });
}

INSTANTIATE_TEST_SUITE_P(backends, values_chaos_test, real_backends, backend_name);

} // namespace
} // namespace simplenet::v0
