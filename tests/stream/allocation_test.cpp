// The allocations of streams. The test replaces the allocation functions to count, so it is a
// program of its own.

#include <simplenet/stream/any_stream.hpp>
#include <simplenet/stream/buffered_reader.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/stream/transfer.hpp>

#include "support/backend_test.hpp"
#include "support/counted_allocations.hpp"
#include "support/error_of.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <utility>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::allocations;
using testing::backend_name;
using testing::largest_allocation;
using testing::real_backends;

/// A foreign stream, made of coroutines.
class coroutine_stream {
public:
    explicit coroutine_stream(duplex_stream below)
        : below_{std::move(below)} {}

    task<result<std::size_t>> read_some(mutable_buffer into) {
        co_await yield();
        co_return co_await below_.read_some(into);
    }
    task<result<std::size_t>> write_some(const_buffer from) {
        co_await yield();
        co_return co_await below_.write_some(from);
    }

private:
    duplex_stream below_;
};

class allocation_test : public testing::backend_test {};

TEST_P(allocation_test, making_an_any_stream_is_one_allocation_and_using_it_none) {
    if (!detail::recycles_frames) GTEST_SKIP() << "frames are not recycled under ASan";
    run([&]() -> task<> {
        auto [ours, theirs] = duplex(100);
        std::size_t before = allocations;
        any_stream stream{std::move(ours)};
        EXPECT_EQ(allocations - before, 1U);

        auto [left, right] = duplex(100);
        any_stream coroutines{coroutine_stream{std::move(left)}};
        std::array<char, 4> buffer;
        for (int round = 0; round < 200; ++round) {
            if (round == 100) before = allocations;
            EXPECT_TRUE(co_await stream.write_some("abcd"));
            EXPECT_TRUE(co_await theirs.read_some(buffer));
            EXPECT_TRUE(co_await theirs.write_some("abcd"));
            EXPECT_TRUE(co_await with_timeout(stream.read_some(buffer), 1h));
            EXPECT_TRUE(co_await coroutines.write_some("abcd"));
            EXPECT_TRUE(co_await right.read_some(buffer));
            EXPECT_TRUE(co_await right.write_some("abcd"));
            EXPECT_TRUE(co_await with_timeout(coroutines.read_some(buffer), 1h));
        }
        EXPECT_EQ(allocations - before, 0U);
    });
}

TEST_P(allocation_test, lines_allocate_nothing) {
    if (!detail::recycles_frames) GTEST_SKIP() << "frames are not recycled under ASan";
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        buffered_reader reader{std::move(ours)};
        std::size_t before = 0;
        for (int round = 0; round < 200; ++round) {
            if (round == 100) before = allocations;
            EXPECT_TRUE(co_await async_write_all(theirs, "one\ntw"));
            EXPECT_TRUE(co_await with_timeout(reader.read_line(100), 1h));
            auto waits = reader.read_until("\r\n", 100);
            EXPECT_TRUE(co_await async_write_all(theirs, "o\r\n"));
            EXPECT_TRUE(co_await waits);
        }
        EXPECT_EQ(allocations - before, 0U);
    });
}

TEST_P(allocation_test, an_endless_line_takes_little_more_than_twice_its_limit) {
    run([&]() -> task<> {
        for (const std::size_t limit : {std::size_t{100}, std::size_t{10'000}}) {
            auto [ours, theirs] = duplex();
            buffered_reader reader{ours};
            auto flood = spawn([&]() -> task<> {
                const std::string much(1 << 20, 'x');
                EXPECT_FALSE(co_await async_write_all(theirs, much));
            });
            co_await yield();
            co_await yield();
            largest_allocation = 0;
            EXPECT_EQ(error_of(co_await reader.read_line(limit)), errc::limit_exceeded);
            EXPECT_EQ(error_of(co_await reader.read_exact(limit * 2)), std::error_code{});
            EXPECT_LE(largest_allocation, 2 * (2 * limit + 512) + 4096);
            flood.request_stop();
            co_await flood;
        }
    });
}

TEST_P(allocation_test, a_count_takes_no_memory_before_its_bytes_arrive) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        EXPECT_TRUE(co_await async_write_all(theirs, "little"));
        theirs.close();
        buffered_reader reader{std::move(ours)};
        largest_allocation = 0;
        EXPECT_EQ(error_of(co_await reader.read_exact(std::size_t{1} << 40)), errc::end_of_stream);
        EXPECT_LE(largest_allocation, 4096U);
    });
}

// The perturbed kernel allocates.
INSTANTIATE_TEST_SUITE_P(backends, allocation_test, real_backends, backend_name);

} // namespace
} // namespace simplenet::v0
