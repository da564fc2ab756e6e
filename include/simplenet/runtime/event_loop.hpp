#pragma once
// event_loop: the loop of a thread, over epoll or io_uring. Layer runtime.

#include <simplenet/core/detail/saturated.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/io/loop_options.hpp>
#include <simplenet/threads/detail/posted.hpp>
#include <simplenet/threads/remote_handle.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <iosfwd>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace simplenet::v0::detail {
// Internal: not exported, because it is first declared here.
class assembled_loop;
struct loop_access;
} // namespace simplenet::v0::detail

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {
class main_signals;
struct run_on_access;
} // namespace detail

inline namespace runtime {

/// Runs tasks and their I/O on one thread.
///
/// Owns every spawned task, and the sockets that its tasks use. One thread, always the same one,
/// runs it. Destroying it, on that thread, stops every task and runs until they have ended; a task
/// that continues after 1000 refused operations is not resumed again, and its frames are destroyed
/// when the kernel no longer uses them. Sockets that outlive it are closed.
///
/// Loop thread only; before the first run() that is the thread that created it. Members that other
/// threads may call say so.
///
/// @par Example
/// @snippet backend_switch.cpp create
class event_loop {
public:
    using clock = std::chrono::steady_clock;

    /// Creates a loop.
    ///
    /// @par Errors
    /// - `errc::backend_unavailable`: the options or SIMPLENET_BACKEND request a backend that the
    ///   kernel, the sandbox or the build lacks, or for which the limit of locked memory
    ///   (RLIMIT_MEMLOCK) is too low. The message names the backend and the reason.
    /// - `std::errc::invalid_argument`: SIMPLENET_BACKEND names no backend, or `dump_signal` cannot
    ///   be handled.
    /// - `std::errc::too_many_files_open`, `std::errc::not_enough_memory`: out of resources.
    [[nodiscard]] static result<event_loop> create(loop_options options = {});

    /// @pre Neither loop is running, and no other thread uses either.
    event_loop(event_loop&& other) noexcept;
    event_loop& operator=(event_loop&& other) noexcept;
    ~event_loop();

    /// The backend in use; never automatic.
    ///
    /// @par Thread safety
    /// Any thread.
    [[nodiscard]] backend selected_backend() const noexcept;

    /// Starts a task in the next turn, outside every scope; see join_handle.
    template <class T>
    join_handle<T> spawn(task<T> work) {
        return detail::spawn_on(own_queue(), std::move(work));
    }
    /// The same for a callable that returns a task; callable and arguments live as long as the
    /// child.
    template <class Function, class... Args>
        requires detail::task_function<Function, Args...>
    auto spawn(Function&& function, Args&&... arguments) {
        return detail::spawn_on(own_queue(), std::forward<Function>(function),
                                std::forward<Args>(arguments)...);
    }

    /// Starts a task from any thread; its frame is created here, and runs and is destroyed on the
    /// loop's thread.
    ///
    /// If the loop ends before the task has started, the result is operation_canceled: as an error
    /// if an expected can hold it, otherwise as a thrown `std::system_error`. A loop of an
    /// event_loop_group that has been stopped takes no task: the task is destroyed inside this
    /// call.
    ///
    /// @pre The loop lives until the call returns.
    ///
    /// @par Cost
    /// A system call only if the loop sleeps. get() and a loop that awaits the handle cost a system
    /// call if they sleep. No allocation in the steady state.
    template <class T>
    remote_handle<T> spawn_remote(task<T> work) {
        return start_remote(detail::make_remote_task(queue(), std::move(work)));
    }
    /// The same for a callable that returns a task: callable and arguments are copied or moved, as
    /// for std::thread, and live as long as the task, so a capturing lambda is safe here. The call,
    /// and the destruction of callable and arguments, happen on the loop's thread.
    ///
    /// Under GCC 12 a closure with captures that are not trivially destructible must be named
    /// before a `co_await` expression that contains this call: that compiler destroys such captures
    /// twice.
    /// @par Example
    /// @snippet coroutines.cpp spawn_remote
    template <class Function, class... Args>
        requires(!detail::is_task<std::remove_cvref_t<Function>>)
    auto spawn_remote(Function&& function, Args&&... arguments) {
        if constexpr (detail::checked_task_function<Function, Args...>()) {
            return start_remote(detail::make_remote_task(queue(), std::forward<Function>(function),
                                                         std::forward<Args>(arguments)...));
        }
    }

    /// Runs until nothing is left to wait for (no task is alive, nothing is posted), or until
    /// stop().
    ///
    /// @pre No loop runs on this thread, and no other thread has run this one.
    void run();

    /// The same for at most `limit`. False if the time ran out first.
    template <class Rep, class Period>
    bool run_for(std::chrono::duration<Rep, Period> limit) {
        return run_for_ns(detail::saturated(limit));
    }

    /// Runs everything ready: tasks, completed I/O and due timers; never waits.
    ///
    /// @return The number of things it ran; 0 means that there is nothing to do before
    ///         native_handle() becomes readable or next_timer() passes.
    std::size_t poll();

    /// A descriptor that is readable when a completion, a post or a spawn waits for poll(), to
    /// embed this loop in another one. Owned by the loop; only poll it. The same each time. After
    /// other actions on the loop's tasks and sockets from outside, such as request_stop(), close()
    /// or the release of a lease, call poll(). -1 if the kernel has no descriptor or no memory for
    /// it (io_uring creates it at the first call).
    [[nodiscard]] int native_handle() const noexcept;

    /// When to call poll() at the latest, for the timers; empty if there are none.
    [[nodiscard]] std::optional<clock::time_point> next_timer() const;

    /// The current time of the clock that the loop's timers use: the monotonic one, unless
    /// loop_options::clock says otherwise.
    [[nodiscard]] clock::time_point now() const noexcept;

    /// Ends run(): the current one, or else the next one. Remaining work waits for another run().
    ///
    /// @par Thread safety
    /// Any thread.
    void stop() noexcept;

    /// Calls `function` on the loop's thread; the posts of each thread keep their order. Destroyed
    /// instead if the loop ends first; inside this call if the loop belongs to an event_loop_group
    /// that has been stopped. Every post is called or destroyed without a call, exactly once.
    ///
    /// @pre No exception leaves `function`: nobody could receive it. The loop lives until the call
    /// returns.
    ///
    /// @par Thread safety
    /// Any thread.
    ///
    /// @par Cost
    /// A system call only if the loop sleeps. No allocation in the steady state.
    template <std::invocable Function>
    void post(Function&& function) {
        using kept = std::decay_t<Function>;
        post_item(*new detail::posted_call<kept>{std::forward<Function>(function)});
    }

    /// What the loop has done, and its current contents.
    ///
    /// @par Cost
    /// Proportional to its armed timers.
    [[nodiscard]] loop_metrics metrics() const;

    /// Prints dump_tasks() of this loop, whether or not it is running. Loop thread only.
    void dump_tasks(std::ostream& to);

    /// The loop that is running on this thread, or null.
    [[nodiscard]] static event_loop* current() noexcept;

private:
    friend class detail::main_signals;
    friend struct detail::loop_access;
    friend struct detail::run_on_access;
    explicit event_loop(std::unique_ptr<detail::assembled_loop> inner) noexcept;

    [[nodiscard]] detail::run_queue& queue() noexcept;
    [[nodiscard]] detail::run_queue& own_queue() noexcept; // to spawn on
    void post_item(detail::posted& item) noexcept;
    template <class T>
    remote_handle<T> start_remote(detail::remote_ref<detail::remote_task<T>> state) noexcept {
        post_item(state->start());
        return detail::remote_access::make<T>(std::move(state));
    }
    bool run_for_ns(std::chrono::nanoseconds limit);

    std::unique_ptr<detail::assembled_loop> inner_; // null only after a move
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
