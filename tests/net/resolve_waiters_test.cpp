// Lookups and the tasks that wait for them: shared, stopped, abandoned.

#include <simplenet/net/resolve.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/endpoints.hpp"
#include "support/error_of.hpp"
#include "support/scripted_resolver.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/testing/manual_clock.hpp>
#include <simplenet/threads/with_stop.hpp>
#include <simplenet/time/deadline.hpp>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using ::testing::ElementsAre;
using testing::scripted_resolver;
using testing::texts;
using testing::turns;
using testing::until;

using enum address_family;

class resolve_waiters_test : public testing::backend_test {};

// --- sharing -------------------------------------------------------------------------------------

TEST_P(resolve_waiters_test, equal_lookups_are_shared_whatever_their_ports) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        task_group group;
        std::vector<std::string> seen;
        for (std::uint16_t port = 1; port <= 5; ++port) {
            group.spawn([&seen, port]() -> task<> {
                for (const auto& each : texts(co_await async_resolve("host", port, {.family = v4})))
                    seen.push_back(each);
            });
        }
        co_await until([&] { return resolver.begun() == 1; });
        co_await turns(3);
        resolver.answer("host", v4, {"192.0.2.1"});
        EXPECT_TRUE(co_await group.join());
        EXPECT_THAT(seen,
                    ::testing::UnorderedElementsAre("192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:3",
                                                    "192.0.2.1:4", "192.0.2.1:5"));
        EXPECT_EQ(resolver.begun(), 1U);

        // The answer is not cached: the next call looks up again.
        EXPECT_TRUE(co_await async_resolve("host", 80, {.family = v4}));
        EXPECT_EQ(resolver.begun(), 2U);
    });
    EXPECT_EQ(resolver->questions(), 0U);
}

TEST_P(resolve_waiters_test, loops_of_several_threads_share_a_lookup) {
    scripted_resolver resolver;
    std::atomic<int> found = 0;
    std::vector<std::thread> threads;
    for (int each = 0; each < 3; ++each) {
        threads.emplace_back([&] {
            auto own = or_throw(event_loop::create({.backend = GetParam()}));
            own.spawn([&]() -> task<> {
                const auto answer = co_await async_resolve("host", 80, {.family = v6});
                found += answer && *answer == std::vector{or_throw(endpoint::parse("[::1]:80"))};
            });
            own.run();
        });
    }
    run([&]() -> task<> {
        co_await until([&] { return resolver.begun() == 1; });
        resolver.answer("host", v6, {"::1"});
        co_return;
    });
    for (std::thread& each : threads)
        each.join();
    EXPECT_EQ(found, 3);
}

// --- stops, deadlines, and abandoned lookups -----------------------------------------------------

TEST_P(resolve_waiters_test, a_stopped_waiter_detaches_at_once) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        auto waiting = spawn(
            []() -> task<> { EXPECT_EQ(error_of(co_await async_resolve("host", 80)), canceled); });
        co_await until([&] { return resolver.begun() == 2; });
        waiting.request_stop();
        co_await waiting; // no answer has arrived
        EXPECT_EQ(resolver->questions(), 2U);
    });
}

TEST_P(resolve_waiters_test, a_time_limit_ends_a_lookup_that_is_never_answered) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        const auto start = std::chrono::steady_clock::now();
        const auto found = co_await with_timeout(async_resolve("host", 80), 20ms);
        EXPECT_EQ(error_of(found), errc::deadline_exceeded);
        EXPECT_GE(std::chrono::steady_clock::now() - start, 20ms);

        std::stop_source source;
        source.request_stop();
        EXPECT_EQ(error_of(co_await with_stop(source.get_token(), async_resolve("host", 80))),
                  canceled);
    });
}

// A clock that jumps when nothing is ready waits for resolver threads as it does for sockets.
TEST_P(resolve_waiters_test, a_clock_that_jumps_does_not_overtake_a_lookup) {
    scripted_resolver resolver;
    testing::manual_clock clock;
    remake_loop({.clock = &clock});
    resolver.answer("host", v4, {"192.0.2.1"});
    resolver.answer("host", v6, {});
    run([&]() -> task<> {
        EXPECT_TRUE(co_await with_timeout(async_resolve("host", 80), 1h));
        EXPECT_LT(clock.elapsed(), 1h);
        EXPECT_EQ(loop().metrics().live_operations, 0U);
    });
}

