// The promises of every operation: when and how often it ends, with what result, and who resumes.

#include <simplenet/io/detail/operation.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::connected_pair;
using testing::noise;
using testing::pass;
using testing::turns;
using testing::until;
using clock = std::chrono::steady_clock;

class operation_test : public testing::backend_test {};

// The frame of a coroutine has room for the operation of each of its awaits.
static_assert(sizeof(void*) != 8 || sizeof(detail::read_some_operation) <= 80);
static_assert(sizeof(void*) != 8 || sizeof(detail::write_some_operation) <= 96);
static_assert(sizeof(void*) != 8 || sizeof(detail::receive_operation) <= 80);
static_assert(sizeof(void*) != 8 || sizeof(tcp_listener::accept_operation) <= 80);

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

TEST_P(operation_test, a_stopped_write_no_longer_reads_its_buffer) {
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
        reading.request_stop(); // again: it still ends once
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

        EXPECT_TRUE(co_await theirs.write_some("x")); // completes at once
        EXPECT_EQ(resumed, 0);
        co_await reading;

        EXPECT_EQ(resumed, 1);
    });
}

TEST_P(operation_test, an_operation_that_is_stopped_repeatedly_ends_once) {
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

TEST_P(operation_test, a_stopped_task_reads_nothing_although_bytes_are_available) {
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

// --- empty transfers -----------------------------------------------------------------------------

// An empty exact read must not wait for bytes that it does not need.
TEST_P(operation_test, empty_transfers_succeed_in_every_state_of_the_socket) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        const std::string much(8 << 20, 'x');
        EXPECT_FALSE(co_await with_timeout(async_write_all(ours, much), 1ms)); // fills the socket

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

TEST_P(operation_test, a_task_that_keeps_reading_when_its_loop_ends_is_destroyed) {
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

// The scope was first stopped by its deadline, which must not hide the end of the loop.
TEST_P(operation_test, a_task_that_yields_forever_after_its_deadline_is_destroyed_with_its_loop) {
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

TEST_P(operation_test, operations_after_the_end_of_their_loop_fail_with_bad_file_descriptor) {
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
