#include <simplenet/threads/detail/blocking_pool.hpp>

#include "sys/processors.hpp"
#include "threads/one_for_process.hpp"
#include "threads/pool_core.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>

namespace simplenet::v0::detail {

namespace {

/// Never destroyed: a call that blocks cannot be interrupted, so nobody could wait for its threads
/// at exit.
class process_pool : private one_for_process<process_pool> {
    friend one_for_process<process_pool>;

public:
    process_pool() = default;

    [[nodiscard]] static pool_core& core();

private:
    pool_core core_{1024, "blocking"};
};

constinit std::atomic<process_pool*> current_pool = nullptr;

pool_core& process_pool::core() {
    process_pool& pool = get(current_pool, [] { return std::make_unique<process_pool>(); });
    // Only here: of two pools that two first callers make, one is destroyed at once.
    if (!pool.core_.is_growing()) {
        // Calls that block need no CPU of their own; a small machine still has slow disks.
        pool.core_.start_growing(
            std::max<std::size_t>(8, std::size_t{4} * sys::usable_processors()));
    }
    return pool.core_;
}

} // namespace

std::shared_ptr<work_queue> blocking_pool() {
    return {std::shared_ptr<void>{}, &process_pool::core()}; // owns nothing
}

} // namespace simplenet::v0::detail
