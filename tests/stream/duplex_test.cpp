#include <simplenet/stream/duplex.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/scoped.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::noise;
using testing::turns;

static_assert(async_reader<duplex_stream> && async_writer<duplex_stream>);
static_assert(!std::is_copy_constructible_v<duplex_stream>);

task<std::string> read_to_end(duplex_stream& from) {
    std::string all;
    std::array<char, 64> buffer;
    while (auto count = co_await from.read_some(buffer))
        all.append(buffer.data(), *count);
    co_return all;
}

/// Writes until a write has to wait.
task<std::size_t> fill(duplex_stream& into) {
    std::size_t written = 0;
    while (auto count = co_await with_timeout(into.write_some("0123456789"), 1ms))
        written += *count;
    co_return written;
}

class duplex_test : public testing::backend_test {};

// --- reading and writing -------------------------------------------------------------------------

TEST_P(duplex_test, one_end_reads_what_the_other_writes) {
    run([&]() -> task<> {
        auto [left, right] = duplex();
        EXPECT_EQ((co_await left.write_some("ping")).value_or(0), 4U);
        EXPECT_EQ((co_await right.write_some("pong!")).value_or(0), 5U);
        std::array<char, 16> buffer{};
        EXPECT_EQ((co_await right.read_some(buffer)).value_or(0), 4U);
        EXPECT_EQ(std::string_view(buffer.data(), 4), "ping");
        EXPECT_EQ((co_await left.read_some(buffer)).value_or(0), 5U);
        EXPECT_EQ(std::string_view(buffer.data(), 5), "pong!");
    });
}

TEST_P(duplex_test, read_some_waits_for_the_first_byte) {
    run([&]() -> task<> {
        auto [left, right] = duplex();
        auto reading = spawn([&]() -> task<std::string> {
            std::array<char, 16> buffer{};
            auto count = co_await right.read_some(buffer);
            co_return std::string(buffer.data(), count.value_or(0));
        });
        co_await turns(3);
        EXPECT_FALSE(reading.done());
        EXPECT_TRUE(co_await left.write_some("a"));
        EXPECT_TRUE(co_await left.write_some("b")); // before the reader runs
        EXPECT_EQ(co_await reading, "ab");
    });
}

TEST_P(duplex_test, read_some_takes_no_more_than_fits) {
    run([&]() -> task<> {
        auto [left, right] = duplex();
        EXPECT_TRUE(co_await left.write_some("abcde"));
        left.close();
        std::string all;
        std::array<char, 2> buffer{};
        std::vector<std::size_t> counts;
        while (auto count = co_await right.read_some(buffer)) {
            all.append(buffer.data(), *count);
            counts.push_back(*count);
        }
        EXPECT_EQ(all, "abcde");
        EXPECT_EQ(counts, (std::vector<std::size_t>{2, 2, 1}));
    });
}

TEST_P(duplex_test, write_some_waits_for_room_and_takes_what_fits) {
    run([&]() -> task<> {
        auto [left, right] = duplex(8);
        EXPECT_EQ((co_await left.write_some("0123456789")).value_or(0), 8U);
        auto writing = spawn(
            [&]() -> task<result<std::size_t>> { co_return co_await left.write_some("abcdef"); });
        co_await turns(3);
        EXPECT_FALSE(writing.done());
        std::array<char, 3> buffer{};
        EXPECT_EQ((co_await right.read_some(buffer)).value_or(0), 3U);
        EXPECT_EQ((co_await writing).value_or(0), 3U);
        left.close();
        EXPECT_EQ(co_await read_to_end(right), "34567abc");
    });
}

TEST_P(duplex_test, a_duplex_holds_its_capacity_in_each_direction) {
    run([&]() -> task<> {
        for (const std::size_t capacity : {std::size_t{1}, std::size_t{7}, std::size_t{65536}}) {
            auto [left, right] = duplex(capacity);
            EXPECT_EQ(co_await fill(left), capacity);
            EXPECT_EQ(co_await fill(right), capacity);
        }
        auto [left, right] = duplex();
        EXPECT_EQ(co_await fill(left), std::size_t{64} * 1024);
    });
}

