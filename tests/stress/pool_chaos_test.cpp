// Many tasks borrow connections from a small pool, while connecting fails, connections end, and
// borrows are stopped at any moment. Nobody gets a connection that another one has or that has
// ended, the limits hold, nobody waits forever, and in the end every place can be used again.

#include "support/backend_test.hpp"
#include "support/full_form.hpp"
#include "support/placed_bytes.hpp"
#include "support/random_stop.hpp"
#include "support/raw_peer.hpp"
#include "support/resources.hpp"

#include <simplenet/simplenet.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::placed_bytes;
using testing::short_or_full;
using testing::turns;

using lent_stream = pooled<local_stream>;

/// Figures of all rounds.
struct pool_figures {
    std::uint64_t borrows = 0;
    std::uint64_t stopped = 0;
    std::uint64_t refused = 0; // by connect
    std::uint64_t made = 0;
    std::uint64_t reused = 0;
};

/// A pool, those who borrow from it, and the other sides of its connections.
class round_of_pools : public testing::random_stops {
public:
    static constexpr std::size_t keys = 3;

    round_of_pools(std::uint64_t seed, testing::stopping_thread& stopping, pool_figures& figures)
        : random_stops{seed, stopping}
        , figures_{figures}
        , options_{.per_key = 1 + random.up_to(3),
                   .total = 2 + random.up_to(5),
                   .idle = random.one_of<std::chrono::nanoseconds>({0ns, 1ms, 1h, 1h}),
                   .wait = random.one_of<std::chrono::nanoseconds>({1ms, 24h, 24h})} {
        auto connecting = [this](std::string_view key) { return connect(key.front() - 'a'); };
        pool_.emplace(connecting, options_);
    }

    void start(event_loop& loop) {
        users_ = 4 + random.up_to(20);
        for (std::size_t each = 0; each < users_; ++each)
            loop.spawn(use_again_and_again(each));
        if (random.percent(20)) loop.spawn(destroy_the_pool());
        if (random.percent(10)) loop.spawn(end_the_loop(loop));
    }
    [[nodiscard]] bool loop_ends() const noexcept { return loop_ends_; }

private:
    struct connection {
        bool ended = false; // by the other side
        std::uint64_t ended_at = 0;
    };

    // --- the other sides ---

    task<result<local_stream>> connect(std::ptrdiff_t key) {
        const auto at = static_cast<std::size_t>(key);
        const counted place{*this, at};
        co_await pause();
        if (!reliable_ && random.percent(10)) {
            ++figures_.refused;
            co_return fail(std::errc::connection_refused);
        }
        if (!reliable_ && random.percent(3)) throw std::runtime_error{"connect"};
        // Of a Unix domain socket the end is there when close(2) returns; a FIN may come later.
        auto [first, second] = testing::local_ends();
        auto ours = testing::make_local_stream(std::move(first));
        auto theirs = testing::make_local_stream(std::move(second));
        auto state = std::make_shared<connection>();
        by_descriptor_[ours.native_handle()] = state;
        ++figures_.made;
        spawn(echo(std::move(theirs), std::move(state)));
        co_return std::move(ours);
    }
    task<> echo(local_stream stream, std::shared_ptr<connection> state) {
        std::array<std::byte, 4096> bytes;
        const std::size_t turns_until_the_end = random.percent(70) ? 10'000 : random.up_to(6);
        for (std::size_t each = 0; each < turns_until_the_end; ++each) {
            const auto count = co_await stream.read_some(bytes);
            if (!count) break;
            const auto sent =
                co_await async_write_all(stream, const_buffer{std::span{bytes}.first(*count)});
            if (!sent) break;
        }
        stream.close();
        state->ended = true;
        state->ended_at = ++clock_;
    }

    // --- those who borrow ---

    /// Counts what is being made or lent; the pool must keep its limits.
    class counted {
    public:
        counted(round_of_pools& in, std::size_t key)
            : in_{in}
            , key_{key} {
            EXPECT_LE(++in_.busy_[key_], in_.options_.per_key);
            EXPECT_LE(++in_.all_busy_, in_.options_.total);
            if (in_.pool_) {
                EXPECT_LE(in_.pool_->size(), in_.options_.total);
                EXPECT_GE(in_.pool_->size(), in_.all_busy_ + in_.pool_->idle());
            }
        }
        counted(const counted&) = delete;
        counted& operator=(const counted&) = delete;
        ~counted() {
            --in_.busy_[key_];
            --in_.all_busy_;
        }

    private:
        round_of_pools& in_;
        std::size_t key_;
    };

    task<> use_again_and_again(std::size_t number) {
        const placed_bytes content{number};
        for (std::size_t uses = 1 + random.up_to(30); uses != 0 && pool_ && !loop_ends_; --uses) {
            co_await use(content);
            co_await pause();
        }
        if (--users_ != 0 || loop_ends_) co_return;
        if (pool_) co_await use_every_place();
        pool_.reset(); // with all connections, for which the others wait
    }

