// A loop allocates nothing after its warm-up. The test counts operator new, so it is a program of
// its own.

#include "support/backend_test.hpp"
#include "support/counted_allocations.hpp"

#include <simplenet/blocking/tcp_stream.hpp>
#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/detail/frame_allocator.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

class loop_allocation_test : public backend_test {
protected:
    void SetUp() override {
        if (under_address_sanitizer || under_thread_sanitizer) {
            GTEST_SKIP() << "a sanitizer allocates for itself";
        }
        backend_test::SetUp();
    }

    /// The number of allocations in a thousand rounds of `body`, after a hundred to warm up.
    template <class Body>
    std::size_t allocations_of(Body body) {
        std::size_t counted = 0;
        run([&]() -> task<> {
            for (int round = 0; round < 100; ++round)
                co_await body();
            const std::size_t before = allocations.load();
            for (int round = 0; round < 1000; ++round)
                co_await body();
            counted = allocations.load() - before;
        });
        return counted;
    }
};

TEST_P(loop_allocation_test, tasks_yields_and_sleeps_allocate_nothing) {
    auto child = []() -> task<int> {
        co_await yield();
        co_return 1;
    };
    EXPECT_EQ(allocations_of([&]() -> task<> {
                  co_await yield();
                  static_cast<void>(co_await child());
                  EXPECT_TRUE(co_await async_sleep(0s));
                  EXPECT_TRUE(co_await async_sleep(1us));
              }),
              0U);
}

TEST_P(loop_allocation_test, limits_that_are_armed_and_cancelled_allocate_nothing) {
    auto waits = []() -> task<result<>> { co_return co_await async_sleep(1us); };
    EXPECT_EQ(allocations_of([&]() -> task<> {
                  EXPECT_TRUE(co_await with_timeout(async_sleep(1us), 1h));
                  EXPECT_TRUE(co_await with_timeout(waits(), 1h));
                  EXPECT_FALSE(co_await with_timeout(async_sleep(1h), 1us));
              }),
              0U);
}

TEST_P(loop_allocation_test, an_interval_allocates_nothing) {
    interval every{1us};
    EXPECT_EQ(allocations_of([&]() -> task<> { EXPECT_TRUE(co_await every.next()); }), 0U);
}

TEST_P(loop_allocation_test, spawned_and_combined_tasks_allocate_nothing) {
    auto child = []() -> task<int> {
        co_await yield();
        co_return 1;
    };
    auto nothing = []() -> task<> { co_return; };
    EXPECT_EQ(allocations_of([&]() -> task<> {
                  EXPECT_EQ(co_await spawn(child()), 1);
                  spawn(nothing());
                  static_cast<void>(co_await when_all(child(), child()));
                  static_cast<void>(co_await when_any(child(), async_sleep(1h)));
                  task_group group;
                  group.spawn(nothing());
                  EXPECT_TRUE(co_await group.join());
              }),
              0U);
}

TEST_P(loop_allocation_test, a_ping_pong_of_two_tasks_allocates_nothing) {
    auto [ours, theirs] = or_throw(local_stream::pair());
    auto echo = [&]() -> task<> {
        std::array<std::byte, 64> buffer;
        while (auto count = co_await theirs.read_some(buffer))
            EXPECT_TRUE(co_await async_write_all(theirs, const_buffer{buffer.data(), *count}));
    };
    loop().spawn(echo());
    int rounds = 0;
    EXPECT_EQ(allocations_of([&]() -> task<> {
                  std::array<std::byte, 4> answer;
                  EXPECT_TRUE(co_await with_timeout(async_write_all(ours, "ping"), 1h));
                  EXPECT_TRUE(co_await with_timeout(async_read_exact(ours, answer), 1h));
                  if (++rounds == 1100) ours.close(); // ends the echo
              }),
              0U);
}

TEST_P(loop_allocation_test, a_post_allocates_nothing) {
    EXPECT_EQ(allocations_of([&]() -> task<> {
                  bool ran = false;
                  loop().post([&ran] { ran = true; });
                  while (!ran)
                      co_await yield();
              }),
              0U);
}

/// Fills this thread's lists of free memory for small sizes, and the depot behind them. What the
/// thread frees from then on comes back to others.
void fill_free_lists() {
    for (std::size_t bytes = 24; bytes <= 1024; bytes += 32) {
        std::vector<void*> blocks(std::size_t{512} * 1024 / bytes);
        for (void*& each : blocks)
            each = detail::allocate_recycled(bytes);
        for (void* const each : blocks)
            detail::deallocate_recycled(each, bytes);
    }
}

// The memory travels with each post, and has to come back to the thread that posts. Without the
// full lists it depends on the threads' pace when that begins.
TEST_P(loop_allocation_test, posts_and_tasks_of_another_thread_allocate_nothing) {
    constexpr int warm_up = 500, rounds = 500, posts = 20;
    fill_free_lists();
    auto child = []() -> task<int> { co_return 1; };
    auto forever = []() -> task<> { static_cast<void>(co_await async_sleep(1h)); };
    auto keeps_running = loop().spawn(forever());
    std::size_t before = 0, after = 0;
    int ran = 0;
    std::jthread other{[&] {
        for (int round = 0; round != warm_up + rounds; ++round) {
            if (round == warm_up) before = allocations.load();
            for (int each = 0; each != posts; ++each)
                loop().post([&ran] { ++ran; });
            EXPECT_EQ(loop().spawn_remote(child()).get(), 1);
        }
        after = allocations.load();
        loop().post([&] { keeps_running.request_stop(); });
    }};

    EXPECT_TRUE(loop().run_for(test_limit));

    EXPECT_EQ(ran, (warm_up + rounds) * posts);
    EXPECT_EQ(after, before);
}

// With io_uring, a listener that never catches up must not keep memory for each connection.
TEST_P(loop_allocation_test, accepting_allocates_only_the_stream) {
    auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    const endpoint at = or_throw(listener.local_endpoint());
    std::vector<blocking::tcp_stream> clients; // two of them are always waiting
    const auto knock = [&] { clients.push_back(or_throw(blocking::tcp_stream::connect(at))); };
    clients.reserve(2000);
    knock();
    knock();
    const auto accepts = [&]() -> task<> {
        knock();
        static_cast<void>(co_await async_sleep(1us)); // lets io_uring accept it ahead
        const auto stream = co_await listener.accept();
        EXPECT_TRUE(stream);
        clients.erase(clients.begin());
    };
    // Fewer where NDEBUG is defined: the loop then reuses what a closed stream leaves sooner.
    EXPECT_LE(allocations_of(accepts), 1000U);
}

// Not on the perturbed kernel, which allocates.
INSTANTIATE_TEST_SUITE_P(backends, loop_allocation_test, real_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
