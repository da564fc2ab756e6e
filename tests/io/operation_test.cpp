// The promises that hold for every operation: when it ends, how often, with what, and who waits.

#include <simplenet/io/detail/operation.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/blocking/tcp_stream.hpp>
#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/net/local_listener.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/threads/with_stop.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::connected_pair;
using testing::next_event;
using testing::noise;
using testing::pass;
using testing::turns;
using testing::until;
using clock = std::chrono::steady_clock;

class operation_test : public testing::backend_test {};

// --- the buffer ----------------------------------------------------------------------------------

TEST_P(operation_test, a_stopped_read_leaves_its_buffer_alone) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::string buffer(100, '?');
        auto reading = spawn(
            [&]() -> task<result<std::size_t>> { co_return co_await ours.read_some(buffer); });
        co_await turns(2);
        reading.request_stop();
        EXPECT_EQ(error_of(co_await reading), canceled);

        theirs.send("these bytes are for the next read");
        co_await turns(5);

        EXPECT_EQ(buffer, std::string(100, '?'));
    });
}

TEST_P(operation_test, a_stopped_write_has_no_use_for_its_buffer_any_more) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        std::string buffer(8 << 20, 'a');
        auto writing = spawn(
            [&]() -> task<transfer_result> { co_return co_await async_write_all(ours, buffer); });
        co_await turns(5);
        writing.request_stop();
        const transfer_result outcome = co_await writing;
        buffer.assign(buffer.size(), 'b');
        EXPECT_EQ(error_of(outcome), canceled);
        ours.close();
        co_await ours.closed();

        const std::size_t moved = outcome ? *outcome : outcome.error().transferred;
        EXPECT_GT(moved, 0U);
        EXPECT_TRUE(theirs.receive(buffer.size()) == std::string(moved, 'a'));
    });
}

// --- once, and when ------------------------------------------------------------------------------

TEST_P(operation_test, nothing_is_resumed_inside_request_stop) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        int resumed = 0;
        auto reading = spawn([&]() -> task<> {
            std::array<std::byte, 8> buffer;
            EXPECT_EQ(error_of(co_await ours.read_some(buffer)), canceled);
            ++resumed;
        });
        co_await turns(2);

        reading.request_stop();
        EXPECT_EQ(resumed, 0);
        reading.request_stop(); // again: still one end
        EXPECT_EQ(resumed, 0);
        co_await reading;

        EXPECT_EQ(resumed, 1);
    });
}

TEST_P(operation_test, nothing_is_resumed_inside_the_start_of_another_operation) {
    auto [ours, theirs] = connected_pair();
    run([&]() -> task<> {
        int resumed = 0;
        auto reading = spawn([&]() -> task<> {
            std::array<std::byte, 8> buffer;
            EXPECT_TRUE(co_await ours.read_some(buffer));
            ++resumed;
        });
        co_await turns(2);

        EXPECT_TRUE(co_await theirs.write_some("x")); // done at once
        EXPECT_EQ(resumed, 0);
        co_await reading;

        EXPECT_EQ(resumed, 1);
    });
}

TEST_P(operation_test, an_operation_ends_once_however_often_it_is_stopped) {
    run([&]() -> task<> {
        for (int round = 0; round < 200; ++round) {
            auto [ours, theirs] = connect_raw();
            int ends = 0;
            auto reading = spawn([&]() -> task<> {
                std::array<std::byte, 8> buffer;
                static_cast<void>(co_await with_timeout(ours.read_some(buffer), 1us));
                ++ends;
            });
            co_await turns(round % 4);
            theirs.send("data");
            reading.request_stop();
            co_await turns(round % 3);
            ours.close();
            co_await reading;
            co_await ours.closed();
            EXPECT_EQ(ends, 1);
        }
    });
}

// --- refusal -------------------------------------------------------------------------------------

