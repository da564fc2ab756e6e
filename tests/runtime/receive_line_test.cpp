// Receive buffers run out: who waits for one, who is served first, and who passes one on.
#include <simplenet/runtime/received.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"
#include "support/small_pool_test.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/runtime/deadline.hpp>
#include <simplenet/runtime/sleep.hpp>
#include <simplenet/stream/transfer.hpp>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <sys/socket.h>

namespace simplenet::inline v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::noise;
using testing::text_of;
using testing::turns;

class receive_line_test : public testing::small_pool_test {
protected:
    /// A receive() that ends with bytes, if they were faster, or with `otherwise`.
    template <class Error>
    static task<> receive_or(tcp_stream& stream, Error otherwise) {
        const auto lease = co_await stream.receive();
        if (!lease) {
            EXPECT_EQ(error_of(lease), otherwise);
        }
    }

    /// What the loop knows to be there is gone: another process read it.
    static void rob(tcp_stream& stream) {
        std::array<char, 8> buffer;
        EXPECT_GT(::recv(stream.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT), 0);
    }

    /// A line for buffers: a stream waits, and one with bytes behind it.
    struct line {
        tcp_stream& one;
        testing::raw_peer& first;
        std::vector<received>& held; // both buffers
        join_handle<void>& in_front;
        join_handle<void>& behind;
    };

    /// After `say(first)` `receive(one)` waits in front of the other; then comes `happens`.
    template <class Say, class Receive, class Happens>
    void wait_in_line(Say say, Receive receive, Happens happens) {
        auto [one, first] = connect_raw();
        auto [two, second] = connect_raw();
        run([&]() -> task<> {
            auto held = co_await hold_everything();
            say(first);
            second.send("2");
            auto in_front = spawn(receive(one));
            co_await turns(5);
            auto behind = spawn([&]() -> task<> { EXPECT_TRUE(co_await two.receive()); });
            co_await turns(5);
            line made{one, first, held, in_front, behind};
            co_await happens(made);
        });
    }

    static void send_one(testing::raw_peer& peer) { peer.send("1"); }

    /// A receive() that is to fail.
    template <class Error>
    static auto failing(Error error) {
        return [=](tcp_stream& stream) -> task<> {
            EXPECT_EQ(error_of(co_await stream.receive()), error);
        };
    }
};

TEST_P(receive_line_test, a_stream_waits_for_a_buffer_when_all_are_held) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto held = co_await hold_everything();
        theirs.send("patience");
        bool done = false;
        auto waiting = spawn([&]() -> task<> {
            auto lease = co_await ours.receive();
            EXPECT_TRUE(lease);
            if (lease) {
                EXPECT_EQ(text_of(*lease), "patience");
            }
            done = true;
        });
        co_await turns(20);
        EXPECT_FALSE(done);
        held.pop_back();
        co_await waiting;
    });
}

// With io_uring each idle stream that had come first took the turn of one with bytes, for ever.
TEST_P(receive_line_test, who_has_nothing_to_receive_takes_no_buffer_from_who_has) {
    auto [idle, silent] = connect_raw();
    auto [idle_local, silent_local] = testing::connect_raw_local();
    auto [ours, theirs] = connect_raw();
    const auto receive = [](auto& stream) -> task<> { EXPECT_TRUE(co_await stream.receive()); };
    run([&]() -> task<> {
        auto held = co_await hold_everything();
        auto first = spawn(receive(idle));
        auto second = spawn(receive(idle_local));
        co_await turns(5);
        theirs.send("bytes");
        auto third = spawn(receive(ours));
        co_await turns(5);
        held.pop_back();
        co_await third;
        silent.send("1");
        co_await first;
        silent_local.send("2");
        co_await second;
    });
}

TEST_P(receive_line_test, waiting_for_a_buffer_does_not_spin) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto held = co_await hold_everything();
        theirs.send("x");
        auto waiting = spawn([&]() -> task<> { EXPECT_TRUE(co_await ours.receive()); });
        co_await turns(20);
        const auto before = loop().metrics().turns;
        co_await async_sleep(30ms);
        EXPECT_LT(loop().metrics().turns - before, 20U);
        held.clear();
        co_await waiting;
    });
}

