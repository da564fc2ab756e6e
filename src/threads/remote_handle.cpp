#include "threads/posting_queue.hpp"

#include <simplenet/threads/remote_handle.hpp>

namespace simplenet::v0::detail {

void remote_state_base::complete() noexcept {
    const std::lock_guard lock{guard_};
    done_ = true;
    // Under the lock: forget_waiter() keeps the waiting loop alive until this thread is done with
    // it.
    if (waiter_ != nullptr) {
        posting_queue::of(*waiting_).post(*std::exchange(waiter_, nullptr));
    }
    ended_.notify_all();
}

void remote_state_base::wait() noexcept {
    std::unique_lock lock{guard_};
    ended_.wait(lock, [this] { return done_; });
}

bool remote_state_base::wait_with(posted& waiter, run_queue& waiting) noexcept {
    const std::lock_guard lock{guard_};
    if (done_) return false;
    SIMPLENET_EXPECTS(waiter_ == nullptr, "a remote_handle can be awaited once");
    waiter_ = &waiter;
    waiting_ = &waiting;
    return true;
}

bool remote_state_base::forget_waiter() noexcept {
    const std::lock_guard lock{guard_};
    return std::exchange(waiter_, nullptr) != nullptr;
}

void remote_state_base::request_stop(stop_reason why) noexcept {
    // The end of the requesting loop is not the end of the other one.
    if (why == stop_reason::teardown) why = stop_reason::canceled;
    stop_reason none = stop_reason::none;
    why_.compare_exchange_strong(none, why);
    stop_.request_stop();
}

bool remote_state_base::done() const noexcept {
    const std::lock_guard lock{guard_};
    return done_;
}

} // namespace simplenet::v0::detail