    task<> use(const placed_bytes& content) {
        const std::size_t key = random.up_to(keys - 1);
        const std::uint64_t since = ++clock_;
        ++figures_.borrows;
        auto lent = co_await perhaps_stopped(borrow(key), 50);
        if (!lent) {
            expect_error(lent);
            co_return;
        }
        const counted place{*this, key};
        const int descriptor = (*lent)->native_handle();
        EXPECT_TRUE(lent_.insert(descriptor).second) << "lent to two at once";
        if (lent->is_reused()) {
            ++figures_.reused;
            const connection& of = *by_descriptor_[descriptor];
            EXPECT_FALSE(of.ended && of.ended_at < since) << "it had ended before";
        }
        const bool answered = co_await exchange(**lent, content);
        lent_.erase(descriptor);
        if (answered && random.percent(90)) {
            lent->give_back();
        } else if (random.percent(50)) {
            co_await pause();
        }
    }
    /// What `connect` throws is an error like others here.
    task<result<lent_stream>> borrow(std::size_t key) {
        if (!pool_) co_return fail(std::errc::operation_canceled);
        try {
            co_return co_await pool_->borrow(std::string_view{"abc"}.substr(key, 1));
        } catch (const std::runtime_error&) {
            co_return fail(std::errc::connection_refused);
        }
    }
    void expect_error(const result<lent_stream>& lent) {
        if (testing::was_stopped(lent)) {
            ++figures_.stopped;
        } else if (!loop_ends_) {
            EXPECT_EQ(lent.error(), std::errc::connection_refused);
        }
    }
    /// Whether the whole answer has come.
    task<bool> exchange(local_stream& stream, const placed_bytes& content) {
        const std::uint64_t offset = random.up_to(100'000);
        const auto question = content.piece(offset, random.size(4096));
        const auto asked = co_await perhaps_stopped(async_write_all(stream, question), 10);
        if (!asked) co_return false;
        std::vector<std::byte> answer(question.size());
        const auto got = co_await perhaps_stopped(async_read_exact(stream, answer), 10);
        if (!got) co_return false;
        const auto mistake = content.mistake(offset, answer);
        EXPECT_FALSE(mistake) << "somebody else's answer: " << *mistake;
        co_return true;
    }

    /// At the end as many connections can be borrowed as at the beginning.
    task<> use_every_place() {
        reliable_ = true;
        EXPECT_EQ(pool_->size(), pool_->idle()) << "a place was lost";
        for (std::size_t key = 0; key < keys; ++key) {
            std::vector<lent_stream> all;
            while (all.size() < std::min(options_.per_key, options_.total)) {
                auto lent = co_await borrow(key);
                if (!lent && (!pool_ || loop_ends_)) co_return;
                EXPECT_TRUE(lent) << "no place was left: " << lent.error().message();
                if (!lent) co_return;
                all.push_back(*std::move(lent));
            }
            for (lent_stream& each : all)
                each.give_back();
        }
    }

    // --- ends ---

    task<> destroy_the_pool() {
        co_await turns(static_cast<int>(random.up_to(300)));
        pool_.reset();
    }
    task<> end_the_loop(event_loop& loop) {
        co_await turns(static_cast<int>(random.up_to(300)));
        loop_ends_ = true;
        loop.stop();
    }

    task<> pause() {
        if (random.percent(30)) {
            co_await turns(static_cast<int>(random.up_to(6)));
        } else if (random.percent(20)) {
            static_cast<void>(co_await async_sleep(random.moment()));
        }
    }

    pool_figures& figures_;
    const pool_options options_;
    std::optional<connection_pool<local_stream>> pool_;
    std::map<int, std::shared_ptr<connection>> by_descriptor_; // the one made last
    std::set<int> lent_;                                       // descriptors
    std::array<std::size_t, keys> busy_{};                     // being made or lent
    std::size_t all_busy_ = 0;
    std::size_t users_ = 0;
    std::uint64_t clock_ = 0; // counts events
    bool reliable_ = false;   // nothing fails
    bool loop_ends_ = false;
};

class pool_chaos_test : public testing::backend_test {
protected:
    void one_round(std::uint64_t seed, testing::stopping_thread& stopping, pool_figures& figures) {
        const ::testing::ScopedTrace trace{__FILE__, __LINE__,
                                           "to reproduce: SIMPLENET_SEED=" + std::to_string(seed)};
        destroy_loop();
        const auto before = testing::resources::now();
        remake_loop();
        if (IsSkipped()) return;
        {
            round_of_pools round{seed, stopping, figures};
            round.start(loop());
            still_alive();
            if (!loop().run_for(testing::test_limit * 2) && !round.loop_ends()) {
                ADD_FAILURE() << "somebody waits forever";
                loop().dump_tasks(std::cerr);
            }
            destroy_loop(); // perhaps before the pool
        }
        testing::expect_nothing_left(before);
    }
};

TEST_P(pool_chaos_test, no_place_is_lost_and_nobody_waits_forever) {
    const std::uint64_t rounds = short_or_full<std::uint64_t>(40, 5000);
    const std::uint64_t first = testing::first_seed();
    testing::stopping_thread stopping;
    pool_figures figures;
    for (std::uint64_t seed = first; seed < first + rounds; ++seed) {
        one_round(seed, stopping, figures);
        if (HasFailure() || IsSkipped()) return;
    }
    EXPECT_GT(figures.stopped * 20, figures.borrows) << "too few were stopped to test anything";
    testing::report_figures(
        std::to_string(rounds) + " rounds, " + std::to_string(figures.borrows) + " borrows, " +
        std::to_string(figures.stopped) + " stopped, " + std::to_string(figures.refused) +
        " refused, " + std::to_string(figures.made) + " connections, lent again " +
        std::to_string(figures.reused) + " times, seeds from " + std::to_string(first));
}

INSTANTIATE_TEST_SUITE_P(backends, pool_chaos_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
