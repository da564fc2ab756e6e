#pragma once
// signal_set: signals that can be awaited. Layer runtime.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/coro/task.hpp>

#include <initializer_list>
#include <thread>

#include <csignal>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// Signals that coroutines receive, one at a time, instead of their usual effect.
///
/// Blocks the signals in the creating thread for its lifetime: neither their default action nor a
/// handler runs, even if they are ignored otherwise. Its destructor unblocks those that were not
/// blocked before, unless another set of this thread still wants them. Signals that were not
/// received by then take their usual effect.
///
/// @pre Created before other threads, which inherit the mask: a signal to the process goes to any
/// thread that does not block it. Executed programs inherit the mask too (sigprocmask(2)).
///
/// Several signals of the same number that arrive before the first is received are merged into one
/// (signal(7)), except real-time signals. If several sets wait for a signal, one of them receives
/// it.
///
/// Only on the creating thread. Movable while nobody waits.
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

    /// A signalfd(2), only to be polled. Owned by the set.
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
