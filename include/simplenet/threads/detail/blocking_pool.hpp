#pragma once
// blocking_pool: the threads of the process that run_blocking() uses. Layer threads, private.

#include <simplenet/threads/detail/work_queue.hpp>

#include <memory>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// The queue of the process's pool, which is created by the first call in a process, and again in a
/// child of fork(2). Throws std::system_error if not even one thread can be started. Any thread.
[[nodiscard]] std::shared_ptr<work_queue> blocking_pool();

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
