// Large reads: io_uring stops receiving ahead for them, which must not affect the promises of a
// stream.

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/large_reads.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/stream/copy.hpp>
#include <simplenet/stream/send_file.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <utility>

#include <gmock/gmock.h>
#include <linux/net_tstamp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#if SIMPLENET_SEAMS
#include "sys/seam.hpp"
#endif

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::connect_raw_local;
using testing::connected_pair;
using testing::large;
using testing::next_event;
using testing::noise;
using testing::read_much;
using testing::text_of;

class large_reads_test : public testing::backend_test {};

TEST_P(large_reads_test, pieces_of_every_size_arrive_in_order_by_every_kind_of_read) {
    auto [ours, theirs] = connected_pair();
    const std::string sent = noise(4 * 1024 * 1024);
    run([&]() -> task<> {
        auto writer = [&]() -> task<> {
            std::size_t at = 0;
            for (std::size_t size = 1; at < sent.size(); size = size * 7 % 50021 + 1) {
                const std::size_t count = std::min(size, sent.size() - at);
                const const_buffer piece{sent.data() + at, count};
                EXPECT_TRUE(co_await async_write_all(theirs, piece));
                at += count;
            }
            theirs.close();
        };
        auto child = loop().spawn(writer);
        std::string got;
        std::string buffer(60000, '\0');
        for (std::size_t size = 3; got.size() < sent.size(); size = size * 11 % 59999 + 1) {
            if (size % 3 == 0) {
                auto lease = co_await ours.receive();
                if (!lease) break;
                got += text_of(*lease);
            } else if (size % 3 == 1 && got.size() + size <= sent.size()) {
                const mutable_buffer into{buffer.data(), size};
                if (!co_await async_read_exact(ours, into)) break;
                got.append(buffer, 0, size);
            } else {
                const mutable_buffer into{buffer.data(), size};
                const auto count = co_await ours.read_some(into);
                if (!count) break;
                got.append(buffer, 0, *count);
            }
        }
        EXPECT_TRUE(got == sent) << got.size() << " of " << sent.size();
        const auto end = co_await ours.read_some(mutable_buffer{buffer});
        EXPECT_EQ(error_of(end), errc::end_of_stream);
        co_await std::move(child);
    });
}

TEST_P(large_reads_test, the_end_that_comes_with_the_last_bytes_is_seen) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        co_await read_much(ours, theirs);
        std::array<char, 1000> buffer;
        auto reads = [&]() -> task<result<std::size_t>> {
            co_return co_await ours.read_some(buffer);
        };
        auto child = loop().spawn(reads);
        co_await testing::turns(3);
        theirs.send("the last");
        theirs.close();
        EXPECT_EQ((co_await std::move(child)).value_or(0), 8U);
        // The end is reported every time.
        for (int round = 0; round < 3; ++round) {
            const auto end = co_await ours.read_some(buffer);
            EXPECT_EQ(error_of(end), errc::end_of_stream);
        }
    });
}

TEST_P(large_reads_test, a_read_that_waits_sees_the_end_and_the_reset) {
    for (const bool resets : {false, true}) {
        auto [ours, theirs] = connect_raw();
        run([&]() -> task<> {
            co_await read_much(ours, theirs);
            auto waits = [&]() -> task<result<std::size_t>> {
                std::array<char, 1000> buffer;
                co_return co_await ours.read_some(buffer);
            };
            auto child = loop().spawn(waits);
            co_await testing::turns(3);
            if (resets) {
                theirs.reset();
            } else {
                theirs.close();
            }
            const auto outcome = co_await std::move(child);
            if (resets) {
                EXPECT_EQ(error_of(outcome), std::errc::connection_reset);
            } else {
                EXPECT_EQ(error_of(outcome), errc::end_of_stream);
            }
        });
    }
}

