// A peer that takes nothing of what is sent to it.

#include "http/client/send_limit.hpp"
#include "http/client/upload.hpp"
#include "limited_writes.hpp"
#include "support/backend_test.hpp"

#include <simplenet/stream/any_stream.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/testing/manual_clock.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using http::detail::send_limit;

/// A minute's limit; the kernel of the peer holds four bytes.
class send_limit_test : public backend_test {
protected:
    static constexpr std::string_view four = "four";

    void SetUp() override {
        loop_options options;
        options.clock = &clock_;
        remake_loop(options);
    }
    task<result<std::size_t>> write() {
        const const_buffer bytes = as_bytes(four);
        task<result<std::size_t>> writing = limit_.write(to_, {&bytes, 1});
        co_return co_await std::move(writing);
    }
    /// Writes, and stops that after `time`.
    task<result<std::size_t>> write_for(std::chrono::nanoseconds time) {
        task<result<std::size_t>> writing = write();
        co_return co_await with_timeout(std::move(writing), time);
    }
    static const_buffer as_bytes(std::string_view text) {
        return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
    }
    /// Timers may be a tick late.
    void expect_at(std::chrono::nanoseconds expected) const {
        EXPECT_GE(clock_.elapsed(), expected);
        EXPECT_LE(clock_.elapsed(), expected + 1ms);
    }
    task<> read_four() {
        std::array<std::byte, 4> into;
        const result<std::size_t> count = co_await ends_.second.read_some(mutable_buffer{into});
        EXPECT_EQ(count, 4U);
    }

    manual_clock clock_;
    std::pair<duplex_stream, duplex_stream> ends_ = duplex(4);
    any_stream to_{std::move(ends_.first)};
    send_limit limit_{1min};
};

TEST_P(send_limit_test, is_exceeded_by_a_peer_that_takes_nothing) {
    run([&]() -> task<> {
        const result<std::size_t> taken = co_await write();
        EXPECT_EQ(taken, 4U);
        const result<std::size_t> ignored = co_await write();

        EXPECT_EQ(ignored.error(), errc::deadline_exceeded);
        EXPECT_TRUE(limit_.is_exceeded());
        expect_at(1min);
    });
}

// Each window in which something moved used to be followed by a whole one.
TEST_P(send_limit_test, counts_from_when_the_peer_last_took_something) {
    run([&]() -> task<> {
        static_cast<void>(co_await write());
        auto reader = [this]() -> task<> {
            static_cast<void>(co_await async_sleep(40s));
            co_await read_four();
        };
        auto reading = spawn(reader());

        const result<std::size_t> taken = co_await write();
        EXPECT_EQ(taken, 4U);
        const result<std::size_t> ignored = co_await write();

        EXPECT_EQ(ignored.error(), errc::deadline_exceeded);
        expect_at(100s);
        co_await reading;
    });
}

// A peer that talks stops each write, since what it says is looked at.
TEST_P(send_limit_test, counts_on_in_a_write_that_follows_one_that_was_stopped) {
    run([&]() -> task<> {
        static_cast<void>(co_await write());
        const result<std::size_t> stopped = co_await write_for(40s);
        EXPECT_EQ(stopped.error(), errc::deadline_exceeded);
        EXPECT_FALSE(limit_.is_exceeded());

        const result<std::size_t> ignored = co_await write_for(40s);

        EXPECT_EQ(ignored.error(), errc::deadline_exceeded);
        EXPECT_TRUE(limit_.is_exceeded());
        expect_at(1min);
    });
}

TEST_P(send_limit_test, counts_no_time_between_writes) {
    run([&]() -> task<> {
        static_cast<void>(co_await write());
        static_cast<void>(co_await write_for(40s));
        static_cast<void>(co_await async_sleep(1h));
        auto reader = [this]() -> task<> {
            static_cast<void>(co_await async_sleep(10s));
            co_await read_four();
        };
        auto reading = spawn(reader());

        const result<std::size_t> taken = co_await write();

        EXPECT_EQ(taken, 4U);
        co_await reading;
    });
}

TEST_P(send_limit_test, of_zero_is_none) {
    limit_ = send_limit{0s};
    run([&]() -> task<> {
        static_cast<void>(co_await write());
        const result<std::size_t> stopped = co_await write_for(1h);

        EXPECT_EQ(stopped.error(), errc::deadline_exceeded);
        EXPECT_FALSE(limit_.is_exceeded());
    });
}

/// Gives four bytes in two hours.
struct slow_source {
    task<result<std::size_t>> read_some(mutable_buffer into) {
        const result<> slept = co_await async_sleep(1h);
        if (!slept) co_return fail(slept);
        into.data()[0] = into.data()[1] = std::byte{'x'};
        co_return 2;
    }
};

// The time that the source takes is not the server's.
TEST_P(send_limit_test, is_no_limit_for_the_source_of_a_body) {
    run([&]() -> task<> {
        slow_source source;
        http::detail::upload leaving{{.stream = source, .content_length = 4}, 1min};

        const result<> sent = co_await leaving.run(to_);

        EXPECT_TRUE(sent);
        EXPECT_FALSE(leaving.is_late());
        expect_at(2h);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, send_limit_test, all_backends, backend_name);

/// On sockets, where the kernel is between the two.
class socket_limit_test : public backend_test {};

TEST_P(socket_limit_test, is_exceeded_by_a_peer_that_takes_nothing) {
    run([]() -> task<> {
        auto ends = connect_raw();
        any_stream to{std::move(ends.ours)};
        co_await expect_idle_is_late(to);
    });
}

TEST_P(socket_limit_test, is_exceeded_by_a_process_that_takes_nothing) {
    run([]() -> task<> {
        auto ends = connect_raw_local();
        any_stream to{std::move(ends.ours)};
        co_await expect_idle_is_late(to);
    });
}

TEST_P(socket_limit_test, is_not_exceeded_by_a_peer_that_takes_a_little_all_the_time) {
    run([]() -> task<> {
        auto ends = connect_raw(small_receiver);
        any_stream to{std::move(ends.ours)};
        co_await expect_slow_is_not_late(to, ends.theirs.fd());
    });
}

TEST_P(socket_limit_test, is_not_exceeded_by_a_process_that_takes_a_little_all_the_time) {
    run([]() -> task<> {
        auto ends = connect_raw_local(small_receiver);
        any_stream to{std::move(ends.ours)};
        co_await expect_slow_is_not_late(to, ends.theirs.fd());
    });
}

INSTANTIATE_TEST_SUITE_P(backends, socket_limit_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
