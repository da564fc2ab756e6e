// The end of a connection: half-closes and resets, also those reported by a released socket.

#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/time/sleep.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/blocking/tcp_stream.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/stream/transfer.hpp>

#include <array>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::connected_pair;
using testing::turns;
using clock = std::chrono::steady_clock;

class tcp_stream_end_test : public testing::backend_test {
protected:
    /// Runs `end` in the turn in which bytes arrive, and more entries are made than io_uring's
    /// queue has room for: it has handed the bytes over, and the loop has not seen them yet.
    template <class End>
    void end_as_bytes_arrive(testing::raw_connection<tcp_stream>& connection, const End& end) {
        std::vector<testing::raw_connection<local_stream>> others;
        for (int each = 0; each < 12; ++each)
            others.push_back(testing::connect_raw_local());
        const auto send = [&]() -> task<> {
            connection.theirs.send("second");
            co_return;
        };
        const auto read = [](local_stream& stream) -> task<> {
            std::array<std::byte, 1> byte{};
            EXPECT_TRUE(co_await stream.read_some(byte));
        };
        run([&]() -> task<> {
            connection.theirs.send("first");
            EXPECT_TRUE(co_await connection.ours.receive());
            task_group reading;
            auto sending = loop().spawn(send);
            for (auto& each : others)
                reading.spawn(read(each.ours));
            auto ending = loop().spawn(end);
            co_await std::move(sending);
            co_await std::move(ending);
            for (auto& each : others)
                each.theirs.send("-");
            co_await reading.join();
        });
    }
};

// --- half-close ----------------------------------------------------------------------------------

TEST_P(tcp_stream_end_test, reading_continues_after_shutdown_write) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        EXPECT_TRUE(co_await ours.write_some("request"));
        EXPECT_TRUE(ours.shutdown_write());
        EXPECT_EQ(theirs.receive(100), "request");
        EXPECT_EQ(error_of(co_await ours.write_some("x")), std::errc::broken_pipe);

        theirs.send("answer");
        std::array<std::byte, 16> buffer;
        EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 6U);
    });
}

TEST_P(tcp_stream_end_test, writing_continues_after_the_peer_shut_down) {
    auto [ours, theirs] = connect_raw();
    theirs.send("request");
    theirs.shutdown_write();
    run([&]() -> task<> {
        std::array<std::byte, 16> buffer;
        EXPECT_TRUE(co_await ours.read_some(buffer));
        EXPECT_EQ(error_of(co_await ours.read_some(buffer)), errc::end_of_stream);
        EXPECT_TRUE(co_await async_write_all(ours, "answer"));
    });
    EXPECT_EQ(theirs.receive(6), "answer");
}

TEST_P(tcp_stream_end_test, a_stream_whose_peer_shut_down_does_not_make_the_loop_spin) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    theirs.shutdown_write();
    run([&]() -> task<> {
        std::array<std::byte, 16> buffer;
        EXPECT_EQ(error_of(co_await ours.read_some(buffer)), errc::end_of_stream);
        const std::string much(8 << 20, 'x');
        auto writing = spawn([&]() -> task<> {
            EXPECT_EQ(error_of(co_await async_write_all(ours, much)), canceled);
        });
        co_await turns(10);
        const auto before = loop().metrics().turns;
        co_await async_sleep(30ms);
        EXPECT_LT(loop().metrics().turns - before, 10U);
        writing.request_stop();
        co_await writing;
    });
}

TEST_P(tcp_stream_end_test, shutdown_write_of_a_dead_connection_is_an_error) {
    auto [ours, theirs] = connect_raw();
    theirs.reset();
    run([&]() -> task<> {
        std::array<std::byte, 16> buffer;
        EXPECT_EQ(error_of(co_await ours.read_some(buffer)), std::errc::connection_reset);
        EXPECT_EQ(error_of(ours.shutdown_write()), std::errc::not_connected);
    });
}