TEST_P(large_reads_test, urgent_data_between_the_bytes_hides_none_of_them) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        co_await read_much(ours, theirs);
        std::string got;
        std::array<char, 1000> buffer;
        auto reading = ours.read_some(buffer);
        theirs.send("before");
        theirs.send("!", MSG_OOB);
        theirs.send("after");
        got.append(buffer.data(), (co_await std::move(reading)).value_or(0));
        while (got.size() < 11) {
            const auto count = co_await ours.read_some(buffer);
            if (!count) break;
            got.append(buffer.data(), *count);
        }
        EXPECT_EQ(got, "beforeafter");
    });
}

TEST_P(large_reads_test, they_alternate_with_receive) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        for (int round = 0; round < 3; ++round) {
            co_await read_much(ours, theirs);
            auto receiving = [&]() -> task<result<received>> { co_return co_await ours.receive(); };
            auto waiting = loop().spawn(receiving);
            co_await testing::turns(3);
            theirs.send("to a lease");
            const auto lease = co_await std::move(waiting);
            EXPECT_EQ(lease ? text_of(*lease) : "", "to a lease");
            theirs.send("at once");
            const auto again = co_await ours.receive();
            EXPECT_EQ(again ? text_of(*again) : "", "at once");
        }
    });
}

TEST_P(large_reads_test, a_stop_and_a_deadline_end_them_and_lose_nothing) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::string buffer(large, '\0');
        const mutable_buffer into{buffer};
        for (std::uint32_t round = 0; round < 5; ++round) {
            co_await read_much(ours, theirs);
            const auto late = co_await with_timeout(ours.read_some(into), 1ms);
            EXPECT_EQ(error_of(late), errc::deadline_exceeded);

            auto reads = [&]() -> task<result<std::size_t>> {
                co_return co_await ours.read_some(into);
            };
            auto child = loop().spawn(reads);
            co_await testing::turns(2);
            child.request_stop();
            const auto stopped = co_await std::move(child);
            EXPECT_EQ(error_of(stopped), std::errc::operation_canceled);

            const std::string sent = noise(large, 100 + round);
            theirs.send(sent);
            // Available bytes beat a deadline that has passed.
            const auto moment = std::chrono::steady_clock::now();
            testing::pass(moment);
            const auto there = co_await with_deadline(ours.read_some(into), moment);
            EXPECT_TRUE(there) << error_of(there).message();
            const std::size_t have = there.value_or(0);
            const auto rest = co_await async_read_exact(ours, into.subspan(have));
            EXPECT_TRUE(rest);
            EXPECT_TRUE(buffer == sent) << "round " << round;
        }
    });
}

TEST_P(large_reads_test, closing_ends_one_that_waits_and_tells_the_peer) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        co_await read_much(ours, theirs);
        auto reads = [&]() -> task<result<std::size_t>> {
            std::array<char, 1000> buffer;
            co_return co_await ours.read_some(buffer);
        };
        auto child = loop().spawn(reads);
        co_await testing::turns(3);
        ours.close();
        EXPECT_EQ(theirs.receive_to_the_end(), errc::end_of_stream);
        const auto outcome = co_await std::move(child);
        EXPECT_EQ(error_of(outcome), std::errc::operation_canceled);
    });
    EXPECT_EQ(loop().metrics().open_descriptors, 0U);
}

TEST_P(large_reads_test, a_stream_that_is_released_after_them_takes_all_bytes_along) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        for (int round = 0; round < 3; ++round) {
            co_await read_much(ours, theirs);
            theirs.send("unread");
            auto left = co_await std::move(ours).release();
            EXPECT_TRUE(left);
            if (!left) co_return;
            std::string got(reinterpret_cast<const char*>(left->unread.data()),
                            left->unread.size());
            ours = tcp_stream{std::move(left->socket)};
            std::string rest(6 - got.size(), '\0');
            const mutable_buffer into{rest};
            const auto there = co_await async_read_exact(ours, into);
            EXPECT_TRUE(there);
            EXPECT_EQ(got + rest, "unread");
        }
    });
}

