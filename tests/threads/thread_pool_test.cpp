#include <simplenet/threads/thread_pool.hpp>

#include "support/backend_test.hpp"
#include "support/child_process.hpp"
#include "support/fates.hpp"
#include "support/held_up.hpp"
#if SIMPLENET_SEAMS
#include "support/fault_plan.hpp"
#endif
#include "sys/processors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <future>
#include <iterator>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::SizeIs;

class thread_pool_test : public ::testing::Test {
    watchdog watchdog_;
};
using thread_pool_death_test = thread_pool_test;

template <class Function>
auto ask(thread_pool& pool, Function function) {
    std::promise<decltype(function())> answer;
    auto future = answer.get_future();
    pool.post([&] { answer.set_value(function()); });
    return future.get();
}

std::ptrdiff_t threads_of_process() {
    return std::distance(std::filesystem::directory_iterator{"/proc/self/task"},
                         std::filesystem::directory_iterator{});
}

TEST_F(thread_pool_test, a_posted_callable_runs_on_a_thread_of_the_pool) {
    thread_pool pool{{.threads = 1}};

    EXPECT_NE(ask(pool, std::this_thread::get_id), std::this_thread::get_id());
}

TEST_F(thread_pool_test, callables_of_one_thread_begin_in_order) {
    thread_pool pool{{.threads = 1}};
    std::vector<int> order;
    for (int number = 0; number < 4; ++number)
        pool.post([&order, number] { order.push_back(number); });

    ask(pool, [] { return 0; });

    EXPECT_THAT(order, ElementsAre(0, 1, 2, 3));
}

TEST_F(thread_pool_test, all_threads_work_at_the_same_time) {
    std::mutex guard;
    std::set<std::thread::id> threads;
    std::latch all{5};
    thread_pool pool{{.threads = 4}};
    for (int each = 0; each < 4; ++each) {
        pool.post([&] {
            {
                const std::lock_guard lock{guard};
                threads.insert(std::this_thread::get_id());
            }
            all.arrive_and_wait();
        });
    }

    all.arrive_and_wait();

    EXPECT_THAT(threads, SizeIs(4));
}

TEST_F(thread_pool_test, by_default_there_is_a_thread_for_each_processor) {
    const auto before = threads_of_process();

    const thread_pool pool;

    EXPECT_EQ(threads_of_process() - before, detail::sys::usable_processors());
}

TEST_F(thread_pool_test, a_callable_may_post_and_its_captures_only_move) {
    thread_pool pool{{.threads = 1}};
    std::promise<int> seen;
    pool.post([&, held = std::make_unique<int>(42)]() mutable {
        pool.post([&, kept = std::move(held)] { seen.set_value(*kept); });
    });

    EXPECT_EQ(seen.get_future().get(), 42);
}

TEST_F(thread_pool_test, try_post_refuses_when_queue_limit_callables_wait) {
    thread_pool pool{{.threads = 1, .queue_limit = 2}};
    fates waiting;
    {
        const held_up busy{pool};
        EXPECT_TRUE(pool.try_post(waiting.one()));
        EXPECT_TRUE(pool.try_post(waiting.one()));

        EXPECT_FALSE(pool.try_post([] {}));
    }
    ask(pool, [] { return 0; });

    EXPECT_EQ(waiting.called, 2U);
    EXPECT_TRUE(pool.try_post([] {})) << "there is room again";
}

TEST_F(thread_pool_test, a_refused_callable_is_left_as_it_is) {
    thread_pool pool{{.threads = 1, .queue_limit = 1}};
    const held_up busy{pool};
    EXPECT_TRUE(pool.try_post([] {}));
    auto held = std::make_unique<int>(42);
    auto call = [held = std::move(held)] {};

    EXPECT_FALSE(pool.try_post(std::move(call)));

    fates refused;
    auto one = refused.one();
    EXPECT_FALSE(pool.try_post(std::move(one)));
    EXPECT_EQ(refused.destroyed, 0U);
}

TEST_F(thread_pool_test, post_takes_more_than_queue_limit_callables) {
    thread_pool pool{{.threads = 1, .queue_limit = 1}};
    fates posts;
    {
        const held_up busy{pool};
        for (int each = 0; each < 10; ++each)
            pool.post(posts.one());
    }
    ask(pool, [] { return 0; });

    EXPECT_EQ(posts.called, 10U);
}

