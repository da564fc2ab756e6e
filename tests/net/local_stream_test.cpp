#include <simplenet/net/local_stream.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptor_messages.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/net/local_listener.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <cstring>
#include <string>

#include <unistd.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw_local;
using testing::noise;
using testing::turns;

class local_stream_test : public testing::backend_test {};

TEST_P(local_stream_test, a_pair_carries_bytes_both_ways) {
    auto [one, two] = or_throw(local_stream::pair());
    run([&]() -> task<> {
        std::array<char, 8> buffer{};
        EXPECT_TRUE(co_await one.write_some("there"));
        EXPECT_EQ((co_await two.read_some(buffer)).value_or(0), 5U);
        EXPECT_TRUE(co_await async_write_all(two, "back"));
        auto lease = co_await one.receive();
        EXPECT_EQ(lease ? lease->size() : 0, 4U);
    });
}

TEST_P(local_stream_test, megabytes_pass_both_ways_through_small_buffers) {
    auto [one, two] = or_throw(local_stream::pair());
    EXPECT_TRUE(one.set_send_buffer(8192));
    EXPECT_TRUE(two.set_send_buffer(8192));
    const std::string there = noise(4 << 20, 1);
    const std::string back = noise(4 << 20, 2);
    run([&]() -> task<> {
        std::string got_there(there.size(), '\0');
        std::string got_back(back.size(), '\0');
        auto outcome =
            co_await gather(async_write_all(one, there), async_write_all(two, back),
                            async_read_exact(two, got_there), async_read_exact(one, got_back));
        EXPECT_TRUE(outcome);
        EXPECT_TRUE(got_there == there);
        EXPECT_TRUE(got_back == back);
    });
}

TEST_P(local_stream_test, the_peers_close_ends_the_stream_once_everything_is_read) {
    auto [ours, theirs] = connect_raw_local();
    theirs.send("last words");
    theirs.close();
    run([&]() -> task<> {
        std::array<char, 4> buffer{};
        std::string all;
        result<std::size_t> count;
        while ((count = co_await ours.read_some(buffer)))
            all.append(buffer.data(), *count);
        EXPECT_EQ(all, "last words");
        EXPECT_EQ(error_of(count), errc::end_of_stream);
        EXPECT_EQ(error_of(co_await ours.write_some("x")), std::errc::broken_pipe);
    });
}

TEST_P(local_stream_test, a_peer_that_closes_with_bytes_unread_is_a_reset) {
    auto [ours, theirs] = connect_raw_local();
    run([&]() -> task<> {
        EXPECT_TRUE(co_await ours.write_some("never read"));
        std::array<std::byte, 8> buffer;
        auto later = spawn([&]() -> task<> {
            co_await turns(3);
            theirs.close();
        });
        EXPECT_EQ(error_of(co_await ours.read_some(buffer)), std::errc::connection_reset);
        co_await later;
    });
}

TEST_P(local_stream_test, both_sides_keep_working_after_a_half_close) {
    auto [ours, theirs] = connect_raw_local();
    run([&]() -> task<> {
        EXPECT_TRUE(co_await ours.write_some("request"));
        EXPECT_TRUE(ours.shutdown_write());
        EXPECT_EQ(theirs.receive(100), "request");
        theirs.send("answer");
        std::array<std::byte, 16> buffer;
        EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 6U);
        theirs.shutdown_write();
        EXPECT_EQ(error_of(co_await ours.read_some(buffer)), errc::end_of_stream);
    });
}

// Connecting a Unix domain socket does not wait; it is refused nevertheless.
TEST_P(local_stream_test, a_connect_in_a_stopped_scope_is_refused) {
    const local_endpoint name =
        or_throw(local_endpoint::abstract("simplenet-" + std::to_string(::getpid()) + "-stopped"));
    auto listener = or_throw(local_listener::bind(name));
    run([&]() -> task<> {
        auto connects = spawn([&]() -> task<> {
            (void)co_await async_sleep(1h);
            EXPECT_EQ(error_of(co_await async_connect(name)), canceled);
        });
        co_await turns(3);
        connects.request_stop();
        co_await connects;
    });
}

