#pragma once
// signal_set: signals as something to await. Layer runtime.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/coro/task.hpp>

#include <initializer_list>
#include <thread>

#include <csignal>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// Signals that are received by coroutines, one at a time, instead of having their effect.
///
/// Blocks them in the thread that makes it, for as long as it lives: neither their default action
/// nor a handler takes place, even if they are ignored otherwise. Then unblocks those that were not
/// blocked before, unless another set of this thread still wants them. What was not received by
/// then has its usual effect.
///
/// @pre Made before other threads, which inherit the mask: a signal to the process goes to any
///      thread that does not block it. So do programs that are executed (sigprocmask(2)).
///
/// Signals of the same number that come before one is received become one (signal(7)), but for
/// real-time signals. Of several sets that wait for the same signal, one receives it.
///
/// The thread that made it, only. Movable while nobody waits.
///
/// @par Example
/// @snippet graceful_shutdown.cpp signals
class signal_set {
public:
    /// Throws `std::system_error` if there is no descriptor for it (signalfd(2)).
    ///
    /// @pre Each of `numbers` is a signal that can be blocked: not SIGKILL, not SIGSTOP.
    signal_set(std::initializer_list<int> numbers);
    signal_set(signal_set&& other) noexcept;
    signal_set& operator=(signal_set&& other) noexcept;
    ~signal_set();

    /// Waits for the next signal.
    ///
    /// @return Its number.
    /// @pre The set outlives the await.
    /// @par Errors
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came
    ///   first; no signal was taken.
    /// @par Cost
    /// A coroutine, and two or three system calls.
    [[nodiscard]] task<result<int>> next();

    /// A signalfd(2), only to be polled. Owned by this.
    [[nodiscard]] int native_handle() const noexcept { return descriptor_.get(); }

private:
    void unblock() noexcept;

    ::sigset_t numbers_{};
    unique_fd descriptor_; // empty after a move
    std::thread::id thread_;
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
