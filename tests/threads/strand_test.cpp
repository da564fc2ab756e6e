#include <simplenet/threads/strand.hpp>

#include "support/backend_test.hpp"
#include "support/fates.hpp"
#include "support/held_up.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <future>
#include <latch>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class strand_test : public ::testing::Test {
protected:
    /// Returns when everything that was posted before has run.
    template <class Executor>
    static void drain(Executor& where) {
        std::promise<void> over;
        where.post([&] { over.set_value(); });
        over.get_future().wait();
    }

private:
    watchdog watchdog_;
};

TEST_F(strand_test, callables_run_in_order_and_never_two_at_once) {
    constexpr std::size_t threads = 3, each_posts = 3'000;
    thread_pool pool{{.threads = 4}};
    strand ordered{pool};
    std::atomic<int> inside = 0;
    std::size_t overlaps = 0, out_of_order = 0; // without a mutex: the strand is one
    std::vector<std::size_t> expected(threads);
    std::vector<std::jthread> posters;
    for (std::size_t thread = 0; thread < threads; ++thread) {
        posters.emplace_back([&, thread] {
            for (std::size_t number = 0; number < each_posts; ++number) {
                ordered.post([&, thread, number] {
                    overlaps += inside++ != 0;
                    out_of_order += number != expected[thread]++;
                    --inside;
                });
            }
        });
    }
    posters.clear();
    drain(ordered);

    EXPECT_EQ(overlaps, 0U);
    EXPECT_EQ(out_of_order, 0U);
    EXPECT_THAT(expected, ElementsAre(each_posts, each_posts, each_posts));
}

// What stands in the queue of the pool has run when drain(pool) returns: on the other thread.
TEST_F(strand_test, a_callable_waits_for_the_one_before_though_a_thread_is_free) {
    thread_pool pool{{.threads = 2}};
    strand ordered{pool};
    std::promise<void> both_are_posted;
    std::atomic<bool> second_has_run = false;
    bool overlap = false;

    ordered.post([&] {
        both_are_posted.get_future().wait();
        drain(pool);
        overlap = second_has_run;
    });
    ordered.post([&] { second_has_run = true; });
    both_are_posted.set_value();
    drain(ordered);

    EXPECT_FALSE(overlap);
    EXPECT_TRUE(second_has_run);
}

TEST_F(strand_test, a_callable_may_post_to_its_own_strand) {
    thread_pool pool{{.threads = 1}};
    strand ordered{pool};
    std::vector<int> order;
    std::promise<void> over;
    ordered.post([&] {
        ordered.post([&] {
            order.push_back(2);
            over.set_value();
        });
        order.push_back(1);
    });
    over.get_future().wait();

    EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST_F(strand_test, strands_of_a_pool_run_beside_each_other) {
    std::latch both{3};
    thread_pool pool{{.threads = 2}};
    strand first{pool}, second{pool};
    first.post([&] { both.arrive_and_wait(); });
    second.post([&] { both.arrive_and_wait(); });

    both.arrive_and_wait();
}

TEST_F(strand_test, a_busy_strand_lets_others_use_the_thread) {
    thread_pool pool{{.threads = 1}};
    strand busy{pool};
    std::size_t before_the_other = 0;
    std::promise<std::size_t> seen;
    {
        const held_up pool_is_held{pool};
        for (int each = 0; each < 1'000; ++each)
            busy.post([&] { ++before_the_other; });
        pool.post([&] { seen.set_value(before_the_other); });
    }

    EXPECT_LT(seen.get_future().get(), 1'000U);
    drain(busy);
    EXPECT_EQ(before_the_other, 1'000U);
}

TEST_F(strand_test, it_has_a_queue_limit_of_its_own) {
    thread_pool pool{{.threads = 1, .queue_limit = 2}};
    strand ordered{pool}, other{pool};
    fates waiting;
    {
        const held_up strand_is_held{ordered};
        EXPECT_TRUE(ordered.try_post(waiting.one()));
        EXPECT_TRUE(ordered.try_post(waiting.one()));
        EXPECT_FALSE(ordered.try_post([] {}));
        ordered.post(waiting.one());

        EXPECT_TRUE(other.try_post(waiting.one()));
        EXPECT_TRUE(pool.try_post(waiting.one()));
    }
    drain(ordered);
    drain(other);
    drain(pool);

    EXPECT_EQ(waiting.called, 5U);
}

TEST_F(strand_test, destroying_it_lets_queued_callables_run) {
    thread_pool pool{{.threads = 1}};
    fates queued;
    {
        const held_up pool_is_held{pool};
        strand ordered{pool};
        for (int each = 0; each < 40; ++each)
            ordered.post(queued.one());
    }
    while (queued.decided() != 40)
        std::this_thread::yield();

    EXPECT_EQ(queued.called, 40U);
}

TEST_F(strand_test, destroying_it_in_a_callable_of_its_own_is_allowed) {
    thread_pool pool{{.threads = 1}};
    auto ordered = std::make_unique<strand>(pool);
    std::promise<void> over;
    ordered->post([&] {
        ordered->post([&] { over.set_value(); });
        ordered.reset();
    });

    over.get_future().wait();
}

TEST_F(strand_test, it_may_outlive_its_pool_and_then_destroys_callables) {
    fates before, after;
    std::optional<thread_pool> pool{std::in_place, thread_pool_options{.threads = 1}};
    strand ordered{*pool};
    std::latch begun{1};
    pool->post([&] {
        begun.count_down();
        while (before.destroyed == 0)
            std::this_thread::yield();
    });
    begun.wait();
    for (int each = 0; each < 3; ++each)
        ordered.post(before.one());

    pool.reset();

    EXPECT_EQ(before.destroyed, 3U);
    ordered.post(after.one());
    EXPECT_EQ(after.destroyed, 1U);
    EXPECT_TRUE(ordered.try_post(after.one())) << "taken, and destroyed";
    EXPECT_EQ(after.destroyed, 2U);
}

TEST_F(strand_test, an_exception_that_leaves_a_callable_terminates) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            thread_pool pool{{.threads = 1}};
            strand ordered{pool};
            ordered.post([] { throw std::runtime_error{"nobody catches this"}; });
            std::this_thread::sleep_for(1h);
        },
        "nobody catches this");
}

} // namespace
} // namespace simplenet::v0::testing
