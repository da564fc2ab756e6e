// Closing, moving, destroying and releasing, which all sockets of the runtime have in common.

#include <simplenet/io/async_socket.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::next_event;
using testing::noise;
using testing::turns;
using testing::until;

class async_socket_test : public testing::backend_test {};

// --- close ---------------------------------------------------------------------------------------

TEST_P(async_socket_test, close_releases_the_descriptor_at_once_and_may_be_repeated) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        EXPECT_TRUE(co_await ours.write_some("x"));
        EXPECT_TRUE(ours.is_open());

        ours.close();
        EXPECT_EQ(ours.native_handle(), -1);
        EXPECT_FALSE(ours.is_open());
        ours.close();
        co_await ours.closed();
        ours.close();
        EXPECT_TRUE(co_await ours.closed());
    });
}

TEST_P(async_socket_test, close_works_before_any_loop_knows_the_socket) {
    auto [ours, theirs] = connect_raw();
    const int fd = ours.native_handle();

    ours.close();
    ours.close();

    EXPECT_EQ(ours.native_handle(), -1);
    EXPECT_FALSE(testing::is_open(fd));
    EXPECT_EQ(theirs.receive_to_the_end(), errc::end_of_stream);
    run([&]() -> task<> {
        EXPECT_TRUE(co_await ours.closed());
        EXPECT_EQ(error_of(co_await ours.write_some("x")), std::errc::bad_file_descriptor);
    });
}

TEST_P(async_socket_test, closing_an_idle_socket_is_visible_to_the_peer_at_once) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        EXPECT_TRUE(co_await ours.write_some("x"));
        ours.close();

        EXPECT_EQ(theirs.receive(2), "x"); // waits for the end while the loop does not turn
        EXPECT_EQ(theirs.peek(), 0);
        co_return;
    });
}

TEST_P(async_socket_test, closing_with_a_read_in_flight_is_visible_to_the_peer_at_once) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto reading = spawn([&]() -> task<> {
            std::array<std::byte, 8> buffer;
            EXPECT_EQ(error_of(co_await ours.read_some(buffer)), canceled);
        });
        co_await turns(3);
        ours.close();

        EXPECT_EQ(theirs.receive_to_the_end(), errc::end_of_stream); // while the loop does not turn
        co_await reading;
    });
}

TEST_P(async_socket_test, a_read_in_flight_ends_in_a_later_turn_before_the_close_completes) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        const int fd = ours.native_handle();
        std::vector<std::string> order;
        auto reading = spawn([&]() -> task<> {
            std::array<std::byte, 8> buffer;
            // The shutdown(2) of the close, on its own, would look like the end of the stream.
            EXPECT_EQ(error_of(co_await ours.read_some(buffer)), canceled);
            order.push_back("read");
        });
        co_await turns(3);
        ours.close();
        order.push_back("close returned");
        EXPECT_TRUE(co_await ours.closed());
        order.push_back("closed");
        EXPECT_FALSE(testing::is_open(fd));
        co_await reading;

        EXPECT_THAT(order, ::testing::ElementsAre("close returned", "read", "closed"));
    });
}

TEST_P(async_socket_test, close_ends_receive_exact_reads_and_accept_as_canceled) {
    auto [one, first] = connect_raw();
    auto [two, second] = connect_raw();
    auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    run([&]() -> task<> {
        auto receiving =
            spawn([&]() -> task<> { EXPECT_EQ(error_of(co_await one.receive()), canceled); });
        auto exact = spawn([&]() -> task<> {
            std::array<std::byte, 8> buffer;
            auto count = co_await async_read_exact(two, buffer);
            EXPECT_EQ(error_of(count), canceled);
            EXPECT_EQ(count.error().transferred, 3U);
        });
        auto accepting =
            spawn([&]() -> task<> { EXPECT_EQ(error_of(co_await listener.accept()), canceled); });
        second.send("abc");
        co_await turns(5);
        one.close();
        two.close();
        listener.close();
        co_await receiving;
        co_await exact;
        co_await accepting;
        EXPECT_TRUE(co_await listener.closed());
    });
}

