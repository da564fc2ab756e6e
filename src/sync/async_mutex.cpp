#include <simplenet/sync/async_mutex.hpp>

namespace simplenet::v0 {
inline namespace runtime {

async_mutex::~async_mutex() {
    if (!locked_) return;
    // At the end of a loop frames are destroyed in an arbitrary order: the guard may be older.
    const auto* const queue = detail::run_queue::current();
    SIMPLENET_EXPECTS(queue != nullptr && queue->destroying,
                      "an async_mutex was destroyed while it was locked");
    if (holder_ != nullptr) holder_->mutex_ = nullptr;
}

void async_mutex::hand_over() noexcept {
    if (waiters_.front().is_lost()) { // they will not unlock it
        locked_ = false;
        return;
    }
    waiters_.pop_front().end(detail::wait_end::granted);
}

} // namespace runtime
} // namespace simplenet::v0
