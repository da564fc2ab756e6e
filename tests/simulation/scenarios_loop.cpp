// Timers, and the end of a loop.

#include "simulation/scenario_parts.hpp"

#include <array>
#include <chrono>
#include <optional>
#include <utility>

namespace simplenet::v0::simulation {

namespace {

using namespace std::chrono_literals;

// --- the end of a loop

// Both streams in one parameter: compilers destroy the parameters of a coroutine in different
// orders.
task<> talk_for_ever(world& in, pair_of_streams between) {
    tcp_stream& one = *between.client;
    tcp_stream& other = *between.server;
    flow there{.key = 51};
    flow back{.key = 52};
    constexpr std::size_t endless = std::size_t{1} << 30U;
    task_group group;
    auto first = [&]() -> task<> {
        static_cast<void>(co_await send_content(in, one, there, endless, manners{}));
    };
    auto second = [&]() -> task<> {
        static_cast<void>(co_await receive_content(in, other, there, endless, manners{}));
    };
    auto third = [&]() -> task<> {
        static_cast<void>(co_await receive_content(in, one, back, endless, manners{}));
    };
    group.spawn(first);
    group.spawn(second);
    group.spawn(third);
    static_cast<void>(co_await group.join());
}

task<> sleep_on(world& in) {
    for (;;) {
        const auto slept = co_await async_sleep(in.some_time(1ms));
        if (!slept) co_return;
    }
}

task<> teardown(world& in) {
    const std::size_t pairs = 1 + in.random.below(3);
    for (std::size_t count = 0; count < pairs; ++count) {
        auto made = co_await connected(in);
        if (!made) co_return;
        spawn(talk_for_ever(in, *std::move(made))).detach();
    }
    spawn(sleep_on(in)).detach();
    spawn(async_connect(or_throw(endpoint::parse("10.0.0.9:1")))).detach();
    static_cast<void>(co_await async_sleep(in.some_time(5ms)));
    in.loop->stop();
}

// --- timers

task<> sleeper(world& in, std::chrono::nanoseconds time) {
    const auto began = in.loop->now();
    const auto slept = co_await async_sleep(time);
    const auto took = in.loop->now() - began;
    in.note(slept ? "slept" : "stopped", took.count());
    in.expect(took >= time || !slept, "no timer fires early");
    // One tick, and the duration of the turns around it.
    in.expect(!slept || took <= time + 17us + 6 * in.net.like().slowness, "no timer fires late");
}

task<> ticker(world& in) {
    interval every{1us + in.some_time(1ms)};
    for (int tick = 0; tick < 20; ++tick) {
        const auto ticked = co_await every.next();
        if (!ticked) co_return;
    }
}

task<> timers(world& in) {
    task_group group;
    for (std::size_t count = in.random.size_up_to(100); count > 0; --count) {
        const auto longest = std::array{10us, 1000us, 1'000'000us, 3'000'000'000us};
        group.spawn(sleeper(in, in.some_time(longest[in.random.below(longest.size())])));
        if (in.random.chance(100)) group.spawn(ticker(in));
    }
    if (in.random.chance(300)) {
        static_cast<void>(co_await async_sleep(in.some_time(10ms)));
        group.request_stop();
    }
    static_cast<void>(co_await group.join());
}

constexpr std::array<scenario, 2> loop_table{{
    {"teardown", teardown},
    {"timers", timers},
}};

} // namespace

std::span<const scenario> loop_scenarios() noexcept {
    return loop_table;
}

} // namespace simplenet::v0::simulation