TEST_P(duplex_test, vectored_writes_arrive_in_order_empty_buffers_included) {
    run([&]() -> task<> {
        auto [left, right] = duplex();
        const std::array<const_buffer, 5> parts{const_buffer{}, const_buffer{"one "},
                                                const_buffer{}, const_buffer{"two"},
                                                const_buffer{}};
        EXPECT_EQ((co_await left.write_some(std::span{parts})).value_or(0), 7U);
        const std::vector<const_buffer> nothing(3);
        EXPECT_EQ((co_await left.write_some(std::span{nothing})).value_or(9), 0U);
        EXPECT_EQ((co_await left.write_some(std::span<const const_buffer>{})).value_or(9), 0U);
        left.close();
        EXPECT_EQ(co_await read_to_end(right), "one two");
    });
}

TEST_P(duplex_test, transfers_of_any_size_go_through_a_pipe_of_any_size) {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        testing::dice dice{seed};
        const std::string sent = noise(1 + dice.up_to(5000), seed);
        run([&]() -> task<> {
            auto [left, right] = duplex(1 + dice.up_to(100));
            auto writing = spawn([&]() -> task<> {
                std::size_t at = 0;
                while (at < sent.size()) {
                    std::vector<const_buffer> parts;
                    for (std::size_t part = dice.up_to(4); part-- > 0 && at < sent.size();) {
                        const std::size_t size = std::min(dice.up_to(300), sent.size() - at);
                        parts.push_back(const_buffer{sent}.subspan(at, size));
                        at += size;
                    }
                    const std::span<const const_buffer> all{parts};
                    EXPECT_TRUE(co_await async_write_all(left, all));
                    co_await turns(static_cast<int>(dice.up_to(2)));
                }
            });
            std::string got(sent.size(), '\0');
            for (std::size_t at = 0; at < got.size();) {
                const std::size_t size = std::min(dice.up_to(200), got.size() - at);
                EXPECT_EQ((co_await async_read_exact(right, mutable_buffer{got}.subspan(at, size)))
                              .value_or(99999),
                          size);
                at += size;
            }
            co_await writing;
            EXPECT_TRUE(got == sent);
        });
    }
}

TEST_P(duplex_test, both_directions_flow_concurrently) {
    run([&]() -> task<> {
        auto [left, right] = duplex(10);
        const std::string there = noise(1000, 1);
        const std::string back = noise(1000, 2);
        std::string got_there(1000, '\0');
        std::string got_back(1000, '\0');
        co_await when_all(async_write_all(left, there), async_write_all(right, back),
                          async_read_exact(left, got_back), async_read_exact(right, got_there));
        EXPECT_TRUE(got_there == there);
        EXPECT_TRUE(got_back == back);
    });
}

TEST_P(duplex_test, a_writer_and_a_reader_that_never_wait_let_others_run) {
    run([&]() -> task<> {
        auto [left, right] = duplex();
        int others = 0;
        bool over = false;
        auto other = spawn([&]() -> task<> {
            while (!over) {
                ++others;
                co_await yield();
            }
        });
        std::array<char, 1> buffer;
        for (int round = 0; round < 1000; ++round) {
            EXPECT_TRUE(co_await left.write_some("x"));
            EXPECT_TRUE(co_await right.read_some(buffer));
        }
        over = true;
        co_await other;
        EXPECT_GE(others, 10);
    });
}

// --- half-close and close ------------------------------------------------------------------------

TEST_P(duplex_test, bytes_before_the_end_of_the_stream_come_first) {
    run([&]() -> task<> {
        auto [left, right] = duplex();
        EXPECT_TRUE(co_await left.write_some("last words"));
        EXPECT_TRUE(left.shutdown_write());
        EXPECT_TRUE(co_await left.shutdown_write());
        EXPECT_EQ(co_await read_to_end(right), "last words");
        std::array<char, 4> buffer;
        for (int times = 0; times < 3; ++times)
            EXPECT_EQ(error_of(co_await right.read_some(buffer)), errc::end_of_stream);

        EXPECT_EQ(error_of(co_await left.write_some("x")), std::errc::broken_pipe);
        EXPECT_TRUE(co_await right.write_some("answer"));
        EXPECT_EQ((co_await left.read_some(buffer)).value_or(0), 4U);
    });
}

