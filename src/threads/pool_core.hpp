#pragma once
// pool_core: the threads behind thread_pool and run_blocking(). Layer threads, private.

#include "threads/forks.hpp"

#include <simplenet/threads/detail/work_queue.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace simplenet::v0::detail {

class pool_core final : public work_queue {
public:
    pool_core(std::size_t limit, std::string_view name)
        : work_queue{limit}
        , name_{name} {}
    ~pool_core() = default;

    /// Starts `count` threads, for join(). Throws std::system_error; then none runs.
    void start(std::size_t count);
    /// Starts one thread, unless there is one, and more when they are needed, which end when they
    /// have been idle for long. Never joined. Throws std::system_error.
    void start_growing(std::size_t most);
    [[nodiscard]] bool is_growing() const noexcept {
        return grows_.load(std::memory_order_acquire);
    }

    /// close(), and waits for the threads. @pre not on one of them.
    void end() noexcept;

    [[nodiscard]] bool is_inherited() const noexcept { return born_in_ != fork_generation(); }
    /// The number of threads.
    [[nodiscard]] std::size_t threads() const noexcept;

private:
    void notify(lock held) noexcept override;
    void start_thread();
    void work() noexcept;
    void sleep(lock& held) noexcept;

    const std::string name_;
    const unsigned born_in_ = fork_generation();
    std::atomic<bool> grows_ = false; // start_growing() has succeeded
    std::condition_variable ready_;   // an item may be in the queue, or it is closed
    // Under the mutex:
    std::vector<std::thread> joined_;
    std::size_t threads_ = 0;
    std::size_t started_ = 0; // for their names
    std::size_t idle_ = 0;
    std::size_t most_ = 0; // 0: does not grow
};

} // namespace simplenet::v0::detail