// --- resets --------------------------------------------------------------------------------------

TEST_P(tcp_stream_end_test, a_reset_ends_a_read_in_flight) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::array<std::byte, 16> buffer;
        auto later = spawn([&]() -> task<> {
            co_await turns(3);
            theirs.reset();
        });
        EXPECT_EQ(error_of(co_await ours.read_some(buffer)), std::errc::connection_reset);
        co_await later;
    });
}

TEST_P(tcp_stream_end_test, bytes_received_before_a_reset_are_delivered_first) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::string got;
        std::error_code end;
        auto reading = spawn([&]() -> task<> {
            std::array<char, 4> buffer;
            for (;;) {
                auto count = co_await ours.read_some(buffer);
                if (!count) {
                    end = count.error();
                    break;
                }
                got.append(buffer.data(), *count);
                co_await turns(3); // during which the reset arrives
            }
        });
        co_await turns(2);
        theirs.send("0123456789");
        co_await turns(2);
        EXPECT_GT(got.size(), 0U);
        theirs.reset();
        co_await reading;

        EXPECT_EQ(got, "0123456789");
        EXPECT_EQ(end, std::errc::connection_reset);
    });
}

TEST_P(tcp_stream_end_test, a_reset_ends_a_write_that_waits_for_room) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        const std::string much(8 << 20, 'x');
        auto writing = spawn(
            [&]() -> task<transfer_result> { co_return co_await async_write_all(ours, much); });
        co_await turns(5);
        theirs.reset();
        auto outcome = co_await writing;

        EXPECT_TRUE(error_of(outcome) == std::errc::connection_reset ||
                    error_of(outcome) == std::errc::broken_pipe)
            << error_of(outcome).message();
        EXPECT_GT(outcome.error().transferred, 0U);
    });
}

// io_uring tells the one that began to wait last, and the other one finds a dead socket.
TEST_P(tcp_stream_end_test, a_reset_ends_reader_and_writer) {
    for (const bool reader_first : {true, false}) {
        SCOPED_TRACE(reader_first);
        auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
        run([&]() -> task<> {
            const std::string much(8 << 20, 'x');
            const auto read = [&]() -> task<> {
                EXPECT_EQ(error_of(co_await ours.receive()), std::errc::connection_reset);
            };
            const auto write = [&]() -> task<> {
                EXPECT_EQ(error_of(co_await async_write_all(ours, much)), std::errc::broken_pipe);
            };
            auto first = spawn(reader_first ? read() : write());
            co_await turns(5);
            auto second = spawn(reader_first ? write() : read());
            co_await turns(5);
            theirs.reset();
            co_await first;
            co_await second;
        });
    }
}

// The kernel reports the reset to the write only; the read after it would see a normal end.
TEST_P(tcp_stream_end_test, a_reset_that_a_write_was_told_is_told_to_the_next_read) {
    for (const bool received_before : {false, true}) {
        SCOPED_TRACE(received_before);
        auto [ours, theirs] = connect_raw();
        run([&]() -> task<> {
            std::array<char, 16> buffer{};
            if (received_before) { // the loop may receive ahead from here on
                theirs.send("a");
                EXPECT_EQ(co_await ours.read_some(buffer), 1U);
            }
            theirs.send("bc");
            theirs.reset();
            testing::await(ours.native_handle(), POLLHUP);

            EXPECT_EQ(error_of(co_await ours.write_some("x")), std::errc::connection_reset);
            EXPECT_EQ(error_of(co_await ours.write_some("x")), std::errc::broken_pipe);
            EXPECT_EQ(co_await ours.read_some(buffer), 2U);
            EXPECT_EQ(error_of(co_await ours.read_some(buffer)), std::errc::connection_reset);
            EXPECT_EQ(error_of(co_await ours.read_some(buffer)), errc::end_of_stream);
            EXPECT_EQ(error_of(co_await ours.write_some("x")), std::errc::broken_pipe);
        });
    }
}

