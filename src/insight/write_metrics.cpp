#include <simplenet/insight/write_metrics.hpp>

#include "insight/loop_survey.hpp"
#include "insight/metrics_page.hpp"
#include "insight/metrics_source.hpp"

#include <simplenet/io/loop_options.hpp>

#include <ostream>
#include <string>

namespace simplenet::v0 {

namespace {

using enum detail::metric_kind;

constexpr detail::metric turns{"simplenet_loop_turns_total", "Passes through the loop.", counter};
constexpr detail::metric completions{"simplenet_loop_completions_total",
                                     "Events and completions that the kernel reported.", counter};
constexpr detail::metric wake_ups{"simplenet_loop_wake_ups_total",
                                  "System calls by which other threads woke the loop.", counter};
constexpr detail::metric stalls{"simplenet_loop_stalls_total",
                                "Turns that took longer than the threshold for stalls.", counter};
constexpr detail::metric accept_pauses{"simplenet_loop_accept_pauses_total",
                                       "Pauses of accepting for lack of descriptors or memory.",
                                       counter};
constexpr detail::metric overflow{"simplenet_loop_receive_pool_overflow_total",
                                  "Receives that had to take memory from the heap.", counter};
constexpr detail::metric live_tasks{"simplenet_loop_tasks", "Tasks that have not ended.", gauge};
constexpr detail::metric operations{"simplenet_loop_operations", "I/O operations that wait.",
                                    gauge};
constexpr detail::metric frames{"simplenet_loop_frames",
                                "Coroutine frames allocated and not freed on the loop's thread.",
                                gauge};
constexpr detail::metric timers{"simplenet_loop_timers", "Timers that are armed.", gauge};
constexpr detail::metric sockets{"simplenet_loop_sockets", "Sockets that the loop owns.", gauge};
constexpr detail::metric leases{"simplenet_loop_receive_pool_leases",
                                "Leases of receive buffers that are held.", gauge};

void write_loop(detail::metrics_page& page, const detail::loop_figures& loop) {
    const std::string number = std::to_string(loop.number);
    const auto add = [&](const detail::metric& of, auto value) {
        page.add(of, {{"group", loop.group}, {"loop", number}}, value);
    };
    const loop_metrics& now = loop.metrics;
    add(turns, now.turns);
    add(completions, now.completions);
    add(wake_ups, now.wake_ups);
    add(stalls, now.stalls);
    add(accept_pauses, now.accept_pauses);
    add(overflow, now.receive_pool_overflow);
    add(live_tasks, now.live_tasks);
    add(operations, now.live_operations);
    add(frames, now.live_frames);
    add(timers, now.timers);
    add(sockets, now.open_descriptors);
    add(leases, now.receive_pool_leased);
}

} // namespace

inline namespace runtime {

void write_metrics(std::ostream& to) {
    detail::metrics_page page;
    for (const detail::loop_figures& each : detail::survey_loops())
        write_loop(page, each);
    detail::write_sources(page);
    to << page.text();
}

} // namespace runtime
} // namespace simplenet::v0
