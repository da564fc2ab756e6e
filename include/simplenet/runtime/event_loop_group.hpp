#pragma once
// event_loop_group: loops on threads of their own, as many as the process has CPUs. Layer runtime.

#include <simplenet/core/error.hpp>
#include <simplenet/io/loop_options.hpp>
#include <simplenet/runtime/event_loop.hpp>

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <string_view>

namespace simplenet::v0::detail {
// Internal: not exported, because they are first declared here.
class loop_threads;
struct loop_group_access;
} // namespace simplenet::v0::detail

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// How an event_loop_group is created.
struct event_loop_group_options {
    /// The number of loops. 0: as many as CPUs that this process may use, at least 1: those of the
    /// affinity mask (sched_setaffinity(2)), or fewer if a quota of a control group (cpu.max, see
    /// cgroups(7)) gives the process the time of fewer, rounded down.
    unsigned loops = 0;
    /// Lets each thread run on one CPU only: those of the affinity mask, in its order.
    bool pin = false;
    /// Of each loop. If `automatic` has to fall back to epoll for one loop, all use epoll.
    loop_options loop = {};
    /// The threads are called name-0, name-1 and so on; a long name is cut so that the number fits
    /// into the 15 characters of a thread's name. Copied.
    std::string_view name = "simplenet";
};

/// The number of loops of a group with event_loop_group_options::loops = 0, for programs that open
/// a listener for each of them first. At least 1. Throws std::bad_alloc. Any thread.
///
/// @par Cost
/// Reads a few files below /proc and /sys.
[[nodiscard]] unsigned usable_processors();

/// Event loops, each on a thread of its own.
///
/// Owns its threads and loops. The threads run from create() to stop(), with or without work. The
/// objects that a loop owns follow the rules of event_loop: use them on that loop's thread, which
/// post() and spawn_remote() reach from anywhere. A stop() of a single loop has no effect on it:
/// its thread runs it again.
///
/// The threads block all signals except those of faults, loop_options::dump_signal, and
/// loop_options::stall_signal if there is a stall_threshold. In a child of fork(2) the threads do
/// not exist: there the group can only be destroyed, which does nothing.
///
/// May be moved while its loops run; the loops stay where they are. The destructor stops and joins.
///
/// @par Thread safety
/// Any thread, unless a member says otherwise.
/// @par Example
/// @snippet threads.cpp group
class event_loop_group {
public:
    /// Creates the loops and starts their threads: all of them, or none if one cannot be had.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: `pin` for more loops than the affinity mask has CPUs.
    /// - `std::errc::resource_unavailable_try_again`: no more threads (pthread_create(3)).
    /// - Those of event_loop::create().
    [[nodiscard]] static result<event_loop_group> create(event_loop_group_options options = {});

    /// Other threads that use `other` must know; those that only use its loops need not.
    event_loop_group(event_loop_group&& other) noexcept;
    event_loop_group& operator=(event_loop_group&& other) noexcept;
    /// stop() and join().
    ///
    /// @pre Not on a thread of the group.
    ~event_loop_group();

    /// The number of loops, at least 1.
    [[nodiscard]] std::size_t size() const noexcept;
    /// A loop; valid until the group is destroyed, also after stop().
    ///
    /// @pre `index` is less than size().
    [[nodiscard]] event_loop& operator[](std::size_t index) noexcept;
    [[nodiscard]] const event_loop& operator[](std::size_t index) const noexcept;
    /// The loops in turn.
    [[nodiscard]] event_loop& next() noexcept;

    /// Ends every loop: its tasks are stopped, as by its destruction, and run on until they have
    /// ended. From the return of stop() on, post() to a loop of the group destroys its callable,
    /// and a task of spawn_remote() ends with operation_canceled. Does not wait. Later calls do
    /// nothing.
    void stop() noexcept;
    /// Waits until all threads have ended, which they do after a stop().
    ///
    /// @pre Not on a thread of the group.
    void join();

    /// What the loops have done, and what they hold: the sum.
    ///
    /// From counters that the loops keep: no loop is asked, and none is waited for. Frames and
    /// timers are those before the latest poll of each loop, so those of now if it sleeps, and
    /// those of the turn before if it is in one turn for long. Everything else is as of now. Once a
    /// loop has ended, its figures are those of its end, with nothing alive.
    ///
    /// @par Cost
    /// A dozen loads for each loop, and one mutex, which only other callers and loops that are
    /// created or destroyed take.
    [[nodiscard]] loop_metrics metrics() const;
    /// The same of one loop.
    ///
    /// @pre `index` is less than size().
    [[nodiscard]] loop_metrics metrics(std::size_t index) const;

    /// Prints what every task of every loop waits for: dump_tasks() of each loop, which follows
    /// `loop 0: `, `loop 1: ` and so on.
    ///
    /// Each loop prints its tasks at the start of its next turn. A loop in which a task has blocked
    /// for 100 ms, or 10 ms if the caller is on a loop, `does not answer`;
    /// loop_options::stall_threshold shows what blocks it. A loop `has ended` after stop().
    ///
    /// @par Cost
    /// Proportional to the tasks, and a post to each loop. The caller sleeps until the last loop
    /// has answered.
    void dump_tasks(std::ostream& to) const;

private:
    friend detail::loop_group_access;
    explicit event_loop_group(std::unique_ptr<detail::loop_threads> inner) noexcept;
    [[nodiscard]] detail::loop_threads& inner() const noexcept;

    std::unique_ptr<detail::loop_threads> inner_; // null only after a move
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