TEST_P(tcp_stream_end_test, a_reset_that_a_waiting_write_was_told_is_told_to_the_next_read) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        const std::string much(8 << 20, 'x');
        auto writing = spawn(
            [&]() -> task<transfer_result> { co_return co_await async_write_all(ours, much); });
        co_await turns(5);
        theirs.reset();
        EXPECT_EQ(error_of(co_await writing), std::errc::connection_reset);

        EXPECT_EQ(error_of(co_await ours.receive()), std::errc::connection_reset);
        EXPECT_EQ(error_of(co_await ours.receive()), errc::end_of_stream);
    });
}

TEST_P(tcp_stream_end_test, a_peer_that_takes_nothing_within_the_user_timeout_ends_reads_too) {
    for (const bool has_ended : {false, true}) { // its own side
        SCOPED_TRACE(has_ended);
        auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
        ASSERT_TRUE(ours.set_user_timeout(100ms));
        if (has_ended) theirs.shutdown_write();
        run([&]() -> task<> {
            std::array<char, 16> buffer{};
            if (has_ended) {
                EXPECT_EQ(error_of(co_await ours.read_some(buffer)), errc::end_of_stream);
            }
            const std::string much(8 << 20, 'x');
            EXPECT_EQ(error_of(co_await async_write_all(ours, much)), std::errc::timed_out);

            const auto end = error_of(co_await ours.read_some(buffer));
            EXPECT_TRUE(has_ended ? end == errc::end_of_stream : end == std::errc::timed_out)
                << end.message();
            EXPECT_EQ(error_of(co_await ours.read_some(buffer)), errc::end_of_stream);
        });
    }
}

TEST_P(tcp_stream_end_test, writing_to_a_closed_peer_raises_no_signal) {
    std::signal(SIGPIPE, SIG_DFL);
    auto [ours, theirs] = connect_raw();
    theirs.reset();
    run([&]() -> task<> {
        // The first write may still report the reset; the second finds a dead socket.
        const std::string much(1 << 20, 'x');
        EXPECT_FALSE(co_await async_write_all(ours, much));
        EXPECT_EQ(error_of(co_await ours.write_some("x")), std::errc::broken_pipe);
        const std::array<const_buffer, 2> parts{const_buffer{"x"}, const_buffer{"y"}};
        EXPECT_EQ(error_of(co_await ours.write_some(std::span{parts})), std::errc::broken_pipe);
    });
}

TEST_P(tcp_stream_end_test, linger_of_zero_makes_close_a_reset) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        EXPECT_TRUE(co_await ours.write_some("x"));
        EXPECT_TRUE(ours.set_linger(0s));
        ours.close();
        co_await ours.closed();
    });
    EXPECT_EQ(theirs.receive_to_the_end(), std::errc::connection_reset);
}

// Bytes that the program has not read, received ahead or not, are lost: the peer gets a reset.
TEST_P(tcp_stream_end_test, closing_with_bytes_unread_resets_the_connection) {
    for (const int turns_between : {0, 10}) {
        auto [ours, theirs] = connect_raw();
        run([&]() -> task<> {
            theirs.send("first");
            EXPECT_TRUE(co_await ours.receive());
            theirs.send("second");
            co_await turns(turns_between);
            ours.close();
            co_await ours.closed();
        });
        EXPECT_EQ(theirs.receive_to_the_end(), std::errc::connection_reset) << turns_between;
    }
}