TEST_P(operation_test, a_stopped_task_reads_nothing_although_bytes_are_there) {
    auto [ours, theirs] = connect_raw();
    theirs.send("kept");
    testing::await(ours.native_handle(), POLLIN);
    run([&]() -> task<> {
        std::array<char, 8> buffer{};
        auto stopped = spawn([&]() -> task<> {
            EXPECT_EQ(error_of(co_await ours.read_some(buffer)), canceled);
            EXPECT_EQ(error_of(co_await ours.receive()), canceled);
            EXPECT_EQ(error_of(co_await ours.write_some("x")), canceled);
            EXPECT_EQ(error_of(co_await async_read_exact(ours, buffer)), canceled);
            EXPECT_EQ(error_of(co_await async_write_all(ours, "x")), canceled);
            EXPECT_EQ(error_of(co_await ours.closed()), canceled);
        });
        stopped.request_stop();
        co_await stopped;

        EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 4U);
        EXPECT_EQ(theirs.peek(), -EAGAIN);
    });
}

TEST_P(operation_test, a_stopped_task_accepts_and_connects_nothing) {
    run([&]() -> task<> {
        auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
        const endpoint at = or_throw(listener.local_endpoint());
        auto client = or_throw(co_await async_connect(at));
        auto stopped = spawn([&]() -> task<> {
            EXPECT_EQ(error_of(co_await listener.accept()), canceled);
            EXPECT_EQ(error_of(co_await async_connect(at)), canceled);
        });
        stopped.request_stop();
        co_await stopped;

        EXPECT_TRUE(co_await listener.accept());
    });
}

TEST_P(operation_test, a_task_that_ignores_its_stop_does_not_block_the_others) {
    auto [ours, theirs] = connected_pair();
    auto [ignored, unused] = connect_raw();
    run([&]() -> task<> {
        bool enough = false;
        std::size_t refusals = 0;
        auto spinning = spawn([&]() -> task<> {
            std::array<std::byte, 8> buffer;
            while (!enough) {
                EXPECT_EQ(error_of(co_await ignored.read_some(buffer)), canceled);
                ++refusals;
            }
        });
        spinning.request_stop();

        auto echo = spawn([&]() -> task<> {
            std::array<std::byte, 8> buffer;
            while (auto count = co_await theirs.read_some(buffer)) {
                EXPECT_TRUE(co_await theirs.write_some(std::span{buffer}.first(*count)));
            }
        });
        for (int round = 0; round < 50; ++round) {
            std::array<std::byte, 8> buffer;
            EXPECT_TRUE(co_await ours.write_some("ping"));
            EXPECT_TRUE(co_await ours.read_some(buffer));
        }
        enough = true;
        ours.close();
        co_await echo;
        co_await spinning;

        EXPECT_GT(refusals, 50U);
    });
}

TEST_P(operation_test, the_reason_of_the_first_stop_stays) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::array<std::byte, 8> buffer;
        bool deadline_passed = false;
        bool outer_stopped = false;
        auto outer = spawn([&]() -> task<> {
            auto inner = [&]() -> task<> {
                EXPECT_EQ(error_of(co_await ours.read_some(buffer)), errc::deadline_exceeded);
                deadline_passed = true;
                while (!outer_stopped)
                    co_await yield();
                EXPECT_EQ(error_of(co_await ours.read_some(buffer)), errc::deadline_exceeded);
                EXPECT_EQ(error_of(co_await async_sleep(1h)), errc::deadline_exceeded);
            };
            EXPECT_EQ(error_of(co_await with_timeout(inner(), 1ms)), errc::deadline_exceeded);
            EXPECT_EQ(error_of(co_await ours.read_some(buffer)), canceled);
        });
        co_await until([&] { return deadline_passed; });
        outer.request_stop();
        outer_stopped = true;
        co_await outer;
    });
}

