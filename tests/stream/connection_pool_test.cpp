#include <simplenet/stream/connection_pool.hpp>

#include "pool_servers.hpp"
#include "support/backend_test.hpp"
#include "support/closed_port.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/stream/any_stream.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/testing/manual_clock.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::closed_port;
using ::testing::ElementsAre;
using testing::turns;
using servers = testing::pool_servers;

using pool_type = connection_pool<duplex_stream>;

class connection_pool_test : public testing::backend_test {
protected:
    /// Borrows, and appends the name to `order` when it has the connection.
    task<result<pooled<duplex_stream>>> borrow(pool_type& pool, std::string key, std::string name) {
        auto got = co_await pool.borrow(key);
        order_.push_back(name + (got ? "" : "!"));
        co_return got;
    }

    servers servers_;
    std::vector<std::string> order_;
};

// --- lending -------------------------------------------------------------------------------------

TEST_P(connection_pool_test, what_was_given_back_is_lent_again_to_the_same_key_only) {
    run([&]() -> task<> {
        connection_pool pool{servers_.connect()};
        static_assert(std::same_as<decltype(pool), pool_type>);
        {
            auto first = (co_await pool.borrow("a")).value();
            EXPECT_FALSE(first.is_reused());
            EXPECT_TRUE(co_await first->write_some("one"));
            first.give_back();
        }
        EXPECT_EQ(pool.idle(), 1U);
        auto again = (co_await pool.borrow("a")).value();
        EXPECT_TRUE(again.is_reused());
        EXPECT_TRUE(co_await (*again).write_some("two"));
        std::string text(6, '\0');
        EXPECT_TRUE(co_await async_read_exact(servers_.made[0].peer, text));
        EXPECT_EQ(text, "onetwo");
        again.give_back();

        auto other = (co_await pool.borrow("b")).value();
        EXPECT_FALSE(other.is_reused());
        EXPECT_THAT(servers_.keys(), ElementsAre("a", "b"));
        EXPECT_EQ(pool.size(), 2U);
        EXPECT_EQ(pool.idle(), 1U);
    });
}

TEST_P(connection_pool_test, what_is_destroyed_instead_is_closed_and_makes_room) {
    run([&]() -> task<> {
        connection_pool pool{servers_.connect(), {.per_key = 1}};
        {
            const auto first = (co_await pool.borrow("a")).value();
            EXPECT_EQ(pool.size(), 1U);
        }
        EXPECT_EQ(pool.size(), 0U);
        EXPECT_TRUE(co_await servers::is_closed(servers_.made[0]));
        auto second = (co_await pool.borrow("a")).value();
        EXPECT_FALSE(second.is_reused());
    });
}

TEST_P(connection_pool_test, the_connection_used_last_is_lent_first) {
    run([&]() -> task<> {
        connection_pool pool{servers_.connect()};
        auto first = (co_await pool.borrow("a")).value();
        auto second = (co_await pool.borrow("a")).value();
        second.give_back();
        first.give_back();
        auto again = (co_await pool.borrow("a")).value();
        EXPECT_TRUE(co_await again->write_some("first"));
        std::string text(5, '\0');
        EXPECT_TRUE(co_await async_read_exact(servers_.made[0].peer, text));
        EXPECT_EQ(text, "first");
    });
}

TEST_P(connection_pool_test, a_borrowed_connection_can_be_moved) {
    run([&]() -> task<> {
        connection_pool pool{servers_.connect()};
        auto first = (co_await pool.borrow("a")).value();
        auto second = (co_await pool.borrow("b")).value();
        first = std::move(second); // closes the first one
        EXPECT_EQ(pool.size(), 1U);
        EXPECT_TRUE(co_await servers::is_closed(servers_.made[0]));
        EXPECT_FALSE(co_await servers::is_closed(servers_.made[1]));
    });
}

// --- limits and turns ----------------------------------------------------------------------------

TEST_P(connection_pool_test, turns_are_in_the_order_of_arrival) {
    run([&]() -> task<> {
        connection_pool pool{servers_.connect(), {.per_key = 1}};
        std::optional held = (co_await pool.borrow("a")).value();
        auto first = spawn(borrow(pool, "a", "first"));
        auto second = spawn(borrow(pool, "a", "second"));
        auto third = spawn(borrow(pool, "a", "third"));
        co_await turns(3);
        EXPECT_EQ(pool.size(), 1U);
        held->give_back();
        // Nobody overtakes.
        auto late = spawn(borrow(pool, "a", "late"));
        {
            auto got = (co_await first).value();
            EXPECT_TRUE(got.is_reused());
            got.give_back();
        }
        { // closed: the next one makes a new one
            auto got = (co_await second).value();
            EXPECT_TRUE(got.is_reused());
        }
        {
            auto got = (co_await third).value();
            EXPECT_FALSE(got.is_reused());
            got.give_back();
        }
        auto got = (co_await late).value();
        EXPECT_THAT(order_, ElementsAre("first", "second", "third", "late"));
    });
}

