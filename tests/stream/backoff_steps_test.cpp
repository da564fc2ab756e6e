#include <simplenet/stream/detail/backoff_steps.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using detail::backoff_steps;
using std::chrono::nanoseconds;

TEST(backoff_steps_test, each_pause_is_at_most_its_step_and_steps_grow_up_to_the_maximum) {
    constexpr nanoseconds steps[] = {100ms, 200ms, 400ms, 800ms, 1s, 1s, 1s};
    std::vector<nanoseconds> longest(std::size(steps));
    for (std::uint32_t seed = 1; seed <= 1000; ++seed) {
        backoff_steps pauses{{.initial = 100ms, .maximum = 1s, .factor = 2}, seed};
        for (std::size_t each = 0; each < std::size(steps); ++each) {
            const nanoseconds pause = pauses.next();
            EXPECT_GE(pause, 0ns);
            EXPECT_LE(pause, steps[each]);
            longest[each] = std::max(longest[each], pause);
        }
    }
    for (std::size_t each = 0; each < std::size(steps); ++each)
        EXPECT_GE(longest[each], steps[each] * 97 / 100) << each;
}

TEST(backoff_steps_test, pauses_are_spread_evenly_over_the_whole_step) {
    int tenths[10] = {};
    backoff_steps pauses{{.initial = 1s, .maximum = 1s}, 7};
    for (int each = 0; each < 10'000; ++each)
        ++tenths[std::min<std::int64_t>(pauses.next() / 100ms, 9)];
    for (const int count : tenths) {
        EXPECT_GT(count, 850);
        EXPECT_LT(count, 1150);
    }
}

TEST(backoff_steps_test, reset_begins_with_the_first_step) {
    backoff_steps pauses{{.initial = 1ms, .maximum = 1h, .factor = 10}, 3};
    for (int each = 0; each < 5; ++each)
        static_cast<void>(pauses.next());
    pauses.reset();
    EXPECT_LE(pauses.next(), 1ms);
    EXPECT_LE(pauses.next(), 10ms);
}

TEST(backoff_steps_test, a_seed_fixes_the_pauses_and_random_seeds_differ) {
    backoff_steps first{{}, 5};
    backoff_steps second{{}, 5};
    for (int each = 0; each < 20; ++each)
        EXPECT_EQ(first.next(), second.next());

    std::set<std::uint32_t> seeds;
    for (int each = 0; each < 100; ++each)
        seeds.insert(detail::random_seed());
    EXPECT_GE(seeds.size(), 99U);
}

TEST(backoff_steps_test, extreme_durations_do_not_overflow) {
    backoff_steps largest{{.initial = nanoseconds::max(),
                           .maximum = nanoseconds::max(),
                           .factor = std::numeric_limits<double>::infinity()},
                          1};
    backoff_steps none{{.initial = 0ns, .maximum = 1s}, 1};
    backoff_steps inverted{{.initial = 10s, .maximum = 1s}, 1};
    for (int each = 0; each < 100; ++each) {
        EXPECT_GE(largest.next(), 0ns);
        EXPECT_EQ(none.next(), 0ns);
        EXPECT_LE(inverted.next(), 1s);
    }
}

TEST(backoff_steps_test, nonsense_is_a_violation) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH((backoff_steps{{.initial = -1s}, 1}), "a backoff with a negative duration");
    EXPECT_DEATH((backoff_steps{{.maximum = -1s}, 1}), "a backoff with a negative duration");
    EXPECT_DEATH((backoff_steps{{.factor = 0.5}, 1}), "factor is less than 1");
    EXPECT_DEATH((backoff_steps{{.factor = std::numeric_limits<double>::quiet_NaN()}, 1}),
                 "factor is less than 1");
}

} // namespace
} // namespace simplenet::v0