TEST_F(thread_pool_test, the_destructor_drops_what_has_not_begun_and_waits_for_what_has) {
    fates begun, waiting;
    std::optional<thread_pool> pool{std::in_place, thread_pool_options{.threads = 1}};
    std::latch runs{1}, dropped{1};
    struct tells {
        std::latch* dropped;
        explicit tells(std::latch& at) noexcept
            : dropped{&at} {}
        tells(tells&& other) noexcept
            : dropped{std::exchange(other.dropped, nullptr)} {}
        ~tells() {
            if (dropped != nullptr) dropped->count_down();
        }
        void operator()() const {}
    };
    pool->post([&, call = begun.one()]() mutable {
        runs.count_down();
        dropped.wait(); // by then the destructor is at work
        call();
    });
    runs.wait();
    pool->post(waiting.one());
    pool->post(tells{dropped});

    pool.reset();

    EXPECT_EQ(begun.called, 1U);
    EXPECT_EQ(waiting.called, 0U);
    EXPECT_EQ(waiting.destroyed, 1U);
}

TEST_F(thread_pool_test, what_a_callable_posts_to_a_pool_that_ends_is_destroyed) {
    fates late;
    {
        thread_pool pool{{.threads = 1}};
        std::latch begun{1};
        pool.post([&] {
            begun.count_down();
            while (late.destroyed == 0)
                pool.post(late.one());
        });
        begun.wait();
    }

    EXPECT_GT(late.destroyed, 0U);
}

TEST_F(thread_pool_test, posts_from_many_threads_run_once) {
    constexpr std::size_t threads = 4, each_posts = 2'000;
    fates posts;
    {
        thread_pool pool{{.threads = 3, .queue_limit = 16}};
        std::vector<std::jthread> posters;
        for (std::size_t each = 0; each < threads; ++each) {
            posters.emplace_back([&] {
                for (std::size_t number = 0; number < each_posts; ++number) {
                    if (number % 2 == 0 || !pool.try_post(posts.one())) pool.post(posts.one());
                }
            });
        }
        posters.clear();
    }
    EXPECT_EQ(posts.decided(), posts.made); // some were refused and destroyed here
    EXPECT_GE(posts.made, threads * each_posts);
}

TEST_F(thread_pool_test, threads_are_named_and_block_signals) {
    thread_pool pool{{.threads = 1, .name = "my_very_long_pool"}};
    const auto name = ask(pool, [] {
        std::array<char, 16> text{};
        ::pthread_getname_np(::pthread_self(), text.data(), text.size());
        return std::string{text.data()};
    });
    const auto blocks = [](int signal) {
        sigset_t mask;
        ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
        return sigismember(&mask, signal) == 1;
    };

    EXPECT_EQ(name, "my_very_long_-0");
    EXPECT_TRUE(ask(pool, [&] { return blocks(SIGTERM); }));
    EXPECT_FALSE(ask(pool, [&] { return blocks(SIGSEGV); }));
}

TEST_F(thread_pool_test, a_forked_child_may_destroy_it) {
    std::optional<thread_pool> pool{std::in_place, thread_pool_options{.threads = 2}};

    child_process child{[&] {
        pool.reset();
        return 0;
    }};

    EXPECT_EQ(child.end(), "status 0");
}

#if SIMPLENET_SEAMS
TEST_F(thread_pool_test, without_one_of_its_threads_there_is_none) {
    const auto before = threads_of_process();
    fault_plan plan;
    plan.fail(call::thread, 2, EAGAIN);

    try {
        const thread_pool pool{{.threads = 4}};
        ADD_FAILURE() << "it has too few threads";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), std::errc::resource_unavailable_try_again);
    }

    EXPECT_EQ(threads_of_process(), before);
}
#endif

TEST_F(thread_pool_death_test, an_exception_that_leaves_a_callable_terminates) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            thread_pool pool{{.threads = 1}};
            pool.post([] { throw std::runtime_error{"nobody catches this"}; });
            std::this_thread::sleep_for(1h);
        },
        "nobody catches this");
}

constexpr thread_pool_options one_thread{.threads = 1};

TEST_F(thread_pool_death_test, destroying_it_on_its_own_thread_stops_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            auto pool = std::make_unique<thread_pool>(one_thread);
            pool->post([&] { pool.reset(); });
            std::this_thread::sleep_for(1h);
        },
        "destroyed on a thread of its own");
}

TEST_F(thread_pool_death_test, a_limit_of_zero_stops_the_program) {
    constexpr thread_pool_options no_room{.threads = 1, .queue_limit = 0};
    EXPECT_DEATH(thread_pool{no_room}, "at least 1");
}

} // namespace
} // namespace simplenet::v0::testing
