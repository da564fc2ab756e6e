// Threads, loops, pools and strands post to each other while groups of loops are stopped, loops are
// started again, and pools and strands are destroyed, at random. Each callable is called or
// destroyed, exactly once; each awaited call returns.

#include "support/backend_test.hpp"
#include "support/fates.hpp"
#include "support/full_form.hpp"
#include "support/random_stop.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::backend_name;
using testing::decisions;
using testing::fates;
using testing::real_backends;
using testing::short_or_full;

class executors_storm_test : public testing::own_loops_test {
protected:
    /// Calls `round(seed)` until it has added up to `total`.
    template <class Round>
    void in_rounds(std::uint64_t total, const char* unit, Round round) {
        const std::uint64_t first = testing::first_seed();
        std::uint64_t done = 0, seed = first;
        for (; done < total && !HasFailure(); ++seed) {
            const ::testing::ScopedTrace trace{
                __FILE__, __LINE__, "to reproduce: SIMPLENET_SEED=" + std::to_string(seed)};
            testing::watchdog::restart();
            done += round(seed);
        }
        testing::report_figures(std::to_string(done) + ' ' + unit + ", seeds " +
                                std::to_string(first) + " to " + std::to_string(seed - 1));
    }

private:
    testing::watchdog watchdog_;
};

// --- posts to loops

constexpr std::size_t groups = 3;
using group_set = std::array<std::optional<event_loop_group>, groups>;

/// Posts itself on from loop to loop a few times.
class hopping {
public:
    hopping(group_set& over, fates& counts, std::uint32_t route)
        : over_{&over}
        , counts_{&counts}
        , route_{route}
        , fate_{counts.one()} {}
    void operator()() {
        fate_();
        if (route_ == 0) return;
        const std::uint32_t at = route_ % 4;
        event_loop_group& next = *(*over_)[at % groups];
        next[route_ % next.size()].post(hopping{*over_, *counts_, route_ / 4});
    }

private:
    group_set* over_;
    fates* counts_;
    std::uint32_t route_;
    fates::callable fate_;
};

