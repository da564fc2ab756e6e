#pragma once
// Writes against a limit, and a peer that reads slowly.

#include "http/client/send_limit.hpp"
#include "support/backend_test.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/stream/any_stream.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace simplenet::v0::testing {

/// The peer's buffer is so small that it acknowledges a little at a time.
inline constexpr buffer_sizes small_receiver{.ours = 1 << 20, .theirs = 32768};

/// Writes until the limit is exceeded, or for `time`.
inline task<> write_on_and_on(any_stream& to, http::detail::send_limit& limit,
                              std::chrono::nanoseconds time) {
    const std::string large(32768, 'x');
    const const_buffer bytes{reinterpret_cast<const std::byte*>(large.data()), large.size()};
    for (const auto end = std::chrono::steady_clock::now() + time;
         !limit.is_exceeded() && std::chrono::steady_clock::now() < end;) {
        task<result<std::size_t>> writing = limit.write(to, {&bytes, 1});
        const result<std::size_t> count = co_await with_deadline(std::move(writing), end);
        EXPECT_TRUE(count || count.error() == errc::deadline_exceeded);
    }
}

/// Reads 8 KiB of a socket at a time, eight times in a second, until it is stopped.
inline task<> read_slowly(int socket) {
    std::array<std::byte, 8192> into;
    for (;;) {
        const result<> slept = co_await async_sleep(std::chrono::milliseconds{128} * patience);
        if (!slept) co_return;
        // The loop of an io_uring would receive ahead.
        static_cast<void>(::recv(socket, into.data(), into.size(), MSG_DONTWAIT));
    }
}

/// Expects that a peer which takes a little all the time is not late. The kernel tells a writer of
/// room when a third of its buffer is free, which takes this peer longer than the limit.
inline task<> expect_slow_is_not_late(any_stream& to, int peer) {
    http::detail::send_limit limit{std::chrono::milliseconds{1500} * patience};
    auto reading = spawn(read_slowly(peer));

    co_await write_on_and_on(to, limit, std::chrono::milliseconds{3500} * patience);

    EXPECT_FALSE(limit.is_exceeded());
    reading.request_stop();
    co_await reading;
}

/// Expects that a peer which takes nothing is late.
inline task<> expect_idle_is_late(any_stream& to) {
    http::detail::send_limit limit{std::chrono::milliseconds{50}};

    co_await write_on_and_on(to, limit, test_limit);

    EXPECT_TRUE(limit.is_exceeded());
}

} // namespace simplenet::v0::testing
