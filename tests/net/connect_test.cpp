#include <simplenet/net/connect.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptor_limit.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/full_listener.hpp"
#include "support/raw_peer.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/blocking/local_listener.hpp>
#include <simplenet/blocking/tcp_listener.hpp>
#include <simplenet/coro/combinators.hpp>
#include <simplenet/net/local_listener.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::turns;
using clock = std::chrono::steady_clock;

class connect_test : public testing::backend_test {};

// --- TCP -----------------------------------------------------------------------------------------

TEST_P(connect_test, a_connection_carries_bytes_both_ways) {
    auto listener = or_throw(blocking::tcp_listener::bind(endpoint::loopback(0)));
    const endpoint at = or_throw(listener.local_endpoint());
    run([&]() -> task<> {
        auto stream = co_await async_connect(at);
        EXPECT_TRUE(stream);
        if (!stream) co_return;
        auto peer = or_throw(listener.accept());
        EXPECT_EQ(or_throw(stream->remote_endpoint()), at);
        EXPECT_TRUE(co_await stream->write_some("there"));
        std::array<char, 8> buffer{};
        EXPECT_EQ(peer.read_some(buffer).value_or(0), 5U);
        EXPECT_TRUE(peer.write_all("back"));
        EXPECT_EQ((co_await stream->read_some(buffer)).value_or(0), 4U);
    });
}

TEST_P(connect_test, ipv6_works) {
    auto listener = blocking::tcp_listener::bind(or_throw(endpoint::parse("[::1]:0")));
    if (!listener) GTEST_SKIP() << "no IPv6 loopback here: " << listener.error().message();
    run([&]() -> task<> {
        EXPECT_TRUE(co_await async_connect(or_throw(listener->local_endpoint())));
    });
}

TEST_P(connect_test, options_are_set_before_the_connection_is_made) {
    auto listener = or_throw(blocking::tcp_listener::bind(endpoint::loopback(0)));
    run([&]() -> task<> {
        const endpoint from = or_throw(endpoint::parse("127.0.0.77:0"));
        auto stream = co_await async_connect(or_throw(listener.local_endpoint()),
                                             {.no_delay = true, .from = from});
        EXPECT_TRUE(stream);
        if (!stream) co_return;
        EXPECT_TRUE(stream->no_delay().value_or(false));
        EXPECT_EQ(or_throw(stream->local_endpoint()).address(), from.address());
        EXPECT_TRUE(testing::is_nonblocking(stream->native_handle()));
        EXPECT_TRUE(testing::is_close_on_exec(stream->native_handle()));
    });
}

TEST_P(connect_test, connect_reports_refusal) {
    const endpoint nobody = [] {
        auto listener = or_throw(blocking::tcp_listener::bind(endpoint::loopback(0)));
        return or_throw(listener.local_endpoint());
    }();
    const std::size_t before = testing::open_descriptors();
    run([&]() -> task<> {
        for (int round = 0; round < 20; ++round) {
            EXPECT_EQ(error_of(co_await async_connect(nobody)), std::errc::connection_refused);
        }
    });
    EXPECT_EQ(testing::open_descriptors(), before);
}

TEST_P(connect_test, connect_reports_a_source_address_of_another_machine) {
    run([&]() -> task<> {
        auto stream = co_await async_connect(endpoint::loopback(1),
                                             {.from = or_throw(endpoint::parse("192.0.2.1:0"))});
        EXPECT_EQ(error_of(stream), std::errc::address_not_available);
    });
}

TEST_P(connect_test, connect_reports_a_missing_route) {
    // A network namespace without any route, which a thread can have to itself.
    std::error_code seen;
    bool allowed = true;
    std::thread isolated{[&] {
        allowed = ::unshare(CLONE_NEWNET) == 0;
        if (!allowed) return;
        auto lonely = or_throw(event_loop::create({.backend = GetParam()}));
        lonely.spawn([&]() -> task<> {
            seen = error_of(co_await async_connect(or_throw(endpoint::parse("192.0.2.1:80"))));
        });
        lonely.run();
    }};
    isolated.join();
    if (!allowed) GTEST_SKIP() << "this process may not create a network namespace";
    EXPECT_EQ(seen, std::errc::network_unreachable);
}

TEST_P(connect_test, a_socket_that_connected_to_itself_counts_as_refused) {
    const endpoint free = [] {
        auto listener = or_throw(blocking::tcp_listener::bind(endpoint::loopback(0)));
        return or_throw(listener.local_endpoint());
    }();
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await async_connect(free, {.from = free})),
                  std::errc::connection_refused);
    });
}

TEST_P(connect_test, connect_reports_a_lack_of_descriptors) {
    auto listener = or_throw(blocking::tcp_listener::bind(endpoint::loopback(0)));
    run([&]() -> task<> {
        const testing::descriptor_limit limit;
        EXPECT_EQ(error_of(co_await async_connect(or_throw(listener.local_endpoint()))),
                  std::errc::too_many_files_open);
    });
}