TEST_P(duplex_test, shutdown_write_ends_a_read_and_a_write_in_flight) {
    run([&]() -> task<> {
        auto [left, right] = duplex(4);
        EXPECT_EQ(co_await fill(left), 4U);
        auto writing = spawn(
            [&]() -> task<transfer_result> { co_return co_await async_write_all(left, "more"); });
        auto reading = spawn(read_to_end(left));
        co_await turns(2);
        EXPECT_TRUE(left.shutdown_write());
        EXPECT_TRUE(right.shutdown_write());
        auto outcome = co_await writing;
        EXPECT_EQ(error_of(outcome), std::errc::broken_pipe);
        EXPECT_EQ(co_await reading, "");
        EXPECT_EQ(co_await read_to_end(right), "0123");
    });
}

TEST_P(duplex_test, read_exact_reports_the_end_with_the_bytes_before_it) {
    run([&]() -> task<> {
        auto [left, right] = duplex();
        EXPECT_TRUE(co_await left.write_some("abc"));
        left.close();
        std::string got(10, '?');
        auto count = co_await async_read_exact(right, got);
        EXPECT_EQ(error_of(count), errc::end_of_stream);
        EXPECT_EQ(count.error().transferred, 3U);
        EXPECT_EQ(got, "abc???????");
        EXPECT_EQ((co_await async_read_exact(right, mutable_buffer{})).value_or(9), 0U);
    });
}

TEST_P(duplex_test, closing_ends_operations_in_flight_at_both_ends) {
    run([&]() -> task<> {
        auto [left, right] = duplex(4);
        EXPECT_EQ(co_await fill(left), 4U);
        EXPECT_EQ(co_await fill(right), 4U);
        auto ours =
            spawn([&]() -> task<result<std::size_t>> { co_return co_await left.write_some("x"); });
        auto theirs = spawn(
            [&]() -> task<transfer_result> { co_return co_await async_write_all(right, "y"); });
        co_await turns(2);
        left.close();
        left.close();
        EXPECT_FALSE(left.is_open());
        EXPECT_FALSE(ours.done());
        EXPECT_EQ(error_of(co_await ours), canceled);
        EXPECT_EQ(error_of(co_await theirs), std::errc::broken_pipe);
        EXPECT_EQ(co_await read_to_end(right), "0123");
        EXPECT_EQ(error_of(co_await right.write_some("y")), std::errc::broken_pipe);
        EXPECT_EQ((co_await right.write_some(const_buffer{})).value_or(9), 0U);
    });
}

TEST_P(duplex_test, close_beats_bytes_being_delivered_to_a_reader) {
    run([&]() -> task<> {
        auto [left, right] = duplex();
        auto reading = spawn([&]() -> task<result<std::size_t>> {
            std::array<char, 4> buffer;
            co_return co_await right.read_some(buffer);
        });
        co_await turns(2);
        EXPECT_TRUE(co_await left.write_some("x"));
        right.close();
        EXPECT_EQ(error_of(co_await reading), canceled);
    });
}

TEST_P(duplex_test, operations_on_a_closed_end_are_an_error) {
    run([&]() -> task<> {
        auto [left, right] = duplex();
        left.close();
        std::array<char, 4> buffer;
        EXPECT_EQ(error_of(co_await left.read_some(buffer)), std::errc::bad_file_descriptor);
        EXPECT_EQ(error_of(co_await left.write_some("x")), std::errc::bad_file_descriptor);
        EXPECT_EQ(error_of(left.shutdown_write()), std::errc::bad_file_descriptor);
    });
}

