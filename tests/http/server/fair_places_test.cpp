#include "http/server/fair_places.hpp"
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

TEST(fair_places_take_test, a_client_gets_half_of_what_others_leave) {
    fair_places places{64};
    std::deque<fair_places::place> taken;

    EXPECT_EQ(take_all(places, client("10.0.0.1"), taken), 32U);
    EXPECT_EQ(take_all(places, client("10.0.0.2"), taken), 16U);
    EXPECT_EQ(take_all(places, client("10.0.0.3"), taken), 8U);
    EXPECT_EQ(take_all(places, client("10.0.0.4"), taken), 4U);
    EXPECT_EQ(take_all(places, client("10.0.0.5"), taken), 2U);
    EXPECT_EQ(take_all(places, client("10.0.0.6"), taken), 1U);
    EXPECT_EQ(take_all(places, client("10.0.0.7"), taken), 1U);
    EXPECT_FALSE(places.has_room(client("10.0.0.8")));
    taken.pop_front();
    EXPECT_FALSE(places.has_room(client("10.0.0.1")));
    EXPECT_TRUE(places.has_room(client("10.0.0.8")));
}

TEST(fair_places_take_test, the_half_is_rounded_up) {
    for (std::size_t number = 1; number <= 5; ++number) {
        fair_places places{number};
        std::deque<fair_places::place> taken;

        EXPECT_EQ(take_all(places, client("10.0.0.1"), taken), (number + 1) / 2);
    }
}

class fair_places_test : public backend_test {
protected:
    /// Waits for a place, notes `name`, and leaves it.
    task<> wait_for(client_key by, std::string_view name) {
        fair_places::place mine;
        fair_places::turn turn{places_, by, mine};
        const result<> granted = co_await std::move(turn);
        EXPECT_EQ(granted.has_value(), static_cast<bool>(mine));
        if (granted) order_ += name;
    }

    fair_places places_{2};
    std::string order_;
};

TEST_P(fair_places_test, those_who_wait_take_turns_by_client) {
    run([&]() -> task<> {
        std::deque<fair_places::place> taken;
        take_all(places_, client("10.0.0.9"), taken);
        take_all(places_, client("10.0.0.8"), taken);
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
        fair_places places{6};
        std::deque<fair_places::place> taken;
        EXPECT_EQ(take_all(places, client("10.0.0.1"), taken), 3U);
        bool has_one = false;
        auto greedy = spawn([&]() -> task<> {
            fair_places::place more;
            fair_places::turn turn{places, client("10.0.0.1"), more};
            EXPECT_TRUE(co_await std::move(turn));
            has_one = true;
        });
        co_await turns(2);
        EXPECT_TRUE(places.has_waiters());
        fair_places::place other;
        fair_places::place another;
        fair_places::place last;

        EXPECT_TRUE(places.take(client("10.0.0.2"), other));
        EXPECT_TRUE(places.take(client("10.0.0.3"), another));
        EXPECT_FALSE(other.is_wanted()); // one is left, for whoever has less
        EXPECT_TRUE(taken.front().is_wanted());
        EXPECT_TRUE(places.take(client("10.0.0.4"), last));
        EXPECT_TRUE(last.is_wanted());
        other.release(); // one is free, for somebody who has none
        co_await turns(2);
        EXPECT_FALSE(has_one);
        EXPECT_FALSE(other.is_wanted());
        EXPECT_FALSE(last.is_wanted());
        another.release();
        taken.pop_front(); // three are free, and it has two
        co_await greedy;

        EXPECT_TRUE(has_one);
        EXPECT_FALSE(taken.front().is_wanted());
    });
}

// The deadline comes after the place was given, before the waiter resumes.
TEST_P(fair_places_test, what_was_granted_stays) {
    run([&]() -> task<> {
        std::deque<fair_places::place> taken;
        take_all(places_, client("10.0.0.9"), taken);
        take_all(places_, client("10.0.0.8"), taken);
        auto waiting = spawn(wait_for(client("10.0.0.1"), "granted"));
        co_await turns(2);

        taken.pop_front();
        waiting.request_stop();
        co_await waiting;

        EXPECT_EQ(order_, "granted");
    });
}

TEST_P(fair_places_test, whoever_stops_waiting_leaves_the_queue) {
    run([&]() -> task<> {
        std::deque<fair_places::place> taken;
        take_all(places_, client("10.0.0.9"), taken);
        take_all(places_, client("10.0.0.8"), taken);
        fair_places::place none;
        fair_places::turn turn{places_, client("10.0.0.1"), none};

        const result<> late = co_await with_timeout(std::move(turn), 1ms);

        EXPECT_EQ(error_of(late), errc::deadline_exceeded);
        EXPECT_FALSE(none);
        EXPECT_FALSE(places_.has_waiters());
    });
}

// Frames go without resuming, in whatever order.
TEST_P(fair_places_test, the_end_of_a_loop_leaves_no_place_taken) {
    loop().spawn([&]() -> task<> {
        fair_places::place held;
        fair_places::place more;
        EXPECT_TRUE(places_.take(client("10.0.0.1"), held));
        EXPECT_TRUE(places_.take(client("10.0.0.2"), more));
        auto granted = spawn(wait_for(client("10.0.0.3"), "granted"));
        auto waiting = spawn(wait_for(client("10.0.0.4"), "waiting"));
        co_await turns(2);
        held.release();
        loop().stop();
        co_await granted;
        co_await waiting;
    });
    loop().run();
    destroy_loop();
    EXPECT_FALSE(places_.has_waiters());
    std::deque<fair_places::place> taken;
    EXPECT_EQ(take_all(places_, client("10.0.0.1"), taken), 1U);
    EXPECT_EQ(take_all(places_, client("10.0.0.2"), taken), 1U);
    remake_loop();
}

INSTANTIATE_TEST_SUITE_P(backends, fair_places_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
