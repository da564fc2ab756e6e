#include <simplenet/threads/with_stop.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <concepts>
#include <memory>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

template <class Awaitable>
using stoppable =
    detail::await_result<decltype(with_stop(std::stop_token{}, std::declval<Awaitable>()))>;

static_assert(std::same_as<stoppable<detail::sleep_operation>, result<>>);
static_assert(std::same_as<stoppable<task<transfer_result>>, transfer_result>);
static_assert(std::same_as<
              stoppable<decltype(async_write_all(std::declval<local_stream&>(), const_buffer{}))>,
              transfer_result>);
static_assert(std::same_as<stoppable<task<int>>, result<int>>);
static_assert(std::same_as<stoppable<task<>>, result<>>);

class with_stop_test : public backend_test {};

TEST_P(with_stop_test, without_a_stop_it_changes_nothing) {
    run([]() -> task<> {
        std::stop_source source;
        auto number = []() -> task<int> { co_return 42; };
        EXPECT_TRUE(co_await with_stop(source.get_token(), async_sleep(1us)));
        EXPECT_EQ(co_await with_stop(source.get_token(), number()), result<int>{42});
        EXPECT_EQ(co_await with_stop(std::stop_token{}, number()), result<int>{42});
    });
}

TEST_P(with_stop_test, a_token_that_is_already_stopped_refuses_from_the_start) {
    run([]() -> task<> {
        std::stop_source source;
        source.request_stop();
        auto [ours, theirs] = or_throw(local_stream::pair());

        EXPECT_EQ(error_of(co_await with_stop(source.get_token(), async_sleep(1h))),
                  std::errc::operation_canceled);
        EXPECT_EQ(error_of(co_await with_stop(source.get_token(), ours.write_some("x"))),
                  std::errc::operation_canceled);
        EXPECT_EQ(error_of(co_await with_stop(source.get_token(), stopped_or(1))),
                  std::errc::operation_canceled);
    });
}

TEST_P(with_stop_test, after_a_request_on_the_same_thread_the_next_operation_is_refused) {
    run([]() -> task<> {
        std::stop_source source;
        auto body = [&]() -> task<result<>> {
            EXPECT_TRUE(co_await async_sleep(0s));
            EXPECT_FALSE(co_await this_task::stop_requested());
            source.request_stop();
            EXPECT_TRUE(co_await this_task::stop_requested());
            co_return co_await async_sleep(0s);
        };
        EXPECT_EQ(error_of(co_await with_stop(source.get_token(), body())),
                  std::errc::operation_canceled);
        EXPECT_FALSE(co_await this_task::stop_requested()) << "it ends with its await";
    });
}

TEST_P(with_stop_test, a_request_resumes_nothing_before_it_returns) {
    run([]() -> task<> {
        std::stop_source source;
        bool resumed = false;
        auto body = [&]() -> task<> {
            EXPECT_FALSE(co_await with_stop(source.get_token(), async_sleep(1h)));
            resumed = true;
        };
        auto handle = spawn(body());
        co_await yield();
        co_await yield();

        source.request_stop();
        EXPECT_FALSE(resumed);

        co_await handle;
        EXPECT_TRUE(resumed);
    });
}

TEST_P(with_stop_test, a_request_from_another_thread_ends_the_wait) {
    run([]() -> task<> {
        std::stop_source source;
        std::jthread stopper{[&] { source.request_stop(); }};
        EXPECT_EQ(error_of(co_await with_stop(source.get_token(), async_sleep(1h))),
                  std::errc::operation_canceled);
    });
}

TEST_P(with_stop_test, a_plain_value_is_replaced_if_the_stop_came_first) {
    run([]() -> task<> {
        std::stop_source source;
        source.request_stop();
        auto text = []() -> task<std::string> { co_return "too late"; };
        auto nothing = []() -> task<> { co_return; };
        EXPECT_EQ(error_of(co_await with_stop(source.get_token(), text())),
                  std::errc::operation_canceled);
        EXPECT_EQ(error_of(co_await with_stop(source.get_token(), nothing())),
                  std::errc::operation_canceled);
    });
}

TEST_P(with_stop_test, a_success_is_not_replaced_by_the_stop) {
    run([]() -> task<> {
        std::stop_source source;
        auto body = [&]() -> task<result<int>> {
            source.request_stop();
            co_return 42;
        };
        EXPECT_EQ(co_await with_stop(source.get_token(), body()), result<int>{42});
    });
}

