#include <simplenet/net/detail/local_byte_stream.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptor_messages.hpp"
#include "support/error_of.hpp"
#include "support/placed_file.hpp"
#include "support/raw_peer.hpp"
#include "support/temporary_directory.hpp"
#include "sys/calls.hpp"
#if SIMPLENET_SEAMS
#include "support/fault_plan.hpp"
#include "support/receive_counter.hpp"
#endif

#include <simplenet/blocking/local_listener.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/stream/send_file.hpp>
#include <simplenet/stream/transfer.hpp>

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <thread>

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
    return detail::sys::refuse_descriptors(testing::local_ends().first.get());
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
            auto reading = spawn(testing::collect(ours, got));
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

TEST_P(local_byte_stream_test, connecting_fails_and_waits_as_for_a_local_stream) {
    const testing::temporary_directory directory;
    const auto dead = or_throw(local_endpoint::parse(directory / "dead"));
    static_cast<void>(or_throw(blocking::local_listener::bind(dead))); // leaves the path behind
    auto full = or_throw(blocking::local_listener::bind(local_endpoint{}, {.backlog = 0}));
    const auto at = or_throw(full.local_endpoint());
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await detail::connect_for_bytes(dead)),
                  std::errc::connection_refused);
        EXPECT_EQ(error_of(co_await detail::connect_for_bytes(
                      or_throw(local_endpoint::parse(directory / "none")))),
                  std::errc::no_such_file_or_directory);
        const auto first = or_throw(co_await detail::connect_for_bytes(at));
        bool is_there = false;
        auto waiting = spawn(
            [&]() -> task<> { is_there = (co_await detail::connect_for_bytes(at)).has_value(); });
        co_await turns(3);
        EXPECT_FALSE(is_there);
        static_cast<void>(or_throw(full.accept()));
        co_await waiting;
        EXPECT_TRUE(is_there);
    });
}

// What the peer reads frees room, of which only a write that waits is told.
TEST_P(local_byte_stream_test, a_peer_that_reads_wakes_only_a_write_that_waits) {
    run([&]() -> task<> {
        local_byte_stream ours = co_await connect();
        std::string large(12'000, '-'); // of which io_uring would receive TCP's directly
        auto reading = spawn([&]() -> task<> {
            for (std::size_t got = 0; got < 3 * large.size();)
                got += or_throw(co_await ours.read_some(std::as_writable_bytes(std::span{large})));
            std::array<char, 8> buffer;
            EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 1U);
        });
        for (int round = 0; round < 3; ++round) {
            theirs().send(std::string(large.size(), 'x'));
            co_await turns(5);
        }
        const auto before = loop().metrics().completions;
        for (int round = 0; round < 5; ++round) {
            EXPECT_TRUE(co_await ours.write_some("x"));
            EXPECT_EQ(theirs().receive(1), "x");
            co_await turns(2);
        }
        // The perturbed kernel has events of its own.
        if (GetParam() != detail::simulated_backend) {
            EXPECT_EQ(loop().metrics().completions, before);
        }

        const std::string much(1'000'000, 'm');
        testing::placed_file file{testing::placed_bytes{1}};
        file.grow_to(much.size());
        auto writing = spawn([&]() -> task<> {
            EXPECT_TRUE(co_await async_write_all(ours, much));
            EXPECT_TRUE(co_await async_send_file(ours, file.fd(), 0, file.size()));
        });
        for (std::size_t got = 0; got < 2 * much.size();) {
            std::array<char, 10'000> piece;
            const auto count = ::recv(theirs().fd(), piece.data(), piece.size(), MSG_DONTWAIT);
            if (count > 0) got += static_cast<std::size_t>(count);
            co_await yield();
        }
        co_await writing;
        theirs().send("y");
        co_await reading;
    });
}

// A multishot receive of io_uring got every byte, but never the end.
TEST_P(local_byte_stream_test, the_end_behind_many_small_pieces_is_told) {
    for (int round = 0; round < 30; ++round) {
        run([&]() -> task<> {
            local_byte_stream ours = co_await connect();
            std::jthread peer{[&] {
                for (int piece = 0; piece < 300; ++piece)
                    theirs().send("x");
                theirs().close();
            }};
            std::size_t got = 0;
            std::array<char, 64> buffer;
            for (;;) {
                const auto count = co_await ours.read_some(buffer);
                if (!count) break;
                got += *count;
            }
            EXPECT_EQ(got, 300U);
        });
    }
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
    // An older kernel may have attached something: a second call finds that nothing is left.
    const std::size_t calls = are_refused_here() ? 1 : 2;
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
        EXPECT_EQ(asked.calls, GetParam() == backend::io_uring ? 0U : 10 * calls);
        EXPECT_EQ(asked.entries, GetParam() == backend::io_uring ? 10U : 0U);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, local_byte_stream_cost_test, testing::real_backends,
                         backend_name);
#endif

INSTANTIATE_TEST_SUITE_P(backends, local_byte_stream_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
