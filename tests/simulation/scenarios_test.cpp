// The short form of scripts/simulate.sh: a few seeds of every scenario.

#include "simulation/simulation.hpp"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace simplenet::v0::simulation {
namespace {

class scenarios_test : public ::testing::TestWithParam<scenario> {};

TEST_P(scenarios_test, keeps_its_promises) {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        const outcome what = simulate(GetParam(), seed, backend::epoll);
        ASSERT_EQ(what.failure, "") << "replay: simplenet_simulate --scenario " << GetParam().name
                                    << " --first " << seed << " --trace";
    }
}

INSTANTIATE_TEST_SUITE_P(scenarios, scenarios_test, ::testing::ValuesIn(scenarios()),
                         scenario_name);

} // namespace
} // namespace simplenet::v0::simulation