TEST_P(operation_test, a_deadline_that_comes_after_a_stop_changes_nothing) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::array<std::byte, 8> buffer;
        auto reading = spawn([&]() -> task<> {
            auto inner = [&]() -> task<> {
                EXPECT_EQ(error_of(co_await ours.read_some(buffer)), canceled);
                pass(clock::now() + 2ms);
                co_await turns(3);
                EXPECT_EQ(error_of(co_await ours.read_some(buffer)), canceled);
            };
            static_cast<void>(co_await with_timeout(inner(), 1ms));
        });
        co_await yield();
        reading.request_stop();
        co_await reading;
    });
}

// --- success beats stop --------------------------------------------------------------------------

TEST_P(operation_test, bytes_that_were_seen_beat_a_stop_that_comes_after_them) {
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
        reading.request_stop(); // the read is on the ready list, behind us
        co_await reading;

        EXPECT_EQ(first.value_or(0), 4U);
        EXPECT_EQ(error_of(second), canceled);
    });
}

TEST_P(operation_test, bytes_that_are_there_beat_a_deadline_that_has_passed) {
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

TEST_P(operation_test, bytes_that_are_there_beat_a_deadline_in_the_past) {
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

TEST_P(operation_test, a_connection_that_is_there_beats_a_deadline_in_the_past) {
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

TEST_P(operation_test, room_that_is_there_beats_a_deadline_that_has_passed) {
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

TEST_P(operation_test, exact_reads_say_how_much_moved_when_they_fail) {
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

TEST_P(operation_test, whole_writes_say_how_much_moved_when_they_fail) {
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

// An empty exact read used to wait for bytes that it had no use for.
TEST_P(operation_test, empty_transfers_succeed_whatever_the_socket_has_or_has_room_for) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        const std::string much(8 << 20, 'x');
        EXPECT_FALSE(co_await with_timeout(async_write_all(ours, much), 1ms)); // full now

        const std::array<const_buffer, 2> empty_ones{};
        const std::span<const const_buffer> several{empty_ones};
        EXPECT_EQ((co_await async_read_exact(ours, mutable_buffer{})).value_or(9), 0U);
        EXPECT_EQ((co_await ours.write_some(const_buffer{})).value_or(9), 0U);
        EXPECT_EQ((co_await ours.write_some(several)).value_or(9), 0U);
        EXPECT_EQ((co_await async_write_all(ours, const_buffer{})).value_or(9), 0U);
        EXPECT_EQ((co_await async_write_all(ours, several)).value_or(9), 0U);
        EXPECT_EQ((co_await async_write_all(ours, several.first(0))).value_or(9), 0U);
    });
}

// --- no byte is lost -----------------------------------------------------------------------------

TEST_P(operation_test, no_byte_is_lost_by_reads_that_are_stopped_at_any_moment) {
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
        ASSERT_TRUE(got == sent); // not EQ: nobody wants to read it
    }
}

TEST_P(operation_test, a_stream_is_usable_at_the_offset_that_a_stopped_write_reports) {
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
        ASSERT_TRUE(got == sent); // not EQ: nobody wants to read it
    }
}

// --- one reader, one writer ----------------------------------------------------------------------

TEST_P(operation_test, a_second_reader_is_a_violation) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto [ours, theirs] = connect_raw();
    auto two_readers = [&]() -> task<> {
        std::array<std::byte, 8> buffer;
        auto first = ours.receive();
        auto second = ours.read_some(buffer);
        co_await when_all(std::move(first), std::move(second));
    };

    EXPECT_DEATH(run(two_readers), "second read on a stream that has one in flight");
}

TEST_P(operation_test, a_second_writer_is_a_violation) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    auto two_writers = [&]() -> task<> {
        const std::string much(8 << 20, 'x');
        co_await when_all(async_write_all(ours, much), async_write_all(ours, much));
    };

    EXPECT_DEATH(run(two_writers), "second write on a stream that has one in flight");
}