TEST_P(duplex_test, an_end_may_be_moved_and_destroyed_with_operations_in_flight) {
    run([&]() -> task<> {
        auto [left, right] = duplex();
        auto reading = spawn([&]() -> task<result<std::size_t>> {
            std::array<char, 4> buffer;
            co_return co_await left.read_some(buffer);
        });
        co_await turns(2);
        std::optional<duplex_stream> moved{std::move(left)};
        EXPECT_FALSE(left.is_open());
        EXPECT_TRUE(moved->is_open());
        EXPECT_TRUE(co_await right.write_some("abcdef"));
        EXPECT_EQ((co_await reading).value_or(0), 4U);

        auto second = spawn([&]() -> task<transfer_result> {
            std::array<char, 4> buffer;
            co_return co_await async_read_exact(*moved, buffer);
        });
        co_await turns(2);
        moved.reset();
        auto outcome = co_await second;
        EXPECT_EQ(error_of(outcome), canceled);
        EXPECT_EQ(outcome.error().transferred, 2U);
        EXPECT_EQ(error_of(co_await right.write_some("x")), std::errc::broken_pipe);
    });
}

TEST_P(duplex_test, assignment_closes_the_previous_end) {
    run([&]() -> task<> {
        auto [left, right] = duplex();
        auto [other_left, other_right] = duplex();
        left = std::move(other_left);
        EXPECT_EQ(co_await read_to_end(right), "");
        EXPECT_TRUE(co_await left.write_some("x"));
        left.close();
        EXPECT_EQ(co_await read_to_end(other_right), "x");
    });
}

// --- stop and deadlines --------------------------------------------------------------------------

TEST_P(duplex_test, a_stopped_operation_fails_and_loses_nothing) {
    run([&]() -> task<> {
        auto [left, right] = duplex(4);
        EXPECT_EQ(co_await fill(left), 4U);
        std::array<char, 4> buffer;
        EXPECT_EQ(error_of(co_await with_timeout(left.write_some("x"), 1ms)),
                  errc::deadline_exceeded);
        EXPECT_EQ(error_of(co_await with_timeout(left.read_some(buffer), 1ms)),
                  errc::deadline_exceeded);
        auto part = co_await with_timeout(async_read_exact(right, std::span{buffer}.first(3)), 1ms);
        EXPECT_EQ(part.value_or(0), 3U); // available bytes beat a deadline
        part = co_await with_timeout(async_read_exact(right, buffer), 1ms);
        EXPECT_EQ(error_of(part), errc::deadline_exceeded);
        EXPECT_EQ(part.error().transferred, 1U);
        EXPECT_EQ(buffer[0], '3');

        auto stopped = co_await when_any(left.read_some(buffer), async_sleep(0ms));
        EXPECT_EQ(stopped.index, 1U);
        EXPECT_TRUE(co_await right.write_some("go on"));
        EXPECT_EQ((co_await left.read_some(buffer)).value_or(0), 4U);
    });
}

TEST_P(duplex_test, bytes_beat_a_later_stop) {
    run([&]() -> task<> {
        auto [left, right] = duplex();
        auto reading = spawn([&]() -> task<> {
            std::array<char, 4> buffer;
            EXPECT_EQ((co_await right.read_some(buffer)).value_or(0), 4U);
            // Level-triggered: available data does not help a stopped read.
            EXPECT_EQ(error_of(co_await right.read_some(buffer)), canceled);
            EXPECT_EQ(error_of(co_await right.write_some("x")), canceled);
        });
        co_await turns(2);
        EXPECT_TRUE(co_await left.write_some("abcdef"));
        reading.request_stop();
        EXPECT_FALSE(reading.done());
        co_await reading;
    });
}

TEST_P(duplex_test, a_refused_operation_passes_through_the_loop) {
    run([&]() -> task<> {
        auto [left, right] = duplex();
        EXPECT_TRUE(co_await left.write_some("data"));
        int refusals = 0;
        auto stubborn = spawn([&]() -> task<> {
            std::array<char, 4> buffer;
            while (refusals < 5) {
                if (co_await right.read_some(buffer)) co_return;
                ++refusals;
            }
        });
        stubborn.request_stop();
        co_await turns(3);
        EXPECT_LT(refusals, 5);
        co_await stubborn;
        EXPECT_EQ(refusals, 5);
    });
}

