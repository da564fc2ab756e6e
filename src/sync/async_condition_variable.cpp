#include <simplenet/sync/async_condition_variable.hpp>

namespace simplenet::v0 {
namespace detail {

bool condition_waiter::start(std::coroutine_handle<> caller, scope& within) {
    if (!guard_->owns_lock()) {
        return misused(caller, within,
                       "async_condition_variable::wait() needs a guard that owns its lock");
    }
    if (refused(caller, within)) return true;
    if (holds()) return ended_at_once(caller, within);
    suspend(caller, within);
    mutex_ = guard_->mutex_;
    wait();
    return true;
}

/// @pre has the lock.
void condition_waiter::wait() noexcept {
    phase_ = phase::waiting;
    notified_ = false;
    condition_->waiting_.push_back(*this);
    // A frame may be destroyed while it waits: then its guard must not unlock.
    guard_->mutex_ = nullptr;
    mutex_->unlock();
}

void condition_waiter::notified() noexcept {
    notified_ = true;
    lock();
}

/// Takes the lock or queues for it, and then runs.
void condition_waiter::lock() noexcept {
    list_hook<in_condition>::unlink();
    if (condition_ != nullptr) condition_->locking_.push_back(*this);
    phase_ = phase::locking;
    if (mutex_->take()) {
        end(wait_end::granted);
    } else {
        mutex_->waiters_.push_back(*this);
    }
}

void condition_waiter::on_stop(stop_reason reason) noexcept {
    if (phase_ == phase::over || stopped_ != wait_end::granted) return;
    stopped_ = end_by(reason);
    if (phase_ == phase::waiting) lock();
}

void condition_waiter::orphaned() noexcept {
    list_hook<in_condition>::unlink();
    condition_ = nullptr;
    if (stopped_ == wait_end::granted) stopped_ = wait_end::canceled;
    if (phase_ == phase::waiting && !is_lost()) lock();
}

void condition_waiter::run() noexcept {
    if (phase_ == phase::over) return resume(); // it never waited
    guard_->hold(mutex_);
    const bool held = found_to_hold();
    if (!held && !exception_ && stopped_ == wait_end::granted) {
        list_hook<in_condition>::unlink();
        return wait();
    }
    phase_ = phase::over;
    end_ = held ? wait_end::granted : stopped_;
    list_hook<in_condition>::unlink();
    // It was woken by a notification that it leaves unused.
    if (!held && notified_ && condition_ != nullptr) condition_->notify_one();
    resume();
}

bool condition_waiter::found_to_hold() noexcept {
    run_queue& queue = *within_->queue;
    queue.here = within_;
    bool found = false;
    try {
        found = holds();
    } catch (...) {
        exception_ = std::current_exception();
    }
    queue.here = &queue.top;
    return found;
}

result<> condition_waiter::finish() const {
    if (exception_) std::rethrow_exception(exception_);
    return outcome();
}

} // namespace detail

inline namespace runtime {

async_condition_variable::~async_condition_variable() {
    for (auto* const list : {&waiting_, &locking_}) {
        while (!list->empty())
            list->front().orphaned();
    }
}

} // namespace runtime
} // namespace simplenet::v0
