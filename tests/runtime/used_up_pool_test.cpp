// What receive() does when receive buffers run out: who waits, who is served, and who is not kept
// waiting.
#include <simplenet/runtime/received.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/runtime/deadline.hpp>
#include <simplenet/stream/transfer.hpp>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <linux/net_tstamp.h>
#include <poll.h>
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

constexpr auto canceled = std::errc::operation_canceled;

class used_up_pool_test : public testing::backend_test {
protected:
    /// A pool of two buffers of 16 KiB: the smallest there is.
    void SetUp() override {
        backend_test::SetUp();
        if (!IsSkipped()) remake_loop({.receive_pool = 1});
    }

    /// Both buffers, held.
    task<std::vector<received>> hold_everything() {
        std::vector<received> held;
        for (int each = 0; each < 2; ++each) {
            auto [ours, theirs] = connect_raw();
            theirs.send("held");
            auto lease = co_await ours.receive();
            EXPECT_TRUE(lease);
            if (lease) held.push_back(*std::move(lease));
        }
        co_return held;
    }

    /// The pool, used up on io_uring by what nobody has asked for yet.
    static task<> receive_ahead(tcp_stream& unread, testing::raw_peer& theirs) {
        std::array<std::byte, 1> first;
        theirs.send("-");
        EXPECT_TRUE(co_await unread.read_some(first));
        for (int each = 0; each < 2; ++each) {
            theirs.send("ahead");
            co_await turns(5);
        }
    }

    /// What one receive() brings; nothing when it fails.
    template <class Stream>
    static task<std::string> receive_text(Stream& stream) {
        const auto lease = co_await stream.receive();
        co_return std::string{lease ? text_of(*lease) : ""};
    }

    static task<> do_nothing() { co_return; }

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

    /// The outcome of `receive`, whose limit the loop has noticed when "there" comes, before the
    /// kernel knows of it. On epoll that was the last attempt.
    template <class Peer, class Receive, class Meanwhile = task<> (*)()>
    static task<std::error_code> late_bytes(Peer& theirs, Receive receive,
                                            Meanwhile meanwhile = do_nothing) {
        const auto limit = std::chrono::steady_clock::now() + 20ms;
        auto receiving = spawn(receive(limit));
        co_await turns(5);
        co_await meanwhile();
        testing::pass(limit);
        co_await turns(1);
        theirs.send("there");
        const auto outcome = co_await receiving;
        if (outcome) {
            EXPECT_NE(GetParam(), backend::io_uring);
            EXPECT_EQ(outcome, errc::deadline_exceeded);
        }
        co_return outcome;
    }
};