TEST_P(duplex_test, shield_keeps_a_stop_out) {
    run([&]() -> task<> {
        auto [left, right] = duplex();
        auto reading = spawn([&]() -> task<> {
            std::array<char, 4> buffer;
            EXPECT_TRUE(co_await shield(right.read_some(buffer)));
        });
        co_await turns(1);
        reading.request_stop();
        co_await turns(2);
        EXPECT_FALSE(reading.done());
        EXPECT_TRUE(co_await left.write_some("x"));
        co_await reading;
    });
}

// --- the end of the loop -------------------------------------------------------------------------

TEST_P(duplex_test, the_loop_may_end_with_operations_in_flight_and_the_streams_stay_usable) {
    auto [left, right] = duplex(4);
    std::vector<std::error_code> ends;
    loop().spawn([](auto& stream, auto& log) -> task<> {
        std::array<char, 4> buffer;
        log.push_back(error_of(co_await stream.read_some(buffer)));
    }(left, ends));
    loop().spawn([](auto& stream, auto& log) -> task<> {
        log.push_back(error_of(co_await async_write_all(stream, "0123456")));
    }(left, ends));
    loop().poll();
    loop().poll();
    destroy_loop();
    EXPECT_EQ(ends.size(), 2U);
    for (const std::error_code& end : ends)
        EXPECT_EQ(end, canceled);

    remake_loop();
    run([&]() -> task<> {
        std::array<char, 8> buffer{};
        EXPECT_EQ((co_await right.read_some(buffer)).value_or(0), 4U);
        EXPECT_EQ(std::string_view(buffer.data(), 4), "0123");
        EXPECT_TRUE(co_await right.write_some("x"));
        EXPECT_TRUE(co_await left.read_some(buffer));
    });
}

// The streams belong to frames that never end on their own, and each closes the other's peer.
TEST_P(duplex_test, frames_that_teardown_destroys_take_their_streams_with_them) {
    loop().spawn([]() -> task<> {
        auto [left, right] = duplex();
        auto stubborn = [](duplex_stream mine) -> task<> {
            std::array<char, 4> buffer;
            for (;;) // until it is resumed no more
                static_cast<void>(co_await mine.read_some(buffer));
        };
        spawn(stubborn(std::move(left))).detach();
        spawn(stubborn(std::move(right))).detach();
        co_return;
    }());
    loop().poll();
    loop().poll();
    destroy_loop();
}

// --- misuse --------------------------------------------------------------------------------------

TEST_P(duplex_test, a_second_reader_or_writer_is_a_violation) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto twice = [&](bool reads) {
        run([&]() -> task<> {
            auto [left, right] = duplex(1);
            auto one = [&]() -> task<> {
                std::array<char, 4> buffer;
                if (reads) {
                    static_cast<void>(co_await left.read_some(buffer));
                } else {
                    static_cast<void>(co_await async_write_all(left, "many"));
                }
            };
            co_await when_all(one(), one());
        });
    };
    EXPECT_DEATH(twice(true), "one in flight");
    EXPECT_DEATH(twice(false), "one in flight");
}

TEST_P(duplex_test, misuse_stops_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(static_cast<void>(duplex(0)), "no room");
    auto [left, right] = duplex();
    EXPECT_DEATH(static_cast<void>(left.read_some(mutable_buffer{})), "into an empty buffer");
    duplex_stream taken = std::move(left);
    EXPECT_DEATH(run([&]() -> task<> { static_cast<void>(co_await left.write_some("x")); }),
                 "moved from");
    EXPECT_DEATH(static_cast<void>(left.shutdown_write()), "moved from");
}

INSTANTIATE_TEST_SUITE_P(backends, duplex_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