TEST_P(receive_line_test, who_waits_longest_gets_the_next_buffer) {
    std::vector<testing::raw_connection<tcp_stream>> streams;
    for (int each = 0; each < 6; ++each)
        streams.push_back(connect_raw());
    run([&]() -> task<> {
        auto held = co_await hold_everything();
        std::vector<int> order;
        std::vector<join_handle<void>> waiting;
        for (int each = 0; each < 6; ++each) {
            auto& [ours, theirs] = streams[each];
            theirs.send("x");
            auto one = [&, each]() -> task<> {
                EXPECT_TRUE(co_await ours.receive());
                order.push_back(each);
            };
            waiting.push_back(spawn(one));
            co_await turns(5); // it has come to know that there is none
        }
        EXPECT_THAT(order, ::testing::IsEmpty());
        held.pop_back();
        for (auto& each : waiting)
            co_await each;
        EXPECT_THAT(order, ::testing::ElementsAre(0, 1, 2, 3, 4, 5));
    });
}

// With io_uring it went to who asked the kernel first in the turn in which it came back, and the
// other to the end of the line: for as long as there was somebody.
TEST_P(receive_line_test, who_waits_for_a_buffer_is_not_overtaken_by_who_comes_as_it_comes_back) {
    constexpr int others = 4;
    auto [ours, theirs] = connect_raw();
    std::vector<testing::raw_connection<tcp_stream>> streams;
    for (int each = 0; each < others; ++each)
        streams.push_back(connect_raw());
    run([&]() -> task<> {
        auto held = co_await hold_everything();
        std::string order;
        const auto receive = [&](tcp_stream& stream, char name) -> task<> {
            auto lease = co_await stream.receive();
            EXPECT_TRUE(lease);
            order += name;
            if (lease) held.push_back(*std::move(lease));
        };
        theirs.send("x");
        std::vector<join_handle<void>> waiting;
        waiting.push_back(spawn(receive(ours, 'W')));
        co_await turns(5);
        for (auto& [other, peer] : streams) {
            peer.send("x");
            waiting.push_back(spawn(receive(other, 'o')));
            co_await yield();         // it has asked, and the kernel does not know yet
            held.erase(held.begin()); // so this comes second
            co_await testing::until([&, before = order.size()] { return order.size() != before; });
        }
        held.clear();
        for (auto& each : waiting)
            co_await each;
        EXPECT_EQ(order, "Woooo");
    });
}

// With epoll it was told, and had the end of the line when its turn came: the buffer had gone to
// who received at once, for as long as that one went on so.
TEST_P(receive_line_test,
       who_waits_for_a_buffer_is_not_overtaken_by_who_receives_as_it_gives_one_back) {
    auto [ours, theirs] = connect_raw();
    auto [hot, flooding] = connect_raw();
    run([&]() -> task<> {
        auto held = co_await hold_everything();
        theirs.send("x");
        bool served = false;
        auto waiting = spawn([&]() -> task<> {
            EXPECT_TRUE(co_await ours.receive());
            served = true;
        });
        co_await turns(5);
        int rounds = 0;
        for (; rounds < 10 && !served; ++rounds) {
            flooding.send(noise(100));
            std::array<std::byte, 1> first;
            EXPECT_TRUE(co_await hot.read_some(first)); // so that it is known to be readable
            held.erase(held.begin());
            auto lease = co_await hot.receive();
            EXPECT_TRUE(lease);
            if (lease) held.push_back(*std::move(lease));
            co_await turns(5);
        }
        EXPECT_LE(rounds, 2);
        held.clear();
        co_await waiting;
    });
}

