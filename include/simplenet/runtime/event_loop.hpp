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
// The library's own: not exported, since it is first named here.
class assembled_loop;
} // namespace simplenet::v0::detail

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {
class main_signals;
} // namespace detail

inline namespace runtime {

/// Runs tasks and their I/O on one thread.
///
/// Owns every spawned task, and the sockets that tasks of it use. One thread at a time runs it,
/// always the same one. Destroying it, on that thread, stops every task and runs on until they
/// have ended; a task that goes on after 1000 refused operations is not resumed again, and its
/// frames are destroyed once the kernel has let go of them. Sockets that outlive it are closed.
///
/// Loop thread only, which before the first run() is the thread that made it; what other threads
/// may call says so.
///
/// @par Example
/// @snippet backend_switch.cpp create
class event_loop {
public:
    using clock = std::chrono::steady_clock;

    /// Makes a loop.
    ///
    /// @par Errors
    /// - `errc::backend_unavailable`: an explicit choice, by the options or by SIMPLENET_BACKEND,
    ///   that kernel, sandbox or build does not offer, or that the limit of locked memory
    ///   (RLIMIT_MEMLOCK) leaves no room for. The message names it, and the reason.
    /// - `std::errc::invalid_argument`: SIMPLENET_BACKEND names no backend, or `dump_signal` cannot
    ///   be handled.
    /// - `std::errc::too_many_files_open`, `std::errc::not_enough_memory`: no resources for it.
    [[nodiscard]] static result<event_loop> create(loop_options options = {});

    /// @pre Neither of them runs, and no other thread uses them.
    event_loop(event_loop&& other) noexcept;
    event_loop& operator=(event_loop&& other) noexcept;
    ~event_loop();

    /// Which of the two it uses; never automatic.
    ///
    /// @par Thread safety
    /// Any thread.
    [[nodiscard]] backend selected_backend() const noexcept;

    /// Starts a task in the next turn, outside every scope; see join_handle.
    template <class T>
    join_handle<T> spawn(task<T> work) {
        return detail::spawn_on(own_queue(), std::move(work));
    }
    /// The same for a callable that returns a task; callable and arguments live with the child.
    template <class Function, class... Args>
        requires detail::task_function<Function, Args...>
    auto spawn(Function&& function, Args&&... arguments) {
        return detail::spawn_on(own_queue(), std::forward<Function>(function),
                                std::forward<Args>(arguments)...);
    }

    /// Starts a task from any thread; its frame, made here, runs and dies on the loop's thread.
    ///
    /// @pre The loop lives until the call returns. If it is destroyed before the task started,
    ///      waiting for the handle throws `std::system_error` with operation_canceled.
    template <class T>
    remote_handle<T> spawn_remote(task<T> work) {
        auto state = detail::remote_task<T>::make(queue().on_unhandled, std::move(work));
        post(detail::remote_post{state});
        return remote_handle<T>{std::move(state)};
    }
    /// The same for a callable that returns a task: callable and arguments are copied or moved, as
    /// for std::thread, and live with the task, so a capturing lambda is safe here. It is called on
    /// the loop's thread, where callable and arguments die.
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
            using value = typename detail::task_of_call<Function, Args...>::value_type;
            return spawn_remote(
                detail::call_and_wait<value, std::decay_t<Function>, std::decay_t<Args>...>(
                    std::forward<Function>(function), std::forward<Args>(arguments)...));
        }
    }

    /// Runs until nothing is left to wait for (no task lives, nothing is posted), or stop().
    ///
    /// @pre No loop runs on this thread, and no other thread has run this one.
    void run();

    /// The same for at most `limit`. False when the time ran out first.
    template <class Rep, class Period>
    bool run_for(std::chrono::duration<Rep, Period> limit) {
        return run_for_ns(detail::saturated(limit));
    }

    /// Runs what is ready, I/O that is complete and timers that are due; never waits.
    ///
    /// @return How much it ran; 0 means that there is nothing to do before native_handle() becomes
    ///         readable or next_timer() passes.
    std::size_t poll();

    /// A descriptor that is readable when a completion, a post or a spawn waits for poll(): to
    /// embed this loop in another one. Owned by the loop; only to be polled. The same each time.
    /// What else is done to the loop's tasks and sockets from outside, such as request_stop(),
    /// close() or the release of a lease, is to be followed by a poll(). -1 where the kernel has no
    /// descriptor or no memory for it (io_uring makes it when it is first asked for).
    [[nodiscard]] int native_handle() const noexcept;

    /// When to call poll() at the latest, for the timers; none if there are none.
    [[nodiscard]] std::optional<clock::time_point> next_timer() const;

    /// Now, by the clock that the loop's timers go by: the monotonic one, unless
    /// loop_options::clock says otherwise.
    [[nodiscard]] clock::time_point now() const noexcept;

    /// Ends run(): the one that runs, else the next one. What is left stays there for another
    /// run().
    ///
    /// @par Thread safety
    /// Any thread.
    void stop() noexcept;

    /// Calls `function` on the loop's thread, in the order of the posts of each thread. Dropped if
    /// the loop is destroyed first.
    ///
    /// @pre An exception does not leave `function`: there is nobody to receive it. The loop lives
    ///      until the call returns.
    ///
    /// @par Thread safety
    /// Any thread.
    ///
    /// @par Cost
    /// One allocation; a system call only if the loop sleeps.
    template <std::invocable Function>
    void post(Function&& function) {
        using kept = std::decay_t<Function>;
        post_item(*new detail::posted_call<kept>{std::forward<Function>(function)});
    }

    /// What the loop has done, and what it holds at this moment.
    ///
    /// @par Cost
    /// Proportional to its sockets and armed timers.
    [[nodiscard]] loop_metrics metrics() const;

    /// What dump_tasks() prints, of this loop, whether it runs or not. Loop thread only.
    void dump_tasks(std::ostream& to);

    /// The loop that runs on this thread, or null.
    [[nodiscard]] static event_loop* current() noexcept;

private:
    friend class detail::main_signals;
    explicit event_loop(std::unique_ptr<detail::assembled_loop> inner) noexcept;

    [[nodiscard]] detail::run_queue& queue() noexcept;
    [[nodiscard]] detail::run_queue& own_queue() noexcept; // to spawn on
    void post_item(detail::posted& item) noexcept;
    bool run_for_ns(std::chrono::nanoseconds limit);

    std::unique_ptr<detail::assembled_loop> inner_; // null only after a move
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
