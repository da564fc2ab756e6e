#pragma once
// dump_tasks: shows what every task of a loop waits for. Layer insight.

#include <iosfwd>

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// Prints every task of this thread's loop that has not ended, each once, children below their
/// owners: its number, its name (this_task::set_name()), its age, what it waits for, and below that
/// where: `file:line` of the await, of its parent's, and so on.
///
///     epoll loop: 3 tasks, 1 operations, 1 timers
///     #1 server, 12.031 s: accept on fd 5, 127.0.0.1:8080
///         at server.cpp:40
///     #2 reports, 12.031 s: join of #3
///         at server.cpp:61
///     #3, 0.504 s: sleep for another 0.496 s
///         at server.cpp:33
///
/// A task is a spawned task, or (without a number) an argument of a combinator. May be called by
/// tasks, posted functions and destructors, even while the loop is being destroyed. A loop without
/// timers and time limits does not read the clock; then ages count from its last reading before the
/// tasks were created, so a task may appear older than it is.
///
/// event_loop::dump_tasks() does the same for a loop that is not running at the moment,
/// loop_options::dump_signal on a signal, and in a debugger `call (void)simplenet_dump_tasks()`
/// prints to standard error.
///
/// @pre A loop runs on this thread.
/// @par Cost
/// Proportional to the tasks; two system calls for each task that waits for a socket.
void dump_tasks(std::ostream& to);

} // namespace runtime
} // namespace simplenet::v0

/// For debuggers: dump_tasks() of the calling thread's loop, to standard error.
extern "C" void simplenet_dump_tasks() noexcept;

#pragma GCC visibility pop