TEST_P(operation_test, a_second_accept_is_a_violation) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    auto two_accepts = [&]() -> task<> { co_await when_all(listener.accept(), listener.accept()); };

    EXPECT_DEATH(run(two_accepts), "second read on a stream that has one in flight");
}

TEST_P(operation_test, a_reader_and_a_writer_do_not_disturb_each_other) {
    auto [ours, theirs] = connected_pair({.ours = 8192, .theirs = 8192});
    run([&]() -> task<> {
        const std::string there = noise(1 << 20, 1);
        const std::string back = noise(1 << 20, 2);
        std::string got_there(there.size(), '\0');
        std::string got_back(back.size(), '\0');

        auto outcome =
            co_await gather(async_write_all(ours, there), async_write_all(theirs, back),
                            async_read_exact(theirs, got_there), async_read_exact(ours, got_back));

        EXPECT_TRUE(outcome);
        EXPECT_TRUE(got_there == there);
        EXPECT_TRUE(got_back == back);
    });
}

TEST_P(operation_test, an_operation_on_a_socket_that_was_moved_from_is_a_violation) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto [ours, theirs] = connect_raw();
    auto moved_from = [&]() -> task<> {
        tcp_stream taken = std::move(ours);
        static_cast<void>(co_await ours.write_some("x")); // NOLINT(bugprone-use-after-move)
    };

    EXPECT_DEATH(run(moved_from), "an operation on a socket that was moved from");
}

TEST_P(operation_test, a_socket_that_one_loop_used_is_a_violation_on_another) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> { EXPECT_TRUE(co_await ours.write_some("x")); });
    auto elsewhere = [&] {
        auto other = or_throw(event_loop::create({.backend = GetParam()}));
        other.spawn([&]() -> task<> { EXPECT_TRUE(co_await ours.write_some("x")); });
        other.run();
    };

    EXPECT_DEATH(elsewhere(), "a socket belongs to the loop that used it first");
}

// --- nobody starves ------------------------------------------------------------------------------

TEST_P(operation_test, a_connection_with_bytes_always_there_cannot_starve_another) {
    auto [hot, flood] = connect_raw();
    auto [ours, theirs] = connect_raw();
    const std::size_t there = flood.send_until_full(std::string(65536, 'x'));
    theirs.send("ping");
    testing::await(hot.native_handle(), POLLIN);
    testing::await(ours.native_handle(), POLLIN);
    run([&]() -> task<> {
        std::size_t read_by_hot = 0;
        auto busy = spawn([&]() -> task<> {
            std::array<std::byte, 1> buffer;
            while (read_by_hot < there) {
                if (!co_await hot.read_some(buffer)) co_return;
                ++read_by_hot;
            }
        });
        std::array<std::byte, 8> buffer;
        EXPECT_TRUE(co_await ours.read_some(buffer));

        EXPECT_LT(read_by_hot, 1000U); // a few turns of a bounded number of inline completions
        EXPECT_GT(there, 2000U);
        busy.request_stop();
        co_await busy;
    });
}

TEST_P(operation_test, one_resumption_makes_a_bounded_number_of_inline_completions) {
    auto [hot, flood] = connect_raw();
    flood.send_until_full(std::string(65536, 'x'));
    testing::await(hot.native_handle(), POLLIN);
    run([&]() -> task<> {
        std::size_t reads = 0;
        auto busy = spawn([&]() -> task<> {
            std::array<std::byte, 1> buffer;
            while (co_await hot.read_some(buffer))
                ++reads;
        });
        co_await until([&] { return reads > 0; });
        std::size_t most = 0;
        for (int turn = 0; turn < 50; ++turn) {
            const std::size_t before = reads;
            co_await yield();
            most = std::max(most, reads - before);
        }
        EXPECT_GT(most, 1U);
        EXPECT_LE(most, 66U);
        busy.request_stop();
        co_await busy;
    });
}

