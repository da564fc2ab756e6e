#include "threads/posting_queue.hpp"

#include <simplenet/threads/remote_handle.hpp>

#include <thread>

namespace simplenet::v0::detail {

void remote_state_base::complete() noexcept {
    phase now = phase_.load(std::memory_order_acquire);
    while (now < phase::telling) {
        const phase next = now == phase::loop ? phase::telling : phase::done;
        if (!phase_.compare_exchange_weak(now, next, std::memory_order_acq_rel)) continue;
        if (now == phase::thread) phase_.notify_all();
        if (now != phase::loop) return;
        posting_queue::of(*waiting_).post(*waiter_);
        // The waiter may have resumed, and released its reference.
        phase_.store(phase::done, std::memory_order_release);
        return;
    }
}

void remote_state_base::wait() noexcept {
    phase now = phase::nobody;
    if (phase_.compare_exchange_strong(now, phase::thread, std::memory_order_acq_rel)) {
        while (phase_.load(std::memory_order_acquire) != phase::done)
            phase_.wait(phase::thread, std::memory_order_acquire);
        return;
    }
    SIMPLENET_EXPECTS(now >= phase::telling, "a remote_handle can be awaited once");
}

bool remote_state_base::wait_with(posted& waiter, run_queue& waiting) noexcept {
    phase before = phase_.load(std::memory_order_acquire);
    if (before >= phase::telling) return false;
    SIMPLENET_EXPECTS(before == phase::nobody, "a remote_handle can be awaited once");
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
