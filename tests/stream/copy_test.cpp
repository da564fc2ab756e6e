#include <simplenet/stream/copy.hpp>

#include "support/backend_test.hpp"
#include "support/copy_by_splice.hpp"
#include "support/copy_parts.hpp"
#include "support/coroutines.hpp"
#include "support/descriptor_limit.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/time/deadline.hpp>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::connect_raw_local;
using testing::noise;
using testing::piecemeal_stream;
using testing::readable_at;
using testing::turns;
using testing::until;

static_assert(detail::leasing_reader<tcp_stream> && detail::leasing_reader<local_stream>);

static_assert(!detail::leasing_reader<piecemeal_stream>);

class copy_test : public testing::backend_test {};

TEST_P(copy_test, everything_arrives_and_is_counted_through_small_sockets) {
    for (const int size : {0, 4096}) {
        auto [from, source] = connect_raw({.ours = size, .theirs = size});
        auto [to, sink] = connect_raw_local({.ours = size, .theirs = size});
        const std::string sent = noise(3'000'000);
        std::string got;
        std::thread sending{[&] {
            source.send(sent);
            source.shutdown_write();
        }};
        std::thread receiving{[&] { got = sink.receive(sent.size()); }};
        run([&]() -> task<> {
            EXPECT_EQ((co_await async_copy(from, to)).value_or(0), sent.size());
        });
        sending.join();
        receiving.join();
        EXPECT_TRUE(got == sent);
    }
}

TEST_P(copy_test, pieces_of_any_size_arrive) {
    for (std::uint32_t seed = 1; seed <= 5; ++seed) {
        testing::dice dice{seed};
        auto [from, source] = connect_raw();
        auto [to, sink] = connect_raw();
        const std::string sent = noise(2'000'000, seed);
        std::string got;
        std::thread receiving{[&] { got = sink.receive(sent.size()); }};
        run([&]() -> task<> {
            auto copying = spawn(async_copy(from, to));
            for (std::size_t at = 0; at < sent.size();) {
                const std::size_t most = dice.one_in(3) ? 200'000 : 5000;
                const std::size_t size = std::min(dice.up_to(most), sent.size() - at);
                source.send(std::string_view{sent}.substr(at, size));
                at += size;
                co_await turns(static_cast<int>(dice.up_to(3)));
            }
            source.shutdown_write();
            EXPECT_EQ((co_await copying).value_or(0), sent.size());
        });
        receiving.join();
        EXPECT_TRUE(got == sent);
    }
}

TEST_P(copy_test, bytes_are_passed_on_before_more_arrive) {
    auto [from, source] = connect_raw();
    auto [to, sink] = connect_raw();
    run([&]() -> task<> {
        auto copying = spawn(async_copy(from, to));
        for (const char* word : {"one", "two", "three"}) {
            source.send(word);
            co_await until([&] { return sink.peek() > 0; });
            EXPECT_EQ(sink.receive(std::string_view{word}.size()), word);
        }
        source.shutdown_write();
        EXPECT_EQ((co_await copying).value_or(0), 11U);
        EXPECT_EQ(sink.peek(), -EAGAIN); // the end is not passed on
    });
}

TEST_P(copy_test, an_error_of_the_reader_is_reported_with_the_bytes_moved) {
    auto [from, source] = connect_raw();
    auto [to, sink] = connect_raw();
    run([&]() -> task<> {
        auto copying = spawn(async_copy(from, to));
        source.send("abc");
        co_await until([&] { return sink.peek() > 0; });
        source.reset();
        const auto outcome = co_await copying;
        EXPECT_EQ(error_of(outcome), std::errc::connection_reset);
        EXPECT_EQ(outcome.error().transferred, 3U);
    });
}

TEST_P(copy_test, an_error_of_the_writer_is_reported_with_the_bytes_it_took) {
    auto [from, source] = connect_raw();
    piecemeal_stream to{"", 13};
    source.send(noise(100));
    run([&]() -> task<> {
        const auto outcome = co_await async_copy(from, to);
        EXPECT_EQ(error_of(outcome), std::errc::no_buffer_space);
        EXPECT_EQ(outcome.error().transferred, 13U);
    });
}

TEST_P(copy_test, any_streams_can_be_copied) {
    piecemeal_stream from{noise(1000)};
    piecemeal_stream to{""};
    run([&]() -> task<> { EXPECT_EQ((co_await async_copy(from, to)).value_or(0), 1000U); });
    EXPECT_EQ(to.written(), noise(1000));
}

TEST_P(copy_test, a_stop_while_it_waits_for_the_reader_loses_nothing) {
    auto [from, source] = connect_raw();
    auto [to, sink] = connect_raw();
    run([&]() -> task<> {
        auto copying = spawn(async_copy(from, to));
        source.send("abc");
        co_await until([&] { return sink.peek() > 0; });
        copying.request_stop();
        const auto outcome = co_await copying;
        EXPECT_EQ(error_of(outcome), std::errc::operation_canceled);
        EXPECT_EQ(outcome.error().transferred, 3U);
        source.send("def");
        std::string rest(3, '\0');
        EXPECT_TRUE(co_await async_read_exact(from, rest));
        EXPECT_EQ(rest, "def");
    });
}