TEST_P(operation_test, a_writer_whose_peer_takes_everything_cannot_starve_another) {
    auto [hot, drain] = connect_raw();
    run([&]() -> task<> {
        std::size_t writes = 0;
        bool enough = false;
        auto busy = spawn([&]() -> task<> {
            std::array<char, 65536> scratch;
            while (!enough) {
                EXPECT_TRUE(co_await hot.write_some("x"));
                if (++writes % 256 == 0) {
                    while (::recv(drain.fd(), scratch.data(), scratch.size(), MSG_DONTWAIT) > 0) {
                    }
                }
            }
        });
        co_await turns(20);
        enough = true;
        co_await busy;

        EXPECT_LE(writes, 66U * 21);
    });
}

TEST_P(operation_test, pings_take_few_turns_beside_a_flood) {
    auto [hot, flooding] = connected_pair();
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        const std::string block(65536, 'x');
        auto flood = spawn([&]() -> task<> {
            while (co_await async_write_all(flooding, block)) {
            }
        });
        auto sink = spawn([&]() -> task<> {
            while (co_await hot.receive()) {
            }
        });
        for (int round = 0; round < 50; ++round) {
            std::array<std::byte, 8> buffer;
            theirs.send("ping");
            if (round == 0) testing::await(ours.native_handle(), POLLIN);
            const auto before = loop().metrics().turns;
            EXPECT_TRUE(co_await ours.read_some(buffer));
            EXPECT_LE(loop().metrics().turns - before, 20U);
        }
        flood.request_stop();
        sink.request_stop();
        co_await flood;
        co_await sink;
    });
}

// --- small rings and many operations -------------------------------------------------------------

TEST_P(operation_test, a_queue_of_eight_entries_is_enough_for_thousands_of_operations) {
    remake_loop({.queue_depth = 8});
    constexpr std::size_t connections = 300;
    std::vector<testing::stream_pair> pairs;
    for (std::size_t each = 0; each < connections; ++each)
        pairs.push_back(connected_pair());
    std::size_t done = 0;
    run([&]() -> task<> {
        auto all = [&](task_group& group) -> task<> {
            for (auto& pair : pairs) {
                group.spawn([&]() -> task<> {
                    std::array<std::byte, 8> buffer;
                    while (auto count = co_await pair.theirs.read_some(buffer)) {
                        EXPECT_TRUE(
                            co_await async_write_all(pair.theirs, std::span{buffer}.first(*count)));
                    }
                });
                group.spawn([&]() -> task<> {
                    std::array<std::byte, 4> buffer;
                    for (int round = 0; round < 10; ++round) {
                        EXPECT_TRUE(co_await async_write_all(pair.ours, "ping"));
                        EXPECT_TRUE(co_await async_read_exact(pair.ours, buffer));
                        ++done;
                    }
                    pair.ours.close();
                });
            }
            co_return;
        };
        EXPECT_TRUE(co_await with_group(all));
    });
    EXPECT_EQ(done, connections * 10);
}

TEST_P(operation_test, thousands_of_operations_stop_at_once_through_a_queue_of_eight_entries) {
    remake_loop({.queue_depth = 8});
    constexpr std::size_t connections = 400;
    std::vector<testing::stream_pair> pairs;
    for (std::size_t each = 0; each < connections; ++each)
        pairs.push_back(connected_pair({.ours = 4096, .theirs = 4096}));
    const std::string much(1 << 20, 'x');
    std::size_t ended = 0;
    run([&]() -> task<> {
        auto waiting = spawn([&]() -> task<> {
            task_group group;
            for (auto& pair : pairs) {
                group.spawn([&]() -> task<> {
                    std::array<std::byte, 8> buffer;
                    EXPECT_EQ(error_of(co_await pair.ours.read_some(buffer)), canceled);
                    ++ended;
                });
                group.spawn([&]() -> task<> {
                    EXPECT_EQ(error_of(co_await async_write_all(pair.ours, much)), canceled);
                    ++ended;
                });
            }
            static_cast<void>(co_await group.join());
        });
        co_await until([&] { return loop().metrics().live_operations == 2 * connections; });
        waiting.request_stop();
        co_await waiting;
        EXPECT_EQ(loop().metrics().live_operations, 0U);
    });
    EXPECT_EQ(ended, 2 * connections);
}