TEST_P(local_stream_test, stops_and_closes_work_as_on_tcp) {
    auto [ours, theirs] = connect_raw_local({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        std::array<std::byte, 8> buffer;
        EXPECT_EQ(error_of(co_await with_timeout(ours.read_some(buffer), 1ms)),
                  errc::deadline_exceeded);
        theirs.send("kept");
        EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 4U);

        const std::string much(4 << 20, 'x');
        auto reading =
            spawn([&]() -> task<> { EXPECT_EQ(error_of(co_await ours.receive()), canceled); });
        auto writing = spawn([&]() -> task<> {
            EXPECT_EQ(error_of(co_await async_write_all(ours, much)), canceled);
        });
        co_await turns(5);
        ours.close();
        co_await reading;
        co_await writing;
        EXPECT_TRUE(co_await ours.closed());
        EXPECT_EQ(theirs.receive_to_the_end(), errc::end_of_stream);
    });
}

// The kernel has an edge for room whenever the peer has read (unix(7) sockets only).
TEST_P(local_stream_test, a_peer_that_reads_wakes_nobody) {
    auto [ours, theirs] = connect_raw_local();
    run([&]() -> task<> {
        auto reading = spawn([&]() -> task<> {
            std::array<char, 8> buffer;
            EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 1U);
        });
        co_await turns(2);
        const auto before = loop().metrics().completions;
        for (int round = 0; round < 5; ++round) {
            EXPECT_TRUE(co_await ours.write_some("x"));
            EXPECT_EQ(theirs.receive(1), "x");
            co_await turns(2);
        }
        // The perturbed kernel has events of its own.
        if (GetParam() != detail::simulated_backend) {
            EXPECT_EQ(loop().metrics().completions, before);
        }
        theirs.send("y");
        co_await reading;
    });
}

TEST_P(local_stream_test, a_write_waits_for_room_again_and_again) {
    auto [ours, theirs] = connect_raw_local(testing::small_buffers);
    run([&]() -> task<> {
        auto reading = spawn([&]() -> task<> {
            std::array<char, 8> buffer;
            EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 1U);
        });
        co_await turns(2); // the loop watches the socket, for reads alone
        const std::string piece(1000, 'p');
        for (int round = 0; round < 5; ++round) {
            std::size_t sent = 0;
            auto writing = spawn([&]() -> task<> {
                for (;;) {
                    const auto count = co_await ours.write_some(piece);
                    if (!count) co_return;
                    sent += *count;
                }
            });
            for (std::size_t last = 1; last != sent;) { // until it waits
                last = sent;
                co_await turns(3);
            }
            const std::size_t full = sent;
            EXPECT_EQ(theirs.receive(full).size(), full);
            co_await testing::until([&] { return sent > full; });
            writing.request_stop();
            co_await writing;
            EXPECT_EQ(theirs.receive(sent - full).size(), sent - full);
        }
        theirs.send("y");
        co_await reading;
    });
}

// A short read usually means that nothing is left, but not before attached descriptors.
TEST_P(local_stream_test, unexpected_descriptors_do_not_hide_the_bytes_after_them) {
    for (int when = 0; when < 3; ++when) {
        auto [ours, theirs] = connect_raw_local();
        const std::array<int, 1> fds{0};
        run([&]() -> task<> {
            std::string got;
            auto reading = spawn(testing::collect(ours, got));
            co_await turns(when);
            testing::send_with(theirs, "one ", fds);
            testing::send_with(theirs, "two ", fds);
            theirs.send("three");
            while (got != "one two three")
                co_await yield();
            reading.request_stop();
            co_await reading;
        });
    }
}

TEST_P(local_stream_test, a_stream_is_released_with_its_unread_bytes) {
    auto [ours, theirs] = connect_raw_local();
    run([&]() -> task<> {
        std::array<char, 2> buffer{};
        auto reading = ours.read_some(buffer);
        theirs.send("abcdef");
        EXPECT_EQ((co_await std::move(reading)).value_or(0), 2U);
        auto left = co_await std::move(ours).release();
        EXPECT_TRUE(left);
        if (!left) co_return;
        std::string rest(reinterpret_cast<const char*>(left->unread.data()), left->unread.size());
        rest += testing::read_text(left->socket, 4 - rest.size());
        EXPECT_EQ(rest, "cdef");
    });
}

TEST_P(local_stream_test, credentials_identify_the_process_that_made_the_pair) {
    auto [one, two] = or_throw(local_stream::pair());
    const auto who = or_throw(one.peer_credentials());
    EXPECT_EQ(who.pid, ::getpid());
    EXPECT_EQ(who.uid, ::getuid());
    one.close();
    EXPECT_EQ(error_of(one.peer_credentials()), std::errc::bad_file_descriptor);
}

INSTANTIATE_TEST_SUITE_P(backends, local_stream_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