TEST_P(connect_test, an_unanswered_connect_ends_at_its_deadline_and_not_earlier) {
    const testing::full_listener busy;
    const std::size_t before = testing::open_descriptors();
    run([&]() -> task<> {
        const auto start = clock::now();
        EXPECT_EQ(error_of(co_await with_timeout(async_connect(busy.at()), 10ms)),
                  errc::deadline_exceeded);
        EXPECT_GE(clock::now() - start, 10ms);
    });
    EXPECT_EQ(testing::open_descriptors(), before);
}

TEST_P(connect_test, an_unanswered_connect_can_be_stopped_at_any_moment) {
    const testing::full_listener busy;
    const std::size_t before = testing::open_descriptors();
    run([&]() -> task<> {
        for (int round = 0; round < 10; ++round) {
            auto connecting = spawn([&]() -> task<> {
                EXPECT_EQ(error_of(co_await async_connect(busy.at())), canceled);
            });
            co_await turns(round % 5);
            connecting.request_stop();
            co_await connecting;
        }
    });
    EXPECT_EQ(testing::open_descriptors(), before);
}

TEST_P(connect_test, a_connection_made_during_a_stop_is_returned_or_closed) {
    auto listener = or_throw(blocking::tcp_listener::bind(endpoint::loopback(0)));
    const endpoint at = or_throw(listener.local_endpoint());
    const std::size_t before = testing::open_descriptors();
    run([&]() -> task<> {
        for (int round = 0; round < 50; ++round) {
            auto connecting =
                spawn([&]() -> task<result<tcp_stream>> { co_return co_await async_connect(at); });
            co_await turns(round % 5);
            connecting.request_stop();
            auto stream = co_await connecting;
            if (!stream) {
                EXPECT_EQ(error_of(stream), canceled);
            }
        }
    });
    EXPECT_EQ(testing::open_descriptors(), before);
}

TEST_P(connect_test, the_end_of_the_loop_ends_a_connect_in_flight) {
    const testing::full_listener busy;
    const std::size_t before = testing::open_descriptors();
    std::error_code end;
    remake_loop();
    loop().spawn([&]() -> task<> { end = error_of(co_await async_connect(busy.at())); });
    EXPECT_FALSE(loop().run_for(2ms));
    destroy_loop();

    EXPECT_EQ(end, canceled);
    EXPECT_LE(testing::open_descriptors(), before);
}

// --- Unix domain ---------------------------------------------------------------------------------

TEST_P(connect_test, a_local_connection_carries_bytes) {
    auto listener = or_throw(blocking::local_listener::bind(local_endpoint{}));
    run([&]() -> task<> {
        auto stream = co_await async_connect(or_throw(listener.local_endpoint()));
        EXPECT_TRUE(stream);
        if (!stream) co_return;
        auto peer = or_throw(listener.accept());
        EXPECT_TRUE(co_await stream->write_some("hello"));
        std::array<char, 8> buffer{};
        EXPECT_EQ(peer.read_some(buffer).value_or(0), 5U);
    });
}

TEST_P(connect_test, local_paths_without_a_listener_are_reported) {
    const testing::temporary_directory directory;
    const auto dead = or_throw(local_endpoint::parse(directory / "dead"));
    static_cast<void>(or_throw(blocking::local_listener::bind(dead))); // leaves the path behind
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await async_connect(dead)), std::errc::connection_refused);
        EXPECT_EQ(
            error_of(co_await async_connect(or_throw(local_endpoint::parse(directory / "none")))),
            std::errc::no_such_file_or_directory);
        EXPECT_EQ(error_of(co_await async_connect(or_throw(local_endpoint::abstract("sn-nobody")))),
                  std::errc::connection_refused);
    });
}

TEST_P(connect_test, connect_waits_for_a_full_local_listener) {
    auto listener = or_throw(local_listener::bind(local_endpoint{}, {.backlog = 1}));
    const auto at = or_throw(listener.local_endpoint());
    run([&]() -> task<> {
        std::vector<local_stream> filler;
        for (;;) {
            auto stream = co_await with_timeout(async_connect(at), 5ms);
            if (!stream) {
                EXPECT_EQ(error_of(stream), errc::deadline_exceeded);
                break;
            }
            filler.push_back(*std::move(stream));
        }
        auto stopped =
            spawn([&]() -> task<> { EXPECT_EQ(error_of(co_await async_connect(at)), canceled); });
        auto waiting = spawn([&]() -> task<> { EXPECT_TRUE(co_await async_connect(at)); });
        co_await turns(5);
        stopped.request_stop();
        co_await stopped;
        EXPECT_FALSE(waiting.done());
        EXPECT_TRUE(co_await listener.accept());
        co_await waiting;
    });
}

INSTANTIATE_TEST_SUITE_P(backends, connect_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