TEST_P(with_stop_test, a_request_after_the_await_stops_nothing) {
    run([]() -> task<> {
        std::stop_source source;
        EXPECT_TRUE(co_await with_stop(source.get_token(), async_sleep(0s)));
        source.request_stop();
        EXPECT_TRUE(co_await async_sleep(1us));
    });
}

TEST_P(with_stop_test, an_exception_passes_through) {
    run([]() -> task<> {
        std::stop_source source;
        auto throws = [&]() -> task<int> {
            source.request_stop();
            co_await yield();
            throw std::string{"through"};
        };
        std::string caught;
        try {
            static_cast<void>(co_await with_stop(source.get_token(), throws()));
        } catch (const std::string& thrown) {
            caught = thrown;
        }
        EXPECT_EQ(caught, "through");
    });
}

TEST_P(with_stop_test, the_stopped_task_is_joined) {
    run([]() -> task<> {
        std::stop_source source;
        bool ended = false;
        auto lingers = [&]() -> task<> {
            static_cast<void>(co_await async_sleep(1h));
            for (int turn = 0; turn < 5; ++turn)
                co_await yield();
            ended = true;
        };
        std::jthread stopper{[&] { source.request_stop(); }};
        EXPECT_FALSE(co_await with_stop(source.get_token(), lingers()));
        EXPECT_TRUE(ended);
    });
}

TEST_P(with_stop_test, a_shield_inside_keeps_the_stop_out) {
    run([]() -> task<> {
        std::stop_source source;
        source.request_stop();
        auto body = []() -> task<result<>> { co_return co_await shield(async_sleep(1us)); };
        EXPECT_TRUE(co_await with_stop(source.get_token(), body()));
    });
}

TEST_P(with_stop_test, the_source_and_its_tokens_may_outlive_the_loop) {
    auto source = std::make_unique<std::stop_source>();
    auto body = [&]() -> task<> {
        static_cast<void>(co_await with_stop(source->get_token(), async_sleep(1h)));
    };
    loop().spawn(body());
    loop().poll();
    destroy_loop();

    source->request_stop();

    EXPECT_TRUE(source->stop_requested());
}

TEST_P(with_stop_test, one_request_stops_every_await_on_the_token) {
    int stopped = 0;
    run([&]() -> task<> {
        std::stop_source source;
        auto body = [&]() -> task<> {
            stopped += !co_await with_stop(source.get_token(), async_sleep(1h));
        };
        std::vector<task<>> many;
        for (int number = 0; number < 1000; ++number)
            many.push_back(body());
        std::jthread stopper{[&] { source.request_stop(); }};
        co_await when_all(std::move(many));
    });
    EXPECT_EQ(stopped, 1000);
}

// The requests are spread over every moment in the life of an await. They come in batches: a thread
// that waits for the other one each time would hit only a few moments, and be slow.
TEST_P(with_stop_test, ten_thousand_requests_from_another_thread_at_random_moments) {
    constexpr int rounds = 10'000, batch = 50;
    std::vector<std::stop_source> sources(rounds);
    std::atomic<int> allowed = 0;
    std::jthread stopper{[&] {
        std::minstd_rand random{7};
        for (int round = 0; round < rounds; ++round) {
            while (allowed.load() <= round)
                std::this_thread::yield();
            for (auto spins = random() % 512; spins != 0; --spins)
                static_cast<void>(allowed.load());
            sources[static_cast<std::size_t>(round)].request_stop();
        }
    }};
    int stopped = 0, finished = 0;
    bool unread = false;
    run(
        [&]() -> task<> {
            auto [ours, theirs] = or_throw(local_stream::pair());
            for (int round = 0; round < rounds; ++round) {
                const std::stop_source& source = sources[static_cast<std::size_t>(round)];
                std::array<std::byte, 1> letter;
                if (round % batch == 0) allowed.store(round + batch);
                // At most one unread letter, so that the socket never fills.
                if (round % 3 == 0 && !std::exchange(unread, true))
                    static_cast<void>(co_await theirs.write_some("x"));
                const auto count = co_await with_stop(source.get_token(), ours.read_some(letter));
                ++(count ? finished : stopped);
                if (count) unread = false;
                EXPECT_TRUE(count || count.error() == std::errc::operation_canceled);
            }
        },
        10 * test_limit);

    EXPECT_EQ(stopped + finished, rounds);
    EXPECT_GT(stopped, 0);
}

INSTANTIATE_TEST_SUITE_P(backends, with_stop_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
