#include "runtime/loop.hpp"

#include <simplenet/runtime/with_stop.hpp>

namespace simplenet::inline v0::detail {

namespace {

void stop_now(stop_target& target, stop_reason why) noexcept {
    if (target.inner == nullptr) return; // the await is over
    target.came_first = true;
    target.inner->stop(why);
}

} // namespace

void request_stop_of(const std::shared_ptr<stop_target>& target, stop_reason why) noexcept {
    // On the loop's thread at once, so that the operation after the request is refused already.
    if (run_queue::current() == target->queue) return stop_now(*target, why);
    auto later = [target, why] { stop_now(*target, why); };
    static_cast<loop*>(target->queue)->post(*new posted_call<decltype(later)>{std::move(later)});
}

} // namespace simplenet::inline v0::detail