// The backend decides whether the read has received them by then; if so, success beats the close.
TEST_P(async_socket_test, a_read_whose_bytes_were_seen_delivers_them_or_is_canceled_by_close) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto reading = spawn([&]() -> task<> {
            std::array<std::byte, 8> buffer;
            const auto count = co_await ours.read_some(buffer);
            if (count) {
                EXPECT_EQ(*count, 1U);
            } else {
                EXPECT_EQ(error_of(count), canceled);
            }
        });
        co_await turns(3);
        theirs.send("x");
        co_await next_event(loop());
        ours.close();
        co_await reading;
        co_await ours.closed();
    });
}

TEST_P(async_socket_test, closing_with_a_blocked_write_says_what_the_peer_will_receive) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    const std::string sent = noise(8 << 20);
    std::optional<transfer_result> outcome;
    run([&]() -> task<> {
        auto writing = spawn([&]() -> task<> { outcome = co_await async_write_all(ours, sent); });
        co_await turns(5);
        ours.close();
        EXPECT_FALSE(outcome);
        EXPECT_TRUE(co_await ours.closed());
        co_await writing;
    });
    ASSERT_TRUE(outcome);
    EXPECT_EQ(error_of(*outcome), canceled);
    const std::size_t moved = outcome->error().transferred;
    EXPECT_GT(moved, 0U);
    EXPECT_TRUE(theirs.receive(sent.size()) == sent.substr(0, moved));
    EXPECT_EQ(theirs.receive_to_the_end(), errc::end_of_stream);
}

TEST_P(async_socket_test, a_write_that_found_no_room_is_canceled_by_close) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        const std::string much(8 << 20, 'x');
        EXPECT_FALSE(co_await with_timeout(async_write_all(ours, much), 2ms)); // fills the socket
        auto writing = spawn(
            [&]() -> task<> { EXPECT_EQ(error_of(co_await ours.write_some("x")), canceled); });
        co_await turns(3);
        ours.close();
        co_await writing;
        EXPECT_TRUE(co_await ours.closed());
    });
}

TEST_P(async_socket_test, closing_with_a_reader_and_a_blocked_writer_ends_both) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        const std::string much(8 << 20, 'x');
        int ended = 0;
        auto reading = spawn([&]() -> task<> {
            EXPECT_EQ(error_of(co_await ours.receive()), canceled);
            ++ended;
        });
        auto writing = spawn([&]() -> task<> {
            EXPECT_EQ(error_of(co_await async_write_all(ours, much)), canceled);
            ++ended;
        });
        co_await turns(5);
        ours.close();
        EXPECT_EQ(ended, 0);
        co_await ours.closed();
        EXPECT_EQ(ended, 2);
        co_await reading;
        co_await writing;
    });
    theirs.receive_to_the_end();
}

TEST_P(async_socket_test, close_wakes_all_its_waiters) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        int told = 0;
        auto wait = [&]() -> task<> {
            EXPECT_TRUE(co_await ours.closed());
            ++told;
        };
        auto first = spawn(wait());
        auto second = spawn(wait());
        co_await turns(2);
        EXPECT_EQ(told, 0);
        ours.close();
        co_await first;
        co_await second;
        EXPECT_EQ(told, 2);
    });
}

TEST_P(async_socket_test, a_stop_ends_only_the_wait_for_the_close) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await with_timeout(ours.closed(), 1ms)), errc::deadline_exceeded);
        auto waiting =
            spawn([&]() -> task<> { EXPECT_EQ(error_of(co_await ours.closed()), canceled); });
        co_await turns(2);
        waiting.request_stop();
        co_await waiting;

        EXPECT_TRUE(ours.is_open());
        EXPECT_TRUE(co_await ours.write_some("still open"));
    });
    EXPECT_EQ(theirs.receive(10), "still open");
}

