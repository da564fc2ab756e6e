#pragma once
// simulation: one run of one scenario from one seed, and its result.

#include "simulation/event_log.hpp"
#include "simulation/network.hpp"
#include "simulation/random_source.hpp"

#include <simplenet/coro/task.hpp>
#include <simplenet/runtime/event_loop.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace simplenet::v0::simulation {

/// The surroundings of a scenario.
class world {
public:
    world(std::uint64_t seed, bool keep_lines);

    random_source random; // for the scenario; the network has its own
    simulated_clock clock;
    event_log log;
    network net;
    event_loop* loop = nullptr;

    /// Checks a promise; the first one that is broken is stored in `failure`.
    void expect(bool holds, std::string_view promise);
    /// Adds an entry of the scenario to the log.
    void note(std::string_view what, std::int64_t count);

    [[nodiscard]] std::chrono::nanoseconds some_time(std::chrono::nanoseconds most) {
        return random.between(std::chrono::nanoseconds::zero(), most);
    }

    std::string failure; // empty: no failure

private:
    explicit world(random_source source, bool keep_lines);
};

struct scenario {
    const char* name;
    task<> (*run)(world&);
};

/// All scenarios.
[[nodiscard]] std::span<const scenario> scenarios() noexcept;

/// For the names of tests with a scenario as their parameter.
inline constexpr auto scenario_name = [](const auto& info) { return std::string{info.param.name}; };

struct outcome {
    std::string failure; // empty: no failure
    std::uint64_t hash = 0;
    std::uint64_t events = 0;
    std::chrono::nanoseconds elapsed{0}; // in the simulation
    std::string lines;                   // if they were requested
};

/// @param which  The backend of the loop.
[[nodiscard]] outcome simulate(const scenario& what, std::uint64_t seed, backend which,
                               bool keep_lines = false);

} // namespace simplenet::v0::simulation
