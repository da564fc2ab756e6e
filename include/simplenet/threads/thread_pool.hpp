#pragma once
// thread_pool: threads for work that blocks or computes. Layer threads.

#include <simplenet/threads/detail/work_queue.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

namespace simplenet::v0::detail {
// Internal: not exported, because it is first declared here.
class pool_core;
} // namespace simplenet::v0::detail

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

struct pool_access;

/// try_post() to a pool or a strand.
template <class Function>
bool try_post_to(work_queue& queue, Function&& function) {
    if (!queue.reserve()) return false;
    using call = work_call<std::decay_t<Function>>;
    work_item* item = nullptr;
    try {
        item = new call{std::forward<Function>(function)};
    } catch (...) {
        queue.unreserve();
        throw;
    }
    queue.put(*item);
    return true;
}

} // namespace detail

inline namespace runtime {

/// How a thread_pool is created.
struct thread_pool_options {
    /// 0: as many as CPUs that this process may use, as for event_loop_group_options::loops.
    unsigned threads = 0;
    /// The number of callables that may wait for a thread before try_post() refuses one and
    /// run_on() waits for its place; at least 1.
    std::size_t queue_limit = 1024;
    /// The threads are called name-0, name-1 and so on; a long name is cut so that the number fits
    /// into the 15 characters of a thread's name. Copied.
    std::string_view name = "pool";
};

/// Threads for work that blocks or computes, which would hold up an event loop.
///
/// Owns its threads and the callables that wait for one. They begin in the order in which they were
/// posted; each runs to its end and is destroyed on its thread. Await a call with run_on().
///
/// The threads block all signals except those of faults. In a child of fork(2) they do not exist:
/// there the pool can only be destroyed, which does nothing.
///
/// Not movable: strands and running callables refer to it.
///
/// @par Thread safety
/// Any thread, but for the destructor.
/// @par Cost
/// A post is one allocation and a mutex, and a system call if a thread sleeps.
/// @par Example
/// @snippet threads.cpp run_on
class thread_pool {
public:
    /// Starts the threads. Throws std::system_error (resource_unavailable_try_again, see
    /// pthread_create(3)) if one cannot be started; then none runs.
    explicit thread_pool(thread_pool_options options = {});
    thread_pool(const thread_pool&) = delete;
    thread_pool& operator=(const thread_pool&) = delete;
    /// Destroys the callables that have not begun, and waits for those that have. Callables that
    /// these post, and strands of this pool, are destroyed without a call from here on.
    ///
    /// @pre Not on a thread of the pool.
    ~thread_pool();

    /// Calls `function` on a thread of the pool; also takes it when queue_limit callables wait.
    ///
    /// @pre No exception leaves `function`: as of a std::thread, it calls std::terminate.
    template <std::invocable Function>
    void post(Function&& function) {
        using call = detail::work_call<std::decay_t<Function>>;
        queue().push(*new call{std::forward<Function>(function)});
    }
    /// The same, unless queue_limit callables wait: then it returns false and leaves `function` as
    /// it is.
    template <std::invocable Function>
    [[nodiscard]] bool try_post(Function&& function) {
        return detail::try_post_to(queue(), std::forward<Function>(function));
    }

private:
    friend detail::pool_access;
    [[nodiscard]] detail::work_queue& queue() const noexcept;

    std::shared_ptr<detail::pool_core> core_; // shared with strands and calls that are awaited
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