TEST_P(async_socket_test, operations_after_close_fail_with_bad_file_descriptor) {
    auto [ours, theirs] = connect_raw();
    auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    run([&]() -> task<> {
        std::array<std::byte, 8> buffer;
        EXPECT_TRUE(co_await ours.write_some("x"));
        ours.close();
        listener.close();
        constexpr auto closed = std::errc::bad_file_descriptor;
        EXPECT_EQ(error_of(co_await ours.read_some(buffer)), closed);
        EXPECT_EQ(error_of(co_await ours.receive()), closed);
        EXPECT_EQ(error_of(co_await async_write_all(ours, "x")), closed);
        EXPECT_EQ(error_of(co_await listener.accept()), closed);
        EXPECT_EQ(error_of(co_await std::move(ours).release()), closed);
    });
}

TEST_P(async_socket_test, sockets_that_reuse_a_number_get_nothing_of_the_previous_one) {
    run([&]() -> task<> {
        for (int round = 0; round < 300; ++round) {
            auto [ours, theirs] = connect_raw();
            auto reading = spawn([&]() -> task<> {
                std::array<std::byte, 8> buffer;
                static_cast<void>(co_await ours.read_some(buffer));
            });
            co_await turns(round % 4);
            if (round % 2 == 0) theirs.send("stale");
            ours.close();
            if (round % 3 == 0) theirs.close();
            co_await reading;

            auto [next, peer] = connect_raw(); // often gets the same numbers
            std::array<char, 8> buffer{};
            EXPECT_EQ(error_of(co_await with_timeout(next.read_some(buffer), 0s)),
                      errc::deadline_exceeded);
            peer.send("new");
            auto count = co_await next.read_some(buffer);
            EXPECT_EQ(std::string_view(buffer.data(), count.value_or(0)), "new");
        }
    });
}

// They must not read the bytes of the socket that reuses the number, nor write into it.
TEST_P(async_socket_test, awaitables_that_outlive_their_socket_reach_no_other_one) {
    run([&]() -> task<> {
        for (const bool used : {false, true}) {
            std::array<std::byte, 8> buffer;
            auto [ours, theirs] = connect_raw();
            auto stream = std::make_unique<tcp_stream>(std::move(ours));
            if (used) {
                EXPECT_TRUE(co_await stream->write_some("x"));
            }
            auto reading = stream->read_some(buffer);
            auto reading_all = async_read_exact(*stream, buffer);
            auto receiving = stream->receive();
            auto writing = stream->write_some("stale");
            auto closed = stream->closed();
            stream.reset();
            co_await turns(3);

            std::vector<testing::raw_connection<tcp_stream>> others;
            for (int count = 0; count < 100; ++count) {
                others.push_back(connect_raw());
                EXPECT_TRUE(co_await others.back().ours.write_some("y"));
                others.back().theirs.send("secret");
            }

            constexpr auto gone = std::errc::bad_file_descriptor;
            EXPECT_EQ(error_of(co_await reading), gone);
            EXPECT_EQ(error_of(co_await reading_all), gone);
            EXPECT_EQ(error_of(co_await receiving), gone);
            EXPECT_EQ(error_of(co_await writing), gone);
            EXPECT_TRUE(co_await closed);
            for (auto& each : others)
                each.ours.close();
            for (auto& each : others)
                EXPECT_EQ(each.theirs.receive(2), "y");
        }
    });
}

TEST_P(async_socket_test, an_accept_that_outlives_its_listener_takes_no_connection_of_another) {
    run([&]() -> task<> {
        auto listener =
            std::make_unique<tcp_listener>(or_throw(tcp_listener::bind(endpoint::loopback(0))));
        EXPECT_FALSE(co_await with_timeout(listener->accept(), 0s));
        auto accepting = listener->accept();
        listener.reset();
        co_await turns(3);
        auto other = or_throw(tcp_listener::bind(endpoint::loopback(0)));
        EXPECT_FALSE(co_await with_timeout(other.accept(), 0s));

        EXPECT_EQ(error_of(co_await accepting), std::errc::bad_file_descriptor);
    });
}