// --- stops from elsewhere ------------------------------------------------------------------------

TEST_P(operation_test, a_stop_from_another_thread_ends_a_read) {
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

TEST_P(operation_test, a_loser_of_when_any_that_still_read_has_its_bytes_in_the_values) {
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

            // Whatever was not delivered is still in its stream.
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

// --- the end of the loop -------------------------------------------------------------------------

TEST_P(operation_test, the_end_of_the_loop_ends_operations_with_their_tasks) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    std::vector<std::error_code> ends;
    loop().spawn([&]() -> task<> {
        std::array<std::byte, 8> buffer;
        ends.push_back(error_of(co_await ours.read_some(buffer)));
    });
    loop().spawn([&]() -> task<> {
        const std::string much(8 << 20, 'x');
        ends.push_back(error_of(co_await async_write_all(ours, much)));
    });
    EXPECT_FALSE(loop().run_for(2ms));
    destroy_loop();

    EXPECT_THAT(ends, ::testing::ElementsAre(canceled, canceled));
    EXPECT_EQ(ours.native_handle(), -1);
    theirs.receive_to_the_end();
}

TEST_P(operation_test, a_task_that_goes_on_reading_when_its_loop_ends_is_destroyed) {
    auto [ours, theirs] = connect_raw();
    struct noted {
        bool& gone;
        ~noted() { gone = true; }
    };
    bool gone = false;
    std::size_t refusals = 0;
    loop().spawn([&]() -> task<> {
        const noted note{gone};
        tcp_stream own = std::move(ours);
        std::array<std::byte, 8> buffer;
        for (;;) {
            if (!co_await own.read_some(buffer)) ++refusals;
        }
    });
    EXPECT_FALSE(loop().run_for(1ms));
    destroy_loop();

    EXPECT_TRUE(gone);
    EXPECT_GE(refusals, 1000U);
    EXPECT_LE(refusals, 1001U);
}

// The scope's reason is its deadline; it used to hide that the loop was ending.
TEST_P(operation_test, a_task_that_yields_for_ever_after_its_deadline_is_destroyed_with_its_loop) {
    bool passed = false;
    loop().spawn([&]() -> task<> {
        auto inner = [&]() -> task<> {
            passed = !co_await async_sleep(1h);
            for (;;)
                co_await yield();
        };
        static_cast<void>(co_await with_timeout(inner(), 1ms));
    });
    while (!passed)
        loop().poll();
    destroy_loop();
}

TEST_P(operation_test, operations_after_the_end_of_their_loop_say_bad_file_descriptor) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> { EXPECT_TRUE(co_await ours.write_some("x")); });
    remake_loop();
    run([&]() -> task<> {
        std::array<std::byte, 8> buffer;
        constexpr auto closed = std::errc::bad_file_descriptor;
        EXPECT_EQ(error_of(co_await ours.read_some(buffer)), closed);
        EXPECT_EQ(error_of(co_await ours.receive()), closed);
        EXPECT_EQ(error_of(co_await ours.write_some("x")), closed);
        EXPECT_EQ(error_of(co_await async_read_exact(ours, buffer)), closed);
        EXPECT_EQ(error_of(co_await async_write_all(ours, "x")), closed);
        EXPECT_TRUE(co_await ours.closed());
        EXPECT_EQ(error_of(ours.shutdown_write()), closed);
        EXPECT_EQ(error_of(ours.local_endpoint()), closed);
        EXPECT_EQ(error_of(ours.set_no_delay(true)), closed);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, operation_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
