// post(): callables that other threads, or the loop itself, pass to a loop.

#include <simplenet/runtime/event_loop.hpp>

#include "support/backend_test.hpp"

#include <simplenet/time/sleep.hpp>

#include <gmock/gmock.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;

class event_loop_post_test : public backend_test {};

TEST_P(event_loop_post_test, posts_of_a_thread_run_in_their_order_on_the_loop) {
    std::vector<int> order;
    std::thread::id ran_on;
    for (int number = 0; number < 5; ++number)
        loop().post([&order, number] { order.push_back(number); });
    loop().post([&] { ran_on = std::this_thread::get_id(); });

    loop().run();

    EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
    EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST_P(event_loop_post_test, a_post_is_never_run_inside_post) {
    bool ran_inside = true;
    bool ran = false;
    loop().post([&] {
        loop().post([&] { ran = true; });
        ran_inside = ran;
    });

    loop().run();

    EXPECT_FALSE(ran_inside);
    EXPECT_TRUE(ran);
}

TEST_P(event_loop_post_test, a_callable_that_can_only_be_moved_can_be_posted) {
    int value = 0;
    loop().post([&value, held = std::make_unique<int>(42)] { value = *held; });

    loop().run();

    EXPECT_EQ(value, 42);
}

TEST_P(event_loop_post_test, a_posted_callable_may_spawn) {
    int value = 0;
    auto body = [&]() -> task<> {
        value = 42;
        co_return;
    };
    loop().post([&] { spawn(body()); });

    loop().run();

    EXPECT_EQ(value, 42);
}

TEST_P(event_loop_post_test, posts_from_eight_threads_are_neither_lost_nor_out_of_order) {
    constexpr int threads = 8, each_posts = 2'000;
    std::array<int, threads> expected{};
    int out_of_order = 0, total = 0;
    auto forever = []() -> task<> { static_cast<void>(co_await async_sleep(1h)); };
    auto keeps_running = loop().spawn(forever());
    std::vector<std::jthread> posters;
    for (std::size_t thread = 0; thread < threads; ++thread) {
        posters.emplace_back([&, thread] {
            for (int number = 0; number < each_posts; ++number) {
                loop().post([&, thread, number] {
                    out_of_order += number != expected[thread]++;
                    if (++total == threads * each_posts) keeps_running.request_stop();
                });
                if (number % 64 == 0) std::this_thread::yield(); // lets the loop park
            }
        });
    }

    EXPECT_TRUE(loop().run_for(test_limit));

    EXPECT_EQ(out_of_order, 0);
    EXPECT_THAT(expected, Each(each_posts));
}

TEST_P(event_loop_post_test, posts_to_a_loop_that_is_awake_make_no_system_call) {
    int ran = 0;
    loop().post([&] {
        for (int number = 0; number < 1000; ++number) {
            loop().post([&] { ++ran; });
        }
        std::jthread{[&] {
            for (int number = 0; number < 1000; ++number)
                loop().post([&] { ++ran; });
        }}.join();
    });
    const auto before = loop().metrics().wake_ups;

    loop().run();

    EXPECT_EQ(ran, 2000);
    EXPECT_EQ(loop().metrics().wake_ups, before);
}

TEST_P(event_loop_post_test, posts_that_have_not_run_are_dropped_at_the_end_of_the_loop) {
    auto held = std::make_shared<int>();
    bool ran = false;
    loop().post([&ran, held] { ran = true; });
    EXPECT_EQ(held.use_count(), 2);

    destroy_loop();

    EXPECT_EQ(held.use_count(), 1);
    EXPECT_FALSE(ran);
}

TEST_P(event_loop_post_test, a_dropped_post_may_post_again_from_its_destructor) {
    struct posts_again {
        event_loop* target;
        std::shared_ptr<int> held;
        ~posts_again() {
            if (held) target->post([kept = held] {});
        }
        posts_again(event_loop& loop, std::shared_ptr<int> held)
            : target{&loop}
            , held{std::move(held)} {}
        posts_again(posts_again&&) = default;
        void operator()() const {}
    };
    auto held = std::make_shared<int>();
    loop().post(posts_again{loop(), held});

    destroy_loop();

    EXPECT_EQ(held.use_count(), 1);
}

INSTANTIATE_TEST_SUITE_P(backends, event_loop_post_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
