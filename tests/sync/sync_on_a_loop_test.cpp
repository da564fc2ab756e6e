// The primitives of this layer on a real loop: deadlines, and no allocation per operation.

#include <simplenet/simplenet.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/counted_allocations.hpp"

#include <cstdlib>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

class sync_on_a_loop_test : public backend_test {};

TEST_P(sync_on_a_loop_test, deadlines_end_the_waits) {
    run([]() -> task<> {
        async_event event;
        EXPECT_EQ((co_await with_timeout(event.wait(), 1ms)).error(), errc::deadline_exceeded);

        async_semaphore semaphore{0};
        EXPECT_EQ((co_await with_timeout(semaphore.acquire(), 1ms)).error(),
                  errc::deadline_exceeded);
        semaphore.release();
        EXPECT_TRUE(co_await with_timeout(semaphore.acquire(), 0ms)); // it is available

        async_mutex mutex;
        auto held = or_throw(co_await mutex.lock());
        EXPECT_EQ((co_await with_timeout(mutex.lock(), 1ms)).error(), errc::deadline_exceeded);

        async_condition_variable condition;
        auto never = [] { return false; };
        EXPECT_EQ((co_await with_timeout(condition.wait(held, never), 1ms)).error(),
                  errc::deadline_exceeded);
        EXPECT_TRUE(held.owns_lock());

        channel<int> numbers{1};
        EXPECT_EQ((co_await with_timeout(numbers.receive(), 1ms)).error(), errc::deadline_exceeded);
        EXPECT_TRUE(co_await with_timeout(numbers.send(1), 0ms));
        EXPECT_EQ((co_await with_timeout(numbers.send(2), 1ms)).error(), errc::deadline_exceeded);
        EXPECT_EQ(or_throw(co_await numbers.receive()), 1);
        EXPECT_TRUE(numbers.empty());

        oneshot<int> answer;
        auto sender = answer.make_sender();
        EXPECT_EQ((co_await with_timeout(answer.receive(), 1ms)).error(), errc::deadline_exceeded);
        EXPECT_TRUE(sender.send(7));
        EXPECT_EQ(or_throw(co_await answer.receive()), 7);
    });
}

TEST_P(sync_on_a_loop_test, a_value_being_delivered_beats_a_deadline) {
    run([&]() -> task<> {
        channel<int> numbers{1};
        const auto deadline = event_loop::clock::now() + 50ms; // not before the value
        auto receiver = spawn([&]() -> task<int> {
            co_return (co_await with_deadline(numbers.receive(), deadline)).value_or(-1);
        });
        co_await yield();
        co_await yield();
        pass(deadline + 1ms);
        EXPECT_TRUE(numbers.try_send(1));
        EXPECT_EQ(co_await receiver, 1);
    });
}

TEST_P(sync_on_a_loop_test, operations_allocate_nothing) {
    run([]() -> task<> {
        channel<int> there{1};
        channel<int> back{0};
        async_mutex mutex;
        async_semaphore semaphore{1};
        async_condition_variable condition;
        int turn = 0;
        auto echo = spawn([&]() -> task<> {
            while (const auto number = co_await there.receive()) {
                EXPECT_TRUE(co_await with_timeout(back.send(*number), 1h));
                auto held = or_throw(co_await mutex.lock());
                EXPECT_TRUE(co_await condition.wait(held, [&] { return turn % 2 == 1; }));
                ++turn;
                condition.notify_all();
            }
        });
        std::size_t before = 0;
        for (int round = 0; round < 2'000; ++round) {
            if (round == 1'000) before = allocations;
            EXPECT_TRUE(co_await there.send(round));
            EXPECT_EQ(or_throw(co_await with_timeout(back.receive(), 1h)), round);
            auto held = or_throw(co_await mutex.lock());
            ++turn;
            condition.notify_all();
            EXPECT_TRUE(co_await condition.wait(held, [&] { return turn % 2 == 0; }));
            EXPECT_TRUE(co_await semaphore.acquire());
            semaphore.release();
        }
        EXPECT_EQ(allocations, before);
        there.close();
        co_await echo;
    });
}

INSTANTIATE_TEST_SUITE_P(backends, sync_on_a_loop_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
