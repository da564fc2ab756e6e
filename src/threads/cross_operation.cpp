#include <simplenet/threads/detail/cross_operation.hpp>

#include "threads/posting_queue.hpp"

#include <span>
#include <utility>

namespace simplenet::v0::detail {

bool cross_lock::push(run_queue& queue, posted& item) noexcept {
    return posting_queue::of(queue).post_asleep(item);
}

void cross_lock::wake(run_queue& queue) noexcept {
    posting_queue::of(queue).wake_for_post();
}

void cross_lock::unlock_and_wake() noexcept {
    const auto asleep = asleep_; // the next holder of the lock has its own
    const std::size_t count = std::exchange(asleep_count_, 0);
    mutex_.unlock();
    for (run_queue* const each : std::span{asleep}.first(count))
        wake(*each);
}

} // namespace simplenet::v0::detail