TEST_P(large_reads_test, a_copy_continues_where_they_stopped) {
    auto [ours, theirs] = connect_raw();
    auto [out, sink] = connect_raw();
    const std::string sent = noise(200 * 1000, 9);
    run([&]() -> task<> {
        co_await read_much(ours, theirs);
        theirs.send(sent);
        theirs.shutdown_write();
        const auto copied = co_await async_copy(ours, out);
        EXPECT_TRUE(copied);
        out.close();
    });
    EXPECT_TRUE(sink.receive(sent.size()) == sent);
}

TEST_P(large_reads_test, work_on_a_local_stream) {
    auto [ours, theirs] = connect_raw_local();
    run([&]() -> task<> {
        co_await read_much(ours, theirs);
        std::array<char, 10> buffer;
        auto reading = ours.read_some(buffer);
        theirs.send("small");
        theirs.close();
        EXPECT_EQ((co_await std::move(reading)).value_or(0), 5U);
        const auto end = co_await ours.read_some(buffer);
        EXPECT_EQ(error_of(end), errc::end_of_stream);
    });
}

TEST_P(large_reads_test, end_with_their_loop) {
    auto [ours, theirs] = connect_raw();
    std::optional<std::error_code> outcome;
    run([&]() -> task<> { co_await read_much(ours, theirs); });
    loop().spawn([&]() -> task<> {
        std::array<char, 1000> buffer;
        outcome = error_of(co_await ours.read_some(buffer));
    });
    static_cast<void>(loop().poll());
    destroy_loop();
    EXPECT_EQ(outcome, std::make_error_code(std::errc::operation_canceled));
}

/// Bytes are available and the limit has passed.
task<> read_past_the_limit(tcp_stream& ours, bool leases) {
    const auto moment = std::chrono::steady_clock::now();
    testing::pass(moment);
    if (leases) {
        const auto lease = co_await with_deadline(ours.receive(), moment);
        EXPECT_TRUE(lease) << error_of(lease).message();
    } else {
        std::array<char, 8> buffer;
        const auto count = co_await with_deadline(ours.read_some(buffer), moment);
        EXPECT_TRUE(count) << error_of(count).message();
    }
}

