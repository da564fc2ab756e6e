// readable() and try_receive(): waiting without taking, and taking without waiting.

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/stream/split.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <chrono>
#include <string>
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
using testing::text_of;
using testing::turns;

constexpr auto would_block = std::errc::operation_would_block;

/// How the stream was read before: on io_uring that decides how the kernel receives for it.
enum class reading_before { never, by_receive, in_large_pieces };
constexpr std::array ways{reading_before::never, reading_before::by_receive,
                          reading_before::in_large_pieces};

class readable_test : public testing::backend_test {
protected:
    template <class Stream>
    static task<> read_before(testing::raw_connection<Stream>& of, reading_before how) {
        if (how == reading_before::by_receive) {
            auto leasing =
                spawn([&]() -> task<result<received>> { co_return co_await of.ours.receive(); });
            co_await turns(3);
            of.theirs.send("x");
            EXPECT_TRUE(co_await leasing);
        } else if (how == reading_before::in_large_pieces) {
            std::string bytes_of_it(60'000, '\0');
            for (int round = 0; round < 3; ++round) {
                auto reading = spawn([&]() -> task<transfer_result> {
                    co_return co_await async_read_exact(of.ours, mutable_buffer{bytes_of_it});
                });
                co_await turns(3);
                of.theirs.send(noise(bytes_of_it.size()));
                EXPECT_TRUE(co_await reading);
            }
        }
    }
    /// Waits with readable() while `act` happens.
    template <class Stream, class Act>
    static task<result<>> wait_during(Stream& stream, Act act) {
        auto waiting = spawn([&]() -> task<result<>> { co_return co_await stream.readable(); });
        co_await turns(3);
        EXPECT_FALSE(waiting.done());
        act();
        co_return co_await waiting;
    }
    template <class Stream>
    static task<> expect_bytes_after_a_wait(testing::raw_connection<Stream> connection,
                                            reading_before how) {
        auto& [ours, theirs] = connection;
        co_await read_before(connection, how);
        for (int round = 0; round < 3; ++round) {
            EXPECT_TRUE(co_await wait_during(ours, [&, &peer = theirs] { peer.send("abcdef"); }));
            EXPECT_TRUE(co_await ours.readable()); // took nothing
            std::array<char, 3> some{};
            const result<std::size_t> count = co_await ours.read_some(some);
            EXPECT_EQ(count.value_or(0), 3U);
            EXPECT_EQ(std::string_view(some.data(), 3), "abc");
            EXPECT_TRUE(co_await ours.readable());
            const result<received> rest = ours.try_receive();
            EXPECT_EQ(rest ? rest->text() : rest.error().message(), "def");
            EXPECT_EQ(error_of(ours.try_receive()), would_block);
        }
    }
};

TEST_P(readable_test, bytes_end_the_wait_and_are_read_afterwards) {
    run([]() -> task<> {
        for (const reading_before how : ways) {
            co_await expect_bytes_after_a_wait(connect_raw(), how);
            co_await expect_bytes_after_a_wait(connect_raw_local(), how);
        }
    });
}

TEST_P(readable_test, bytes_that_are_there_need_no_wait) {
    run([&]() -> task<> {
        auto connection = connect_raw();
        auto& [ours, theirs] = connection;
        co_await read_before(connection, reading_before::by_receive);
        std::array<char, 1> one{};
        theirs.send("abc");
        EXPECT_TRUE(co_await ours.read_some(one)); // on io_uring two bytes are received ahead
        const auto before = loop().metrics().turns;
        EXPECT_TRUE(co_await ours.readable());
        EXPECT_EQ(ours.try_receive().value().text(), "bc");
        EXPECT_EQ(loop().metrics().turns, before);
    });
}

TEST_P(readable_test, try_receive_finds_bytes_on_a_stream_that_was_never_read) {
    run([]() -> task<> {
        for (int way = 0; way < 2; ++way) {
            auto [ours, theirs] = connect_raw();
            EXPECT_EQ(error_of(ours.try_receive()), would_block);
            theirs.send("here");
            EXPECT_EQ(ours.try_receive().value().text(), "here");
            EXPECT_EQ(error_of(ours.try_receive()), would_block);
            auto [local, peer] = connect_raw_local();
            peer.send("there");
            EXPECT_EQ(local.try_receive().value().text(), "there");
            peer.close();
            EXPECT_EQ(error_of(local.try_receive()), errc::end_of_stream);
        }
        co_return;
    });
}

TEST_P(readable_test, the_end_ends_the_wait_and_is_read_afterwards) {
    run([]() -> task<> {
        for (const reading_before how : ways) {
            auto connection = connect_raw();
            auto& [ours, theirs] = connection;
            co_await read_before(connection, how);
            EXPECT_TRUE(co_await wait_during(ours, [&, &peer = theirs] { peer.shutdown_write(); }));
            EXPECT_TRUE(co_await ours.readable());
            EXPECT_EQ(error_of(ours.try_receive()), errc::end_of_stream);
            EXPECT_EQ(error_of(ours.try_receive()), errc::end_of_stream);
            EXPECT_TRUE(co_await ours.readable());
            EXPECT_EQ(error_of(co_await ours.receive()), errc::end_of_stream);
        }
    });
}

TEST_P(readable_test, a_reset_ends_the_wait_and_is_found_by_the_next_read_of_any_kind) {
    run([]() -> task<> {
        for (const reading_before how : ways) {
            for (int kind = 0; kind < 4; ++kind) {
                auto connection = connect_raw();
                auto& [ours, theirs] = connection;
                co_await read_before(connection, how);
                EXPECT_TRUE(co_await wait_during(ours, [&, &peer = theirs] { peer.reset(); }));
                EXPECT_TRUE(co_await ours.readable());
                std::array<char, 4> some{};
                std::error_code found;
                if (kind == 0) found = error_of(ours.try_receive());
                if (kind == 1) found = error_of(co_await ours.receive());
                if (kind == 2) found = error_of(co_await ours.read_some(some));
                if (kind == 3) found = error_of(co_await async_read_exact(ours, some));
                EXPECT_EQ(found, std::errc::connection_reset) << kind;
                EXPECT_EQ(error_of(co_await ours.read_some(some)), errc::end_of_stream);
                EXPECT_EQ(error_of(ours.try_receive()), errc::end_of_stream);
            }
        }
    });
}

TEST_P(readable_test, a_reset_that_a_wait_has_found_leaves_with_the_socket) {
    run([]() -> task<> {
        auto [ours, theirs] = connect_raw();
        EXPECT_TRUE(co_await wait_during(ours, [&, &peer = theirs] { peer.reset(); }));
        auto released = co_await std::move(ours).release();
        std::array<char, 4> some{};
        EXPECT_EQ(error_of(released->socket.read_some(some)), std::errc::connection_reset);
    });
}

TEST_P(readable_test, descriptors_are_not_lost_and_neither_is_an_error) {
    run([]() -> task<> {
        auto [ours, theirs] = or_throw(local_stream::pair());
        EXPECT_TRUE(co_await theirs.send_descriptors("d", theirs.native_handle()));
        EXPECT_TRUE(co_await ours.readable());
        std::array<char, 4> some{};
        auto came = co_await ours.receive_descriptors(some);
        EXPECT_EQ(came.value().descriptors.size(), 1U);

        EXPECT_TRUE(co_await ours.write_some("unread"));
        auto reading = spawn(
            [&, &stream = ours]() -> task<result<>> { co_return co_await stream.readable(); });
        co_await turns(3);
        came.value().descriptors.clear();
        theirs.close(); // with bytes unread: a reset
        EXPECT_TRUE(co_await reading);
        EXPECT_TRUE(co_await ours.readable());
        EXPECT_EQ(error_of(co_await ours.receive_descriptors(some)), std::errc::connection_reset);
    });
}

TEST_P(readable_test, a_stop_or_a_deadline_leaves_the_stream_intact) {
    run([]() -> task<> {
        for (const reading_before how : ways) {
            auto connection = connect_raw();
            auto& [ours, theirs] = connection;
            co_await read_before(connection, how);
            auto waiting = spawn(
                [&, &stream = ours]() -> task<result<>> { co_return co_await stream.readable(); });
            co_await turns(3);
            waiting.request_stop();
            EXPECT_EQ(error_of(co_await waiting), std::errc::operation_canceled);
            EXPECT_EQ(error_of(co_await with_timeout(ours.readable(), 2ms)),
                      errc::deadline_exceeded);
            theirs.send("still here");
            EXPECT_TRUE(co_await with_timeout(ours.readable(), 5s));
            EXPECT_EQ(ours.try_receive().value().text(), "still here");
        }
    });
}

TEST_P(readable_test, bytes_beat_a_deadline_that_has_passed) {
    run([]() -> task<> {
        for (const reading_before how : ways) {
            auto connection = connect_raw();
            auto& [ours, theirs] = connection;
            co_await read_before(connection, how);
            const auto moment = std::chrono::steady_clock::now() + 3ms;
            auto waiting = spawn([&, &stream = ours]() -> task<result<>> {
                co_return co_await with_deadline(stream.readable(), moment);
            });
            co_await turns(2);
            testing::pass(moment);
            theirs.send("late");
            EXPECT_TRUE(co_await waiting);
            EXPECT_EQ(ours.try_receive().value().text(), "late");
        }
    });
}

TEST_P(readable_test, an_idle_timeout_ends_the_wait) {
    run([]() -> task<> {
        auto [ours, theirs] = connect_raw();
        ours.set_idle_timeout(3ms);
        EXPECT_EQ(error_of(co_await ours.readable()), errc::deadline_exceeded);
    });
}

TEST_P(readable_test, a_close_ends_the_wait_and_refuses_another) {
    run([]() -> task<> {
        auto [ours, theirs] = connect_raw();
        auto waiting = spawn(
            [&, &stream = ours]() -> task<result<>> { co_return co_await stream.readable(); });
        co_await turns(3);
        ours.close();
        EXPECT_EQ(error_of(co_await waiting), std::errc::operation_canceled);
        EXPECT_EQ(error_of(co_await ours.readable()), std::errc::bad_file_descriptor);
        EXPECT_EQ(error_of(ours.try_receive()), std::errc::bad_file_descriptor);
    });
}

// Once a wait found bytes that a read did not find, and the two went round and round.
TEST_P(readable_test, waiting_and_taking_turn_the_loop_only_for_what_arrives) {
    const std::string content = noise(600'000);
    run([&]() -> task<> {
        for (const reading_before how : ways) {
            for (const bool wait_first : {true, false}) {
                auto connection = connect_raw();
                auto& [ours, theirs] = connection;
                co_await read_before(connection, how);
                std::string got;
                int waits = 0;
                std::size_t sent = 0;
                while (got.size() < content.size()) {
                    if (sent == got.size()) {
                        const std::size_t size = std::min<std::size_t>(content.size() - sent,
                                                                       sent % 3 == 0 ? 50'000 : 7);
                        theirs.send(std::string_view{content}.substr(sent, size));
                        sent += size;
                    }
                    if (wait_first) {
                        EXPECT_TRUE(co_await ours.readable());
                        ++waits;
                    }
                    const result<received> some = ours.try_receive();
                    EXPECT_TRUE(some || (!wait_first && error_of(some) == would_block));
                    if (some) {
                        got += some->text();
                    } else if (!wait_first) {
                        EXPECT_TRUE(co_await ours.readable());
                        ++waits;
                    }
                    if (waits > 5'000) break;
                }
                EXPECT_TRUE(got == content);
                // A piece has at most 16 KiB; those of 50000 bytes and of 7 alternate.
                EXPECT_LT(waits, 600);
            }
        }
    });
}

// On io_uring a receive in the kernel will take these bytes: no read can take them before. The end
// of a poll for the same stream makes the wait look at the socket meanwhile.
TEST_P(readable_test, a_wait_ends_only_for_bytes_that_a_read_finds) {
    run([&]() -> task<> {
        for (int when = 1; when < 8; ++when) {
            auto connection = connect_raw();
            auto& [ours, theirs] = connection;
            co_await read_before(connection, reading_before::in_large_pieces);
            auto leasing = spawn([&, &stream = ours]() -> task<result<received>> {
                co_return co_await stream.receive();
            });
            // In the same turn, so that the poll ends while this one waits.
            auto waiting = spawn([&, &stream = ours]() -> task<result<>> {
                leasing.request_stop();
                co_return co_await stream.readable();
            });
            co_await turns(when);
            theirs.send("x");
            EXPECT_TRUE(co_await waiting);
            EXPECT_FALSE(error_of(ours.try_receive()) == would_block) << when;
            EXPECT_EQ(error_of(co_await leasing), std::errc::operation_canceled);
        }
    });
}

TEST_P(readable_test, the_loop_sleeps_while_bytes_stay_unread) {
    run([&]() -> task<> {
        for (const reading_before how : ways) {
            auto connection = connect_raw();
            auto& [ours, theirs] = connection;
            co_await read_before(connection, how);
            theirs.send(noise(100'000));
            EXPECT_TRUE(co_await ours.readable());
            const auto before = loop().metrics().turns;
            EXPECT_TRUE(co_await async_sleep(20ms));
            EXPECT_LT(loop().metrics().turns - before, 20U);
            // The wait for more than is taken does not spin either.
            std::size_t got = 0;
            while (got < 100'000) {
                EXPECT_TRUE(co_await ours.readable());
                const result<received> some = ours.try_receive();
                EXPECT_TRUE(some);
                if (!some) break;
                got += some->size();
            }
            auto waiting = spawn(
                [&, &stream = ours]() -> task<result<>> { co_return co_await stream.readable(); });
            const auto idle = loop().metrics().turns;
            EXPECT_TRUE(co_await async_sleep(20ms));
            EXPECT_LT(loop().metrics().turns - idle, 20U);
            theirs.send("x");
            EXPECT_TRUE(co_await waiting);
        }
    });
}

TEST_P(readable_test, a_wait_needs_no_buffer) {
    remake_loop({.receive_pool = 1});
    run([]() -> task<> {
        std::vector<testing::raw_connection<tcp_stream>> many;
        for (int each = 0; each < 8; ++each)
            many.push_back(connect_raw());
        std::vector<received> leases; // all buffers of the pool, and more
        for (auto& each : many) {
            EXPECT_TRUE(co_await wait_during(each.ours, [&] { each.theirs.send("one"); }));
            auto lease = each.ours.try_receive();
            EXPECT_EQ(lease ? lease->text() : "", "one");
            if (lease) leases.push_back(*std::move(lease));
            EXPECT_TRUE(co_await wait_during(each.ours, [&] { each.theirs.send("two"); }));
            auto second = co_await each.ours.receive();
            EXPECT_EQ(second ? second->text() : "", "two");
            if (second) leases.push_back(*std::move(second));
        }
    });
}

TEST_P(readable_test, a_server_waits_for_a_request_or_for_its_stop) {
    run([]() -> task<> {
        auto [ours, theirs] = connect_raw();
        auto first = when_any(ours.readable(), async_sleep(1ms));
        EXPECT_EQ((co_await std::move(first)).index, 1U);
        theirs.send("x");
        auto second = when_any(ours.readable(), async_sleep(1h));
        EXPECT_EQ((co_await std::move(second)).index, 0U);
        EXPECT_EQ(ours.try_receive().value().text(), "x");
    });
}

TEST_P(readable_test, the_half_of_a_stream_has_both) {
    run([]() -> task<> {
        auto [ours, theirs] = connect_raw();
        auto [reads, writes] = split(std::move(ours));
        theirs.send("x");
        EXPECT_TRUE(co_await reads.readable());
        EXPECT_EQ(reads.try_receive().value().text(), "x");
    });
}

class readable_death_test : public testing::backend_test {};

TEST_P(readable_death_test, a_second_reader_stops_the_program) {
    const auto second = [](auto act) -> task<> {
        auto [ours, theirs] = connect_raw();
        auto waiting = spawn(
            [&, &stream = ours]() -> task<result<>> { co_return co_await stream.readable(); });
        co_await turns(3);
        co_await act(ours);
    };
    EXPECT_DEATH(run([&]() -> task<> {
                     co_await second([](tcp_stream& of) -> task<> {
                         (void)of.try_receive();
                         co_return;
                     });
                 }),
                 "a second read on a stream that has one in flight");
    EXPECT_DEATH(run([&]() -> task<> {
                     co_await second(
                         [](tcp_stream& of) -> task<> { (void)co_await of.readable(); });
                 }),
                 "a second read on a stream that has one in flight");
}

INSTANTIATE_TEST_SUITE_P(backends, readable_test, all_backends, backend_name);
INSTANTIATE_TEST_SUITE_P(backends, readable_death_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