TEST_P(resolve_waiters_test, a_stop_does_not_lose_the_answer_of_one_family) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        auto waiting = spawn([]() -> task<> {
            EXPECT_THAT(texts(co_await async_resolve("host", 80)), ElementsAre("192.0.2.1:80"));
        });
        co_await until([&] { return resolver.begun() == 2; });
        resolver.answer("host", v4, {"192.0.2.1"});
        co_await until([&] { return resolver->questions() == 1; });
        waiting.request_stop();
        co_await waiting;
    });
}

TEST_P(resolve_waiters_test, a_stopped_task_starts_no_lookup) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        auto refused = spawn([]() -> task<> {
            co_await yield();
            EXPECT_EQ(error_of(co_await async_resolve("host", 80)), canceled);
        });
        refused.request_stop();
        co_await refused;
    });
    EXPECT_EQ(resolver->questions(), 0U);
    EXPECT_EQ(resolver->threads(), 0U);
}

// Even an address is refused: a loop of calls that succeed at once could not be stopped.
TEST_P(resolve_waiters_test, a_stopped_task_cannot_even_resolve_an_address) {
    run([&]() -> task<> {
        auto refused = spawn([]() -> task<> {
            co_await yield();
            EXPECT_EQ(error_of(co_await async_resolve("127.0.0.1", 80)), canceled);
            EXPECT_EQ(error_of(co_await async_resolve("::1", "80")), canceled);
            EXPECT_TRUE(co_await shield(async_resolve("127.0.0.1", 80)));
        });
        refused.request_stop();
        co_await refused;
    });
}

TEST_P(resolve_waiters_test, the_other_waiters_stay_when_one_leaves) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        const auto look_up = []() -> task<result<std::vector<endpoint>>> {
            co_return co_await async_resolve("host", 80, {.family = v4});
        };
        auto first = spawn(look_up);
        auto second = spawn(look_up);
        auto third = spawn(look_up);
        co_await until([&] { return resolver.begun() == 1; });
        second.request_stop();
        EXPECT_EQ(error_of(co_await second), canceled);
        resolver.answer("host", v4, {"192.0.2.1"});
        EXPECT_TRUE(co_await first);
        EXPECT_TRUE(co_await third);
    });
}

TEST_P(resolve_waiters_test, an_abandoned_lookup_serves_the_next_waiter) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        EXPECT_FALSE(co_await with_timeout(async_resolve("host", 80, {.family = v4}), 5ms));
        auto next = spawn([]() -> task<> {
            EXPECT_THAT(texts(co_await async_resolve("host", 81, {.family = v4})),
                        ElementsAre("192.0.2.1:81"));
        });
        co_await until([&] { return resolver.begun() == 1; });
        co_await turns(3);
        resolver.answer("host", v4, {"192.0.2.1"});
        co_await next;
        EXPECT_EQ(resolver.begun(), 1U);
    });
}

TEST_P(resolve_waiters_test, threads_are_bounded_and_a_queued_lookup_ends_with_its_waiter) {
    scripted_resolver resolver{{.most_threads = 3}};
    run([&]() -> task<> {
        task_group group;
        for (int each = 0; each < 50; ++each) {
            group.spawn([each]() -> task<> {
                const std::string host = "host-" + std::to_string(each);
                EXPECT_EQ(error_of(co_await async_resolve(host, 80)), canceled);
            });
        }
        co_await until([&] { return resolver.begun() == 3; });
        co_await turns(5);
        EXPECT_EQ(resolver->questions(), 100U);
        EXPECT_EQ(resolver->threads(), 3U);
        group.request_stop();
        static_cast<void>(co_await group.join());
        EXPECT_EQ(resolver->questions(), 3U); // the lookups that run
        EXPECT_EQ(resolver.begun(), 3U);

        // When they end, the queued lookups start in the order of their arrival.
        auto behind = spawn(
            []() -> task<> { EXPECT_TRUE(co_await async_resolve("behind", 80, {.family = v4})); });
        co_await turns(3);
        EXPECT_FALSE(behind.done());
        const auto stuck = resolver.questions();
        resolver.answer("behind", v4, {"192.0.2.1"});
        for (const auto& each : stuck)
            resolver.answer(each.host, each.family, {"192.0.2.9"});
        co_await behind;
        EXPECT_EQ(resolver.begun(), 4U);
    });
    EXPECT_LE(resolver->threads(), 3U);
}

