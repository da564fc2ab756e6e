// Open descriptors over streams of the runtime: local_stream::send_descriptors() and
// receive_descriptors().

#include <simplenet/net/local_stream.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptor_limit.hpp"
#include "support/descriptor_messages.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/pipes.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <string>
#include <vector>

#include <unistd.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw_local;
using testing::make_pipe;
using testing::noise;
using testing::open_descriptors;
using testing::receive_with;
using testing::same_file;
using testing::send_with;
using testing::turns;

class descriptors_test : public testing::backend_test {};

// --- sending -------------------------------------------------------------------------------------

TEST_P(descriptors_test, descriptors_are_sent_with_the_bytes) {
    auto [ours, theirs] = connect_raw_local();
    auto [out, in] = make_pipe();
    auto [second_out, second_in] = make_pipe();
    run([&]() -> task<> {
        const std::array fds{out.get(), second_out.get()};
        EXPECT_EQ((co_await ours.send_descriptors("two of them", fds)).value_or(0), 11U);
        auto got = receive_with(theirs);
        EXPECT_EQ(got.text, "two of them");
        EXPECT_EQ(got.descriptors.size(), 2U);
        if (got.descriptors.size() != 2) co_return;
        EXPECT_TRUE(same_file(got.descriptors[0].get(), out.get()));
        EXPECT_TRUE(same_file(got.descriptors[1].get(), second_out.get()));
        EXPECT_TRUE(testing::is_open(out.get())); // the sender keeps its own

        EXPECT_EQ((co_await ours.send_descriptors("one", in.get())).value_or(0), 3U);
        EXPECT_EQ(receive_with(theirs).descriptors.size(), 1U);
        EXPECT_EQ((co_await ours.send_descriptors("none", std::span<const int>{})).value_or(0), 4U);
        EXPECT_EQ(receive_with(theirs).descriptors.size(), 0U);
        // Braces must not become descriptor 0: sending standard input by mistake would be a leak.
        EXPECT_EQ((co_await ours.send_descriptors("none", {})).value_or(0), 4U);
        EXPECT_EQ(receive_with(theirs).descriptors.size(), 0U);
    });
}

TEST_P(descriptors_test, many_bytes_pass_small_buffers_and_descriptors_are_sent_once) {
    auto [ours, theirs] = connect_raw_local({.ours = 4096, .theirs = 4096});
    auto [out, in] = make_pipe();
    const std::string much = noise(1 << 20);
    run([&]() -> task<> {
        auto sending = spawn([&]() -> task<transfer_result> {
            co_return co_await ours.send_descriptors(much, out.get());
        });
        std::string got;
        std::size_t descriptors = 0;
        while (got.size() < much.size()) {
            co_await yield();
            if (theirs.peek() <= 0) continue;
            auto part = receive_with(theirs);
            got += part.text;
            descriptors += part.descriptors.size();
        }
        EXPECT_EQ((co_await sending).value_or(0), much.size());
        EXPECT_TRUE(got == much);
        EXPECT_EQ(descriptors, 1U);
    });
}

TEST_P(descriptors_test, a_stopped_send_says_whether_they_were_sent) {
    auto [ours, theirs] = connect_raw_local({.ours = 4096, .theirs = 4096});
    auto [out, in] = make_pipe();
    const std::string much(1 << 20, 'x');
    run([&]() -> task<> {
        const transfer_result some =
            co_await with_timeout(ours.send_descriptors(much, out.get()), 1ms);
        EXPECT_EQ(error_of(some), errc::deadline_exceeded);
        EXPECT_GT(some.error().transferred, 0U); // sent, with the first byte

        // The socket is full, so none of these is sent.
        const transfer_result none =
            co_await with_timeout(ours.send_descriptors("late", in.get()), 1ms);
        EXPECT_EQ(error_of(none), errc::deadline_exceeded);
        EXPECT_EQ(none.error().transferred, 0U);

        std::size_t bytes = 0;
        std::size_t descriptors = 0;
        while (theirs.peek() > 0) {
            auto part = receive_with(theirs);
            bytes += part.text.size();
            descriptors += part.descriptors.size();
        }
        EXPECT_EQ(bytes, some.error().transferred);
        EXPECT_EQ(descriptors, 1U);
        EXPECT_TRUE(co_await ours.send_descriptors("again", in.get()));
        EXPECT_EQ(receive_with(theirs).descriptors.size(), 1U);
    });
}

