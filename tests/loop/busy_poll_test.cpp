// loop_options::busy_poll: a loop that looks for events for a while before it sleeps.

#include "support/backend_test.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/sleep.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <thread>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

class busy_poll_test : public backend_test {
protected:
    /// Makes all waits of the loop short so far, so that it spins far longer than a test lasts.
    void warm_up() {
        remake_loop({.busy_poll = 1h});
        if (IsSkipped()) return;
        run([]() -> task<> {
            for (int turn = 0; turn < 16; ++turn)
                co_await async_sleep(10us);
        });
    }

    /// Posts from another thread, each time after the previous post has run.
    std::uint64_t wake_ups_of_posts(int count) {
        const auto before = loop().metrics().wake_ups;
        std::atomic<int> ran = 0;
        std::atomic<bool> over = false;
        std::thread other{[&] {
            for (int sent = 0; sent < count; ++sent) {
                loop().post([&ran] {
                    ++ran;
                    ran.notify_one();
                });
                ran.wait(sent);
            }
            loop().stop();
            over = true;
        }};
        // Keeps the loop alive until it is stopped, with nothing ready.
        auto sleeper = loop().spawn([]() -> task<> { co_await async_sleep(1h); });
        EXPECT_TRUE(loop().run_for(test_limit));
        while (!over) // repeats if a busy machine took too long
            static_cast<void>(loop().run_for(10ms));
        other.join();
        sleeper.request_stop();
        loop().run();
        return loop().metrics().wake_ups - before;
    }
};

TEST(loop_options_busy_poll_test, is_off_by_default) {
    EXPECT_EQ(loop_options{}.busy_poll, 0ns);
}

TEST_P(busy_poll_test, a_post_to_a_spinning_loop_makes_no_system_call) {
    warm_up();

    // At most one: the loop may not have begun to wait at the first post, and stop() needs none.
    EXPECT_LE(wake_ups_of_posts(20), 1U);
}

TEST_P(busy_poll_test, a_loop_that_sleeps_long_does_not_begin_to_spin) {
    remake_loop({.busy_poll = 1us});
    if (IsSkipped()) return;
    run([]() -> task<> {
        for (int turn = 0; turn < 16; ++turn)
            co_await async_sleep(1ms);
    });
    timespec before{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);

    run([]() -> task<> { co_await async_sleep(100ms); });

    timespec after{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    const auto spent = std::chrono::seconds{after.tv_sec - before.tv_sec} +
                       std::chrono::nanoseconds{after.tv_nsec - before.tv_nsec};
    EXPECT_LT(spent, 50ms);
}

TEST_P(busy_poll_test, spinning_ends_after_the_configured_time) {
    remake_loop({.busy_poll = 20ms});
    if (IsSkipped()) return;
    run([]() -> task<> {
        for (int turn = 0; turn < 16; ++turn)
            co_await async_sleep(10us);
    });
    timespec before{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);

    run([]() -> task<> { co_await async_sleep(400ms); });

    timespec after{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    const auto spent = std::chrono::seconds{after.tv_sec - before.tv_sec} +
                       std::chrono::nanoseconds{after.tv_nsec - before.tv_nsec};
    EXPECT_LT(spent, 200ms);
}

TEST_P(busy_poll_test, a_timer_ends_the_spinning_and_is_not_early) {
    warm_up();
    run([]() -> task<> {
        const auto start = event_loop::clock::now();

        EXPECT_TRUE(co_await async_sleep(5ms));

        EXPECT_GE(event_loop::clock::now() - start, 5ms);
    });
}

TEST_P(busy_poll_test, a_stop_ends_the_spinning) {
    warm_up();
    std::atomic<bool> waits = false;
    std::thread other{[&] {
        while (!waits)
            std::this_thread::yield();
        loop().stop();
    }};
    bool over = false;
    auto child = loop().spawn([&]() -> task<> {
        waits = true;
        static_cast<void>(co_await async_sleep(1h));
        over = true;
    });

    EXPECT_TRUE(loop().run_for(test_limit));

    other.join();
    EXPECT_FALSE(over);
    child.request_stop();
    loop().run();
    EXPECT_TRUE(over);
}

TEST_P(busy_poll_test, run_for_ends_in_time_while_it_spins) {
    warm_up();
    const auto start = event_loop::clock::now();
    auto child = loop().spawn([]() -> task<> { static_cast<void>(co_await async_sleep(1h)); });

    EXPECT_FALSE(loop().run_for(5ms));

    EXPECT_GE(event_loop::clock::now() - start, 5ms);
    child.request_stop();
    loop().run();
}

TEST_P(busy_poll_test, bytes_end_the_spinning) {
    warm_up();
    auto [ours, theirs] = or_throw(local_stream::pair());
    auto echo = [](local_stream& stream) -> task<> {
        std::byte byte{};
        while (co_await stream.read_some({&byte, 1}))
            EXPECT_TRUE(co_await async_write_all(stream, const_buffer{&byte, 1}));
    };
    run([&]() -> task<> {
        auto peer = spawn(echo(theirs));
        for (int round = 0; round < 100; ++round) {
            std::byte byte{7};
            EXPECT_TRUE(co_await async_write_all(ours, const_buffer{&byte, 1}));
            EXPECT_TRUE(co_await ours.read_some({&byte, 1}));
            EXPECT_EQ(byte, std::byte{7});
        }
        ours.close();
        co_await peer;
    });
}

INSTANTIATE_TEST_SUITE_P(backends, busy_poll_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
