// The effect of a stop or a deadline on an operation: which one wins, and how much has moved.

#include <simplenet/io/detail/operation.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/blocking/tcp_stream.hpp>
#include <simplenet/coro/combinators.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/threads/with_stop.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <stop_token>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::next_event;
using testing::noise;
using testing::pass;
using testing::turns;
using clock = std::chrono::steady_clock;

class operation_stop_test : public testing::backend_test {};

// --- success beats a stop ------------------------------------------------------------------------

TEST_P(operation_stop_test, bytes_that_were_seen_beat_a_later_stop) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::array<char, 8> buffer{};
        result<std::size_t> first;
        result<std::size_t> second;
        auto reading = spawn([&]() -> task<> {
            first = co_await ours.read_some(buffer);
            second = co_await ours.read_some(buffer);
        });
        co_await turns(3);
        theirs.send("data");
        co_await next_event(loop());
        reading.request_stop(); // the read is on the ready list, after this task
        co_await reading;

        EXPECT_EQ(first.value_or(0), 4U);
        EXPECT_EQ(error_of(second), canceled);
    });
}

TEST_P(operation_stop_test, available_bytes_beat_a_deadline_that_has_passed) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::array<char, 8> buffer{};
        auto late = spawn([&]() -> task<> {
            co_await yield(); // the read waits
            theirs.send("data");
            testing::await(ours.native_handle(), POLLIN);
            pass(clock::now() + 100ms);
        });
        EXPECT_EQ((co_await with_timeout(ours.read_some(buffer), 100ms)).value_or(0), 4U);
        co_await late;

        auto later = spawn([&]() -> task<> {
            co_await turns(2);
            theirs.send("more");
            pass(clock::now() + 100ms);
        });
        EXPECT_EQ((co_await with_timeout(ours.receive(), 100ms)).value_or(received{}).size(), 4U);
        co_await later;
    });
}

TEST_P(operation_stop_test, available_bytes_beat_a_deadline_in_the_past) {
    auto [ours, theirs] = connect_raw();
    theirs.send("data");
    testing::await(ours.native_handle(), POLLIN);
    run([&]() -> task<> {
        std::array<char, 2> buffer{};
        const auto past = clock::now() - 1s;

        EXPECT_EQ((co_await with_deadline(ours.read_some(buffer), past)).value_or(0), 2U);
        EXPECT_EQ((co_await with_deadline(ours.read_some(buffer), past)).value_or(0), 2U);
        EXPECT_EQ(error_of(co_await with_deadline(ours.read_some(buffer), past)),
                  errc::deadline_exceeded);
    });
}

TEST_P(operation_stop_test, a_waiting_connection_beats_a_deadline_in_the_past) {
    auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    const endpoint at = or_throw(listener.local_endpoint());
    auto client = or_throw(blocking::tcp_stream::connect(at));
    testing::await(listener.native_handle(), POLLIN);
    run([&]() -> task<> {
        const auto past = clock::now() - 1s;

        EXPECT_TRUE(co_await with_deadline(listener.accept(), past));
        EXPECT_EQ(error_of(co_await with_deadline(listener.accept(), past)),
                  errc::deadline_exceeded);
    });
}

TEST_P(operation_stop_test, available_room_beats_a_deadline_that_has_passed) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    const std::size_t filled = [&] {
        std::size_t total = 0;
        const std::string block(65536, 'x');
        for (;;) {
            const ssize_t count =
                ::send(ours.native_handle(), block.data(), block.size(), MSG_NOSIGNAL);
            if (count < 0) return total;
            total += static_cast<std::size_t>(count);
        }
    }();
    run([&]() -> task<> {
        auto late = spawn([&]() -> task<> {
            co_await yield();
            EXPECT_EQ(theirs.receive(filled).size(), filled);
            testing::await(ours.native_handle(), POLLOUT);
            pass(clock::now() + 2ms);
        });
        EXPECT_EQ((co_await with_timeout(ours.write_some("data"), 1ms)).value_or(0), 4U);
        co_await late;
    });
}

TEST_P(operation_stop_test, exact_reads_say_how_much_moved_when_they_fail) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::string buffer(10, '?');
        theirs.send("abc");
        auto late = co_await with_timeout(async_read_exact(ours, buffer), 1ms);
        EXPECT_EQ(error_of(late), errc::deadline_exceeded);
        EXPECT_EQ(late.error().transferred, 3U);

        auto reading = spawn(
            [&]() -> task<transfer_result> { co_return co_await async_read_exact(ours, buffer); });
        theirs.send("defg");
        co_await turns(5);
        reading.request_stop();
        auto stopped = co_await reading;
        EXPECT_EQ(error_of(stopped), canceled);
        EXPECT_EQ(stopped.error().transferred, 4U);
        EXPECT_EQ(buffer.substr(0, 4), "defg");

        theirs.send("hi");
        theirs.shutdown_write();
        auto ended = co_await async_read_exact(ours, buffer);
        EXPECT_EQ(error_of(ended), errc::end_of_stream);
        EXPECT_EQ(ended.error().transferred, 2U);
    });
}

TEST_P(operation_stop_test, whole_writes_say_how_much_moved_when_they_fail) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        const std::string sent = noise(8 << 20);
        auto late = co_await with_timeout(async_write_all(ours, sent), 5ms);
        EXPECT_EQ(error_of(late), errc::deadline_exceeded);
        const std::size_t moved = late.error().transferred;
        EXPECT_GT(moved, 0U);
        EXPECT_LT(moved, sent.size());

        EXPECT_TRUE(theirs.receive(moved) == sent.substr(0, moved));
        EXPECT_EQ(theirs.peek(), -EAGAIN);
    });
}