TEST_P(descriptors_test, invalid_descriptors_are_an_error_and_nothing_is_sent) {
    auto [ours, theirs] = connect_raw_local();
    auto [out, in] = make_pipe();
    run([&]() -> task<> {
        const std::vector<int> too_many(most_descriptors + 1, out.get());
        EXPECT_EQ(error_of(co_await ours.send_descriptors("x", too_many)), errc::limit_exceeded);
        EXPECT_EQ(error_of(co_await ours.send_descriptors("x", -1)),
                  std::errc::bad_file_descriptor);
        EXPECT_EQ(theirs.peek(), -EAGAIN);

        const std::vector<int> as_many_as_allowed(most_descriptors, out.get());
        EXPECT_TRUE(co_await ours.send_descriptors("x", as_many_as_allowed));
        EXPECT_EQ(receive_with(theirs).descriptors.size(), most_descriptors);
        theirs.close();
        EXPECT_EQ(error_of(co_await ours.send_descriptors("x", in.get())), std::errc::broken_pipe);
    });
}

// --- receiving -----------------------------------------------------------------------------------

TEST_P(descriptors_test, descriptors_come_with_their_bytes) {
    auto [ours, theirs] = connect_raw_local();
    auto [out, in] = make_pipe();
    run([&]() -> task<> {
        for (const int wait : {0, 3}) { // available at once, and waited for
            std::array<char, 64> buffer{};
            auto reading =
                spawn([&]() -> task<std::expected<received_descriptors, transfer_error>> {
                    co_return co_await ours.receive_descriptors(buffer);
                });
            co_await turns(wait);
            const std::array fds{out.get(), in.get()};
            send_with(theirs, "pipe", fds);
            auto got = co_await reading;
            EXPECT_TRUE(got);
            if (!got) co_return;
            EXPECT_EQ(got->size, 4U);
            EXPECT_EQ(got->descriptors.size(), 2U);
            EXPECT_TRUE(same_file(got->descriptors.at(0).get(), out.get()));
            EXPECT_TRUE(same_file(got->descriptors.at(1).get(), in.get()));
            for (const unique_fd& each : got->descriptors)
                EXPECT_TRUE(testing::is_close_on_exec(each.get()));
        }
    });
}

TEST_P(descriptors_test, bytes_without_descriptors_are_a_success_too) {
    auto [ours, theirs] = connect_raw_local();
    theirs.send("plain");
    theirs.shutdown_write();
    run([&]() -> task<> {
        std::array<char, 64> buffer{};
        auto got = co_await ours.receive_descriptors(buffer);
        EXPECT_TRUE(got && got->size == 5 && got->descriptors.empty());
        auto end = co_await ours.receive_descriptors(buffer);
        EXPECT_EQ(error_of(end), errc::end_of_stream);
        end = co_await ours.receive_descriptors(buffer);
        EXPECT_EQ(error_of(end), errc::end_of_stream);
    });
}

// A receive that the kernel makes on its own would lose the descriptors.
TEST_P(descriptors_test, an_earlier_read_takes_no_more_than_it_requests) {
    auto [out, in] = make_pipe();
    for (int how = 0; how < 3; ++how) {
        auto [ours, theirs] = connect_raw_local();
        run([&]() -> task<> {
            std::array<char, 4> header{};
            std::array<char, 64> body{};
            for (int round = 0; round < 20; ++round) {
                auto reading = spawn([&]() -> task<> {
                    if (how == 0) {
                        EXPECT_TRUE(co_await async_read_exact(ours, header));
                    } else if (how == 1) {
                        EXPECT_EQ((co_await ours.read_some(header)).value_or(0), 4U);
                    } else {
                        auto lease = co_await ours.receive();
                        EXPECT_TRUE(lease && lease->size() == 4);
                    }
                });
                co_await turns(round % 4);
                theirs.send("head");
                if (how == 2) co_await reading; // receive() takes everything available
                send_with(theirs, "body", std::array{out.get()});
                if (how != 2) co_await reading;
                co_await turns(round % 3);
                auto got = co_await ours.receive_descriptors(body);
                EXPECT_TRUE(got && got->size == 4 && got->descriptors.size() == 1) << how;
            }
        });
    }
}

