#pragma once
// run_blocking: a call that blocks, awaited on a loop. Layer runtime.

#include <simplenet/runtime/run_on.hpp>
#include <simplenet/threads/detail/blocking_pool.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// Calls `function(arguments...)` on a thread of the process, and continues here with its result:
/// run_on() with a pool that every program has. For calls that block: files, a database client, a
/// name service.
///
/// The pool is made by the first call, and again in a child of fork(2). It has 4 threads for each
/// CPU that the process may use, and at least 8, which start when they are needed and end after 10
/// seconds without work. At most 1024 calls wait in its queue, further ones for a place in it.
/// Calls that compute compete with the loops for CPUs: give them a thread_pool of a suitable size.
///
/// Nobody joins the threads when the process ends: a call that has begun may be cut off, and must
/// not use static objects that are destroyed at exit.
///
/// @return, Cancellation, Cost: as for run_on().
/// @par Errors
/// Throws std::system_error (resource_unavailable_try_again) if the pool is new and no thread can
/// be started.
/// @par Example
/// @snippet threads.cpp run_blocking
template <class Function, class... Args>
[[nodiscard]] auto run_blocking(Function&& function, Args&&... arguments) {
    if constexpr (detail::checked_call_elsewhere<Function, Args...>()) {
        using returned = detail::task_of_call<Function, Args...>;
        static_assert(!detail::is_task<returned>, "a task runs on an event_loop");
        return detail::run_call_in<returned>(
            detail::blocking_pool(),
            detail::keep_call(std::forward<Function>(function), std::forward<Args>(arguments)...));
    }
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
