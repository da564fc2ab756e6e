#include <simplenet/stream/hand_over.hpp>

#include "support/backend_test.hpp"
#include "support/background_loop.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/stream/copy.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/stream/transfer.hpp>

#include <array>
#include <chrono>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <poll.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::backend_name;
using testing::background_loop;
using testing::connect_raw;
using testing::noise;
using testing::real_backends;
using testing::turns;
using testing::until;

/// How the bytes are read after the hand-over.
enum class taking { read_some, exact, receive, try_receive, copy, copy_after_exact };

/// What arrived, and how it ended.
struct outcome {
    std::string got;
    std::error_code end;
    bool over = false;
};

task<> take_all(tcp_stream stream, taking how, outcome* into) {
    std::array<char, 700> buffer{};
    if (how == taking::copy || how == taking::copy_after_exact) {
        if (how == taking::copy_after_exact) {
            const auto first = co_await async_read_exact(stream, std::span{buffer}.first(5));
            into->got.append(buffer.data(), first.value_or(0));
        }
        auto [one, two] = duplex(std::size_t{1} << 22U);
        const transfer_result copied = co_await async_copy(stream, one);
        into->end = copied ? std::error_code{errc::end_of_stream} : error_of(copied);
        std::string all(copied ? *copied : copied.error().transferred, '\0');
        EXPECT_TRUE(co_await async_read_exact(two, mutable_buffer{all}));
        into->got += all;
    }
    while (!into->end) {
        if (how == taking::read_some) {
            const auto count = co_await stream.read_some(buffer);
            into->got.append(buffer.data(), count.value_or(0));
            into->end = error_of(count);
        } else if (how == taking::exact) {
            const auto count = co_await async_read_exact(stream, buffer);
            into->got.append(buffer.data(), count ? *count : count.error().transferred);
            into->end = error_of(count);
        } else {
            result<received> lease;
            if (how == taking::receive) {
                lease = co_await stream.receive();
            } else {
                EXPECT_TRUE(co_await stream.readable());
                lease = stream.try_receive();
            }
            if (lease) into->got += lease->text();
            into->end = error_of(lease);
        }
    }
    into->over = true;
}

class hand_over_test : public testing::backend_test {
protected:
    /// Reads `first` bytes of `stream` on `here` and hands it over to the loop of the test.
    template <class... Args>
    void read_and_hand_over(background_loop& here, tcp_stream stream, std::size_t first,
                            Args... arguments) {
        auto work = [to = &loop(), first, arguments...](tcp_stream from) -> task<> {
            std::string some(first, '\0');
            if (first != 0) {
                EXPECT_TRUE(co_await async_read_exact(from, mutable_buffer{some}));
                co_await turns(2);
            }
            EXPECT_TRUE(hand_over(*to, std::move(from), arguments...));
        };
        static_cast<void>(here->spawn_remote(work, std::move(stream)));
    }
};

