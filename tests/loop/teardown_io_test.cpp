// The end of a loop with sockets waiting: their operations end, and objects that outlive it are
// closed.

#include "support/error_of.hpp"
#include "support/leak_test.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/sleep.hpp>

#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

/// No frame and no descriptor is left after a test.
class teardown_io_test : public leak_test {
protected:
    /// Runs the loop until `settled()`, however slow the machine is.
    template <class Settled>
    void run_until(Settled settled) {
        const auto limit = event_loop::clock::now() + test_limit;
        while (!settled() && event_loop::clock::now() < limit)
            static_cast<void>(loop().run_for(1ms));
        EXPECT_TRUE(settled());
        for (int turn = 0; turn < 5; ++turn)
            loop().poll();
    }
};

struct connection {
    tcp_stream client, server;
};
task<connection> connect() {
    auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    auto client = or_throw(co_await async_connect(or_throw(listener.local_endpoint())));
    auto server = or_throw(co_await listener.accept());
    co_return connection{std::move(client), std::move(server)};
}

TEST_P(teardown_io_test, io_in_flight_ends_with_operation_canceled) {
    std::vector<std::string> log;
    int waiting = 0;
    auto reports = [&](std::string name, std::error_code error) {
        if (error == std::errc::operation_canceled) log.push_back(std::move(name));
    };
    auto accepts = [&]() -> task<> {
        auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
        ++waiting;
        reports("accept", error_of(co_await listener.accept()));
    };
    auto reads = [&]() -> task<> {
        auto [client, server] = co_await connect();
        std::array<std::byte, 8> buffer;
        ++waiting;
        reports("read", error_of(co_await client.read_some(buffer)));
    };
    auto receives = [&]() -> task<> {
        auto [client, server] = co_await connect();
        ++waiting;
        reports("receive", error_of(co_await client.receive()));
    };
    auto writes = [&]() -> task<> {
        auto [ours, theirs] = or_throw(local_stream::pair());
        const std::vector<std::byte> much(10'000'000);
        ++waiting;
        reports("write", error_of(co_await async_write_all(ours, much)));
    };
    loop().spawn(accepts());
    loop().spawn(reads());
    loop().spawn(receives());
    loop().spawn(writes());
    run_until([&] { return waiting == 4; });
    EXPECT_EQ(loop().metrics().live_operations, 4U);

    destroy_loop();

    EXPECT_THAT(log, ::testing::UnorderedElementsAre("accept", "read", "receive", "write"));
}

/// Holds every kind of object that belongs to the loop, and ignores its end.
task<> hoarder(bool& settled) {
    auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    auto [client, server] = co_await connect();
    auto [left, right] = or_throw(local_stream::pair());
    std::vector<received> leases;
    for (int number = 0; number < 4; ++number) {
        static_cast<void>(co_await async_write_all(server, "lease"));
        leases.push_back(or_throw(co_await client.receive()));
    }
    static_cast<void>(co_await async_write_all(right, "never read"));
    // On io_uring: received ahead, and accepted ahead.
    std::array<std::byte, 1> letter;
    static_cast<void>(co_await left.read_some(letter));
    auto early = or_throw(co_await async_connect(or_throw(listener.local_endpoint())));
    static_cast<void>(co_await listener.accept());
    settled = true;
    for (;;) {
        static_cast<void>(co_await when_any(client.receive(), server.read_some(letter),
                                            left.read_some(letter), listener.accept(),
                                            right.closed()));
    }
}

TEST_P(teardown_io_test, a_stubborn_task_may_hold_streams_leases_and_listeners) {
    std::array<bool, 3> settled{};
    for (bool& each : settled)
        loop().spawn(hoarder(each));
    run_until([&] { return settled[0] && settled[1] && settled[2]; });

    destroy_loop();
}

TEST_P(teardown_io_test, a_connection_attempt_in_flight_ends) {
    // A listener with a full backlog does not answer.
    auto listener =
        or_throw(nonblocking::tcp_listener::bind(endpoint::loopback(0), {.backlog = 1}));
    const auto where = or_throw(listener.local_endpoint());
    int ended = 0;
    auto connects = [&]() -> task<> {
        auto stream = co_await async_connect(where);
        static_cast<void>(co_await async_sleep(24h));
        ++ended;
    };
    for (int number = 0; number < 5; ++number)
        loop().spawn(connects());
    EXPECT_FALSE(loop().run_for(10ms));

    destroy_loop();

    EXPECT_EQ(ended, 5);
    listener.close();
}

TEST_P(teardown_io_test, sockets_that_outlive_the_loop_are_closed_and_safe) {
    std::optional<connection> kept;
    std::optional<received> lease;
    run([&]() -> task<> {
        kept.emplace(co_await connect());
        EXPECT_TRUE(co_await async_write_all(kept->server, "kept"));
        lease = or_throw(co_await kept->client.receive());
    });
    destroy_loop();

    EXPECT_EQ(kept->client.native_handle(), -1);
    EXPECT_EQ(lease->size(), 4U);
    EXPECT_EQ(lease->data()[0], std::byte{'k'});
    remake_loop();
    run([&]() -> task<> {
        std::array<std::byte, 1> letter;
        EXPECT_EQ(error_of(co_await kept->client.read_some(letter)),
                  std::errc::bad_file_descriptor);
        EXPECT_EQ(error_of(co_await kept->client.write_some("x")), std::errc::bad_file_descriptor);
        EXPECT_TRUE(co_await kept->client.closed());
    });
    kept.reset();
    lease.reset();
}

TEST_P(teardown_io_test, the_peer_of_a_stream_notices) {
    auto [ours, theirs] = or_throw(nonblocking::local_stream::pair());
    auto reads = [](local_stream stream) -> task<> {
        std::array<std::byte, 8> buffer;
        for (;;)
            static_cast<void>(co_await stream.read_some(buffer));
    };
    loop().spawn(reads(local_stream{std::move(ours)}));

    run_a_little_and_destroy();

    std::array<std::byte, 8> buffer;
    EXPECT_EQ(error_of(theirs.read_some(buffer)), errc::end_of_stream);
    theirs.close();
}

INSTANTIATE_TEST_SUITE_P(backends, teardown_io_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
