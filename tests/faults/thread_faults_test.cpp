// Faults in every call, completion and allocation of groups of loops, pools, strands, calls on
// them, hand-overs and metrics.

#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <new>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::backend_name;
using testing::fault_scenario;
using testing::make_connection;
using testing::told;

class thread_faults_test : public testing::fail_everywhere_test {
protected:
    void SetUp() override {
        fail_everywhere_test::SetUp();
        used = GetParam();
    }

public:
    static event_loop_group make_group(unsigned loops) {
        return or_throw(event_loop_group::create(
            {.loops = loops,
             .loop = {.backend = used, .on_unhandled = [](std::exception_ptr) {}}}));
    }
    static inline backend used = backend::epoll; // for the scenarios
};

/// Threads outlive coroutines of this one, and free their last memory.
class threads_play : public fault_scenario {
public:
    [[nodiscard]] bool crosses_threads() const override { return true; }
};

class asking_a_group : public threads_play {
    static task<int> answer(int number) {
        co_await yield();
        co_return number;
    }
    task<result<std::string>> play() override {
        auto group = co_await or_return(
            event_loop_group::create({.loops = 2, .loop = {.backend = thread_faults_test::used}}));
        auto asked = group[0].spawn_remote(answer(1));
        const int first = co_await std::move(asked);
        auto twice = [](int value) { return 2 * value; };
        const int second = co_await run_on(group[1], twice, first);
        co_return told(first, second);
    }
};
TEST_P(thread_faults_test, event_loop_group) {
    fail_everywhere<asking_a_group>();
}

class asking_a_pool : public threads_play {
    task<result<std::string>> play() override {
        thread_pool pool{{.threads = 2, .queue_limit = 1}};
        strand in_order{pool};
        auto next = [](int value) { return value + 1; };
        const int first = co_await run_on(pool, next, 0);
        const int second = co_await run_on(in_order, next, first);
        int third = second;
        auto count = [&third] { ++third; };
        // A full queue refuses; the call behind it is awaited, so it has run.
        const bool queued = in_order.try_post(count);
        if (!queued) ++third;
        co_await run_on(in_order, count);
        co_return told(first, second, third);
    }
};
TEST_P(thread_faults_test, thread_pool_and_strand) {
    fail_everywhere<asking_a_pool>();
}

class blocking : public threads_play {
    task<result<std::string>> play() override {
        auto twice = [](int value) { return 2 * value; };
        int number = 1;
        for (int calls = 0; calls < 3; ++calls)
            number = co_await run_blocking(twice, number);
        co_return told(number);
    }
};
TEST_P(thread_faults_test, run_blocking) {
    // A thread starts when the others are not idle yet, and keeps memory until it ends.
    expect_caches();
    fail_everywhere<blocking>();
}

/// A connection of which a part was read, so that the kernel has to let go of it.
class handing_over : public threads_play {
protected:
    event_loop_group group_{thread_faults_test::make_group(1)};

private:
    static task<> echo(tcp_stream stream) {
        static_cast<void>(co_await testing::echo_by_read_some(std::move(stream)));
    }
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        co_await or_return(co_await async_write_all(ends.client, "-one "));
        std::array<std::byte, 1> first{};
        co_await or_return(co_await async_read_exact(ends.server, std::span{first}));
        co_await or_return(hand_over(group_[0], std::move(ends.server), echo));
        std::string got(4, '\0');
        co_await or_return(
            co_await async_read_exact(ends.client, std::as_writable_bytes(std::span{got})));
        co_await or_return(co_await testing::converse(std::move(ends.client), "two three ", got));
        co_return got;
    }
};
TEST_P(thread_faults_test, hand_over) {
    fail_everywhere<handing_over>();
}

/// Allocations fail on the loop that gets the connection.
class being_handed_over : public handing_over {
public:
    [[nodiscard]] event_loop* failing_loop() noexcept override { return &group_[0]; }
};
TEST_P(thread_faults_test, hand_over_to_a_loop_without_memory) {
    fail_everywhere<being_handed_over>();
}

// Nobody may take the end of a connection whose bytes were lost for an orderly one.
TEST_P(thread_faults_test, a_hand_over_that_lacks_memory_resets_the_connection) {
    event_loop_group group = make_group(1);
    const auto echo = [](tcp_stream stream) -> task<> {
        static_cast<void>(co_await testing::echo_by_read_some(std::move(stream)));
    };
    // Returns whether there was memory for everything.
    const auto attempt = [&](std::size_t first_failing) -> task<bool> {
        auto ends = or_throw(co_await make_connection());
        or_throw(co_await async_write_all(ends.client, "-one "));
        std::array<std::byte, 1> first{};
        or_throw(co_await async_read_exact(ends.server, std::span{first}));
        std::size_t seen = 0;
        {
            const testing::failing_allocations armed{first_failing, true};
            try {
                static_cast<void>(hand_over(group[0], std::move(ends.server), echo));
                for (int turns = 0; turns < 4; ++turns) // until it has left
                    co_await yield();
            } catch (const std::bad_alloc&) {
            }
            seen = testing::failing_allocations::seen();
        }
        std::string got(4, '\0');
        const auto count =
            co_await async_read_exact(ends.client, std::as_writable_bytes(std::span{got}));
        const std::error_code end = count ? std::error_code{} : count.error().code;
        EXPECT_TRUE(count || end == std::errc::connection_reset) << first_failing << end.message();
        co_return seen <= first_failing;
    };

    std::size_t first_failing = 0;
    while (!simplenet::run(attempt(first_failing), {.backend = GetParam()}))
        ++first_failing;
    EXPECT_GE(first_failing, 1U);
}

class printing_metrics : public threads_play {
    task<result<std::string>> play() override {
        auto group = co_await or_return(
            event_loop_group::create({.loops = 1, .loop = {.backend = thread_faults_test::used}}));
        auto server = co_await or_return(tcp_server::listen(group, testing::own_endpoint()));
        co_await or_return(server.serve(testing::echo_by_read_some<tcp_stream>));
        std::ostringstream page;
        write_metrics(page);
        if (!page) co_return fail(std::errc::not_enough_memory); // a stream swallows exceptions
        const std::string text = page.str();
        co_return told(text.contains("simplenet_loop_turns_total{"),
                       text.contains("simplenet_server_"));
    }
};
TEST_P(thread_faults_test, write_metrics) {
    fail_everywhere<printing_metrics>();
}

INSTANTIATE_TEST_SUITE_P(backends, thread_faults_test, testing::real_backends, backend_name);

} // namespace
} // namespace simplenet::v0
