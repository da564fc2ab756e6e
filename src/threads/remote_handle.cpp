#include "threads/posting_queue.hpp"

#include <simplenet/threads/remote_handle.hpp>

#include <thread>

namespace simplenet::v0::detail {

void remote_state_base::complete() noexcept {
    phase before = phase::nobody;
    if (phase_.compare_exchange_strong(before, phase::done, std::memory_order_acq_rel)) {
        phase_.notify_all(); // a system call only if a thread waits
        return;
    }
    if (before != phase::loop ||
        !phase_.compare_exchange_strong(before, phase::telling, std::memory_order_acq_rel)) {
        // A waiter that has just been forgotten, or a second call.
        if (before == phase::nobody) complete();
        return;
    }
    posting_queue::of(*waiting_).post(*waiter_);
    // The waiter may have resumed, and released its reference.
    phase_.store(phase::done, std::memory_order_release);
    phase_.notify_all();
}

void remote_state_base::wait() noexcept {
    for (phase now = phase_.load(std::memory_order_acquire); now != phase::done;
         now = phase_.load(std::memory_order_acquire))
        phase_.wait(now, std::memory_order_acquire);
}

bool remote_state_base::wait_with(posted& waiter, run_queue& waiting) noexcept {
    phase before = phase_.load(std::memory_order_acquire);
    SIMPLENET_EXPECTS(before != phase::loop, "a remote_handle can be awaited once");
    if (before != phase::nobody) return false;
    waiter_ = &waiter;
    waiting_ = &waiting;
    return phase_.compare_exchange_strong(before, phase::loop, std::memory_order_acq_rel);
}

bool remote_state_base::forget_waiter() noexcept {
    phase before = phase::loop;
    if (phase_.compare_exchange_strong(before, phase::nobody, std::memory_order_acq_rel))
        return true;
    // Only for as long as a post takes.
    while (phase_.load(std::memory_order_acquire) == phase::telling)
        std::this_thread::yield();
    return false;
}

bool remote_state_base::note(stop_reason why) noexcept {
    // The end of the requesting loop is not the end of the other one.
    if (why == stop_reason::teardown) why = stop_reason::canceled;
    stop_reason none = stop_reason::none;
    return why_.compare_exchange_strong(none, why, std::memory_order_acq_rel);
}

void remote_stop::send(run_queue& to) noexcept {
    // On the loop's thread it acts at once, so that the next operation is already refused.
    if (run_queue::current() == &to) {
        if (target != nullptr) target->stop(state_.why());
        return;
    }
    phase idle = phase::idle;
    if (!phase_.compare_exchange_strong(idle, phase::sending, std::memory_order_acq_rel)) return;
    state_.hold();
    posting_queue::of(to).post(*this);
    phase_.store(phase::sent, std::memory_order_release);
}

void remote_stop::close() noexcept {
    phase now = phase_.load(std::memory_order_acquire);
    for (;;) {
        if (now == phase::sending) {
            std::this_thread::yield(); // only for as long as a post takes
            now = phase_.load(std::memory_order_acquire);
        } else if (phase_.compare_exchange_weak(now, phase::closed, std::memory_order_acq_rel)) {
            return;
        }
    }
}

void remote_stop::run() noexcept {
    if (target != nullptr) target->stop(state_.why());
    state_.release();
}

} // namespace simplenet::v0::detail