TEST_P(connection_pool_test, a_key_without_room_does_not_keep_others_waiting) {
    run([&]() -> task<> {
        connection_pool pool{servers_.connect(), {.per_key = 1, .total = 2}};
        const auto held = (co_await pool.borrow("a")).value();
        auto waits = spawn(borrow(pool, "a", "a"));
        co_await turns(2);
        auto other = co_await borrow(pool, "b", "b");
        EXPECT_TRUE(other);
        waits.request_stop();
        co_await waits;
        EXPECT_THAT(order_, ElementsAre("b", "a!"));
    });
}

TEST_P(connection_pool_test, if_the_total_is_reached_the_longest_idle_connection_makes_room) {
    run([&]() -> task<> {
        connection_pool pool{servers_.connect(), {.total = 3}};
        for (const char* const key : {"a", "b", "c"}) {
            auto lent = (co_await pool.borrow(key)).value();
            lent.give_back();
        }
        auto fourth = (co_await pool.borrow("d")).value();
        EXPECT_EQ(pool.size(), 3U);
        EXPECT_TRUE(co_await servers::is_closed(servers_.made[0]));
        auto again = (co_await pool.borrow("b")).value();
        EXPECT_TRUE(again.is_reused());
    });
}

TEST_P(connection_pool_test,
       an_idle_connection_is_closed_for_another_key_that_waits_for_the_total) {
    run([&]() -> task<> {
        connection_pool pool{servers_.connect(), {.total = 1}};
        auto held = (co_await pool.borrow("a")).value();
        auto other = spawn(borrow(pool, "b", "b"));
        auto same = spawn(borrow(pool, "a", "a"));
        co_await turns(2);
        held.give_back(); // the first in the queue wants another key
        auto got = (co_await other).value();
        EXPECT_TRUE(co_await servers::is_closed(servers_.made[0]));
        EXPECT_EQ(pool.size(), 1U);
        got.give_back();
        EXPECT_TRUE(co_await same);
        EXPECT_THAT(order_, ElementsAre("b", "a"));
    });
}

TEST_P(connection_pool_test, waiting_ends_when_its_time_is_up) {
    testing::manual_clock clock;
    remake_loop({.clock = &clock});
    run([&]() -> task<> {
        connection_pool pool{servers_.connect(), {.per_key = 1, .wait = 3s}};
        auto held = (co_await pool.borrow("a")).value();
        EXPECT_EQ(error_of(co_await pool.borrow("a")), errc::deadline_exceeded);
        EXPECT_GE(clock.elapsed(), 3s);
        EXPECT_LT(clock.elapsed(), 3s + 1ms);

        held.give_back();
        auto again = co_await pool.borrow("a");
        EXPECT_TRUE(again && again->is_reused());
    });
    destroy_loop();
}

TEST_P(connection_pool_test, connecting_is_not_counted_as_waiting) {
    testing::manual_clock clock;
    remake_loop({.clock = &clock});
    run([&]() -> task<> {
        connection_pool pool{servers_.connect(), {.per_key = 1, .wait = 1s}};
        servers_.delay = 1h;
        EXPECT_TRUE(co_await pool.borrow("a"));
        EXPECT_GE(clock.elapsed(), 1h);
    });
    destroy_loop();
}

TEST_P(connection_pool_test, a_stop_withdraws_from_the_queue_and_others_move_up) {
    run([&]() -> task<> {
        connection_pool pool{servers_.connect(), {.total = 1}};
        auto held = (co_await pool.borrow("a")).value();
        auto first = spawn(borrow(pool, "a", "first"));
        auto second = spawn(borrow(pool, "b", "second"));
        co_await turns(2);
        first.request_stop();
        EXPECT_EQ(error_of(co_await first), canceled);
        held.give_back();
        EXPECT_TRUE(co_await second);
        EXPECT_THAT(order_, ElementsAre("first!", "second"));
    });
}

