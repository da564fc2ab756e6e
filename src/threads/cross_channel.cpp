#include <simplenet/threads/cross_channel.hpp>

#include "threads/posting_queue.hpp"

namespace simplenet::v0::detail {

bool cross_lock::push(run_queue& queue, posted& item) noexcept {
    return posting_queue::of(queue).post_asleep(item);
}

void cross_lock::wake(run_queue& queue) noexcept {
    posting_queue::of(queue).wake_for_post();
}

} // namespace simplenet::v0::detail