// --- no byte is lost -----------------------------------------------------------------------------

TEST_P(operation_stop_test, no_byte_is_lost_by_reads_that_are_stopped_at_any_moment) {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        testing::dice dice{seed};
        auto [ours, theirs] = connect_raw();
        const std::string sent = noise(20000, seed);
        std::string got;
        run([&]() -> task<> {
            auto read_once = [&](std::size_t how) -> task<> {
                std::string buffer(1 + how * 7, '\0');
                if (how % 4 == 0) {
                    auto lease = co_await ours.receive();
                    if (lease) got += testing::text_of(*lease);
                } else if (how % 4 == 1) {
                    auto whole = co_await async_read_exact(ours, buffer);
                    got += buffer.substr(0, whole ? *whole : whole.error().transferred);
                } else if (how % 4 == 2) {
                    auto some = co_await with_timeout(ours.read_some(buffer), 1ns * how);
                    got += buffer.substr(0, some.value_or(0));
                } else {
                    auto some = co_await ours.read_some(buffer);
                    got += buffer.substr(0, some.value_or(0));
                }
            };
            std::size_t offset = 0;
            while (got.size() < sent.size()) {
                auto reading = spawn(read_once(dice.up_to(60)));
                for (std::size_t step = dice.up_to(3); step > 0; --step) {
                    co_await turns(static_cast<int>(dice.up_to(2)));
                    const std::size_t size = std::min(dice.up_to(200), sent.size() - offset);
                    theirs.send(std::string_view{sent}.substr(offset, size));
                    offset += size;
                }
                co_await turns(static_cast<int>(dice.up_to(3)));
                if (dice.one_in(2) && offset != sent.size())
                    theirs.send(std::string_view{sent}.substr(offset++, 1));
                reading.request_stop();
                if (dice.one_in(2) && offset != sent.size())
                    theirs.send(std::string_view{sent}.substr(offset++, 1));
                co_await reading;
            }
        });
        ASSERT_TRUE(got == sent); // not EQ: the texts are too long to print
    }
}

TEST_P(operation_stop_test, a_stream_is_usable_at_the_offset_that_a_stopped_write_reports) {
    for (std::uint32_t seed = 1; seed <= 10; ++seed) {
        testing::dice dice{seed};
        auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
        const std::string sent = noise(300000, seed);
        std::string got;
        run([&]() -> task<> {
            const_buffer rest = sent;
            auto take = [&] {
                std::string block(dice.up_to(8000) + 1, '\0');
                const ssize_t count = ::recv(theirs.fd(), block.data(), block.size(), MSG_DONTWAIT);
                if (count > 0) got.append(block, 0, static_cast<std::size_t>(count));
            };
            while (!rest.empty()) {
                auto writing = spawn([&]() -> task<transfer_result> {
                    const std::array<const_buffer, 3> parts{
                        rest.first(rest.size() / 3), const_buffer{}, rest.subspan(rest.size() / 3)};
                    if (dice.one_in(2)) {
                        co_return co_await async_write_all(ours,
                                                           std::span<const const_buffer>{parts});
                    }
                    co_return co_await async_write_all(ours, rest);
                });
                for (std::size_t step = dice.up_to(4); step > 0; --step) {
                    co_await turns(static_cast<int>(dice.up_to(2)));
                    take();
                }
                writing.request_stop();
                auto outcome = co_await writing;
                rest = rest.subspan(outcome ? *outcome : outcome.error().transferred);
                take();
            }
            EXPECT_TRUE(ours.shutdown_write());
        });
        got += theirs.receive(sent.size() - got.size());
        ASSERT_TRUE(got == sent); // not EQ: the texts are too long to print
    }
}

// --- stops from elsewhere ------------------------------------------------------------------------

TEST_P(operation_stop_test, a_stop_from_another_thread_ends_a_read) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::stop_source source;
        std::array<std::byte, 8> buffer;
        std::thread other{[&] { source.request_stop(); }};
        auto outcome = co_await with_stop(source.get_token(), ours.read_some(buffer));
        other.join();
        EXPECT_EQ(error_of(outcome), canceled);
    });
}

TEST_P(operation_stop_test, a_loser_of_when_any_that_read_bytes_returns_them) {
    run([&]() -> task<> {
        for (int round = 0; round < 50; ++round) {
            auto [left, first] = connect_raw();
            auto [right, second] = connect_raw();
            std::array<char, 8> a{};
            std::array<char, 8> b{};
            auto send_both = spawn([&]() -> task<> {
                co_await turns(round % 4);
                first.send("1");
                second.send("2");
            });
            auto race = when_any(left.read_some(a), right.read_some(b));
            auto outcome = co_await std::move(race);
            co_await send_both;

            // Bytes that were not delivered are still in their stream.
            const auto& [one, two] = outcome.values;
            if (!one) {
                EXPECT_EQ((co_await left.read_some(a)).value_or(0), 1U);
            }
            if (!two) {
                EXPECT_EQ((co_await right.read_some(b)).value_or(0), 1U);
            }
            EXPECT_EQ(a[0], '1');
            EXPECT_EQ(b[0], '2');
        }
    });
}

INSTANTIATE_TEST_SUITE_P(backends, operation_stop_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