TEST_P(used_up_pool_test, a_stream_waits_for_a_buffer_when_all_are_held) {
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
TEST_P(used_up_pool_test, who_has_nothing_to_receive_takes_no_buffer_from_who_has) {
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

// A read brings its own memory then. With io_uring its entry was taken back by the deadline, and
// what came before the kernel had done so did not count.
TEST_P(used_up_pool_test, bytes_beat_the_deadline_of_a_read_that_goes_on_while_all_are_held) {
    for (const bool exactly : {false, true}) {
        auto [ours, theirs] = connect_raw();
        std::array<char, 5> buffer{};
        run([&]() -> task<> {
            const auto held = co_await hold_everything();
            const auto read = [&](auto limit) -> task<std::error_code> {
                if (exactly)
                    co_return error_of(
                        co_await with_deadline(async_read_exact(ours, buffer), limit));
                co_return error_of(co_await with_deadline(ours.read_some(buffer), limit));
            };
            const auto outcome = co_await late_bytes(theirs, read);
            if (outcome) { // nothing was lost
                EXPECT_TRUE(co_await async_read_exact(ours, buffer));
            }
            EXPECT_EQ((std::string_view{buffer.data(), buffer.size()}), "there");
        });
    }
}

// The kernel has no buffer left to receive into: there are more than it gets, for this.
TEST_P(used_up_pool_test, bytes_beat_the_deadline_of_a_receive_while_others_are_received_ahead) {
    auto [unread, filling] = connect_raw();
    auto [ours, theirs] = testing::connect_raw_local();
    run([&]() -> task<> {
        received held;
        const auto use_both = [&]() -> task<> {
            filling.send("held");
            if (auto lease = co_await unread.receive()) held = *std::move(lease);
            filling.send("ahead");
            co_await turns(5);
        };
        const auto receive = [&](auto limit) -> task<std::error_code> {
            const auto lease = co_await with_deadline(ours.receive(), limit);
            if (lease) {
                EXPECT_EQ(text_of(*lease), "there");
            }
            co_return error_of(lease);
        };
        if (co_await late_bytes(theirs, receive, use_both)) { // nothing was lost
            EXPECT_TRUE(co_await ours.receive());
        }
        EXPECT_EQ(text_of(held), "held");
        EXPECT_TRUE(co_await unread.receive());
    });
}

// With io_uring there was one buffer for this, which the lease of the first kept from the second.
TEST_P(used_up_pool_test, bytes_beat_the_deadlines_of_as_many_receives_as_there_are_buffers) {
    auto [unread, filling] = connect_raw();
    auto [ours, theirs] = connect_raw();
    auto [local, local_peer] = testing::connect_raw_local();
    run([&]() -> task<> {
        co_await receive_ahead(unread, filling);
        theirs.send("first");
        local_peer.send("second");
        const auto first = co_await with_timeout(ours.receive(), 1ms);
        EXPECT_TRUE(first) << error_of(first).message();
        const auto second = co_await with_timeout(local.receive(), 1ms);
        EXPECT_TRUE(second) << error_of(second).message();
        if (!first || !second) co_return;
        EXPECT_EQ(text_of(*first), "first");
        EXPECT_EQ(text_of(*second), "second");

        // The program holds all that it has asked for.
        theirs.send("third");
        EXPECT_EQ(error_of(co_await with_timeout(ours.receive(), 1ms)), errc::deadline_exceeded);
    });

    run([&]() -> task<> { // and they came back
        std::array<std::byte, 10> ahead;
        EXPECT_TRUE(co_await async_read_exact(unread, ahead));
        const auto lease = co_await ours.receive();
        EXPECT_TRUE(lease);
        if (lease) {
            EXPECT_EQ(text_of(*lease), "third");
        }
    });
}

// With io_uring it waited until they were read, which is for ever where nobody does.
TEST_P(used_up_pool_test, what_is_received_ahead_keeps_no_receive_waiting) {
    auto [unread, filling] = connect_raw();
    auto [ours, theirs] = connect_raw();
    auto [local, local_peer] = testing::connect_raw_local();
    run([&]() -> task<> {
        co_await receive_ahead(unread, filling);
        theirs.send("there");
        EXPECT_EQ(co_await receive_text(ours), "there");

        for (const std::string_view sent : {"later", "and again"}) {
            auto waiting = spawn(receive_text(ours));
            auto waiting_too = spawn(receive_text(local));
            co_await turns(5);
            theirs.send(sent);
            local_peer.send(sent);
            EXPECT_EQ(co_await waiting, sent);
            EXPECT_EQ(co_await waiting_too, sent);
        }
    });
}

TEST_P(used_up_pool_test, nobody_is_served_beyond_the_pool_before_who_waits_longest) {
    auto [unread, filling] = connect_raw();
    auto [ours, theirs] = connect_raw();
    auto [other, others_peer] = connect_raw();
    run([&]() -> task<> {
        co_await receive_ahead(unread, filling);
        std::string order;
        theirs.send("W");
        auto waiting = spawn([&]() -> task<> { order += co_await receive_text(ours); });
        co_await turns(5);
        for (int each = 0; each < 3; ++each) {
            others_peer.send("o");
            const auto lease = co_await with_timeout(other.receive(), 1ms);
            if (lease) order += text_of(*lease);
        }
        co_await waiting;
        EXPECT_EQ(order, "Wooo");
    });
}

// With io_uring it made up for the one beyond the pool, and nobody got it.
TEST_P(used_up_pool_test, a_lease_that_comes_back_serves_who_waits_whatever_is_received_ahead) {
    auto [unread, filling] = connect_raw();
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        co_await receive_ahead(unread, filling);
        auto held = co_await hold_everything();
        theirs.send("patience");
        auto waiting = spawn(receive_text(ours));
        co_await turns(20);
        EXPECT_FALSE(waiting.done());
        held.pop_back();
        EXPECT_EQ(co_await waiting, "patience");
    });
}

TEST_P(used_up_pool_test,
       a_lease_that_comes_back_as_a_limit_passes_goes_to_the_next_whatever_is_received_ahead) {
    auto [unread, filling] = connect_raw();
    auto [one, first] = connect_raw();
    auto [two, second] = connect_raw();
    run([&]() -> task<> {
        co_await receive_ahead(unread, filling);
        auto held = co_await hold_everything();
        first.send("1");
        second.send("2");
        const auto limit = std::chrono::steady_clock::now() + 20ms;
        auto limited = spawn([&]() -> task<std::string> {
            const auto lease = co_await with_deadline(one.receive(), limit);
            co_return std::string{lease ? text_of(*lease) : ""};
        });
        co_await turns(5);
        auto waiting = spawn(receive_text(two));
        co_await turns(5);
        testing::pass(limit);
        held.pop_back();
        const auto outcome = co_await limited;
        EXPECT_EQ(co_await waiting, "2");
        if (outcome.empty()) { // nothing was lost
            EXPECT_EQ(co_await receive_text(one), "1");
        }
    });
}