TEST_P(async_socket_test, the_loop_counts_its_descriptors_and_operations) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        EXPECT_EQ(loop().metrics().open_descriptors, 0U);
        auto reading = spawn([&]() -> task<> {
            std::array<std::byte, 8> buffer;
            static_cast<void>(co_await ours.read_some(buffer));
        });
        co_await turns(2);
        EXPECT_EQ(loop().metrics().open_descriptors, 1U);
        EXPECT_EQ(loop().metrics().live_operations, 1U);
        ours.close();
        co_await ours.closed();
        EXPECT_EQ(loop().metrics().open_descriptors, 0U);
        EXPECT_EQ(loop().metrics().live_operations, 0U);
        co_await reading;
    });
}

// --- destruction and moving ----------------------------------------------------------------------

TEST_P(async_socket_test, destroying_a_stream_ends_what_is_in_flight) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        const std::string much(8 << 20, 'x');
        std::optional<tcp_stream> stream{std::move(ours)};
        int ended = 0;
        auto reading = spawn([&]() -> task<> {
            EXPECT_EQ(error_of(co_await stream->receive()), canceled);
            ++ended;
        });
        auto writing = spawn([&]() -> task<> {
            EXPECT_EQ(error_of(co_await async_write_all(*stream, much)), canceled);
            ++ended;
        });
        co_await turns(5);
        stream.reset();
        EXPECT_EQ(ended, 0);
        co_await reading;
        co_await writing;
        EXPECT_EQ(theirs.receive_to_the_end(), errc::end_of_stream);
    });
    EXPECT_EQ(loop().metrics().open_descriptors, 0U);
}

TEST_P(async_socket_test, a_loop_keeps_running_until_a_destroyed_stream_is_closed) {
    auto [ours, theirs] = connect_raw();
    const int fd = ours.native_handle();
    run([&]() -> task<> {
        tcp_stream stream = std::move(ours);
        EXPECT_EQ(error_of(co_await with_timeout(stream.receive(), 1ms)), errc::deadline_exceeded);
    });
    EXPECT_FALSE(testing::is_open(fd));
    EXPECT_EQ(loop().metrics().open_descriptors, 0U);
}

TEST_P(async_socket_test, a_stream_may_move_with_operations_in_flight) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        const std::string sent = noise(1 << 20);
        std::array<char, 8> buffer{};
        auto reading = spawn(
            [&]() -> task<> { EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 4U); });
        auto writing = spawn([&]() -> task<> {
            EXPECT_EQ((co_await async_write_all(ours, sent)).value_or(0), sent.size());
        });
        co_await turns(3);
        tcp_stream moved = std::move(ours);
        EXPECT_EQ(ours.native_handle(), -1); // NOLINT(bugprone-use-after-move)
        auto boxed = std::make_unique<tcp_stream>(std::move(moved));

        theirs.send("ping");
        co_await reading;
        std::string got;
        while (got.size() < sent.size()) {
            std::array<char, 65536> block;
            const ssize_t count = ::recv(theirs.fd(), block.data(), block.size(), MSG_DONTWAIT);
            if (count > 0) got.append(block.data(), static_cast<std::size_t>(count));
            co_await yield();
        }
        co_await writing;
        EXPECT_TRUE(got == sent);
        EXPECT_TRUE(co_await boxed->write_some("after"));
    });
    EXPECT_EQ(theirs.receive(5), "after");
}

