#pragma once
// write_metrics: the figures of the whole process for a monitoring system. Layer insight.

#include <iosfwd>

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// Writes the metrics of every event loop and every server of this process in the text format of
/// Prometheus, version 0.0.4: serve it as `text/plain; version=0.0.4`.
///
///     # HELP simplenet_loop_turns_total Passes through the loop.
///     # TYPE simplenet_loop_turns_total counter
///     simplenet_loop_turns_total{group="simplenet",loop="0"} 4711
///     simplenet_loop_turns_total{group="simplenet",loop="1"} 1174
///
/// The figures of a loop are those of loop_metrics. `group` is the name of its event_loop_group, or
/// empty; a second group of the same name is called `name-2`. `loop` is its number in the group;
/// loops of no group have the lowest numbers that are free.
///
/// The figures of a server are those of server_statistics, from serve() until its object is gone.
/// `server` is the lowest number that was free, `address` where it listens.
///
/// The figures are at most a turn old, as those of event_loop_group::metrics(): no loop is asked,
/// and none is waited for. A loop of no group publishes its timers and frames only from the first
/// call on, which wakes it for that if it sleeps. That call itself writes them as they were when
/// run() last ended, except on the loop's own thread.
///
/// @par Thread safety
/// Any thread.
/// @par Cost
/// That of the text. The first call wakes a sleeping loop of no group; from then on each of its
/// turns stores two more figures.
/// @par Example
/// @snippet seeing_inside.cpp prometheus
void write_metrics(std::ostream& to);

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
