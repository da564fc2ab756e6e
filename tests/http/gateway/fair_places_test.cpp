#include "http/gateway/fair_places.hpp"
#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/time/deadline.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using http::detail::client_key;
using http::detail::fair_places;
using http::detail::key_of;

client_key client(std::string_view address) {
    return key_of(or_throw(ip_address::parse(address)));
}

/// Takes as many places for `by` as it gets, and returns their number.
std::size_t take_all(fair_places& of, const client_key& by, std::deque<fair_places::place>& into) {
    std::size_t count = 0;
    while (of.take(by, into.emplace_back()))
        ++count;
    into.pop_back();
    return count;
}

TEST(fair_places_key_test, a_network_of_ipv6_is_one_client) {
    EXPECT_EQ(client("2001:db8::1"), client("2001:db8::ffff:1"));
    EXPECT_NE(client("2001:db8::1"), client("2001:db8:0:1::1"));
    EXPECT_NE(client("127.0.0.1"), client("127.0.0.2"));
    EXPECT_EQ(client("127.0.0.1"), client("::ffff:127.0.0.1"));
    EXPECT_NE(client("1.2.3.4"), client("102:304::"));
}

TEST(fair_places_take_test, a_client_gets_fewer_than_four_for_each_that_is_left) {
    fair_places places{64};
    std::deque<fair_places::place> taken;

    EXPECT_EQ(take_all(places, client("10.0.0.1"), taken), 52U);
    EXPECT_EQ(take_all(places, client("10.0.0.2"), taken), 10U);
    EXPECT_EQ(take_all(places, client("10.0.0.3"), taken), 2U);
    EXPECT_FALSE(places.has_room(client("10.0.0.4")));
    taken.pop_front();
    EXPECT_FALSE(places.has_room(client("10.0.0.1")));
    EXPECT_TRUE(places.has_room(client("10.0.0.4")));
}

TEST(fair_places_take_test, a_few_places_may_all_be_those_of_one_client) {
    for (std::size_t number = 1; number <= 4; ++number) {
        fair_places places{number};
        std::deque<fair_places::place> taken;

        EXPECT_EQ(take_all(places, client("10.0.0.1"), taken), number);
    }
}

class fair_places_test : public backend_test {
protected:
    /// Waits for a place, notes `name`, and leaves it.
    task<> wait_for(client_key by, std::string_view name) {
        fair_places::place mine;
        fair_places::turn turn{places_, by, mine};
        const result<> granted = co_await std::move(turn);
        EXPECT_TRUE(granted);
        EXPECT_TRUE(mine);
        order_ += name;
    }

    fair_places places_{2};
    std::string order_;
};

TEST_P(fair_places_test, those_who_wait_take_turns_by_client) {
    run([&]() -> task<> {
        std::deque<fair_places::place> taken;
        take_all(places_, client("10.0.0.9"), taken);
        std::vector<join_handle<>> waiting;
        for (const std::string_view name : {"a", "b", "c"})
            waiting.push_back(spawn(wait_for(client("10.0.0.1"), name)));
        for (const std::string_view name : {"x", "y"})
            waiting.push_back(spawn(wait_for(client("10.0.0.2"), name)));
        co_await turns(2);
        EXPECT_TRUE(places_.has_waiters());
        EXPECT_EQ(order_, "");

        taken.pop_front();
        for (join_handle<>& each : waiting)
            co_await each;

        EXPECT_EQ(order_, "axbyc");
        EXPECT_FALSE(places_.has_waiters());
    });
}

// It waits although places are free, and must not keep them from others.
TEST_P(fair_places_test, a_client_with_its_share_is_passed_by_others) {
    run([&]() -> task<> {
        fair_places places{10};
        std::deque<fair_places::place> taken;
        EXPECT_EQ(take_all(places, client("10.0.0.1"), taken), 8U);
        bool has_one = false;
        auto greedy = spawn([&]() -> task<> {
            fair_places::place more;
            fair_places::turn turn{places, client("10.0.0.1"), more};
            EXPECT_TRUE(co_await std::move(turn));
            has_one = true;
        });
        co_await turns(2);
        fair_places::place other;
        fair_places::place another;

        EXPECT_TRUE(places.take(client("10.0.0.2"), other));
        EXPECT_TRUE(places.take(client("10.0.0.3"), another));
        taken.pop_front(); // one is free, for somebody who has fewer than four
        co_await turns(2);
        EXPECT_FALSE(has_one);
        other.release();
        taken.pop_front(); // three are free, and it has six
        co_await greedy;

        EXPECT_TRUE(has_one);
    });
}

TEST_P(fair_places_test, whoever_stops_waiting_leaves_the_queue) {
    run([&]() -> task<> {
        std::deque<fair_places::place> taken;
        take_all(places_, client("10.0.0.9"), taken);
        fair_places::place none;
        fair_places::turn turn{places_, client("10.0.0.1"), none};

        const result<> late = co_await with_timeout(std::move(turn), 1ms);

        EXPECT_EQ(error_of(late), errc::deadline_exceeded);
        EXPECT_FALSE(none);
        EXPECT_FALSE(places_.has_waiters());
    });
}

INSTANTIATE_TEST_SUITE_P(backends, fair_places_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
