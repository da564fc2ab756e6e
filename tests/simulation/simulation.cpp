#include "simulation/simulation.hpp"

#include "simulation/simulated_calls.hpp"

#include <simplenet/coro/detail/frame_allocator.hpp>
#include <simplenet/insight/dump_tasks.hpp>

#include <exception>
#include <sstream>
#include <utility>

namespace simplenet::v0::simulation {

namespace {

using namespace std::chrono_literals;

/// No scenario should take that long; six attempts to connect take two minutes.
constexpr auto longest_run = std::chrono::hours{2};

task<> guarded(const scenario& what, world& in) {
    try {
        co_await what.run(in);
    } catch (const std::exception& thrown) {
        in.expect(false, std::string{"the scenario threw an exception: "} + thrown.what());
    }
}

/// The scenario will not end on its own: ends it, and reports the state of its tasks.
void end_stuck_loop(void* argument, std::string_view why) {
    world& in = *static_cast<world*>(argument);
    std::ostringstream text;
    text << "the scenario " << why << ":\n";
    dump_tasks(text);
    in.expect(false, text.str());
    in.loop->stop();
}

} // namespace

world::world(std::uint64_t seed, bool keep_lines)
    : world{random_source{seed}, keep_lines} {}

world::world(random_source source, bool keep_lines)
    : random{source.next()}
    , log{keep_lines}
    , net{source.next(), conditions::drawn_from(source), clock, log} {}

void world::expect(bool holds, std::string_view promise) {
    if (holds || !failure.empty()) return;
    failure = promise;
    log.note(clock.elapsed(), 0, "BROKEN", 0);
}

void world::note(std::string_view what, std::int64_t count) {
    log.note(clock.elapsed(), 0, what, count);
}

outcome simulate(const scenario& what, std::uint64_t seed, backend which, bool keep_lines) {
    const std::ptrdiff_t frames = detail::live_frames();
    // Another seed for each scenario, or all of them would get the same network.
    std::uint64_t mixed = seed;
    for (const char* each = what.name; *each != '\0'; ++each)
        mixed = mixed * 31 + static_cast<unsigned char>(*each);
    world in{mixed, keep_lines};
    {
        const simulated_calls here{in.net};
        event_loop loop = or_throw(event_loop::create({.backend = which,
                                                       .receive_pool = std::size_t{64} * 1024,
                                                       .handle_signals = false,
                                                       .clock = &in.clock}));
        in.loop = &loop;
        in.net.on_stuck = end_stuck_loop;
        in.net.on_stuck_argument = &in;
        loop.spawn(guarded(what, in));
        loop.run();
        in.net.on_stuck = nullptr; // its end refuses the remaining operations
    }
    in.loop = nullptr;
    in.expect(in.net.open_descriptors() == 0, "every descriptor is closed at the end");
    in.expect(detail::live_frames() == frames, "every coroutine frame is freed at the end");
    in.expect(in.clock.elapsed() < longest_run, "every wait has an end");
    return {std::move(in.failure), in.log.hash(), in.log.events(), in.clock.elapsed(),
            in.log.lines()};
}

} // namespace simplenet::v0::simulation