TEST_P(connection_pool_test, a_stop_of_somebody_who_was_just_given_a_place_passes_it_on) {
    run([&]() -> task<> {
        connection_pool pool{servers_.connect(), {.per_key = 1}};
        auto held = (co_await pool.borrow("a")).value();
        auto first = spawn(borrow(pool, "a", "first"));
        auto second = spawn(borrow(pool, "a", "second"));
        co_await turns(2);
        held.give_back();
        first.request_stop(); // on the ready list with the connection
        EXPECT_EQ(error_of(co_await first), canceled);
        auto got = co_await second;
        EXPECT_TRUE(got && got->is_reused());
        EXPECT_EQ(servers_.begun, 1);
    });
}

// --- connecting ----------------------------------------------------------------------------------

TEST_P(connection_pool_test, a_connect_that_fails_or_throws_hands_its_place_to_the_next) {
    run([&]() -> task<> {
        for (const bool throws : {false, true}) {
            connection_pool pool{servers_.connect(), {.per_key = 1}};
            servers_.delay = 1ms;
            servers_.throws = throws;
            servers_.error = std::make_error_code(std::errc::connection_refused);
            auto first = spawn([&]() -> task<> {
                try {
                    EXPECT_EQ(error_of(co_await pool.borrow("a")), std::errc::connection_refused);
                    EXPECT_FALSE(throws);
                } catch (const std::runtime_error&) {
                    EXPECT_TRUE(throws);
                }
                servers_.error.clear();
                servers_.throws = false;
            });
            auto second = spawn(borrow(pool, "a", "second"));
            co_await turns(3);
            EXPECT_EQ(pool.size(), 1U);
            co_await first;
            EXPECT_TRUE(co_await second);
        }
    });
}

TEST_P(connection_pool_test, a_stop_while_connecting_makes_room) {
    testing::manual_clock clock;
    clock.set_automatic(false);
    remake_loop({.clock = &clock});
    run([&]() -> task<> {
        connection_pool pool{servers_.connect(), {.per_key = 1}};
        servers_.delay = 1h;
        auto first = spawn(borrow(pool, "a", "first"));
        co_await turns(3);
        EXPECT_EQ(pool.size(), 1U);
        first.request_stop();
        EXPECT_EQ(error_of(co_await first), canceled);
        EXPECT_EQ(pool.size(), 0U);
    });
    destroy_loop();
}

// --- ends ----------------------------------------------------------------------------------------

TEST_P(connection_pool_test, a_pool_may_go_before_its_connections_and_its_waiters) {
    run([&]() -> task<> {
        std::optional<pool_type> pool{std::in_place, servers_.connect(),
                                      pool_options{.per_key = 2}};
        auto idle = (co_await pool->borrow("b")).value();
        idle.give_back();
        auto held = (co_await pool->borrow("a")).value();
        auto kept = (co_await pool->borrow("a")).value();
        auto waits = spawn(borrow(*pool, "a", "waits"));
        co_await turns(2);
        servers_.delay = 1ms;
        auto connects = spawn(borrow(*pool, "c", "connects"));
        auto checks = spawn(borrow(*pool, "b", "checks"));
        co_await turns(1);

        pool.reset();
        EXPECT_EQ(error_of(co_await waits), canceled);
        EXPECT_EQ(error_of(co_await connects), canceled);
        EXPECT_EQ(error_of(co_await checks), canceled);
        for (auto& each : servers_.made) {
            EXPECT_EQ(co_await servers::is_closed(each), each.key != "a") << each.key;
        }
        held.give_back(); // closes it
        EXPECT_TRUE(co_await servers::is_closed(servers_.made[1]));
        EXPECT_TRUE(co_await kept->write_some("still mine"));
    });
}

TEST_P(connection_pool_test, a_loop_may_go_before_its_pool) {
    connection_pool pool{servers_.connect(), {.per_key = 1}};
    std::optional<pooled<duplex_stream>> held;
    std::optional<join_handle<result<pooled<duplex_stream>>>> waits;
    run([&]() -> task<> {
        auto idle = (co_await pool.borrow("b")).value();
        idle.give_back();
        held.emplace((co_await pool.borrow("a")).value());
        auto waiting = spawn([&]() -> task<> { // until the end of the loop
            EXPECT_EQ(error_of(co_await shield(pool.borrow("a"))), canceled);
        });
        waiting.detach();
        co_await turns(2);
        loop().stop();
    });
    destroy_loop();
    held->give_back();
    EXPECT_EQ(pool.idle(), 1U);
}