// With epoll it kept its place, and what it asked for then came before all who waited.
TEST_P(receive_line_test, who_has_stopped_waiting_for_a_buffer_is_the_last_when_it_waits_again) {
    for (const bool by_deadline : {false, true}) {
        auto [one, first] = connect_raw();
        auto [two, second] = connect_raw();
        run([&]() -> task<> {
            auto held = co_await hold_everything();
            first.send("1");
            second.send("2");
            const auto limit =
                std::chrono::steady_clock::now() + (by_deadline ? 5ms : std::chrono::hours{1});
            auto stopped = spawn([&]() -> task<> {
                EXPECT_TRUE(error_of(co_await with_deadline(one.receive(), limit)));
            });
            co_await turns(5);
            std::string order;
            const auto receive = [&](tcp_stream& stream, char name) -> task<> {
                EXPECT_TRUE(co_await stream.receive());
                order += name;
            };
            auto waits = spawn(receive(two, '2'));
            co_await turns(5);
            if (!by_deadline) stopped.request_stop();
            co_await stopped;
            auto again = spawn(receive(one, '1'));
            co_await turns(5);
            held.pop_back();
            co_await waits;
            co_await again;
            EXPECT_EQ(order, "21");
        });
    }
}

TEST_P(receive_line_test, who_waits_for_a_buffer_and_meets_the_end_leaves_it_to_the_next) {
    const auto end = [](testing::raw_peer& peer) { peer.shutdown_write(); };
    wait_in_line(end, failing(errc::end_of_stream), [](line& at) -> task<> {
        at.held.pop_back();
        co_await at.in_front;
        co_await at.behind;
        EXPECT_EQ(error_of(co_await at.one.receive()), errc::end_of_stream);
    });
}

// The buffer used to go to the stopped one, and the other waited for ever.
TEST_P(receive_line_test, a_stopped_wait_does_not_swallow_the_buffer_of_the_next) {
    wait_in_line(send_one, failing(canceled), [](line& at) -> task<> {
        at.in_front.request_stop();
        co_await at.in_front;
        at.held.pop_back();
        co_await at.behind;

        EXPECT_TRUE(co_await at.one.receive()); // and nothing was lost
    });
}

// On io_uring the stop of the write used to take the reader out of the queue as well, for ever.
TEST_P(receive_line_test, a_stopped_write_leaves_the_reader_its_place_in_the_queue) {
    auto [ours, theirs] = connect_raw({.ours = 8192, .theirs = 8192});
    run([&]() -> task<> {
        auto held = co_await hold_everything();
        theirs.send("1");
        auto waiting = spawn([&]() -> task<> { EXPECT_TRUE(co_await ours.receive()); });
        co_await turns(5);
        const std::string much(1 << 20, 'x');
        auto writing = spawn([&]() -> task<> {
            EXPECT_EQ(error_of(co_await async_write_all(ours, much)), canceled);
        });
        co_await turns(5);
        writing.request_stop();
        co_await writing;
        held.pop_back();
        co_await waiting;
    });
}

TEST_P(receive_line_test, closing_a_stream_that_waits_for_a_buffer_does_not_swallow_it) {
    wait_in_line(send_one, failing(canceled), [](line& at) -> task<> {
        at.one.close();
        co_await at.in_front;
        at.held.pop_back();
        co_await at.behind;
    });
}

// With epoll the buffer stayed free, and the other waited for the next one.
TEST_P(receive_line_test, a_buffer_that_came_back_for_a_stream_that_closes_goes_to_the_next) {
    wait_in_line(send_one, failing(canceled), [](line& at) -> task<> {
        at.held.pop_back();
        at.one.close();
        co_await at.in_front;
        co_await at.behind;
    });
}

// Who was told of it passes it on, whatever keeps it from receiving.
TEST_P(receive_line_test,
       a_buffer_that_came_back_for_who_is_stopped_before_its_turn_goes_to_the_next) {
    const auto receive = [](tcp_stream& stream) { return receive_or(stream, canceled); };
    for (const bool robbed : {false, true}) {
        wait_in_line(send_one, receive, [&](line& at) -> task<> {
            if (robbed) rob(at.one);
            at.held.pop_back();
            at.in_front.request_stop();
            co_await at.in_front;
            co_await at.behind;
        });
    }
}

TEST_P(receive_line_test, a_buffer_that_comes_back_at_the_deadline_of_who_waits_goes_to_the_next) {
    for (const bool robbed : {false, true}) {
        std::chrono::steady_clock::time_point limit;
        const auto receive = [&](tcp_stream& stream) -> task<> {
            limit = std::chrono::steady_clock::now() + 20ms;
            co_await with_deadline(receive_or(stream, errc::deadline_exceeded), limit);
        };
        wait_in_line(send_one, receive, [&](line& at) -> task<> {
            if (robbed) rob(at.one);
            testing::pass(limit);
            co_await turns(1); // the loop has noticed, and its last attempt is to come
            at.held.pop_back();
            co_await at.in_front;
            co_await at.behind;
        });
    }
}