// The read makes the close end the connection before the descriptor is closed.
TEST_P(tcp_stream_end_test, closing_with_bytes_unread_while_a_read_waits_resets_the_connection) {
    // Large pieces: with io_uring, too, the bytes then stay in the socket until the read.
    for (const std::size_t before : {std::size_t{8}, std::size_t{60'000}}) {
        auto [ours, theirs] = connect_raw();
        run([&]() -> task<> {
            std::vector<char> buffer(before);
            for (int message = 0; message < 3; ++message) {
                theirs.send(std::string(before, 'x'));
                EXPECT_TRUE(co_await async_read_exact(ours, buffer));
            }
            auto reading = spawn([&]() -> task<> {
                EXPECT_EQ(error_of(co_await ours.read_some(buffer)), std::errc::operation_canceled);
            });
            co_await turns(3);
            theirs.send("unread");
            testing::await(ours.native_handle(), POLLIN);
            ours.close();
            co_await reading;
            co_await ours.closed();
        });
        EXPECT_EQ(theirs.receive_to_the_end(), std::errc::connection_reset) << before;
    }
}

TEST_P(tcp_stream_end_test, closing_in_the_turn_in_which_bytes_arrive_tells_the_peer) {
    remake_loop({.queue_depth = 8});
    auto connection = connect_raw();
    const auto close = [&]() -> task<> {
        connection.ours.close();
        co_await connection.ours.closed();
    };
    end_as_bytes_arrive(connection, close);
    EXPECT_EQ(::send(connection.theirs.fd(), "-", 1, MSG_NOSIGNAL), -1);
}

TEST_P(tcp_stream_end_test, a_release_in_the_turn_in_which_bytes_arrive_takes_them_along) {
    remake_loop({.queue_depth = 8});
    auto connection = connect_raw();
    std::string got;
    const auto release = [&]() -> task<> {
        auto left = co_await std::move(connection.ours).release();
        EXPECT_TRUE(left);
        if (!left) co_return;
        std::array<char, 10> rest{};
        const auto count = left->socket.read_some(rest);
        got.assign(reinterpret_cast<const char*>(left->unread.data()), left->unread.size());
        got.append(rest.data(), count.value_or(0));
    };
    end_as_bytes_arrive(connection, release);
    EXPECT_EQ(got, "second");
}

// The peer would otherwise wait for room for a minute.
TEST_P(tcp_stream_end_test, a_close_with_bytes_unread_reaches_a_peer_that_waits_for_room) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        theirs.send("first");
        EXPECT_TRUE(co_await ours.receive());
        const std::string much(100'000, 'x');
        while (::send(theirs.fd(), much.data(), much.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
        }
        ours.close();
        co_await ours.closed();
    });
    EXPECT_EQ(theirs.receive_to_the_end(), std::errc::connection_reset);
}

TEST_P(tcp_stream_end_test, the_end_of_the_loop_resets_a_connection_with_bytes_unread) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        theirs.send("first");
        EXPECT_TRUE(co_await ours.receive());
        theirs.send("second");
        co_await turns(10);
    });
    destroy_loop();
    EXPECT_EQ(theirs.receive_to_the_end(), std::errc::connection_reset);
}

// --- released sockets ----------------------------------------------------------------------------

/// A released stream that has received, but not read, "half a message" and a reset.
task<tcp_stream::released> released_after_a_reset() {
    auto pair = connected_pair();
    std::array<char, 8> buffer{};
    EXPECT_TRUE(co_await async_write_all(pair.theirs, "a"));
    EXPECT_EQ(co_await pair.ours.read_some(buffer), 1U); // the loop receives ahead from here on
    EXPECT_TRUE(co_await async_write_all(pair.theirs, "half a message"));
    co_await testing::turns(3);
    EXPECT_TRUE(pair.theirs.set_linger(0s));
    pair.theirs.close();
    (void)co_await pair.theirs.closed();
    co_await testing::turns(3);
    co_return or_throw(co_await std::move(pair.ours).release());
}

// With io_uring the reset must not get lost, or half a message would look complete.
TEST_P(tcp_stream_end_test, a_reset_before_a_release_is_reported_after_it) {
    run([]() -> task<> {
        auto released = co_await released_after_a_reset();
        std::array<char, 32> buffer{};
        std::size_t got = released.unread.size();
        auto count = released.socket.read_some(buffer);
        for (; count; count = released.socket.read_some(buffer))
            got += *count;

        EXPECT_EQ(got, 14U);
        EXPECT_EQ(error_of(count), std::errc::connection_reset);
        EXPECT_EQ(error_of(released.socket.read_some(buffer)), errc::end_of_stream);
    });
}

