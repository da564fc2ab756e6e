// run_on() with pools and strands.

#include <simplenet/runtime/run_on.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/fates.hpp"
#include "support/held_up.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

std::thread::id this_thread() {
    return std::this_thread::get_id();
}

class run_on_pool_test : public backend_test {
protected:
    thread_pool pool_{{.threads = 2, .queue_limit = 2}};
    strand strand_{pool_};
};

TEST_P(run_on_pool_test, calls_on_a_thread_of_the_pool_and_continues_here) {
    static_assert(executor<thread_pool> && executor<strand>);
    run([&]() -> task<> {
        EXPECT_NE(co_await run_on(pool_, this_thread), this_thread());
        EXPECT_NE(co_await run_on(strand_, this_thread), this_thread());
        EXPECT_EQ(event_loop::current(), &loop());
    });
}

TEST_P(run_on_pool_test, passes_arguments_results_and_exceptions) {
    auto join = [](std::string a, std::unique_ptr<std::string> b) { return a + *b; };
    auto throws = [](const char* what) -> int { throw std::runtime_error{what}; };
    run([&]() -> task<> {
        EXPECT_EQ(co_await run_on(pool_, join, "a", std::make_unique<std::string>("b")), "ab");
        EXPECT_EQ(co_await run_on(strand_, join, "a", std::make_unique<std::string>("b")), "ab");
        std::string what;
        try {
            static_cast<void>(co_await run_on(pool_, throws, "here"));
        } catch (const std::runtime_error& thrown) {
            what = thrown.what();
        }
        EXPECT_EQ(what, "here");
    });
}

TEST_P(run_on_pool_test, calls_on_a_strand_never_overlap) {
    int inside = 0, overlaps = 0, calls = 0;
    auto call = [&] {
        overlaps += inside++ != 0;
        ++calls;
        --inside;
    };
    auto many = [&]() -> task<> {
        for (int each = 0; each < 200; ++each)
            co_await run_on(strand_, call);
    };
    run([&]() -> task<> { co_await when_all(many(), many(), many()); });

    EXPECT_EQ(overlaps, 0);
    EXPECT_EQ(calls, 600);
}

TEST_P(run_on_pool_test, waits_for_its_place_while_queue_limit_callables_wait) {
    std::vector<int> order;
    thread_pool pool{{.threads = 1, .queue_limit = 2}};
    std::optional<held_up> busy{std::in_place, pool};
    auto note = [&](int number) { order.push_back(number); };
    EXPECT_TRUE(pool.try_post([&] { note(1); }));
    EXPECT_TRUE(pool.try_post([&] { note(2); }));

    run([&]() -> task<> {
        auto third = spawn(run_on(pool, note, 3));
        auto fourth = spawn(run_on(pool, note, 4));
        co_await turns(3);
        EXPECT_FALSE(third.done());
        EXPECT_FALSE(pool.try_post([] {})) << "applicants do not take places";
        busy.reset();
        co_await third;
        co_await fourth;
    });

    EXPECT_THAT(order, ElementsAre(1, 2, 3, 4));
}

TEST_P(run_on_pool_test, a_call_that_waits_for_its_place_begins_when_another_thread_is_idle) {
    // With one place, a thread that takes a call makes room for one that another thread runs.
    thread_pool pool{{.threads = 2, .queue_limit = 1}};
    run([&]() -> task<> {
        for (int round = 0; round < 100; ++round) {
            auto meet = std::make_shared<std::latch>(2);
            auto call = [](std::shared_ptr<std::latch> both) { both->arrive_and_wait(); };
            co_await when_all(run_on(pool, call, meet), run_on(pool, call, meet));
        }
    });
}

TEST_P(run_on_pool_test, a_stop_withdraws_a_call_in_the_queue_and_frees_its_place) {
    thread_pool pool{{.threads = 1, .queue_limit = 1}};
    const held_up busy{pool};
    auto call = [] { return 7; };

    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await with_timeout(run_on(pool, call), 1ms)),
                  errc::deadline_exceeded);
        EXPECT_TRUE(pool.try_post([] {}));
    });
}

TEST_P(run_on_pool_test, a_stop_withdraws_a_call_in_the_line) {
    thread_pool pool{{.threads = 1, .queue_limit = 1}};
    auto held = std::make_shared<int>();
    bool called = false;
    auto call = [&](const std::shared_ptr<int>&) { called = true; };
    {
        const held_up busy{pool};
        EXPECT_TRUE(pool.try_post([] {}));
        run([&]() -> task<> {
            EXPECT_EQ(error_of(co_await with_timeout(run_on(pool, call, held), 1ms)),
                      errc::deadline_exceeded);
            EXPECT_EQ(held.use_count(), 1) << "destroyed before the await returned";
        });
    }
    run([&]() -> task<> { co_await run_on(pool, [] {}); });
    EXPECT_FALSE(called);
}

