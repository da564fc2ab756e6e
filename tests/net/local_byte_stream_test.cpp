#include <simplenet/net/detail/local_byte_stream.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptor_messages.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"
#if SIMPLENET_SEAMS
#include "support/fault_plan.hpp"
#include "support/receive_counter.hpp"
#endif

#include <simplenet/blocking/local_listener.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/stream/transfer.hpp>

#include <array>
#include <cerrno>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace simplenet::v0 {
namespace {

using detail::local_byte_stream;
using testing::all_backends;
using testing::backend_name;
using testing::raw_peer;
using testing::turns;

/// Whether the kernel can refuse descriptors: Linux 6.16.
bool are_refused_here() {
    auto [ours, theirs] = testing::local_ends();
    constexpr int so_passrights = 83;
    const int off = 0;
    return ::setsockopt(ours.get(), SOL_SOCKET, so_passrights, &off, sizeof off) == 0;
}

class local_byte_stream_test : public testing::backend_test {
protected:
    /// Connects; the other end is `theirs_`.
    task<local_byte_stream> connect() {
        auto listener = or_throw(blocking::local_listener::bind(local_endpoint{}));
        auto made =
            or_throw(co_await detail::connect_for_bytes(or_throw(listener.local_endpoint())));
        theirs_.emplace(unique_fd{or_throw(listener.accept()).release()});
        co_return made;
    }
    raw_peer& theirs() { return *theirs_; }

    /// Three pieces; if the kernel accepts them, with descriptors at the first two.
    task<> get_pieces_with_descriptors(bool are_accepted) {
        const std::array<int, 1> fds{0};
        for (int when = 0; when < 3; ++when) {
            local_byte_stream ours = co_await connect();
            std::string got;
            auto reading = spawn([&]() -> task<> {
                std::array<char, 64> buffer;
                while (auto count = co_await ours.read_some(buffer))
                    got.append(buffer.data(), *count);
            });
            co_await turns(when);
            if (are_accepted) {
                testing::send_with(theirs(), "one ", fds);
                testing::send_with(theirs(), "two ", fds);
            } else {
                EXPECT_EQ(testing::try_to_send_with(theirs(), "one ", fds), EPERM);
                theirs().send("one ");
                theirs().send("two ");
            }
            theirs().send("three");
            while (got != "one two three")
                co_await yield();
            reading.request_stop();
            co_await reading;
        }
    }

private:
    std::optional<raw_peer> theirs_;
};

TEST_P(local_byte_stream_test, bytes_pass_both_ways_to_the_end) {
    run([&]() -> task<> {
        local_byte_stream ours = co_await connect();
        std::string text(100'000, '\0');
        auto reading =
            spawn([&]() -> task<> { EXPECT_TRUE(co_await async_read_exact(ours, text)); });
        co_await turns(2);
        const std::string sent = testing::noise(text.size(), 1);
        for (std::size_t at = 0; at < sent.size(); at += 10'000) {
            theirs().send(std::string_view{sent}.substr(at, 10'000));
            co_await turns(1);
        }
        co_await reading;
        EXPECT_TRUE(text == sent);

        EXPECT_TRUE(co_await async_write_all(ours, "back"));
        EXPECT_EQ(theirs().receive(4), "back");
        theirs().send("last");
        theirs().close();
        std::array<char, 64> buffer;
        EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 4U);
        EXPECT_EQ(error_of(co_await ours.read_some(buffer)), errc::end_of_stream);
    });
}

TEST_P(local_byte_stream_test, nobody_can_attach_descriptors) {
    run([&]() -> task<> { co_await get_pieces_with_descriptors(!are_refused_here()); });
}

TEST_P(local_byte_stream_test, a_stop_loses_no_byte) {
    run([&]() -> task<> {
        local_byte_stream ours = co_await connect();
        std::array<char, 64> buffer;
        std::size_t got = 0;
        for (int round = 0; round < 20; ++round) {
            auto reading = spawn([&]() -> task<> {
                if (const auto count = co_await ours.read_some(buffer)) got += *count;
            });
            co_await turns(round % 3);
            theirs().send("x");
            reading.request_stop();
            co_await reading;
        }
        while (got < 20)
            got += or_throw(co_await ours.read_some(buffer));
        EXPECT_EQ(got, 20U);
    });
}

#if SIMPLENET_SEAMS
TEST_P(local_byte_stream_test, an_older_kernel_drops_what_is_attached) {
    testing::fault_plan plan;
    plan.fail(testing::call::setsockopt, 0, ENOPROTOOPT, testing::from_then_on);
    run([&]() -> task<> { co_await get_pieces_with_descriptors(true); });
}

class local_byte_stream_cost_test : public local_byte_stream_test {};

TEST_P(local_byte_stream_cost_test, a_short_read_is_one_call_at_most) {
    if (!are_refused_here()) GTEST_SKIP() << "needs Linux 6.16";
    run([&]() -> task<> {
        local_byte_stream ours = co_await connect();
        std::array<char, 64> buffer;
        const auto read_sent = [&]() -> task<> {
            auto reading = spawn([&]() -> task<> { EXPECT_TRUE(co_await ours.read_some(buffer)); });
            co_await turns(3);
            theirs().send("bytes");
            co_await reading;
        };
        co_await read_sent(); // the loop knows it from now on
        testing::receive_counter asked;
        const detail::sys::intercepting now{asked};
        for (int round = 0; round < 10; ++round)
            co_await read_sent();
        EXPECT_EQ(asked.calls, GetParam() == backend::io_uring ? 0U : 10U);
        EXPECT_EQ(asked.entries, 0U);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, local_byte_stream_cost_test, testing::real_backends,
                         backend_name);
#endif

INSTANTIATE_TEST_SUITE_P(backends, local_byte_stream_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