TEST_P(async_socket_test, assigning_over_a_stream_closes_what_it_held) {
    auto [one, first] = connect_raw();
    auto [two, second] = connect_raw();
    run([&]() -> task<> {
        auto reading = spawn([&]() -> task<> {
            std::array<std::byte, 8> buffer;
            EXPECT_EQ(error_of(co_await one.read_some(buffer)), canceled);
        });
        co_await turns(2);
        one = std::move(two);
        co_await reading;
        EXPECT_EQ(first.receive_to_the_end(), errc::end_of_stream);
        EXPECT_TRUE(co_await one.write_some("x"));
    });
    EXPECT_EQ(second.receive(1), "x");
}

TEST_P(async_socket_test, a_stream_that_outlives_its_loop_has_been_closed_by_it) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> { EXPECT_TRUE(co_await ours.write_some("x")); });
    destroy_loop();

    EXPECT_EQ(ours.native_handle(), -1);
    EXPECT_EQ(theirs.receive_to_the_end(), errc::end_of_stream);
    ours.close();
    tcp_stream moved = std::move(ours);
}

TEST_P(async_socket_test, a_stream_never_used_outlives_a_loop_open) {
    auto [ours, theirs] = connect_raw();
    run([]() -> task<> { co_return; });
    destroy_loop();

    EXPECT_TRUE(ours.is_open());
}

// --- release -------------------------------------------------------------------------------------

TEST_P(async_socket_test, release_takes_unread_bytes_to_another_loop) {
    auto [ours, theirs] = connect_raw();
    const std::string sent = noise(5000);
    std::string got;
    std::optional<tcp_stream::released> left;
    run([&]() -> task<> {
        std::array<char, 10> buffer;
        auto reading = ours.read_some(buffer);
        theirs.send(sent);
        auto count = co_await std::move(reading);
        got.append(buffer.data(), count.value_or(0));
        auto outcome = co_await std::move(ours).release();
        EXPECT_TRUE(outcome);
        if (outcome) left.emplace(*std::move(outcome));
        EXPECT_EQ(loop().metrics().open_descriptors, 0U);
    });
    ASSERT_TRUE(left);
    EXPECT_EQ(ours.native_handle(), -1);
    got.append(reinterpret_cast<const char*>(left->unread.data()), left->unread.size());

    remake_loop();
    tcp_stream again{std::move(left->socket)};
    run([&]() -> task<> {
        std::string rest(sent.size() - got.size(), '\0');
        EXPECT_TRUE(co_await async_read_exact(again, rest));
        got += rest;
        EXPECT_TRUE(co_await again.write_some("back"));
    });
    EXPECT_TRUE(got == sent);
    EXPECT_EQ(theirs.receive(4), "back");
}

TEST_P(async_socket_test, release_is_invisible_to_the_peer) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::array<std::byte, 8> buffer;
        static_cast<void>(co_await with_timeout(ours.read_some(buffer), 1ms));
        auto left = co_await std::move(ours).release();
        EXPECT_TRUE(left);
        if (!left) co_return;
        EXPECT_EQ(theirs.peek(), -EAGAIN);
        theirs.send("to the released one");
        testing::await(left->socket.native_handle(), POLLIN);
        EXPECT_EQ(left->socket.read_some(buffer).value_or(0), 8U);
    });
}

TEST_P(async_socket_test, a_released_socket_can_return_to_the_same_loop) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::array<std::byte, 8> buffer;
        for (int round = 0; round < 5; ++round) {
            static_cast<void>(co_await with_timeout(ours.read_some(buffer), 1ms));
            auto left = co_await std::move(ours).release();
            EXPECT_TRUE(left);
            if (!left) co_return;
            EXPECT_TRUE(left->unread.empty());
            ours = tcp_stream{std::move(left->socket)};
            theirs.send("again");
            EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 5U);
        }
    });
}

TEST_P(async_socket_test, a_socket_without_a_loop_is_released_at_once) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto left = co_await std::move(ours).release();
        EXPECT_TRUE(left);
        if (left) {
            EXPECT_TRUE(left->socket.write_some("x"));
        }
    });
    EXPECT_EQ(theirs.receive(1), "x");
}

INSTANTIATE_TEST_SUITE_P(backends, async_socket_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
