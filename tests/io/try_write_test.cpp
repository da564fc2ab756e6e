// try_write_some(): what the kernel takes now.

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"
#include "support/sigpipe_watch.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/stream/split.hpp>
#include <simplenet/stream/transfer.hpp>

#include <array>
#include <future>
#include <string>
#include <utility>

namespace simplenet::v0 {
namespace {

using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::connect_raw_local;
using testing::noise;
using testing::small_buffers;
using testing::turns;

class try_write_test : public testing::backend_test {};

/// Writes until there is no room; the number of bytes taken.
template <class Stream>
std::size_t fill_now(Stream& stream, const std::string& content) {
    std::size_t done = 0;
    for (;;) {
        const auto count = stream.try_write_some(const_buffer{content}.subspan(done));
        if (!count) {
            EXPECT_EQ(count.error(), std::errc::operation_would_block);
            return done;
        }
        EXPECT_GT(*count, 0U);
        done += *count;
    }
}

TEST_P(try_write_test, what_the_kernel_takes_arrives) {
    run([]() -> task<> {
        auto [ours, theirs] = connect_raw();
        EXPECT_EQ(ours.try_write_some("first, ").value_or(0), 7U); // binds the stream
        const std::array<const_buffer, 3> parts{const_buffer{"sec"}, const_buffer{},
                                                const_buffer{"ond"}};
        EXPECT_EQ(ours.try_write_some(std::span<const const_buffer>{parts}).value_or(0), 6U);
        EXPECT_EQ(theirs.receive(13), "first, second");
        EXPECT_EQ(ours.try_write_some("").value_or(7), 0U);
        EXPECT_EQ(theirs.peek(), -EAGAIN);
        co_return;
    });
}

TEST_P(try_write_test, a_full_socket_would_block_and_takes_more_later) {
    const std::string content = noise(8 << 20);
    const auto check = [&](auto connection) -> task<> {
        auto& [ours, theirs] = connection;
        std::size_t done = fill_now(ours, content);
        std::string got;
        while (done < (1U << 20U)) {
            got +=
                theirs.receive(done - got.size()); // the kernel has room, the loop no event of it
            const std::size_t more = fill_now(ours, content.substr(done));
            EXPECT_GT(more, 0U);
            if (more == 0) break;
            done += more;
        }
        // An awaited write continues where they end, whatever they found.
        auto peer = std::async(std::launch::async, [&, &from = theirs] {
            return from.receive(content.size() - got.size());
        });
        EXPECT_TRUE(co_await async_write_all(ours, const_buffer{content}.subspan(done)));
        got += peer.get();
        EXPECT_TRUE(got == content);
    };
    run([&]() -> task<> {
        co_await check(connect_raw(small_buffers));
        co_await check(connect_raw_local(small_buffers));
    });
}

TEST_P(try_write_test, a_write_that_waits_after_one_that_found_no_room_is_woken) {
    const std::string content = noise(4 << 20);
    run([&]() -> task<> {
        auto [ours, theirs] = connect_raw(small_buffers);
        for (int round = 0; round < 5; ++round) {
            const std::size_t done = fill_now(ours, content);
            auto writing = spawn(
                [&]() -> task<result<std::size_t>> { co_return co_await ours.write_some("!"); });
            co_await turns(3);
            EXPECT_FALSE(writing.done());
            EXPECT_TRUE(theirs.receive(done) == content.substr(0, done));
            EXPECT_EQ((co_await writing).value_or(0), 1U);
            EXPECT_EQ(theirs.receive(1), "!");
        }
    });
}

TEST_P(try_write_test, a_peer_that_is_gone_is_an_error_and_raises_no_signal) {
    const testing::sigpipe_watch sigpipes;
    run([]() -> task<> {
        auto [local, peer] = connect_raw_local();
        peer.close();
        EXPECT_EQ(local.try_write_some("x").error(), std::errc::broken_pipe);
        auto [ours, theirs] = connect_raw();
        theirs.reset();
        const result<std::size_t> first = ours.try_write_some("x");
        EXPECT_EQ(first.error(), std::errc::connection_reset);
        EXPECT_EQ(ours.try_write_some("x").error(), std::errc::broken_pipe);
        co_return;
    });
    EXPECT_EQ(sigpipes.delivered(), 0);
}

TEST_P(try_write_test, a_reset_that_a_read_waits_for_is_the_reads) {
    run([]() -> task<> {
        auto [ours, theirs] = connect_raw();
        auto reading = spawn([&]() -> task<result<std::size_t>> {
            std::array<char, 8> buffer{};
            co_return co_await ours.read_some(buffer);
        });
        co_await turns(3);
        theirs.reset();
        EXPECT_EQ(ours.try_write_some("x").error(), std::errc::broken_pipe);
        EXPECT_EQ(error_of(co_await reading), std::errc::connection_reset);
    });
}

TEST_P(try_write_test, a_closed_stream_is_an_error) {
    run([]() -> task<> {
        auto [ours, theirs] = connect_raw();
        ours.close();
        EXPECT_EQ(ours.try_write_some("x").error(), std::errc::bad_file_descriptor);
        co_return;
    });
}

TEST_P(try_write_test, the_half_of_a_stream_has_it) {
    run([]() -> task<> {
        auto [ours, theirs] = connect_raw();
        auto [reads, writes] = split(std::move(ours));
        EXPECT_EQ(writes.try_write_some(const_buffer{"x"}).value_or(0), 1U);
        EXPECT_EQ(theirs.receive(1), "x");
        co_return;
    });
}

class try_write_death_test : public testing::backend_test {};

TEST_P(try_write_death_test, a_second_writer_stops_the_program) {
    const std::string content = noise(4 << 20);
    EXPECT_DEATH(run([&]() -> task<> {
                     auto [ours, theirs] = connect_raw(small_buffers);
                     auto writing = spawn([&]() -> task<transfer_result> {
                         co_return co_await async_write_all(ours, content);
                     });
                     co_await turns(3);
                     (void)ours.try_write_some("x");
                 }),
                 "a second write on a stream that has one in flight");
}

TEST_P(try_write_death_test, a_stream_that_was_moved_from_stops_the_program) {
    EXPECT_DEATH(run([]() -> task<> {
                     auto [ours, theirs] = connect_raw();
                     const tcp_stream elsewhere{std::move(ours)};
                     (void)ours.try_write_some("x"); // NOLINT(bugprone-use-after-move)
                     co_return;
                 }),
                 "an operation on a socket that was moved from");
}

INSTANTIATE_TEST_SUITE_P(backends, try_write_test, all_backends, backend_name);
INSTANTIATE_TEST_SUITE_P(backends, try_write_death_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
