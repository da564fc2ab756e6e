#include "threads/posting_queue.hpp"

#include <simplenet/threads/with_stop.hpp>

#include <utility>

namespace simplenet::v0::detail {

namespace {

void stop_now(stop_target& target) noexcept {
    if (target.inner == nullptr) return; // the await is over
    target.came_first = true;
    target.inner->stop(stop_reason::canceled);
}

} // namespace

void stop_target::run() noexcept {
    const auto here = std::move(self);
    stop_now(*here);
}

void stop_target::drop() noexcept {
    const auto here = std::move(self);
}

void request_stop_of(const std::shared_ptr<stop_target>& target) noexcept {
    // On the loop's thread it acts at once, so that the next operation is already refused.
    if (run_queue::current() == target->queue) return stop_now(*target);
    target->self = target;
    posting_queue::of(*target->queue).post(*target);
}

} // namespace simplenet::v0::detail