TEST_P(receive_line_test, a_buffer_that_came_back_for_who_finds_nothing_goes_to_the_next) {
    const auto receive = [](tcp_stream& stream) -> task<> {
        EXPECT_EQ(co_await receive_text(stream), "more");
    };
    wait_in_line(send_one, receive, [](line& at) -> task<> {
        rob(at.one);
        at.held.pop_back();
        co_await at.behind;
        at.first.send("more");
        co_await at.in_front;
    });
}

TEST_P(receive_line_test, a_buffer_that_came_back_for_who_meets_a_reset_goes_to_the_next) {
    const auto reset = [](testing::raw_peer& peer) { peer.reset(); };
    wait_in_line(reset, failing(std::errc::connection_reset), [](line& at) -> task<> {
        at.held.pop_back();
        co_await at.in_front;
        co_await at.behind;
    });
}

TEST_P(receive_line_test, many_streams_share_two_buffers_and_lose_nothing) {
    constexpr int count = 40;
    std::vector<testing::raw_connection<tcp_stream>> streams;
    for (int each = 0; each < count; ++each)
        streams.push_back(connect_raw());
    run([&]() -> task<> {
        testing::dice dice{3};
        std::array<std::string, count> got;
        std::array<std::string, count> sent;
        std::vector<join_handle<void>> readers;
        for (int each = 0; each < count; ++each) {
            auto read = [&, each]() -> task<> {
                auto& ours = streams[each].ours;
                for (;;) {
                    auto lease = co_await ours.receive();
                    if (!lease) break;
                    got[each] += text_of(*lease);
                    if (each % 3 == 0) co_await yield(); // holds it meanwhile
                }
            };
            readers.push_back(spawn(read));
        }
        for (int step = 0; step < 4000; ++step) {
            const std::size_t each = dice.up_to(count - 1);
            const std::string part = noise(1 + dice.up_to(400), step);
            sent[each] += part;
            streams[each].theirs.send(part);
            if (dice.one_in(4)) co_await yield();
        }
        for (auto& each : streams)
            each.theirs.shutdown_write();
        for (auto& each : readers)
            co_await each;
        EXPECT_TRUE(got == sent);
    });
}

TEST_P(receive_line_test, streams_that_wait_for_buffers_end_with_their_loop) {
    auto [ours, theirs] = connect_raw();
    std::vector<received> held;
    bool ended = false;
    loop().spawn([&]() -> task<> {
        held = co_await hold_everything();
        theirs.send("x");
        auto waiting = spawn([&]() -> task<> {
            EXPECT_EQ(error_of(co_await ours.receive()), canceled);
            ended = true;
        });
        co_await turns(20);
        loop().stop();
        co_await waiting;
    });
    loop().run();
    EXPECT_FALSE(ended);
    destroy_loop();
    EXPECT_TRUE(ended);
}

TEST_P(receive_line_test, a_loop_that_ends_as_a_buffer_comes_back_ends_who_waited_for_it) {
    auto [one, first] = connect_raw();
    auto [two, second] = connect_raw();
    std::vector<received> held;
    int ended = 0;
    const auto receive = [&](tcp_stream& stream) -> task<> {
        auto lease = co_await stream.receive();
        if (lease) {
            held.push_back(*std::move(lease)); // and it outlives the loop
        } else {
            EXPECT_EQ(error_of(lease), canceled);
        }
        ++ended;
    };
    loop().spawn([&]() -> task<> {
        held = co_await hold_everything();
        first.send("1");
        second.send("2");
        auto waits = spawn(receive(one));
        co_await turns(5);
        auto next = spawn(receive(two));
        co_await turns(5);
        loop().stop();
        held.pop_back();
        co_await waits;
        co_await next;
    });
    loop().run();
    destroy_loop();
    EXPECT_EQ(ended, 2);
    for (const received& each : held)
        EXPECT_FALSE(each.empty());
}

INSTANTIATE_TEST_SUITE_P(backends, receive_line_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::inline v0
