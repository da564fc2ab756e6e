// Measures single operations of a loop, ours beside Boost.Asio's: `ours_epoll/spawn_join`,
// `ours_io_uring/spawn_join`, `asio/spawn_join`. Uses Google Benchmark; the suite alternates them.

#include <simplenet/simplenet.hpp>

#include <benchmark/benchmark.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if __has_include(<boost/asio/experimental/channel.hpp>) // not before Boost 1.78
#include <boost/asio.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#define HAS_ASIO 1
#endif

using namespace simplenet;
using namespace std::chrono_literals;
using benchmark::State;

namespace {

constexpr std::size_t children = 100;  // for when_all
constexpr std::size_t outstanding = 8; // timers armed at a time by timer_outlives_turns

/// When pending timer number `at` of `count` is due: between 10 s and 60 s from now, in no order.
/// None of them fires during the measurement, and the measured timer of 30 s is neither the first
/// nor the last: being the first is the worst case of Asio's heap.
std::chrono::milliseconds pending_delay(std::int64_t at, std::int64_t count) {
    constexpr std::int64_t prime = 2'654'435'761;
    return 10s + 50'000ms * (at * prime % count) / count;
}

namespace ours {

/// Runs a coroutine that measures, and stops everything else on the loop when it has ended.
template <class Body>
void on_loop(backend which, State& state, Body body) {
    auto loop = or_throw(event_loop::create({.backend = which}));
    auto main = [](auto inner, State& measured, event_loop& on) -> task<> {
        co_await inner(measured);
        on.stop();
    };
    loop.spawn(main(body, state, loop)).detach();
    loop.run();
}

task<int> child() {
    co_return 1;
}
task<> sleeper(std::chrono::milliseconds delay) {
    static_cast<void>(co_await async_sleep(delay));
}

task<> coroutine_call(State& state) {
    for (auto _ : state)
        benchmark::DoNotOptimize(co_await child());
}
task<> spawn_join(State& state) {
    for (auto _ : state)
        benchmark::DoNotOptimize(co_await spawn(child()));
}
task<> yields(State& state) {
    for (auto _ : state)
        co_await yield();
}
task<> when_all_100(State& state) {
    for (auto _ : state) {
        std::vector<task<int>> all;
        all.reserve(children);
        for (std::size_t at = 0; at < children; ++at)
            all.push_back(child());
        benchmark::DoNotOptimize(co_await when_all(std::move(all)));
    }
}
task<> echo_channel(channel<int>& from, channel<int>& to) {
    while (auto value = co_await from.receive()) {
        if (!co_await to.send(*value)) break;
    }
}
task<> channel_ping_pong(State& state) {
    channel<int> there{1};
    channel<int> back{1};
    auto echo = spawn(echo_channel(there, back));
    for (auto _ : state) {
        static_cast<void>(co_await there.send(1));
        benchmark::DoNotOptimize(co_await back.receive());
    }
    there.close();
    co_await echo;
}
task<> with_pending_timers(State& state) {
    for (std::int64_t at = 0; at < state.range(0); ++at)
        spawn(sleeper(pending_delay(at, state.range(0)))).detach();
    static_cast<void>(co_await async_sleep(1ms)); // all of them are waiting
    for (int at = 0; at < 10; ++at)
        co_await yield();
}
task<> timer_arm_cancel(State& state) {
    co_await with_pending_timers(state);
    for (auto _ : state)
        static_cast<void>(co_await with_timeout(yield(), 30s));
}
/// Each timer lives for eight turns of the loop, so it is not cancelled before the loop has polled.
task<> timer_outlives_turns(State& state) {
    co_await with_pending_timers(state);
    std::array<join_handle<>, outstanding> armed;
    std::size_t at = 0;
    for (auto _ : state) {
        join_handle<>& oldest = armed[at % outstanding];
        if (at++ >= outstanding) oldest.request_stop();
        oldest = spawn(sleeper(30s));
        co_await yield();
    }
}
task<> timer_arm_expire(State& state) {
    co_await with_pending_timers(state);
    for (auto _ : state)
        static_cast<void>(co_await async_sleep(1ns));
}
task<> resolve_numeric(State& state) {
    for (auto _ : state)
        benchmark::DoNotOptimize(co_await async_resolve("127.0.0.1", 80));
}

task<> post_same_thread(State& state) {
    std::int64_t ran = 0;
    std::int64_t wanted = 0;
    for (auto _ : state) {
        for (std::int64_t at = 0; at < state.range(0); ++at)
            event_loop::current()->post([&ran] { ++ran; });
        wanted += state.range(0);
        while (ran != wanted)
            co_await yield();
    }
}

void post_across_threads(State& state, backend which) {
    std::atomic<std::int64_t> ran = 0;
    std::atomic<event_loop*> made = nullptr;
    // One thread creates, runs and destroys a loop.
    std::thread runner{[&] {
        auto loop = or_throw(event_loop::create({.backend = which}));
        loop.spawn(sleeper(1h)).detach();
        made = &loop;
        loop.run();
    }};
    while (made == nullptr) {
    }
    event_loop& loop = *made;
    for (auto _ : state) {
        const std::int64_t wanted = ran.load() + state.range(0);
        for (std::int64_t at = 0; at < state.range(0); ++at)
            loop.post([&ran] { ran.fetch_add(1, std::memory_order_relaxed); });
        while (ran.load() < wanted) {
        }
    }
    loop.stop();
    runner.join();
    state.SetItemsProcessed(state.iterations() * state.range(0));
}

} // namespace ours

#ifdef HAS_ASIO
namespace asio = boost::asio;

namespace theirs {

using asio::awaitable;
using asio::use_awaitable;

template <class Body>
void on_context(State& state, Body body) {
    asio::io_context context{1};
    auto main = [](auto inner, State& measured, asio::io_context& on) -> awaitable<void> {
        co_await inner(measured);
        on.stop();
    };
    asio::co_spawn(context, main(body, state, context), asio::detached);
    context.run();
}

awaitable<int> child() {
    co_return 1;
}

awaitable<void> coroutine_call(State& state) {
    for (auto _ : state)
        benchmark::DoNotOptimize(co_await child());
}
awaitable<void> spawn_join(State& state) {
    const auto executor = co_await asio::this_coro::executor;
    for (auto _ : state)
        benchmark::DoNotOptimize(co_await asio::co_spawn(executor, child(), use_awaitable));
}
awaitable<void> yields(State& state) {
    for (auto _ : state)
        co_await asio::post(use_awaitable);
}
awaitable<void> when_all_100(State& state) {
    const auto executor = co_await asio::this_coro::executor;
    using operation = decltype(asio::co_spawn(executor, child(), asio::deferred));
    for (auto _ : state) {
        std::vector<operation> all;
        all.reserve(children);
        for (std::size_t at = 0; at < children; ++at)
            all.push_back(asio::co_spawn(executor, child(), asio::deferred));
        auto group = asio::experimental::make_parallel_group(std::move(all));
        auto done = co_await group.async_wait(asio::experimental::wait_for_all(), use_awaitable);
        benchmark::DoNotOptimize(done);
    }
}
using int_channel = asio::experimental::channel<void(boost::system::error_code, int)>;

awaitable<void> echo_channel(int_channel& from, int_channel& to) {
    constexpr auto as_result = asio::as_tuple(use_awaitable);
    while (true) {
        auto [error, value] = co_await from.async_receive(as_result);
        if (error) break;
        auto [failed] = co_await to.async_send(boost::system::error_code{}, value, as_result);
        if (failed) break;
    }
}
awaitable<void> channel_ping_pong(State& state) {
    const auto executor = co_await asio::this_coro::executor;
    int_channel there{executor, 1};
    int_channel back{executor, 1};
    asio::co_spawn(executor, echo_channel(there, back), asio::detached);
    for (auto _ : state) {
        co_await there.async_send(boost::system::error_code{}, 1, use_awaitable);
        benchmark::DoNotOptimize(co_await back.async_receive(use_awaitable));
    }
    there.close();
    co_await asio::post(use_awaitable); // the other one ends first
    co_await asio::post(use_awaitable);
}

using timers = std::vector<asio::steady_timer>;

awaitable<timers> pending_timers(State& state) {
    const auto executor = co_await asio::this_coro::executor;
    timers all;
    all.reserve(static_cast<std::size_t>(state.range(0)));
    for (std::int64_t at = 0; at < state.range(0); ++at) {
        all.emplace_back(executor, pending_delay(at, state.range(0)));
        all.back().async_wait([](boost::system::error_code) {});
    }
    co_return all;
}
awaitable<void> timer_arm_cancel(State& state) {
    const timers pending = co_await pending_timers(state);
    asio::steady_timer timer{co_await asio::this_coro::executor};
    for (auto _ : state) {
        timer.expires_after(30s);
        timer.async_wait([](boost::system::error_code) {});
        co_await asio::post(use_awaitable);
        timer.cancel();
    }
}
awaitable<void> timer_outlives_turns(State& state) {
    const timers pending = co_await pending_timers(state);
    const auto executor = co_await asio::this_coro::executor;
    timers armed;
    for (std::size_t at = 0; at < outstanding; ++at)
        armed.emplace_back(executor);
    std::size_t at = 0;
    for (auto _ : state) {
        asio::steady_timer& oldest = armed[at++ % outstanding];
        oldest.expires_after(30s); // cancels its wait
        oldest.async_wait([](boost::system::error_code) {});
        co_await asio::post(use_awaitable);
    }
}
awaitable<void> timer_arm_expire(State& state) {
    const timers pending = co_await pending_timers(state);
    asio::steady_timer timer{co_await asio::this_coro::executor};
    for (auto _ : state) {
        timer.expires_after(1ns);
        co_await timer.async_wait(use_awaitable);
    }
}
awaitable<void> resolve_numeric(State& state) {
    asio::ip::tcp::resolver resolver{co_await asio::this_coro::executor};
    // Ours takes the port as a number; these flags save Asio the search in /etc/services.
    const auto numeric =
        asio::ip::tcp::resolver::numeric_host | asio::ip::tcp::resolver::numeric_service;
    for (auto _ : state)
        benchmark::DoNotOptimize(
            co_await resolver.async_resolve("127.0.0.1", "80", numeric, use_awaitable));
}

awaitable<void> post_same_thread(State& state) {
    const auto executor = co_await asio::this_coro::executor;
    std::int64_t ran = 0;
    std::int64_t wanted = 0;
    for (auto _ : state) {
        for (std::int64_t at = 0; at < state.range(0); ++at)
            asio::post(executor, [&ran] { ++ran; });
        wanted += state.range(0);
        while (ran != wanted)
            co_await asio::post(use_awaitable);
    }
}

void post_across_threads(State& state) {
    asio::io_context context{1};
    const auto work = asio::make_work_guard(context);
    std::atomic<std::int64_t> ran = 0;
    std::thread runner{[&context] { context.run(); }};
    for (auto _ : state) {
        const std::int64_t wanted = ran.load() + state.range(0);
        for (std::int64_t at = 0; at < state.range(0); ++at)
            asio::post(context, [&ran] { ran.fetch_add(1, std::memory_order_relaxed); });
        while (ran.load() < wanted) {
        }
    }
    context.stop();
    runner.join();
    state.SetItemsProcessed(state.iterations() * state.range(0));
}

} // namespace theirs
#endif

using benchmark_function = std::function<void(State&)>;

/// Which processor time counts: Asio resolves on another thread.
enum class spent_by : std::uint8_t { main_thread, process, process_over_time };

void add(const std::string& subject, const std::string& operation, const benchmark_function& run,
         const std::vector<std::int64_t>& counts = {}, spent_by whom = spent_by::main_thread) {
    const std::string name = subject + '/' + operation;
    auto* const made =
        benchmark::RegisterBenchmark(name.c_str(), [run](State& state) { run(state); });
    for (const std::int64_t each : counts)
        made->Arg(each);
    if (whom != spent_by::main_thread) made->MeasureProcessCPUTime();
    if (whom == spent_by::process_over_time) made->UseRealTime();
}

const std::vector<std::int64_t> pending{1, 1000, 100'000, 1'000'000};

// Asio chooses its backend at compile time, so there is a program for each.
#ifdef BOOST_ASIO_HAS_IO_URING_AS_DEFAULT
[[maybe_unused]] const char* const asio_subject = "asio_io_uring";
#else
[[maybe_unused]] const char* const asio_subject = "asio";
#endif

} // namespace

int main(int argc, char** argv) {
    const auto add_ours = [](backend which) {
        if (!probe_backend(which)) return;
        const std::string subject = std::string{"ours_"} + to_string(which);
        const auto coroutine = [&](const char* operation, task<> (*body)(State&),
                                   const std::vector<std::int64_t>& counts = {},
                                   spent_by whom = spent_by::main_thread) {
            add(
                subject, operation, [=](State& state) { ours::on_loop(which, state, body); },
                counts, whom);
        };
        coroutine("coroutine_call", ours::coroutine_call);
        coroutine("spawn_join", ours::spawn_join);
        coroutine("yield", ours::yields);
        coroutine("when_all_100", ours::when_all_100);
        coroutine("channel", ours::channel_ping_pong);
        coroutine("timer_arm_cancel", ours::timer_arm_cancel, pending);
        coroutine("timer_outlives_turns", ours::timer_outlives_turns, pending);
        coroutine("timer_arm_expire", ours::timer_arm_expire, pending);
        coroutine("resolve_numeric", ours::resolve_numeric, {}, spent_by::process);
        coroutine("post_same_thread", ours::post_same_thread, {64});
        add(
            subject, "post_across_threads",
            [=](State& state) { ours::post_across_threads(state, which); }, {1, 1000},
            spent_by::process_over_time);
    };
    add_ours(backend::epoll);
    add_ours(backend::io_uring);
#ifdef HAS_ASIO
    const auto coroutine = [](const char* operation, theirs::awaitable<void> (*body)(State&),
                              const std::vector<std::int64_t>& counts = {},
                              spent_by whom = spent_by::main_thread) {
        add(
            asio_subject, operation, [=](State& state) { theirs::on_context(state, body); }, counts,
            whom);
    };
    coroutine("coroutine_call", theirs::coroutine_call);
    coroutine("spawn_join", theirs::spawn_join);
    coroutine("yield", theirs::yields);
    coroutine("when_all_100", theirs::when_all_100);
    coroutine("channel", theirs::channel_ping_pong);
    coroutine("timer_arm_cancel", theirs::timer_arm_cancel, pending);
    coroutine("timer_outlives_turns", theirs::timer_outlives_turns, pending);
    coroutine("timer_arm_expire", theirs::timer_arm_expire, pending);
    coroutine("resolve_numeric", theirs::resolve_numeric, {}, spent_by::process);
    coroutine("post_same_thread", theirs::post_same_thread, {64});
    add(asio_subject, "post_across_threads", theirs::post_across_threads, {1, 1000},
        spent_by::process_over_time);
#endif
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
}