TEST_P(descriptors_test, a_stopped_read_leaves_them_to_the_next_one) {
    auto [ours, theirs] = connect_raw_local();
    auto [out, in] = make_pipe();
    run([&]() -> task<> {
        std::array<char, 64> buffer{};
        for (int round = 0; round < 100; ++round) {
            // A plain read, a receive(), or one for descriptors; stopped before or after the send.
            auto reading = spawn([&]() -> task<std::size_t> {
                if (round % 3 == 0) {
                    auto got = co_await ours.receive_descriptors(buffer);
                    co_return got ? got->descriptors.size() : 100;
                }
                if (round % 3 == 1) {
                    auto count = co_await ours.read_some(buffer);
                    co_return count ? 0 : 100;
                }
                auto lease = co_await ours.receive();
                co_return lease ? 0 : 100;
            });
            co_await turns(round % 5);
            if (round % 2 == 0) reading.request_stop();
            send_with(theirs, "x", std::array{out.get()});
            reading.request_stop();
            const std::size_t got = co_await reading;
            if (got == 100) {
                auto now = co_await ours.receive_descriptors(buffer);
                EXPECT_TRUE(now && now->descriptors.size() == 1) << round;
            } else if (round % 3 == 0) {
                EXPECT_EQ(got, 1U);
            }
        }
    });
}

TEST_P(descriptors_test, available_bytes_beat_a_deadline) {
    auto [ours, theirs] = connect_raw_local();
    auto [out, in] = make_pipe();
    run([&]() -> task<> {
        std::array<char, 64> buffer{};
        for (int how = 0; how < 3; ++how) {
            auto late = spawn([&]() -> task<bool> {
                if (how == 0) {
                    auto got = co_await with_timeout(ours.receive_descriptors(buffer), 1ms);
                    co_return got && got->descriptors.size() == 1;
                }
                if (how == 1) {
                    auto count = co_await with_timeout(ours.read_some(buffer), 1ms);
                    co_return count.has_value();
                }
                auto lease = co_await with_timeout(ours.receive(), 1ms);
                co_return lease.has_value();
            });
            co_await turns(2);
            testing::pass(std::chrono::steady_clock::now() + 2ms);
            send_with(theirs, "x", std::array{out.get()});
            EXPECT_TRUE(co_await late) << how;

            EXPECT_EQ(error_of(co_await with_timeout(ours.receive_descriptors(buffer), 0ms)),
                      errc::deadline_exceeded);
            EXPECT_EQ(error_of(co_await with_timeout(ours.receive(), 0ms)),
                      errc::deadline_exceeded);
            EXPECT_EQ(error_of(co_await with_timeout(ours.read_some(buffer), 0ms)),
                      errc::deadline_exceeded);
        }
    });
}

// --- nothing leaks -------------------------------------------------------------------------------

TEST_P(descriptors_test, descriptors_that_are_not_taken_are_closed) {
    auto [out, in] = make_pipe();
    run([&]() -> task<> {
        auto [ours, theirs] = connect_raw_local();
        std::array<char, 64> buffer{};
        static_cast<void>(co_await with_timeout(ours.read_some(buffer), 1ms));
        const std::size_t before = open_descriptors();
        const std::vector<int> many(50, out.get());
        for (int round = 0; round < 4; ++round) {
            send_with(theirs, "ignored", many);
            if (round == 0) {
                EXPECT_TRUE(co_await ours.receive_descriptors(buffer));
            } else if (round == 1) {
                EXPECT_TRUE(co_await ours.read_some(buffer));
            } else if (round == 2) {
                EXPECT_TRUE(co_await ours.receive());
            } else {
                EXPECT_EQ(
                    (co_await async_read_exact(ours, mutable_buffer{buffer}.first(7))).value_or(0),
                    7U);
            }
            EXPECT_EQ(open_descriptors(), before) << round;
        }
        ours.close();
        co_await ours.closed();
    });
}

TEST_P(descriptors_test, more_than_the_limit_is_an_error_that_keeps_the_bytes) {
    auto [ours, theirs] = connect_raw_local();
    auto [out, in] = make_pipe();
    run([&]() -> task<> {
        std::array<char, 64> buffer{};
        static_cast<void>(co_await with_timeout(ours.read_some(buffer), 1ms));
        const std::size_t before = open_descriptors();
        send_with(theirs, "three", std::vector<int>(3, out.get()));
        auto got = co_await ours.receive_descriptors(buffer, 2);
        EXPECT_EQ(error_of(got), errc::limit_exceeded);
        EXPECT_EQ(got.error().transferred, 5U);
        EXPECT_EQ(std::string(buffer.data(), 5), "three");
        EXPECT_EQ(open_descriptors(), before);

        send_with(theirs, "two", std::vector<int>(2, out.get()));
        got = co_await ours.receive_descriptors(buffer, 2);
        EXPECT_TRUE(got && got->descriptors.size() == 2);
        send_with(theirs, "one", std::vector<int>(1, out.get()));
        EXPECT_EQ(error_of(co_await ours.receive_descriptors(buffer, 0)), errc::limit_exceeded);
        send_with(theirs, "all", std::vector<int>(most_descriptors, out.get()));
        got = co_await ours.receive_descriptors(buffer);
        EXPECT_TRUE(got && got->descriptors.size() == most_descriptors);
    });
}

