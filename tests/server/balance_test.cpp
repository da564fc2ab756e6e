#include "server/balance.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0::detail {
namespace {

/// The loads of the loops of a server, as admit() changes them.
class loads {
public:
    explicit loads(std::size_t loops)
        : open_(loops) {}

    /// A connection that the loop `at` accepts.
    void arrive(std::size_t at) {
        std::size_t to = at;
        if (open_[at] >= fair_share(total(), open_.size())) {
            to = least_loaded(
                open_.size(), at, 0, [this](std::size_t each) { return open_[each]; },
                [](std::size_t) { return false; });
        }
        ++open_[to];
    }
    void leave(std::size_t at) {
        if (open_[at] != 0) --open_[at];
    }

    [[nodiscard]] std::size_t total() const {
        return std::accumulate(open_.begin(), open_.end(), std::size_t{0});
    }
    [[nodiscard]] std::size_t busiest() const { return std::ranges::max(open_); }

private:
    std::vector<std::size_t> open_;
};

TEST(balance_test, a_fair_share_is_a_little_more_than_the_mean) {
    EXPECT_EQ(fair_share(0, 4), 4U);
    EXPECT_EQ(fair_share(7, 4), 1U + 4U);
    EXPECT_EQ(fair_share(1000, 8), 125U + 4U);
    EXPECT_EQ(fair_share(1000, 4), 250U + 7U);
    EXPECT_EQ(fair_share(1000, 2), 500U + 15U);
}

TEST(balance_test, no_loop_gets_more_than_its_share_even_if_it_accepts_everything) {
    for (const std::size_t loops : {2U, 3U, 4U, 8U, 64U}) {
        loads server{loops};
        for (int connection = 0; connection < 2000; ++connection) {
            server.arrive(0);
            ASSERT_LE(server.busiest(), fair_share(server.total(), loops)) << loops << " loops";
        }
    }
}

TEST(balance_test, loops_whose_connections_stay_get_none_of_the_new_ones) {
    // The connections of one of two loops end again and again; the other one keeps all of its own.
    loads server{2};
    for (std::size_t connection = 0; connection < 1000; ++connection)
        server.arrive(connection % 2);
    for (int round = 0; round < 100; ++round) {
        for (int each = 0; each < 10; ++each)
            server.leave(0);
        for (int each = 0; each < 10; ++each)
            server.arrive(1);
        ASSERT_LE(server.busiest(), fair_share(1000, 2));
    }
}

TEST(balance_test, an_arrival_never_lifts_a_loop_above_the_share) {
    std::mt19937 random{18};
    for (const std::size_t loops : {2U, 4U, 8U}) {
        loads server{loops};
        for (int step = 0; step < 20'000; ++step) {
            if (random() % 5 < 2) {
                server.leave(random() % loops);
                continue;
            }
            const std::size_t before = server.busiest();
            const std::size_t share = fair_share(server.total(), loops);
            server.arrive(random() % loops);
            ASSERT_LE(server.busiest(), std::max(before, share));
        }
    }
}

TEST(balance_test, the_least_loaded_is_the_first_of_equals_that_is_not_excluded) {
    const std::vector<std::size_t> open{3, 2, 1, 1, 1};
    const auto on = [&](std::size_t each) { return open[each]; };
    const auto nobody = [](std::size_t) { return false; };
    EXPECT_EQ(least_loaded(5, 0, 0, on, nobody), 2U);
    EXPECT_EQ(least_loaded(5, 0, 3, on, nobody), 3U);
    EXPECT_EQ(least_loaded(5, 4, 0, on, nobody), 4U); // no other has fewer
    EXPECT_EQ(least_loaded(5, 0, 2, on, [](std::size_t each) { return each == 2; }), 3U);
    EXPECT_EQ(least_loaded(5, 0, 2, on, [](std::size_t each) { return each >= 2; }), 1U);
}

} // namespace
} // namespace simplenet::v0::detail