// Had the kernel got it, what is received ahead would hold more than the pool has, and the last
// receive() would wait for that.
TEST_P(used_up_pool_test, a_buffer_that_came_back_for_nobody_is_not_for_receiving_ahead) {
    auto [armed, trickle] = connect_raw();
    auto [unread, filling] = connect_raw();
    auto [one, first] = connect_raw();
    auto [two, second] = connect_raw();
    run([&]() -> task<> {
        std::array<std::byte, 1> byte;
        trickle.send("-");
        EXPECT_TRUE(co_await armed.read_some(byte));
        co_await receive_ahead(unread, filling);
        auto held = co_await hold_everything();
        first.send("1");
        auto stopped = spawn(receive_text(one));
        co_await turns(5);
        held.pop_back();
        stopped.request_stop();
        const auto outcome = co_await stopped;
        trickle.send("ahead");
        co_await turns(5);

        second.send("2");
        EXPECT_EQ(co_await receive_text(two), "2");
        if (outcome.empty()) { // nothing was lost
            EXPECT_EQ(co_await receive_text(one), "1");
        }
        EXPECT_EQ(co_await receive_text(armed), "ahead");
    });
}

// What lies in an error queue makes every poll(2) say POLLERR.
TEST_P(used_up_pool_test,
       an_error_queue_that_nobody_reads_does_not_spin_while_others_are_received_ahead) {
    auto [unread, filling] = connect_raw();
    auto [ours, theirs] = connect_raw();
    constexpr int stamps = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
    testing::checked(
        ::setsockopt(ours.native_handle(), SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof stamps));
    run([&]() -> task<> {
        co_await receive_ahead(unread, filling);
        EXPECT_TRUE(co_await async_write_all(ours, "stamped"));
        pollfd asked{.fd = ours.native_handle(), .events = 0, .revents = 0};
        EXPECT_EQ(::poll(&asked, 1, 1000), 1) << "there is no error to trip over";

        auto waiting = spawn(receive_text(ours));
        co_await turns(20);
        const auto before = loop().metrics().turns;
        co_await async_sleep(30ms);
        EXPECT_LT(loop().metrics().turns - before, 20U);
        theirs.send("bytes");
        EXPECT_EQ(co_await waiting, "bytes");
    });
}