TEST_P(hand_over_test, what_was_not_read_goes_along_before_everything_else) {
    const std::string content = noise(200'000);
    run([&]() -> task<> {
        for (const backend from : {backend::epoll, backend::io_uring}) {
            background_loop source{{.backend = from}};
            for (const taking how : {taking::read_some, taking::exact, taking::receive,
                                     taking::try_receive, taking::copy, taking::copy_after_exact}) {
                for (const std::size_t first : {0U, 1U, 20'000U}) {
                    auto [ours, theirs] = connect_raw();
                    outcome got;
                    theirs.send(std::string_view{content}.substr(0, 90'000));
                    read_and_hand_over(source, std::move(ours), first, take_all, how, &got);
                    co_await turns(2);
                    theirs.send(std::string_view{content}.substr(90'000));
                    theirs.shutdown_write();
                    co_await until([&] { return got.over; });
                    EXPECT_TRUE(got.got == content.substr(first)) << got.got.size();
                    EXPECT_EQ(got.end, errc::end_of_stream);
                }
            }
        }
    });
}

// What the kernel has told a write, it does not tell again.
TEST_P(hand_over_test, a_reset_that_a_write_has_reported_goes_along_behind_the_bytes) {
    run([&]() -> task<> {
        for (const backend from : {backend::epoll, backend::io_uring}) {
            background_loop source{{.backend = from}};
            auto [ours, theirs] = connect_raw();
            theirs.send("abc");
            theirs.reset();
            testing::await(ours.native_handle(), POLLHUP);
            outcome got;
            auto work = [&](tcp_stream stream) -> task<> {
                EXPECT_EQ(error_of(co_await stream.write_some("x")), std::errc::connection_reset);
                EXPECT_TRUE(
                    hand_over(loop(), std::move(stream), take_all, taking::read_some, &got));
            };
            static_cast<void>(source->spawn_remote(work, std::move(ours)));
            co_await until([&] { return got.over; });
            EXPECT_EQ(got.got, "abc");
            EXPECT_EQ(got.end, std::errc::connection_reset);
        }
    });
}

task<> release_at_once(tcp_stream stream, std::string* unread, bool* over) {
    auto released = co_await std::move(stream).release();
    EXPECT_TRUE(released);
    if (released) {
        for (const std::byte each : released->unread)
            *unread += static_cast<char>(each);
    }
    *over = true;
}

TEST_P(hand_over_test, what_was_not_read_goes_along_into_a_release) {
    run([&]() -> task<> {
        background_loop source{{.backend = backend::io_uring}};
        auto [ours, theirs] = connect_raw();
        theirs.send("abc");
        std::string unread;
        bool over = false;
        auto work = [&](tcp_stream from) -> task<> {
            std::array<char, 1> one{};
            EXPECT_TRUE(co_await from.read_some(one));
            EXPECT_TRUE(hand_over(loop(), std::move(from), release_at_once, &unread, &over));
        };
        static_cast<void>(source->spawn_remote(work, std::move(ours)));
        co_await until([&] { return over; });
        EXPECT_EQ(unread, "bc");
    });
}

TEST_P(hand_over_test, a_reset_that_no_read_has_reported_goes_along) {
    run([&]() -> task<> {
        background_loop source{{.backend = backend::io_uring}};
        for (const taking how : {taking::read_some, taking::receive, taking::try_receive}) {
            auto [ours, theirs] = connect_raw();
            outcome got;
            theirs.send("abc");
            std::latch received_ahead{1};
            std::latch was_reset{1};
            auto work = [&](tcp_stream from) -> task<> {
                std::array<char, 1> one{};
                EXPECT_TRUE(co_await from.read_some(one));
                received_ahead.count_down();
                was_reset.wait();
                co_await turns(5);
                EXPECT_TRUE(hand_over(loop(), std::move(from), take_all, how, &got));
            };
            static_cast<void>(source->spawn_remote(work, std::move(ours)));
            received_ahead.wait();
            theirs.reset();
            was_reset.count_down();
            co_await until([&] { return got.over; });
            EXPECT_EQ(got.got, "bc");
            EXPECT_EQ(got.end, std::errc::connection_reset);
        }
    });
}

TEST_P(hand_over_test, it_can_go_on_to_a_third_loop_and_back) {
    const std::string content = noise(50'000);
    run([&]() -> task<> {
        background_loop first{{.backend = backend::io_uring}};
        background_loop second{{.backend = GetParam()}};
        auto [ours, theirs] = connect_raw();
        outcome got;
        theirs.send(content);
        auto home = [&](tcp_stream stream) -> task<> {
            std::string some(1'000, '\0');
            EXPECT_TRUE(co_await async_read_exact(stream, mutable_buffer{some}));
            got.got += some;
            EXPECT_TRUE(
                co_await hand_over(loop(), std::move(stream), take_all, taking::receive, &got));
        };
        auto away = [&](tcp_stream stream) -> task<> {
            std::string some(100, '\0');
            EXPECT_TRUE(co_await async_read_exact(stream, mutable_buffer{some}));
            got.got += some;
            EXPECT_TRUE(hand_over(*second, std::move(stream), home));
        };
        EXPECT_TRUE(hand_over(*first, std::move(ours), away));
        theirs.shutdown_write();
        co_await until([&] { return got.over; });
        EXPECT_TRUE(got.got == content);
    });
}

TEST_P(hand_over_test, a_fresh_stream_leaves_from_a_thread_without_a_loop) {
    auto [ours, theirs] = connect_raw();
    outcome got;
    std::thread{[&] {
        EXPECT_TRUE(hand_over(loop(), std::move(ours), take_all, taking::read_some, &got));
    }}.join();
    theirs.send("hello");
    theirs.shutdown_write();
    run([&]() -> task<> {
        co_await until([&] { return got.over; });
        EXPECT_EQ(got.got, "hello");
    });
}

TEST_P(hand_over_test, it_may_go_to_its_own_loop_with_arguments_that_only_move) {
    run([&]() -> task<> {
        auto [ours, theirs] = connect_raw();
        std::string said;
        auto answer = [&](tcp_stream stream, std::unique_ptr<std::string> text) -> task<> {
            EXPECT_TRUE(co_await async_write_all(stream, *text));
            said = *text;
        };
        EXPECT_TRUE(co_await ours.write_some("x"));
        auto text = std::make_unique<std::string>("moved");
        EXPECT_TRUE(hand_over(loop(), std::move(ours), answer, std::move(text)));
        co_await until([&] { return !said.empty(); });
        EXPECT_EQ(theirs.receive(6), "xmoved");
    });
}

TEST_P(hand_over_test, the_idle_timeout_goes_along) {
    run([&]() -> task<> {
        auto [ours, theirs] = connect_raw();
        background_loop source{{.backend = GetParam()}};
        outcome got;
        ours.set_idle_timeout(5ms);
        theirs.send("ab");
        read_and_hand_over(source, std::move(ours), 1, take_all, taking::read_some, &got);
        co_await until([&] { return got.over; });
        EXPECT_EQ(got.got, "b");
        EXPECT_EQ(got.end, errc::deadline_exceeded);
    });
}

TEST_P(hand_over_test, a_close_with_bytes_unread_resets_the_connection) {
    run([&]() -> task<> {
        background_loop source{{.backend = backend::io_uring}};
        for (const bool used : {true, false}) {
            auto [ours, theirs] = connect_raw();
            bool over = false;
            auto close = [&](tcp_stream stream) -> task<> {
                std::array<char, 1> one{};
                if (used) {
                    EXPECT_TRUE(co_await stream.read_some(one));
                }
                stream.close();
                over = true;
            };
            theirs.send("abcdef");
            read_and_hand_over(source, std::move(ours), 1, close);
            co_await until([&] { return over; });
            EXPECT_EQ(theirs.receive_to_the_end(), std::errc::connection_reset);
        }
    });
}

TEST_P(hand_over_test, a_loop_that_ends_before_closes_the_connection) {
    auto [fresh, first_peer] = connect_raw();
    auto [used, second_peer] = connect_raw();
    second_peer.send("abc");
    {
        auto target = or_throw(event_loop::create({.backend = GetParam()})); // never runs
        outcome never;
        run([&]() -> task<> {
            std::array<char, 1> one{};
            EXPECT_TRUE(co_await used.read_some(one));
            EXPECT_TRUE(hand_over(target, std::move(fresh), take_all, taking::read_some, &never));
            EXPECT_TRUE(hand_over(target, std::move(used), take_all, taking::read_some, &never));
            co_await turns(5);
        });
    }
    EXPECT_EQ(first_peer.receive_to_the_end(), errc::end_of_stream);
    EXPECT_EQ(second_peer.receive_to_the_end(), std::errc::connection_reset);
}

TEST_P(hand_over_test, a_closed_stream_is_an_error) {
    run([&]() -> task<> {
        auto [ours, theirs] = connect_raw();
        ours.close();
        outcome never;
        EXPECT_EQ(error_of(hand_over(loop(), std::move(ours), take_all, taking::copy, &never)),
                  std::errc::bad_file_descriptor);
        co_return;
    });
}

TEST_P(hand_over_test, an_operation_in_flight_stops_the_program) {
    outcome never;
    EXPECT_DEATH(run([&]() -> task<> {
                     auto [ours, theirs] = connect_raw();
                     auto reading = spawn([&, &stream = ours]() -> task<result<>> {
                         co_return co_await stream.readable();
                     });
                     co_await turns(3);
                     hand_over(loop(), std::move(ours), take_all, taking::copy, &never);
                 }),
                 "a stream was handed over with an operation in flight");
}

INSTANTIATE_TEST_SUITE_P(backends, hand_over_test, real_backends, backend_name);

} // namespace
} // namespace simplenet::v0
