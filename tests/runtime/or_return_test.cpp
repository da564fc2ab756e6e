#include <simplenet/coro/or_return.hpp>

#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/nonblocking/tcp_listener.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/raw_peer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string_view>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;

class or_return_test : public testing::backend_test {};

/// Echoes until the stream ends, which is its result.
task<result<std::size_t>> echo(tcp_stream& stream, std::size_t& total) {
    std::array<char, 64> buffer{};
    for (;;) {
        const std::size_t count = co_await or_return(stream.read_some(buffer));
        total +=
            co_await or_return(async_write_all(stream, std::string_view{buffer.data(), count}));
    }
}

TEST_P(or_return_test, ends_a_loop_of_reads_and_writes_with_the_end_of_the_stream) {
    auto [ours, theirs] = testing::connect_raw();

    run([&]() -> task<> {
        theirs.send("0123456789");
        std::size_t total = 0;
        auto echoing = spawn(echo(ours, total));
        co_await testing::until([&] { return total == 10; });
        EXPECT_EQ(theirs.receive(10), "0123456789");
        theirs.shutdown_write();

        const auto ended = co_await echoing;

        EXPECT_EQ(ended.error(), errc::end_of_stream);
    });
}

TEST_P(or_return_test, leaves_a_read_to_the_limit_around_it) {
    auto [ours, theirs] = testing::connect_raw();

    run([&]() -> task<> {
        auto inner = [&]() -> task<result<std::size_t>> {
            std::array<char, 8> buffer{};
            co_return co_await or_return(with_timeout(ours.read_some(buffer), 1ms));
        };
        auto outer = [&]() -> task<result<std::size_t>> {
            std::array<char, 8> buffer{};
            co_return co_await or_return(ours.read_some(buffer));
        };

        EXPECT_EQ((co_await inner()).error(), errc::deadline_exceeded);
        EXPECT_EQ((co_await with_timeout(outer(), 1ms)).error(), errc::deadline_exceeded);

        theirs.send("text"); // the stream is intact
        EXPECT_EQ(co_await outer(), 4U);
    });
}

// The scope of the limit ends before the frame that waits in it is destroyed.
TEST_P(or_return_test, ends_a_task_inside_a_limit_that_stays_in_use) {
    run([&]() -> task<> {
        auto fails = []() -> task<result<>> {
            co_await or_return(async_sleep(1us));
            co_await or_return(result<>{fail(errc::queue_full)});
            co_return result<>{};
        };

        for (int i = 0; i < 3; ++i) {
            EXPECT_EQ((co_await with_timeout(fails(), 10s)).error(), errc::queue_full);
            EXPECT_TRUE(co_await async_sleep(1us));
        }
    });
}

TEST_P(or_return_test, ends_with_operation_canceled_when_the_loop_ends) {
    auto [ours, theirs] = testing::connect_raw();
    std::error_code why;
    loop().spawn([&]() -> task<> {
        auto reads = [&]() -> task<result<>> {
            std::array<char, 8> buffer{};
            co_await or_return(ours.read_some(buffer));
            co_return result<>{};
        };
        why = (co_await reads()).error();
    });
    loop().run_for(1ms);

    destroy_loop();

    EXPECT_EQ(why, std::errc::operation_canceled);
}

INSTANTIATE_TEST_SUITE_P(backends, or_return_test, testing::all_backends, testing::backend_name);

} // namespace
} // namespace simplenet::v0
