// A seed determines everything: its replay is the same, event by event.

#include "simulation/simulation.hpp"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace simplenet::v0::simulation {
namespace {

class replay_test : public ::testing::TestWithParam<scenario> {};

TEST_P(replay_test, the_same_seed_gives_the_same_run) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        const outcome first = simulate(GetParam(), seed, backend::epoll, true);
        static_cast<void>(simulate(GetParam(), seed + 100, backend::epoll)); // leaves no trace
        const outcome second = simulate(GetParam(), seed, backend::epoll, true);

        ASSERT_EQ(first.lines, second.lines) << "seed " << seed;
        EXPECT_EQ(first.hash, second.hash) << "seed " << seed;
        EXPECT_EQ(first.elapsed, second.elapsed) << "seed " << seed;
    }
}

TEST_P(replay_test, another_seed_gives_another_run) {
    EXPECT_NE(simulate(GetParam(), 1, backend::epoll).hash,
              simulate(GetParam(), 2, backend::epoll).hash);
}

TEST_P(replay_test, recording_lines_changes_nothing) {
    EXPECT_EQ(simulate(GetParam(), 3, backend::epoll, true).hash,
              simulate(GetParam(), 3, backend::epoll, false).hash);
}

INSTANTIATE_TEST_SUITE_P(scenarios, replay_test, ::testing::ValuesIn(scenarios()), scenario_name);

} // namespace
} // namespace simplenet::v0::simulation