// A multishot receive can be cancelled before the kernel has looked at the socket.
TEST_P(large_reads_test, available_bytes_beat_a_deadline_as_they_begin) {
    for (int round = 0; round < 60; ++round) { // the kernel is not always busy enough
        const bool leases = round % 2 != 0;
        auto [ours, theirs] = connect_raw();
        const auto wait_for_one = [&]() -> task<> {
            std::string buffer(large, '\0');
            const mutable_buffer into{buffer};
            EXPECT_TRUE(co_await async_read_exact(ours, into.first(10'000)));
            theirs.send("there");
            co_await read_past_the_limit(ours, leases);
        };
        run([&]() -> task<> {
            auto child = loop().spawn(wait_for_one);
            co_await testing::turns(3);
            theirs.send(noise(10'000));
            co_await std::move(child);
        });
    }
}

/// Uses two streams at once, so that the kernel gets the second buffer of a pool as well.
task<> use_two_buffers() {
    auto [one, first] = connect_raw();
    auto [two, second] = connect_raw();
    const auto read = [&](tcp_stream& stream) -> task<> {
        std::array<char, 8> bytes;
        EXPECT_TRUE(co_await stream.read_some(bytes));
    };
    first.send("1");
    second.send("1");
    co_await read(one);
    co_await read(two);
    auto waiting = spawn(read(two));
    co_await testing::turns(5);
    first.send("2");
    second.send("2");
    co_await waiting;
    co_await read(one);
}

// The same for a stream that has received ahead as much as it may, and for pools that have given
// the kernel all it may have.
TEST_P(large_reads_test, available_bytes_beat_a_deadline_after_those_received_ahead) {
    for (int round = 0; round < 90; ++round) { // the kernel is not always busy enough
        if (round % 30 == 0) {
            constexpr std::array<std::size_t, 3> pools{16 << 20, 1 << 20, 32 << 10};
            remake_loop({.read_ahead = 1, .receive_pool = pools[round / 30]});
        }
        run(use_two_buffers);
        const bool leases = round % 2 != 0;
        auto [ours, theirs] = connect_raw();
        run([&]() -> task<> {
            std::array<char, 8> buffer;
            theirs.send("1");
            EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 1U);
            co_await testing::turns(3);
            theirs.send("2");
            co_await testing::next_event(loop());
            EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 1U);
            theirs.send("there");
            co_await read_past_the_limit(ours, leases);
        });
    }
}

/// Calls receive() on `ours` with a limit that has passed, after `spent` reads of one byte in one
/// turn. A task has 64 inline turns, so the last call waits for another turn.
task<result<received>> receive_late(tcp_stream& ours, int spent) {
    const auto long_ago = std::chrono::steady_clock::now() - 1s;
    std::array<char, 1> buffer;
    EXPECT_TRUE(co_await ours.read_some(buffer)); // more bytes are available from here on
    co_await testing::turns(1);
    for (int each = 0; each < spent; ++each)
        EXPECT_TRUE(co_await ours.read_some(buffer));
    co_return co_await with_deadline(ours.receive(), long_ago);
}

// On io_uring the kernel then has all buffers. The loop must still look for bytes, or the next read
// would wait for an event that has already occurred.
TEST_P(large_reads_test, available_bytes_beat_the_deadline_of_a_queued_receive) {
    remake_loop({.receive_pool = 1}); // two buffers
    run([&]() -> task<> {
        for (int spent = 60; spent < 68; ++spent) {
            auto [ours, theirs] = connect_raw();
            co_await read_much(ours, theirs);
            theirs.send(noise(40'000));
            const auto lease = co_await receive_late(ours, spent);
            EXPECT_TRUE(lease) << error_of(lease).message();
            std::array<char, 1> buffer;
            EXPECT_TRUE(co_await ours.read_some(buffer));
        }
    });
}

TEST_P(large_reads_test, continue_around_a_receive_that_found_no_buffer) {
    remake_loop({.receive_pool = 1}); // two buffers
    run([&]() -> task<> {
        for (int spent = 60; spent < 68; ++spent) {
            auto [ours, theirs] = connect_raw();
            auto [other, another] = connect_raw();
            co_await read_much(ours, theirs);
            std::array<received, 2> held;
            for (received& each : held) {
                another.send("held");
                if (auto lease = co_await other.receive()) each = *std::move(lease);
            }
            theirs.send(noise(100));
            const auto lease = co_await receive_late(ours, spent);
            EXPECT_EQ(lease ? lease->size() : 0, 99U - static_cast<unsigned>(spent));
            auto more = spawn([&]() -> task<> {
                std::array<char, 1> buffer;
                EXPECT_TRUE(co_await ours.read_some(buffer));
            });
            co_await testing::turns(5);
            theirs.send("more");
            co_await more;
        }
    });
}

#if SIMPLENET_SEAMS

/// Delays completions, and ends multishot operations that could continue.
class moody_kernel final : public detail::sys::interceptor {
public:
    explicit moody_kernel(std::uint32_t seed)
        : engine_{seed} {}

private:
    detail::sys::verdict on_completion(detail::sys::reaped_completion&) noexcept override {
        const auto thrown = engine_() % 16;
        return {.polls = thrown < 3 ? static_cast<unsigned>(thrown) : 0U, .ends = thrown == 4};
    }
    std::minstd_rand engine_;
};

/// Tells late that an entry was canceled.
class late_canceler final : public detail::sys::interceptor {
    detail::sys::verdict on_completion(detail::sys::reaped_completion& seen) noexcept override {
        return {.polls = seen.res == -ECANCELED ? 3U : 0U};
    }
};

// A write has found the errors, and the socket is watched since: the kernel does not report again
// the bytes that come while io_uring stops to receive ahead.
TEST_P(large_reads_test, begin_on_a_stream_with_an_unread_error_queue) {
    auto [ours, theirs] = connect_raw();
    constexpr off_t size = 64 * 1024 * 1024; // more than any send buffer
    const unique_fd file{testing::checked(::memfd_create("zeroes", MFD_CLOEXEC))};
    testing::checked(::ftruncate(file.get(), size));
    constexpr int stamps = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
    testing::checked(
        ::setsockopt(ours.native_handle(), SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof stamps));
    run([&]() -> task<> {
        const auto send = [&]() -> task<> {
            EXPECT_FALSE(co_await async_send_file(ours, file.get(), 0, size));
        };
        EXPECT_TRUE(co_await async_write_all(ours, "stamped"));
        auto sending = loop().spawn(send);
        co_await testing::turns(100);
        sending.request_stop();
        co_await std::move(sending);

        late_canceler late;
        const detail::sys::intercepting now{late};
        std::string buffer(std::size_t{16} * 1024, '\0'); // arrives at once
        const auto read = [&]() -> task<> { EXPECT_TRUE(co_await async_read_exact(ours, buffer)); };
        for (std::uint32_t round = 0; round < 3; ++round) {
            const std::string sent = noise(buffer.size(), round);
            auto child = loop().spawn(read);
            co_await testing::turns(1);
            theirs.send(sent);
            co_await std::move(child);
            EXPECT_TRUE(buffer == sent) << "round " << round;
        }
    });
}

TEST_P(large_reads_test, every_mixture_with_stops_and_deadlines_is_in_order_and_complete) {
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
        testing::dice dice{seed};
        moody_kernel moods{seed};
        const detail::sys::intercepting now{moods};
        auto [ours, theirs] = connected_pair();
        const std::string sent = noise(600'000, seed);
        std::string got;
        const auto write = [&]() -> task<> {
            for (std::size_t at = 0; at < sent.size();) {
                const std::size_t most = dice.one_in(3) ? 100 : 40'000;
                const std::size_t count = std::min(1 + dice.up_to(most), sent.size() - at);
                const const_buffer piece{sent.data() + at, count};
                EXPECT_TRUE(co_await async_write_all(theirs, piece));
                at += count;
                if (dice.one_in(2)) co_await testing::turns(static_cast<int>(dice.up_to(4)));
            }
            theirs.close();
        };
        std::error_code end;
        std::string buffer(60'000, '\0');
        const auto read_once = [&](std::size_t way) -> task<result<>> {
            const mutable_buffer into{buffer.data(), 1 + dice.up_to(buffer.size() - 1)};
            if (way == 0) {
                auto lease = co_await ours.receive();
                if (!lease) co_return fail(lease);
                got += text_of(*lease);
            } else if (way == 1) {
                const auto count = co_await async_read_exact(ours, into);
                got.append(buffer, 0, count ? *count : count.error().transferred);
                if (!count) co_return fail(count);
            } else {
                const auto count = co_await ours.read_some(into);
                if (!count) co_return fail(count);
                got.append(buffer, 0, *count);
            }
            co_return result<>{};
        };
        const auto read = [&]() -> task<> {
            while (!end) {
                const std::size_t way = dice.up_to(5);
                result<> outcome;
                if (dice.one_in(4)) {
                    const auto limit = std::chrono::microseconds{dice.up_to(300)};
                    outcome = co_await with_timeout(read_once(way), limit);
                } else if (dice.one_in(4)) {
                    auto child = loop().spawn(read_once(way));
                    co_await testing::turns(static_cast<int>(dice.up_to(4)));
                    child.request_stop();
                    outcome = co_await std::move(child);
                } else {
                    outcome = co_await read_once(way);
                }
                if (!outcome && outcome.error() != errc::deadline_exceeded &&
                    outcome.error() != std::errc::operation_canceled) {
                    end = outcome.error();
                }
            }
        };
        loop().spawn(write);
        run(read);
        EXPECT_EQ(end, errc::end_of_stream);
        ASSERT_TRUE(got == sent) << got.size() << " of " << sent.size();
    }
}

#endif

INSTANTIATE_TEST_SUITE_P(backends, large_reads_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
