#include <simplenet/time/sleep.hpp>

#include <algorithm>
#include <array>
#include <cstdio>

namespace simplenet::v0 {
namespace detail {

bool sleep_base::begin(std::coroutine_handle<> caller, scope& within) noexcept {
    suspend(caller, within);
    if (!within.stopped()) return true;
    stopped_ = within.reason;
    within.queue->refuse(*this, within);
    return false;
}

void sleep_base::on_stop(stop_reason reason) noexcept {
    if (!armed()) return; // already ended, and on the ready list
    timed_queue::of(*within_).timers.cancel(*this);
    stopped_ = reason;
    within_->queue->push(*this);
}

void sleep_base::describe(std::string& text) {
    text += "sleep";
    if (!armed()) return;
    const std::chrono::duration<double> left =
        deadline().time_since_epoch() - std::chrono::nanoseconds{within_->queue->clock_ns};
    std::array<char, 64> words{};
    std::snprintf(words.data(), words.size(), " for another %.3f s", std::max(left.count(), 0.0));
    text += words.data();
}

result<> sleep_base::outcome() const noexcept {
    if (stopped_ != stop_reason::none) return fail(error_of(stopped_));
    return {};
}

} // namespace detail

inline namespace runtime {

interval::interval(std::chrono::nanoseconds period, std::nullptr_t)
    : period_{period} {
    SIMPLENET_EXPECTS(period > std::chrono::nanoseconds::zero(),
                      "an interval's period must be positive");
    const auto now = detail::timed_queue::present();
    tick_ = period < std::chrono::steady_clock::time_point::max() - now
                ? now + period
                : std::chrono::steady_clock::time_point::max();
}

std::chrono::steady_clock::time_point
interval::upcoming(std::chrono::steady_clock::time_point now) noexcept {
    // A tick that is late by less than a period is still delivered, at once.
    if (now - tick_ >= period_) tick_ += (now - tick_) / period_ * period_;
    return tick_;
}

} // namespace runtime
} // namespace simplenet::v0