TEST_P(tcp_stream_end_test, a_reset_that_a_write_was_told_is_reported_after_a_release) {
    auto [ours, theirs] = connect_raw();
    theirs.send("bc");
    theirs.reset();
    run([&]() -> task<> {
        testing::await(ours.native_handle(), POLLHUP);
        EXPECT_EQ(error_of(co_await ours.write_some("x")), std::errc::connection_reset);
        auto released = or_throw(co_await std::move(ours).release());

        std::array<char, 16> buffer{};
        if (released.unread.empty()) {
            EXPECT_EQ(released.socket.read_some(buffer), 2U);
        }
        EXPECT_EQ(error_of(released.socket.read_some(buffer)), std::errc::connection_reset);
        EXPECT_EQ(error_of(released.socket.read_some(buffer)), errc::end_of_stream);
    });
}

TEST_P(tcp_stream_end_test, a_reset_before_a_release_is_reported_by_the_next_stream) {
    run([]() -> task<> {
        auto released = co_await released_after_a_reset();
        std::array<char, 32> buffer{};
        std::size_t got = released.unread.size();
        tcp_stream again{std::move(released.socket)};
        auto count = co_await again.read_some(buffer);
        for (; count; count = co_await again.read_some(buffer))
            got += *count;

        EXPECT_EQ(got, 14U);
        EXPECT_EQ(error_of(count), std::errc::connection_reset);
        EXPECT_EQ(error_of(co_await again.read_some(buffer)), errc::end_of_stream);
    });
}

TEST_P(tcp_stream_end_test, a_reset_before_a_release_is_reported_by_a_blocking_stream) {
    run([]() -> task<> {
        auto released = co_await released_after_a_reset();
        auto plain = or_throw(blocking::tcp_stream::from(std::move(released.socket)));
        std::array<char, 32> buffer{};
        const auto read = plain.read_exact(buffer);

        EXPECT_EQ(read.error().code, std::errc::connection_reset);
        EXPECT_EQ(released.unread.size() + read.error().transferred, 14U);
    });
}

// As if it had been released from an io_uring loop.
TEST_P(tcp_stream_end_test, an_error_of_an_adopted_socket_is_reported_once_by_every_kind_of_read) {
    run([]() -> task<> {
        for (const int way : {0, 1, 2, 3}) {
            auto pair = connected_pair();
            auto plain = or_throw(co_await std::move(pair.ours).release()).socket;
            detail::socket_access::expect_read_error(plain, ECONNRESET);
            tcp_stream stream{std::move(plain)};
            EXPECT_TRUE(co_await async_write_all(pair.theirs, "xy"));
            EXPECT_TRUE(pair.theirs.shutdown_write());
            std::array<char, 2> buffer{};
            EXPECT_EQ(co_await async_read_exact(stream, buffer), 2U);
            std::error_code error;
            // An empty read does not report it.
            EXPECT_EQ(co_await async_read_exact(stream, std::span<std::byte>{}), 0U);
            if (way == 0) {
                error = error_of(co_await stream.read_some(buffer));
            } else if (way == 1) {
                error = error_of(co_await stream.receive());
            } else if (way == 2) {
                error = error_of(co_await async_read_exact(stream, buffer));
            } else {
                EXPECT_TRUE(co_await async_write_all(stream, "goes on"));
                error = error_of(co_await stream.read_some(buffer));
            }
            EXPECT_EQ(error, std::errc::connection_reset);
            EXPECT_EQ(error_of(co_await stream.read_some(buffer)), errc::end_of_stream);
        }
    });
}

INSTANTIATE_TEST_SUITE_P(backends, tcp_stream_end_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