TEST_P(run_on_pool_test, a_stop_withdraws_a_call_from_a_strand) {
    const held_up busy{strand_};
    auto call = []() -> result<int> { return 7; };

    run([&]() -> task<> {
        for (int each = 0; each < 5; ++each) {
            const auto outcome = co_await with_timeout(run_on(strand_, call), 1ms);
            EXPECT_EQ(outcome.error(), errc::deadline_exceeded);
        }
        EXPECT_TRUE(strand_.try_post([] {}));
    });
}

TEST_P(run_on_pool_test, a_call_that_has_begun_is_waited_for_in_spite_of_a_stop) {
    auto release = std::make_shared<std::latch>(1);
    auto begun = std::make_shared<std::latch>(1);
    auto call = [=]() -> result<int> {
        begun->count_down();
        release->wait();
        return 7;
    };
    run([&]() -> task<> {
        auto child = spawn(run_on(pool_, call));
        co_await yield();
        begun->wait();
        child.request_stop();
        co_await turns(3);
        EXPECT_FALSE(child.done());
        release->count_down();
        EXPECT_EQ(co_await child, 7);
    });
}

TEST_P(run_on_pool_test, fails_with_operation_canceled_when_the_pool_ends_first) {
    std::optional<thread_pool> pool{std::in_place, thread_pool_options{.threads = 1}};
    strand ordered{*pool};
    auto call = []() -> result<int> { return 7; };
    run([&]() -> task<> {
        std::optional<held_up> busy{std::in_place, *pool};
        auto in_pool = spawn(run_on(*pool, call));
        auto in_strand = spawn(run_on(ordered, call));
        co_await turns(2);
        std::jthread ender{[&] { pool.reset(); }};
        EXPECT_EQ((co_await in_pool).error(), std::errc::operation_canceled);
        EXPECT_EQ((co_await in_strand).error(), std::errc::operation_canceled);
        busy.reset();
    });
    run([&]() -> task<> {
        EXPECT_EQ((co_await run_on(ordered, call)).error(), std::errc::operation_canceled);
    });
}

TEST_P(run_on_pool_test, a_destroyed_strand_still_makes_the_calls_in_it) {
    auto ordered = std::make_unique<strand>(pool_);
    auto call = [] { return 7; };
    run([&]() -> task<> {
        std::optional<held_up> busy{std::in_place, *ordered};
        auto child = spawn(run_on(*ordered, call));
        co_await turns(2);
        ordered.reset();
        busy.reset();
        EXPECT_EQ(co_await child, 7);
    });
}

TEST_P(run_on_pool_test, this_loop_may_end_while_the_call_runs) {
    auto release = std::make_shared<std::latch>(1);
    auto begun = std::make_shared<std::latch>(1);
    auto call = [=]() -> result<> {
        begun->count_down();
        release->wait();
        return {};
    };
    std::error_code error;
    loop().spawn([&]() -> task<> { error = (co_await run_on(pool_, call)).error(); });
    loop().poll();
    begun->wait();

    destroy_loop();

    EXPECT_EQ(error, std::errc::operation_canceled);
    release->count_down();
}

TEST_P(run_on_pool_test, at_a_random_limit_a_call_has_run_and_returned_or_never_runs) {
    std::minstd_rand random{7};
    std::atomic<int> ran = 0;
    int returned = 0, withdrawn = 0;
    auto call = [&]() -> result<int> { return ++ran; };
    auto one = [&](bool ordered, std::chrono::microseconds limit) -> task<> {
        result<int> outcome;
        if (ordered) {
            outcome = co_await with_timeout(run_on(strand_, call), limit);
        } else {
            outcome = co_await with_timeout(run_on(pool_, call), limit);
        }
        outcome ? ++returned : ++withdrawn;
    };
    run([&]() -> task<> {
        for (int round = 0; round < 300; ++round) {
            std::vector<task<>> calls;
            for (int each = 0; each < 6; ++each)
                calls.push_back(one(each % 2 == 0, std::chrono::microseconds{random() % 100}));
            co_await when_all(std::move(calls));
        }
    });

    EXPECT_EQ(returned, ran);
    EXPECT_EQ(returned + withdrawn, 1'800);
}

INSTANTIATE_TEST_SUITE_P(backends, run_on_pool_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