TEST_P(copy_test, a_stop_while_it_waits_for_the_writer_counts_to_the_byte) {
    auto [from, source] = connect_raw();
    auto [to, sink] = connect_raw_local({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        auto copying = spawn(async_copy(from, to));
        source.send(std::string(200'000, 'x'));
        co_await turns(20); // the sink is full
        copying.request_stop();
        const auto outcome = co_await copying;
        EXPECT_EQ(error_of(outcome), std::errc::operation_canceled);
        EXPECT_GT(outcome.error().transferred, 0U);
        EXPECT_EQ(outcome.error().transferred, readable_at(sink));
    });
}

// Between sockets a large amount passes through a pipe (splice(2)), which a stop leaves half full.
TEST_P(copy_test, a_stop_during_a_large_copy_counts_to_the_byte_and_affects_no_other) {
    for (int round = 0; round < 3; ++round) {
        auto [from, source] = connect_raw();
        auto [to, sink] = connect_raw_local({.ours = 65536, .theirs = 65536});
        const std::string sent = noise(8 << 20, static_cast<std::uint32_t>(round));
        run([&]() -> task<> {
            auto copying = spawn(async_copy(from, to));
            std::size_t offered = 0;
            std::string got;
            while (got.size() < 3U << 20U) { // slower than the source, so that much is available
                std::string some(10'000, '\0');
                const ssize_t count = ::recv(sink.fd(), some.data(), some.size(), MSG_DONTWAIT);
                if (count > 0) got.append(some, 0, static_cast<std::size_t>(count));
                const ssize_t sending =
                    ::send(source.fd(), sent.data() + offered, sent.size() - offered, MSG_DONTWAIT);
                if (sending > 0) offered += static_cast<std::size_t>(sending);
                co_await turns(2);
            }
            copying.request_stop();
            const auto outcome = co_await copying;
            EXPECT_EQ(error_of(outcome), std::errc::operation_canceled);
            EXPECT_EQ(outcome.error().transferred, got.size() + readable_at(sink));
            EXPECT_TRUE(sent.starts_with(got));
        });
    }
}

TEST_P(copy_test, without_descriptors_for_a_pipe_the_bytes_are_copied) {
    auto [from, source] = connect_raw();
    auto [to, sink] = connect_raw();
    const std::string sent = noise(3 << 20);
    std::string got;
    std::thread sending{[&] {
        source.send(sent);
        source.shutdown_write();
    }};
    std::thread receiving{[&] { got = sink.receive(sent.size()); }};
    run([&]() -> task<> {
        co_await turns(3);
        const testing::descriptor_limit none{};
        EXPECT_EQ((co_await async_copy(from, to)).value_or(0), sent.size());
    });
    sending.join();
    receiving.join();
    EXPECT_TRUE(got == sent);
}

TEST_P(copy_test, a_peer_that_closes_during_a_large_copy_is_an_error_and_no_signal) {
    auto [from, source] = connect_raw();
    auto [to, sink] = connect_raw();
    std::thread sending{[&] {
        const std::string block(1 << 20, 'x');
        while (::send(source.fd(), block.data(), block.size(), MSG_NOSIGNAL) > 0) {
        }
    }};
    std::thread receiving{[&] {
        static_cast<void>(sink.receive(5 << 20));
        sink.reset();
    }};
    run([&]() -> task<> {
        const auto outcome = co_await async_copy(from, to);
        EXPECT_TRUE(error_of(outcome) == std::errc::connection_reset ||
                    error_of(outcome) == std::errc::broken_pipe);
        from.close();
    });
    sending.join();
    receiving.join();
}

TEST_P(copy_test, copies_that_cannot_write_leave_receive_buffers_to_others) {
    remake_loop({.receive_pool = 65536});
    std::vector<testing::raw_connection<tcp_stream>> sources;
    std::vector<testing::raw_connection<local_stream>> sinks;
    for (int count = 0; count < 12; ++count) {
        sources.push_back(connect_raw());
        sinks.push_back(connect_raw_local({.ours = 4096, .theirs = 4096}));
    }
    auto [other, peer] = connect_raw();
    run([&]() -> task<> {
        std::vector<join_handle<transfer_result>> copies;
        for (std::size_t at = 0; at < sources.size(); ++at) {
            copies.push_back(spawn(async_copy(sources[at].ours, sinks[at].ours)));
            sources[at].theirs.send(std::string(40'000, 'x'));
        }
        co_await turns(50); // every sink is full
        peer.send("still here");
        const auto lease = co_await with_timeout(other.receive(), testing::test_limit / 2);
        EXPECT_TRUE(lease);
        for (auto& copy : copies) {
            copy.request_stop();
            static_cast<void>(co_await copy);
        }
    });
}

TEST_P(copy_test, a_busy_copy_lets_others_run) {
    auto [from, source] = connect_raw();
    auto [to, sink] = connect_raw();
    std::thread sending{[&] {
        const std::string block(1 << 20, 'x');
        for (int count = 0; count < 64; ++count)
            source.send(block);
        source.shutdown_write();
    }};
    std::thread receiving{[&] { static_cast<void>(sink.receive(64U << 20U)); }};
    run([&]() -> task<> {
        auto copying = spawn(async_copy(from, to));
        int rounds = 0;
        while (!copying.done()) {
            co_await yield();
            ++rounds;
        }
        EXPECT_GE(rounds, 32);
        EXPECT_EQ((co_await copying).value_or(0), 64U << 20U);
    });
    sending.join();
    receiving.join();
}

TEST_P(copy_test, a_loop_that_ends_ends_its_copies) {
    for (int polls = 0; polls < 5; ++polls) {
        auto [a, left] = connect_raw();
        auto [b, right] = connect_raw_local({.ours = 4096, .theirs = 4096});
        left.send(std::string(100'000, 'x'));
        loop().spawn([](tcp_stream from, local_stream to) -> task<> {
            const auto outcome = co_await async_copy_bidirectional(from, to);
            EXPECT_EQ(error_of(outcome), std::errc::operation_canceled);
        }(std::move(a), std::move(b)));
        for (int count = 0; count < polls; ++count)
            loop().poll();
        remake_loop();
    }
}

INSTANTIATE_TEST_SUITE_P(backends, copy_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