TEST_P(resolve_waiters_test, many_lookups_all_end) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        int found = 0;
        task_group group;
        for (int each = 0; each < 300; ++each) {
            const std::string host = "host-" + std::to_string(each % 40);
            resolver.answer(host, v4, {"192.0.2.1"});
            resolver.answer(host, v6, {});
            group.spawn(
                [](std::string name, int& count) -> task<> {
                    count += (co_await async_resolve(name, 80)).has_value();
                },
                host, std::ref(found));
        }
        EXPECT_TRUE(co_await group.join());
        EXPECT_EQ(found, 300);
        EXPECT_LE(resolver->threads(), 8U);
    });
}

TEST_P(resolve_waiters_test, idle_threads_end) {
    scripted_resolver resolver{{.idle = 1ms}};
    resolver.answer("host", v4, {"192.0.2.1"});
    run([&]() -> task<> {
        for (int round = 0; round < 3; ++round) {
            EXPECT_TRUE(co_await async_resolve("host", 80, {.family = v4}));
            co_await until([&] { return resolver->threads() == 0; });
        }
    });
    EXPECT_EQ(resolver.begun(), 3U);
}

TEST_P(resolve_waiters_test, a_loop_can_end_while_its_lookups_hang) {
    scripted_resolver resolver;
    std::error_code end;
    remake_loop();
    loop().spawn([&]() -> task<> { end = error_of(co_await async_resolve("host", 80)); });
    EXPECT_FALSE(loop().run_for(2ms));
    destroy_loop();
    EXPECT_EQ(end, canceled);

    // The answer arrives when the loop is gone.
    resolver.answer("host", v4, {"192.0.2.1"});
    resolver.answer("host", v6, {"::1"});
    while (resolver->questions() != 0)
        std::this_thread::yield();
}

TEST_P(resolve_waiters_test, a_loop_can_end_while_an_answer_is_being_delivered) {
    for (int round = 0; round < 50; ++round) {
        scripted_resolver resolver;
        remake_loop();
        bool ended = false;
        loop().spawn([&]() -> task<> {
            static_cast<void>(co_await async_resolve("host", 80));
            ended = true;
        });
        loop().poll();
        loop().poll();
        std::thread answers{[&] {
            resolver.answer("host", v4, {"192.0.2.1"});
            resolver.answer("host", v6, {"::1"});
        }};
        destroy_loop();
        answers.join();
        EXPECT_TRUE(ended);
    }
}

TEST_P(resolve_waiters_test, stops_and_answers_race_without_losing_a_waiter) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        for (int round = 0; round < 200; ++round) {
            const std::string host = "host-" + std::to_string(round);
            auto waiting = spawn(
                [](std::string name) -> task<> {
                    const auto found = co_await async_resolve(name, 80, {.family = v4});
                    if (!found) {
                        EXPECT_EQ(error_of(found), canceled);
                    }
                },
                host);
            co_await turns(2);
            resolver.answer(host, v4, {"192.0.2.1"});
            co_await turns(round % 4);
            waiting.request_stop();
            co_await waiting;
        }
    });
}

TEST_P(resolve_waiters_test, an_awaitable_that_is_not_awaited_starts_no_lookup) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        {
            auto dropped = async_resolve("host", 80);
            auto moved = std::move(dropped);
        }
        co_return;
    });
    EXPECT_EQ(resolver->threads(), 0U);
}

TEST_P(resolve_waiters_test, the_texts_are_copied_at_the_call) {
    scripted_resolver resolver;
    resolver.answer("a-name-that-does-not-fit-into-a-small-string", v4, {"192.0.2.1"});
    run([&]() -> task<> {
        std::string host = "a-name-that-does-not-fit-into-a-small-string";
        auto later = async_resolve(host, 80, {.family = v4});
        host.assign(host.size(), '!');
        EXPECT_TRUE(co_await std::move(later));
    });
}

INSTANTIATE_TEST_SUITE_P(backends, resolve_waiters_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
