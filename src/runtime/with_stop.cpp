#include "runtime/loop.hpp"

#include <simplenet/runtime/with_stop.hpp>

namespace simplenet::detail {

namespace {

void stop_now(stop_target& target) noexcept {
    if (target.inner == nullptr) return; // the await is over
    target.came_first = true;
    target.inner->stop(target.why != nullptr ? target.why->load() : stop_reason::canceled);
}

} // namespace

void request_stop_of(const std::shared_ptr<stop_target>& target) noexcept {
    // On the loop's thread at once, so that the operation after the request is refused already.
    if (run_queue::current() == target->queue) return stop_now(*target);
    auto later = [target] { stop_now(*target); };
    static_cast<loop*>(target->queue)->post(*new posted_call<decltype(later)>{std::move(later)});
}

} // namespace simplenet::detail