TEST_P(descriptors_test, a_full_descriptor_table_is_reported_and_leaks_none) {
    auto [ours, theirs] = connect_raw_local();
    auto [out, in] = make_pipe();
    run([&]() -> task<> {
        std::array<char, 64> buffer{};
        static_cast<void>(co_await with_timeout(ours.read_some(buffer), 1ms));
        const std::size_t before = open_descriptors();
        send_with(theirs, "ten", std::vector<int>(10, out.get()));
        theirs.send("behind");
        {
            const testing::descriptor_limit scarce{3};
            auto got = co_await ours.receive_descriptors(buffer);
            EXPECT_EQ(error_of(got), std::errc::too_many_files_open);
            EXPECT_EQ(got.error().transferred, 3U);
        }
        EXPECT_EQ(open_descriptors(), before);
        auto got = co_await ours.receive_descriptors(buffer);
        EXPECT_TRUE(got && got->size == 6);
    });
}

TEST_P(descriptors_test, a_stream_that_is_closed_with_descriptors_unread_closes_them) {
    auto [out, in] = make_pipe();
    run([&]() -> task<> {
        for (int how = 0; how < 2; ++how) {
            auto [ours, theirs] = connect_raw_local();
            std::array<char, 64> buffer{};
            static_cast<void>(co_await with_timeout(ours.read_some(buffer), 1ms));
            auto [gone_out, gone_in] = make_pipe();
            send_with(theirs, "x", std::array{gone_in.get()});
            gone_in.reset(); // the only one left is in the stream
            auto reading = spawn([&]() -> task<> {
                if (how == 1) static_cast<void>(co_await ours.receive_descriptors(buffer));
            });
            ours.close();
            co_await reading;
            co_await ours.closed();
            theirs.close();
            char byte = 0;
            EXPECT_EQ(::read(gone_out.get(), &byte, 1), 0); // no writer is left
        }
    });
}

TEST_P(descriptors_test, the_end_of_a_loop_with_reads_in_flight_leaks_nothing) {
    const std::size_t before = open_descriptors();
    {
        auto [ours, theirs] = connect_raw_local();
        auto [out, in] = make_pipe();
        for (int round = 0; round < 2; ++round) {
            loop()
                .spawn([](local_stream& stream) -> task<> {
                    std::array<char, 64> buffer{};
                    static_cast<void>(co_await stream.receive_descriptors(buffer));
                }(ours))
                .detach();
            loop().poll();
            loop().poll();
            send_with(theirs, "x", std::array{out.get()});
            if (round == 0) {
                for (int turn = 0; turn < 5; ++turn)
                    loop().poll();
            }
        }
        destroy_loop();
    }
    EXPECT_LE(open_descriptors(), before);
}

// --- between two of ours -------------------------------------------------------------------------

TEST_P(descriptors_test, a_stream_can_be_sent_over_another_one) {
    run([&]() -> task<> {
        auto [one, two] = or_throw(local_stream::pair());
        auto [gift, left] = or_throw(local_stream::pair());
        auto given = or_throw(co_await std::move(gift).release());
        EXPECT_TRUE(co_await one.send_descriptors("gift", given.socket.native_handle()));
        given.socket.close();

        std::array<char, 16> buffer{};
        auto got = or_throw(co_await two.receive_descriptors(buffer));
        EXPECT_EQ(got.descriptors.size(), 1U);
        local_stream taken{
            or_throw(nonblocking::local_stream::adopt(std::move(got.descriptors.at(0))))};
        EXPECT_TRUE(co_await taken.write_some("still connected"));
        EXPECT_EQ((co_await left.read_some(buffer)).value_or(0), 15U);
    });
}

TEST_P(descriptors_test, a_receive_does_not_wait_for_held_buffers) {
    remake_loop({.receive_pool = 64 * 1024});
    auto [ours, theirs] = connect_raw_local();
    run([&]() -> task<> {
        std::vector<received> held;
        for (int each = 0; each < 10; ++each) { // the pool has four buffers
            theirs.send("x");
            auto lease = co_await ours.receive();
            EXPECT_TRUE(lease);
            if (lease) held.push_back(*std::move(lease));
        }
        EXPECT_GE(loop().metrics().receive_pool_overflow, 6U);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, descriptors_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