TEST_P(executors_storm_test, posts_to_loops_that_stop_and_start_are_decided_once) {
    const std::uint64_t total = short_or_full<std::uint64_t>(60'000, 10'000'000);
    const std::uint64_t each_posts = short_or_full<std::uint64_t>(1'500, 20'000);
    std::uint64_t called = 0;

    in_rounds(total, "posts", [&](std::uint64_t seed) {
        fates posts;
        {
            group_set all;
            for (auto& each : all) {
                each.emplace(or_throw(
                    event_loop_group::create({.loops = 2, .loop = {.backend = GetParam()}})));
            }
            std::vector<std::jthread> threads;
            for (std::uint64_t thread = 0; thread < 3; ++thread) {
                threads.emplace_back([&, thread] {
                    decisions random{seed * 10 + thread};
                    for (std::uint64_t number = 0; number < each_posts; ++number) {
                        event_loop_group& to = *all[random.up_to(groups - 1)];
                        event_loop& loop = to.next();
                        // A single loop is started again; posts to it only wait.
                        if (random.percent(1)) loop.stop();
                        loop.post(
                            hopping{all, posts, static_cast<std::uint32_t>(random.up_to(200))});
                    }
                });
            }
            // All but one end in the middle of it, one after another.
            decisions random{seed * 10 + 9};
            for (std::size_t ends = 0; ends + 1 < groups; ++ends) {
                const auto until = random.up_to(2 * each_posts);
                while (posts.made < until)
                    std::this_thread::yield();
                all[ends]->stop();
                if (random.percent(50)) all[ends]->join();
            }
            threads.clear();
            for (auto& each : all)
                each->stop();
            for (auto& each : all)
                each->join(); // before the first is destroyed: callables refer to all
        }
        EXPECT_EQ(posts.decided(), posts.made);
        called += posts.called;
        return posts.made.load();
    });

    EXPECT_GT(called, 0U);
}

TEST_P(executors_storm_test, remote_tasks_of_loops_that_end_have_a_result_or_are_canceled) {
    const std::uint64_t total = short_or_full<std::uint64_t>(3'000, 300'000);

    in_rounds(total, "tasks", [&](std::uint64_t seed) -> std::uint64_t {
        constexpr std::uint64_t threads = 3, each_spawns = 100;
        std::atomic<std::uint64_t> ended = 0;
        event_loop_group group =
            or_throw(event_loop_group::create({.loops = 2, .loop = {.backend = GetParam()}}));
        std::vector<std::jthread> spawning;
        for (std::uint64_t thread = 0; thread < threads; ++thread) {
            spawning.emplace_back([&, thread] {
                decisions random{seed * 10 + thread};
                for (std::uint64_t number = 0; number < each_spawns; ++number) {
                    auto answers = [](int value, bool sleeps) -> task<result<int>> {
                        if (sleeps) co_await or_return(async_sleep(24h));
                        co_return value;
                    };
                    const bool sleeps = random.percent(30);
                    auto handle = group.next().spawn_remote(answers, 7, sleeps);
                    if (sleeps || random.percent(20)) handle.request_stop();
                    const result<int> answer = handle.get();
                    if (answer) {
                        EXPECT_FALSE(sleeps);
                        EXPECT_EQ(*answer, 7);
                    } else {
                        EXPECT_EQ(answer.error(), std::errc::operation_canceled);
                    }
                    ++ended;
                }
            });
        }
        decisions random{seed * 10 + 9};
        const auto until = random.up_to(threads * each_spawns);
        while (ended < until)
            std::this_thread::yield();
        group.stop();
        spawning.clear();
        return ended;
    });
}

// --- pools and strands

TEST_P(executors_storm_test, callables_of_pools_and_strands_that_end_are_decided_once) {
    const std::uint64_t total = short_or_full<std::uint64_t>(30'000, 3'000'000);
    const std::uint64_t each_posts = short_or_full<std::uint64_t>(500, 5'000);

    in_rounds(total, "callables", [&](std::uint64_t seed) {
        fates posts;
        std::atomic<std::uint64_t> overlaps = 0;
        std::array<std::atomic<int>, 3> inside{};
        {
            std::optional<thread_pool> pool{std::in_place,
                                            thread_pool_options{.threads = 2, .queue_limit = 8}};
            std::array<std::optional<strand>, 3> strands;
            for (auto& each : strands)
                each.emplace(*pool);
            std::vector<std::jthread> threads;
            for (std::uint64_t thread = 0; thread < 3; ++thread) {
                threads.emplace_back([&, thread] {
                    decisions random{seed * 10 + thread};
                    strand& ordered = *strands[thread];
                    for (std::uint64_t number = 0; number < each_posts; ++number) {
                        auto in_strand = [&, thread, fate = posts.one()]() mutable {
                            overlaps += inside[thread]++ != 0;
                            fate();
                            --inside[thread];
                        };
                        switch (random.up_to(3)) {
                        case 0:
                            pool->post(posts.one());
                            break;
                        case 1:
                            ordered.post(std::move(in_strand));
                            break;
                        case 2:
                            // Refused: destroyed here.
                            static_cast<void>(ordered.try_post(std::move(in_strand)));
                            break;
                        default:
                            static_cast<void>(pool->try_post(posts.one()));
                        }
                    }
                    if (random.percent(50)) strands[thread].reset();
                });
            }
            threads.clear();
            pool.reset(); // with callables in it; some strands go before it, some after it
        }
        EXPECT_EQ(posts.decided(), posts.made);
        EXPECT_EQ(overlaps, 0U);
        return 3 * each_posts;
    });
}

TEST_P(executors_storm_test, awaited_calls_return_or_never_begin) {
    const std::uint64_t total = short_or_full<std::uint64_t>(4'000, 400'000);

    in_rounds(total, "calls", [&](std::uint64_t seed) -> std::uint64_t {
        constexpr std::uint64_t tasks = 20, each_calls = 20;
        std::atomic<std::uint64_t> began = 0, returned = 0, failed = 0, left_alone = 0;
        {
            std::optional<thread_pool> pool{std::in_place,
                                            thread_pool_options{.threads = 2, .queue_limit = 3}};
            strand ordered{*pool};
            event_loop_group group =
                or_throw(event_loop_group::create({.loops = 2, .loop = {.backend = GetParam()}}));
            auto caller = [&](std::uint64_t own_seed) -> task<> {
                decisions random{own_seed};
                auto call = [&]() -> result<int> {
                    ++began;
                    return 7;
                };
                for (std::uint64_t number = 0; number < each_calls; ++number) {
                    const std::chrono::microseconds limit{random.up_to(300)};
                    result<int> answer;
                    switch (random.up_to(3)) {
                    case 0:
                        answer = co_await with_timeout(run_on(*pool, call), limit);
                        break;
                    case 1:
                        answer = co_await with_timeout(run_on(ordered, call), limit);
                        break;
                    case 2:
                        answer = co_await with_timeout(run_on(group.next(), call), limit);
                        break;
                    default:
                        answer = co_await with_timeout(run_blocking(call), limit);
                    }
                    answer ? ++returned : ++failed;
                }
            };
            std::vector<remote_handle<>> callers;
            for (std::uint64_t each = 0; each < tasks; ++each)
                callers.push_back(group.next().spawn_remote(caller(seed * 100 + each)));
            decisions random{seed};
            if (random.percent(30)) {
                // A call that has begun while its loop ends is left alone, see run_on().
                while (returned + failed < random.up_to(tasks * each_calls))
                    std::this_thread::yield();
                group.stop();
                left_alone = tasks;
            }
            for (auto& each : callers) {
                try {
                    each.get();
                } catch (const std::system_error& error) {
                    EXPECT_EQ(error.code(), std::errc::operation_canceled);
                }
            }
            if (random.percent(50)) {
                group.stop();
                group.join();
            }
            pool.reset();
        }
        EXPECT_LE(returned, began);
        EXPECT_GE(returned + left_alone, began);
        return returned + failed;
    });
}

INSTANTIATE_TEST_SUITE_P(backends, executors_storm_test, real_backends, backend_name);

} // namespace
} // namespace simplenet::v0
