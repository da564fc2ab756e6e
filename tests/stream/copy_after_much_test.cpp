// A copy after it has moved a large amount at once.

#include <simplenet/stream/copy.hpp>

#include "support/backend_test.hpp"
#include "support/copy_by_splice.hpp"
#include "support/copy_parts.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"
#include "support/sigpipe_watch.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/time/sleep.hpp>

#include <string>

#include <sys/ioctl.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::copy_by_splice;
using testing::noise;
using testing::readable_at;
using testing::turns;
using testing::until;

/// A copy that has moved a large amount at once and waits for more.
class copy_after_much_test : public testing::backend_test {
protected:
    using copy_handle = join_handle<transfer_result>;

    static constexpr std::size_t much = 60'000; // less than any receive window

    task<> pass_on(testing::raw_peer& source, testing::raw_peer& sink, std::size_t size) {
        source.send(noise(size));
        co_await until([&] { return waiting(sink) == size; });
        EXPECT_TRUE(sink.receive(size) == noise(size));
    }

    void during(auto check) {
        auto body = [&]() -> task<> {
            auto copying = spawn(copy_by_splice(from_, to_));
            co_await pass_on(source_, sink_, much);
            co_await check(copying);
        };
        run(body);
    }
    /// The number of bytes that `sink` could receive.
    [[nodiscard]] static std::size_t waiting(const testing::raw_peer& sink) {
        int count = 0;
        EXPECT_EQ(::ioctl(sink.fd(), FIONREAD, &count), 0);
        return static_cast<std::size_t>(count);
    }

    testing::raw_connection<tcp_stream> in_ = connect_raw();
    testing::raw_connection<tcp_stream> out_ = connect_raw();
    tcp_stream& from_ = in_.ours;
    tcp_stream& to_ = out_.ours;
    testing::raw_peer& source_ = in_.theirs;
    testing::raw_peer& sink_ = out_.theirs;
};

TEST_P(copy_after_much_test, small_and_large_amounts_alternate) {
    during([&](copy_handle& copying) -> task<> {
        for (const std::size_t size : {std::size_t{3}, much, std::size_t{1}, much})
            co_await pass_on(source_, sink_, size);
        source_.shutdown_write();
        EXPECT_EQ((co_await copying).value_or(0), 3 * much + 4);
    });
}

TEST_P(copy_after_much_test, the_end_of_the_stream_ends_the_copy) {
    during([&](copy_handle& copying) -> task<> {
        source_.shutdown_write();
        EXPECT_EQ((co_await copying).value_or(0), much);
    });
}

TEST_P(copy_after_much_test, an_error_is_reported_once_and_not_lost) {
    during([&](copy_handle& copying) -> task<> {
        source_.reset();
        const auto outcome = co_await copying;
        EXPECT_EQ(error_of(outcome), std::errc::connection_reset);
        EXPECT_EQ(outcome.error().transferred, much);
    });
}

// A peer that closes without a reset answers further data with one. In the middle of a splice(2) of
// many sends, that ends the call short and with a SIGPIPE, which must not end the process.
TEST_P(copy_after_much_test, a_reset_in_the_middle_of_a_splice_raises_no_signal) {
    remake_loop({.read_ahead = 1}); // so that io_uring leaves the bytes to splice(2)
    const testing::sigpipe_watch sigpipes;
    during([&](copy_handle& copying) -> task<> {
        // A slow reader at first makes the windows grow, so that large amounts arrive at once.
        for (std::size_t moved = 0, sent = 0; moved < 8U << 20U || moved < sent;) {
            if (moved < 8U << 20U) sent += source_.send_until_full(std::string(1 << 20, 'x'));
            co_await turns(20);
            moved += readable_at(sink_);
        }
        sink_.close();
        source_.send_until_full(std::string(1 << 20, 'x'));
        const auto outcome = co_await copying;
        EXPECT_TRUE(error_of(outcome) == std::errc::broken_pipe ||
                    error_of(outcome) == std::errc::connection_reset);
    });
    EXPECT_EQ(sigpipes.delivered(), 0);
}

// splice(2) does not skip an urgent byte. It reports that nothing is available, and no edge
// follows.
TEST_P(copy_after_much_test, bytes_after_an_urgent_byte_are_copied) {
    for (const int when : {0, 1, 3}) {
        during([&](copy_handle& copying) -> task<> {
            source_.send(noise(much));
            if (when == 1) co_await turns(1);
            source_.send("!", MSG_OOB);
            if (when == 3) co_await turns(3);
            source_.send("behind");
            co_await until([&] { return waiting(sink_) == much + 6; });
            EXPECT_EQ(sink_.receive(much + 6), noise(much) + "behind");
            copying.request_stop();
            static_cast<void>(co_await copying);
        });
    }
}

TEST_P(copy_after_much_test, the_loop_sleeps_while_nothing_moves) {
    const auto expect_sleep = [&](const char* when) -> task<> {
        // The kernel may still be moving bytes. That ends, unlike a spin.
        std::uint64_t least = 10;
        for (int round = 0; least >= 10 && round < 50; ++round) {
            const auto before = loop().metrics().turns;
            EXPECT_TRUE(co_await async_sleep(30ms));
            least = loop().metrics().turns - before;
        }
        EXPECT_LT(least, 10U) << when;
    };
    during([&](copy_handle& copying) -> task<> {
        co_await expect_sleep("after much");
        co_await pass_on(source_, sink_, 3);
        co_await expect_sleep("after little");
        co_await pass_on(source_, sink_, much);
        source_.send("!", MSG_OOB);
        co_await expect_sleep("at an urgent byte");
        for (int round = 0; round < 50; ++round) {
            source_.send_until_full(noise(much));
            co_await turns(20);
        }
        co_await expect_sleep("with bytes unread and a sink that is full");
        while (readable_at(sink_) != 0)
            co_await turns(20);
        co_await expect_sleep("after it was full");
        copying.request_stop();
        static_cast<void>(co_await copying);
    });
}

TEST_P(copy_after_much_test, a_stop_loses_nothing) {
    during([&](copy_handle& copying) -> task<> {
        copying.request_stop();
        const auto outcome = co_await copying;
        EXPECT_EQ(error_of(outcome), std::errc::operation_canceled);
        EXPECT_EQ(outcome.error().transferred, much);
        source_.send("def");
        std::string rest(3, '\0');
        EXPECT_TRUE(co_await async_read_exact(from_, rest));
        EXPECT_EQ(rest, "def");
    });
}

TEST_P(copy_after_much_test, a_close_by_another_task_ends_it) {
    during([&](copy_handle& copying) -> task<> {
        from_.close();
        EXPECT_EQ(error_of(co_await copying), std::errc::operation_canceled);
    });
}

// A pipe would cost two descriptors for each idle copy.
TEST_P(copy_after_much_test, it_holds_no_pipe_while_it_waits) {
    auto [from, source] = connect_raw();
    auto [to, sink] = connect_raw();
    auto beside = [&]() -> task<> {
        const std::size_t before = testing::open_descriptors(); // including the spare pipe
        auto copying = spawn(copy_by_splice(from, to));
        co_await pass_on(source, sink, much);
        EXPECT_EQ(testing::open_descriptors(), before);
        copying.request_stop();
        static_cast<void>(co_await copying);
    };
    during([&](copy_handle& copying) -> task<> {
        co_await beside();
        copying.request_stop();
        static_cast<void>(co_await copying);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, copy_after_much_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
