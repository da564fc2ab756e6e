// Idle connections of a connection_pool: whether they are still alive, and how long they are kept.

#include <simplenet/stream/connection_pool.hpp>

#include "pool_servers.hpp"
#include "support/backend_test.hpp"
#include "support/closed_port.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/testing/manual_clock.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::closed_port;
using testing::turns;
using servers = testing::pool_servers;

class connection_pool_idle_test : public testing::backend_test {
protected:
    servers servers_;
};

// --- which are lent ------------------------------------------------------------------------------

TEST_P(connection_pool_idle_test,
       an_idle_connection_that_ended_or_spoke_or_was_closed_is_not_lent) {
    run([&]() -> task<> {
        connection_pool pool{servers_.connect()};
        std::vector<pooled<duplex_stream>> lent;
        for (int each = 0; each < 4; ++each)
            lent.push_back((co_await pool.borrow("a")).value());
        lent[0]->close();
        for (auto& each : lent)
            each.give_back();
        lent.clear();
        EXPECT_TRUE(servers_.made[1].peer.shutdown_write());
        EXPECT_TRUE(co_await servers_.made[2].peer.write_some("408 too late"));

        auto alive = (co_await pool.borrow("a")).value();
        EXPECT_TRUE(alive.is_reused());
        EXPECT_TRUE(co_await alive->write_some("4"));
        std::string text(1, '\0');
        EXPECT_TRUE(co_await async_read_exact(servers_.made[3].peer, text));

        auto made = (co_await pool.borrow("a")).value();
        EXPECT_FALSE(made.is_reused());
        EXPECT_EQ(pool.size(), 2U);
        EXPECT_TRUE(co_await servers::is_closed(servers_.made[1]));
        EXPECT_TRUE(co_await servers::is_closed(servers_.made[2]));
    });
}

TEST_P(connection_pool_idle_test, with_a_stopped_scope_an_idle_connection_stays_idle) {
    run([&]() -> task<> {
        connection_pool pool{servers_.connect()};
        auto held = (co_await pool.borrow("a")).value();
        held.give_back();
        auto stopped = spawn([&]() -> task<> {
            static_cast<void>(co_await async_sleep(1h));
            EXPECT_EQ(error_of(co_await pool.borrow("a")), canceled);
        });
        co_await turns(2);
        stopped.request_stop();
        co_await stopped;
        EXPECT_EQ(pool.idle(), 1U);
        auto again = co_await pool.borrow("a");
        EXPECT_TRUE(again && again->is_reused());
    });
}

// The check of an idle connection has a limit of its own, which is not the caller's.
TEST_P(connection_pool_idle_test, after_the_limit_of_the_caller_nothing_is_lent_unchecked) {
    run([&]() -> task<> {
        connection_pool pool{servers_.connect()};
        auto held = (co_await pool.borrow("a")).value();
        held.give_back();
        servers_.made[0].peer.close();
        auto too_late = [&]() -> task<result<>> {
            static_cast<void>(co_await async_sleep(1h));
            EXPECT_EQ(error_of(co_await pool.borrow("a")), errc::deadline_exceeded);
            co_return result<>{};
        };
        static_cast<void>(co_await with_timeout(too_late(), 1us));
        auto fresh = co_await pool.borrow("a");
        EXPECT_TRUE(fresh && !fresh->is_reused());
    });
}

TEST_P(connection_pool_idle_test, connections_over_tcp_are_reused_until_the_server_ends_them) {
    closed_port port;
    port.open();
    run([&]() -> task<> {
        connection_pool pool{[](std::string_view key) -> task<result<tcp_stream>> {
            co_return co_await async_connect(endpoint::parse(key).value());
        }};
        const std::string key = endpoint::loopback(port.number()).to_string();
        const auto exchange = [&](testing::raw_peer& server, bool reused) -> task<> {
            auto lent = (co_await pool.borrow(key)).value();
            EXPECT_EQ(lent.is_reused(), reused);
            EXPECT_TRUE(co_await async_write_all(*lent, "ask"));
            EXPECT_EQ(server.receive(3), "ask");
            server.send("answer");
            std::string answer(6, '\0');
            EXPECT_TRUE(co_await async_read_exact(*lent, answer));
            EXPECT_EQ(answer, "answer");
            lent.give_back();
        };
        auto first = (co_await pool.borrow(key)).value();
        auto server = port.accept();
        first.give_back();
        co_await exchange(server, true);
        co_await exchange(server, true);

        server.close(); // noticed although the loop has not turned since
        auto second = (co_await pool.borrow(key)).value();
        EXPECT_FALSE(second.is_reused());
        auto next = port.accept();
        second.give_back();
        co_await exchange(next, true);
        next.send("unasked");
        auto third = (co_await pool.borrow(key)).value();
        EXPECT_FALSE(third.is_reused());
        EXPECT_EQ(pool.size(), 1U);
        auto last = port.accept();
        third.give_back();
        co_await exchange(last, true);
        last.reset();
        EXPECT_FALSE((co_await pool.borrow(key)).value().is_reused());
    });
}

// --- how long they are kept ----------------------------------------------------------------------

TEST_P(connection_pool_idle_test, an_idle_connection_is_closed_after_its_time) {
    testing::manual_clock clock;
    remake_loop({.clock = &clock});
    run([&]() -> task<> {
        connection_pool pool{servers_.connect(), {.idle = 30s}};
        auto first = (co_await pool.borrow("a")).value();
        auto second = (co_await pool.borrow("b")).value();
        first.give_back();
        co_await async_sleep(20s);
        second.give_back();
        co_await async_sleep(9s);
        EXPECT_EQ(pool.size(), 2U);
        co_await async_sleep(2s);
        EXPECT_EQ(pool.size(), 1U);
        EXPECT_TRUE(co_await servers::is_closed(servers_.made[0]));
        EXPECT_FALSE(co_await servers::is_closed(servers_.made[1]));
        co_await async_sleep(20s);
        EXPECT_EQ(pool.size(), 0U);

        // Being lent does not count.
        auto third = (co_await pool.borrow("a")).value();
        co_await async_sleep(1h);
        third.give_back();
        co_await async_sleep(29s);
        EXPECT_EQ(pool.idle(), 1U);
    });
    destroy_loop();
}

TEST_P(connection_pool_idle_test, without_idle_time_nothing_is_kept) {
    run([&]() -> task<> {
        connection_pool pool{servers_.connect(), {.idle = 0s}};
        auto first = (co_await pool.borrow("a")).value();
        first.give_back();
        EXPECT_EQ(pool.size(), 0U);
    });
}

TEST_P(connection_pool_idle_test, idle_connections_do_not_keep_a_loop_running) {
    connection_pool pool{servers_.connect()};
    run([&]() -> task<> {
        auto first = (co_await pool.borrow("a")).value();
        first.give_back();
    });
    EXPECT_EQ(pool.idle(), 1U);
}

INSTANTIATE_TEST_SUITE_P(backends, connection_pool_idle_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