TEST_P(connection_pool_test, sockets_may_be_pooled_beyond_the_end_of_their_loop) {
    closed_port port;
    port.open();
    connection_pool pool{[&](std::string_view) -> task<result<tcp_stream>> {
        co_return co_await async_connect(endpoint::loopback(port.number()));
    }};
    std::optional<pooled<tcp_stream>> held;
    run([&]() -> task<> {
        auto idle = (co_await pool.borrow("b")).value();
        held.emplace((co_await pool.borrow("a")).value());
        idle.give_back();
    });
    destroy_loop();
    held->give_back();
    remake_loop();
    run([&]() -> task<> {
        auto again = (co_await pool.borrow("b")).value(); // the idle one was closed by its loop
        EXPECT_FALSE(again.is_reused());
    });
}

// --- other streams -------------------------------------------------------------------------------

TEST_P(connection_pool_test, streams_of_unknown_type_are_pooled_too) {
    run([&]() -> task<> {
        connection_pool<any_stream> pool{
            [make = servers_.connect()](std::string_view key) mutable -> task<result<any_stream>> {
                auto made = co_await make(key);
                if (!made) co_return fail(made);
                co_return any_stream{*std::move(made)};
            }};
        auto first = (co_await pool.borrow("a")).value();
        first.give_back();
        EXPECT_TRUE((co_await pool.borrow("a")).value().is_reused());
    });
}

// --- all of it -----------------------------------------------------------------------------------

// The invariants, under random use by many tasks with stops, failures and ends.
TEST_P(connection_pool_test, many_tasks_never_exceed_the_limits_and_all_get_their_turn) {
    testing::manual_clock clock;
    remake_loop({.clock = &clock});
    run([&]() -> task<> {
        testing::dice dice{5};
        std::map<std::string, std::size_t, std::less<>> live; // made and not closed
        std::size_t most = 0;
        int served = 0;
        int failed = 0;
        {
            auto connect = [&, make = servers_.connect()](
                               std::string_view key) mutable -> task<result<duplex_stream>> {
                co_await async_sleep(1ms * dice.up_to(3));
                if (dice.one_in(10)) co_return fail(errc::name_not_found);
                co_return co_await make(key);
            };
            connection_pool pool{connect, {.per_key = 3, .total = 7, .idle = 50ms, .wait = 1h}};
            auto user = [&](std::uint32_t number) -> task<result<>> {
                const std::string key(1, static_cast<char>('a' + number % 5));
                co_await async_sleep(1ms * dice.up_to(200));
                auto lent = co_await pool.borrow(key);
                if (!lent) {
                    ++failed;
                    co_return result<>{};
                }
                ++served;
                EXPECT_LE(++live[key], 3U);
                EXPECT_LE(pool.size(), 7U);
                most = std::max(most, pool.size());
                co_await async_sleep(1ms * dice.up_to(5));
                --live[key];
                if (!dice.one_in(4)) lent->give_back();
                co_return result<>{};
            };
            auto all = [&](task_group& group) -> task<> {
                for (std::uint32_t each = 0; each < 2000; ++each) {
                    if (each % 7 == 0) {
                        group.spawn([](auto work, int limit) -> task<> {
                            static_cast<void>(co_await with_timeout(std::move(work), 1ms * limit));
                        }(user(each), static_cast<int>(dice.up_to(250))));
                    } else {
                        group.spawn(user(each));
                    }
                }
                co_return;
            };
            EXPECT_TRUE(co_await with_group(all));
            EXPECT_EQ(most, 7U);
            EXPECT_GT(served, 1200);
            EXPECT_GT(failed, 10);
            EXPECT_EQ(pool.size(), pool.idle());
            co_await async_sleep(1s);
            EXPECT_EQ(pool.size(), 0U);
        }
    });
    destroy_loop();
}

TEST_P(connection_pool_test, mistakes_are_violations) {
    EXPECT_DEATH((connection_pool{servers_.connect(), {.per_key = 0}}), "without room");
    EXPECT_DEATH(run([&]() -> task<> {
                     connection_pool pool{servers_.connect()};
                     auto lent = (co_await pool.borrow("a")).value();
                     lent.give_back();
                     lent.give_back();
                 }),
                 "a connection was given back twice");
    EXPECT_DEATH(run([&]() -> task<> {
                     connection_pool pool{servers_.connect()};
                     auto lent = (co_await pool.borrow("a")).value();
                     lent.give_back();
                     static_cast<void>(lent->shutdown_write());
                 }),
                 "a connection was used after it was given back");
}

INSTANTIATE_TEST_SUITE_P(backends, connection_pool_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