TEST_P(used_up_pool_test, waiting_for_a_buffer_does_not_spin) {
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

TEST_P(used_up_pool_test, who_waits_longest_gets_the_next_buffer) {
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
TEST_P(used_up_pool_test, who_waits_for_a_buffer_is_not_overtaken_by_who_comes_as_it_comes_back) {
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
TEST_P(used_up_pool_test,
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
TEST_P(used_up_pool_test, who_has_stopped_waiting_for_a_buffer_is_the_last_when_it_waits_again) {
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

TEST_P(used_up_pool_test, who_waits_for_a_buffer_and_meets_the_end_leaves_it_to_the_next) {
    const auto end = [](testing::raw_peer& peer) { peer.shutdown_write(); };
    wait_in_line(end, failing(errc::end_of_stream), [](line& at) -> task<> {
        at.held.pop_back();
        co_await at.in_front;
        co_await at.behind;
        EXPECT_EQ(error_of(co_await at.one.receive()), errc::end_of_stream);
    });
}

// The buffer used to go to the stopped one, and the other waited for ever.
TEST_P(used_up_pool_test, a_stopped_wait_does_not_swallow_the_buffer_of_the_next) {
    wait_in_line(send_one, failing(canceled), [](line& at) -> task<> {
        at.in_front.request_stop();
        co_await at.in_front;
        at.held.pop_back();
        co_await at.behind;

        EXPECT_TRUE(co_await at.one.receive()); // and nothing was lost
    });
}

// On io_uring the stop of the write used to take the reader out of the queue as well, for ever.
TEST_P(used_up_pool_test, a_stopped_write_leaves_the_reader_its_place_in_the_queue) {
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

TEST_P(used_up_pool_test, closing_a_stream_that_waits_for_a_buffer_does_not_swallow_it) {
    wait_in_line(send_one, failing(canceled), [](line& at) -> task<> {
        at.one.close();
        co_await at.in_front;
        at.held.pop_back();
        co_await at.behind;
    });
}

// With epoll the buffer stayed free, and the other waited for the next one.
TEST_P(used_up_pool_test, a_buffer_that_came_back_for_a_stream_that_closes_goes_to_the_next) {
    wait_in_line(send_one, failing(canceled), [](line& at) -> task<> {
        at.held.pop_back();
        at.one.close();
        co_await at.in_front;
        co_await at.behind;
    });
}

// Who was told of it passes it on, whatever keeps it from receiving.
TEST_P(used_up_pool_test,
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

TEST_P(used_up_pool_test, a_buffer_that_comes_back_at_the_deadline_of_who_waits_goes_to_the_next) {
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

TEST_P(used_up_pool_test, a_buffer_that_came_back_for_who_finds_nothing_goes_to_the_next) {
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

TEST_P(used_up_pool_test, a_buffer_that_came_back_for_who_meets_a_reset_goes_to_the_next) {
    const auto reset = [](testing::raw_peer& peer) { peer.reset(); };
    wait_in_line(reset, failing(std::errc::connection_reset), [](line& at) -> task<> {
        at.held.pop_back();
        co_await at.in_front;
        co_await at.behind;
    });
}

TEST_P(used_up_pool_test, read_some_goes_on_when_all_buffers_are_held) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto held = co_await hold_everything();
        std::string buffer(100, '\0');
        for (int round = 0; round < 20; ++round) {
            auto reading = spawn(
                [&]() -> task<result<std::size_t>> { co_return co_await ours.read_some(buffer); });
            if (round % 2 == 0) co_await turns(3);
            theirs.send("bytes");
            EXPECT_EQ((co_await reading).value_or(0), 5U);
        }
        theirs.send("0123456789");
        EXPECT_EQ((co_await async_read_exact(ours, mutable_buffer{buffer}.first(10))).value_or(0),
                  10U);
        EXPECT_EQ(buffer.substr(0, 10), "0123456789");
        theirs.shutdown_write();
        EXPECT_EQ(error_of(co_await ours.read_some(buffer)), errc::end_of_stream);
    });
}

// On io_uring the stream used to remain in the queue for buffers, which read_some() does not need.
TEST_P(used_up_pool_test, read_some_goes_on_after_a_receive_that_waited_for_a_buffer_was_stopped) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto held = co_await hold_everything();
        theirs.send("bytes");
        EXPECT_EQ(error_of(co_await with_timeout(ours.receive(), 1ms)), errc::deadline_exceeded);

        std::array<std::byte, 8> buffer;
        EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 5U);
    });
}

TEST_P(used_up_pool_test, a_read_without_a_buffer_that_is_stopped_leaves_its_memory_alone) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto held = co_await hold_everything();
        std::string buffer(100, '?');
        theirs.send("x");
        EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 1U);
        buffer.assign(100, '?');
        auto reading = spawn(
            [&]() -> task<result<std::size_t>> { co_return co_await ours.read_some(buffer); });
        co_await turns(5);
        reading.request_stop();
        EXPECT_EQ(error_of(co_await reading), canceled);
        theirs.send("for the next");
        co_await turns(5);
        EXPECT_EQ(buffer, std::string(100, '?'));
        EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 12U);
    });
}

TEST_P(used_up_pool_test, a_read_without_a_buffer_is_canceled_by_close) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto held = co_await hold_everything();
        std::array<std::byte, 8> buffer;
        theirs.send("x");
        EXPECT_TRUE(co_await ours.read_some(buffer));
        auto reading = spawn(
            [&]() -> task<> { EXPECT_EQ(error_of(co_await ours.read_some(buffer)), canceled); });
        auto closing = spawn([&]() -> task<> {
            co_await turns(5);
            ours.close();
        });
        co_await reading;
        co_await closing;
        EXPECT_TRUE(co_await ours.closed());
        EXPECT_EQ(theirs.receive_to_the_end(), errc::end_of_stream);
    });
}

TEST_P(used_up_pool_test, many_streams_share_two_buffers_and_lose_nothing) {
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

TEST_P(used_up_pool_test, streams_that_wait_for_buffers_end_with_their_loop) {
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

TEST_P(used_up_pool_test, a_loop_that_ends_as_a_buffer_comes_back_ends_who_waited_for_it) {
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

INSTANTIATE_TEST_SUITE_P(backends, used_up_pool_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::inline v0
