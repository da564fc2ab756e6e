#include "net/name_resolver.hpp"

#include "sys/threads.hpp"
#include "threads/signals_blocked.hpp"

#include <atomic>
#include <cerrno>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include <pthread.h>

namespace simplenet::v0::detail {

namespace {

constinit std::atomic<name_resolver*> current_resolver = nullptr;

} // namespace

name_resolver::name_resolver(function look_up, limits limits)
    : look_up_{std::move(look_up)}
    , limits_{limits} {}

name_resolver::~name_resolver() {
    std::unique_lock lock{guard_};
    ending_ = true;
    work_.notify_all();
    gone_.wait(lock, [this] { return threads_ == 0; });
}

name_resolver& name_resolver::of_process() {
    return get(current_resolver,
               [] { return std::make_unique<name_resolver>(&sys::look_up, limits{}); });
}

name_resolver::replacement::replacement(name_resolver& by) noexcept
    : before_{current_resolver.exchange(&by)} {}

name_resolver::replacement::~replacement() {
    current_resolver.store(before_);
}

bool name_resolver::ask(sys::name_question question, lookup_operation& waiter) {
    const std::lock_guard lock{guard_};
    const auto [place, is_new] = table_.try_emplace(std::move(question));
    if (is_new) {
        try {
            place->second = std::make_shared<lookup>();
            // Idle threads may already have work that they have not taken yet.
            if (queued_ + 1 > idle_ && threads_ < limits_.most_threads) start_thread();
        } catch (const std::system_error&) {
            // One thread fewer than possible does no harm.
            if (threads_ == 0) {
                waiter.lookup_ = std::move(place->second);
                waiter.lookup_->answer.error = {EAGAIN, std::system_category()};
                table_.erase(place);
                return false;
            }
        } catch (...) {
            table_.erase(place);
            throw;
        }
        place->second->question = &place->first;
        queue_.push_back(*place->second);
        ++queued_;
        work_.notify_one();
    }
    waiter.lookup_ = place->second;
    place->second->waiters.push_back(waiter);
    return true;
}

bool name_resolver::forget(lookup_operation& waiter) noexcept {
    const std::lock_guard lock{guard_};
    auto& hook = static_cast<list_hook<in_lookup>&>(waiter);
    if (!hook.linked()) return false;
    hook.unlink();
    lookup& asked = *waiter.lookup_;
    if (asked.waiters.empty() && asked.now == lookup::state::queued) {
        asked.unlink();
        --queued_;
        table_.erase(table_.find(*asked.question));
    }
    return true;
}

std::size_t name_resolver::threads() const {
    const std::lock_guard lock{guard_};
    return threads_;
}

std::size_t name_resolver::questions() const {
    const std::lock_guard lock{guard_};
    return table_.size();
}

/// @pre The mutex is held.
void name_resolver::start_thread() {
    const signals_blocked inherited;
    sys::start_thread([this] {
        static_cast<void>(pthread_setname_np(pthread_self(), "sn-resolver"));
        work();
    }).detach();
    ++threads_;
}

void name_resolver::work() noexcept {
    std::unique_lock lock{guard_};
    for (;;) {
        if (queue_.empty()) {
            if (ending_) break;
            ++idle_;
            work_.wait_for(lock, limits_.idle, [this] { return !queue_.empty() || ending_; });
            --idle_;
            if (queue_.empty()) break; // idle for so long that there may be no more work
        }
        lookup& asked = queue_.pop_front();
        --queued_;
        asked.now = lookup::state::running;
        lock.unlock();
        try {
            // No other thread touches the answer, or removes the question, while it is running.
            asked.answer = look_up_(*asked.question);
        } catch (const std::bad_alloc&) {
            asked.answer.error = {ENOMEM, std::system_category()};
        }
        lock.lock();
        finish(asked);
    }
    --threads_;
    gone_.notify_all();
}

/// @pre The mutex is held.
void name_resolver::finish(lookup& answered) noexcept {
    answered.now = lookup::state::answered;
    while (!answered.waiters.empty()) {
        lookup_operation& waiter = answered.waiters.pop_front();
        // Under the mutex: forget() keeps the waiter's loop alive until this thread is done with
        // it.
        waiter.home_->post(waiter);
    }
    table_.erase(table_.find(*answered.question));
}

lookup_operation::~lookup_operation() {
    if (!waiting_) return;
    static_cast<void>(resolver_->forget(*this));
    home_->lookup_ended();
}

bool lookup_operation::start(std::coroutine_handle<> caller, scope& within) {
    suspend(caller, within);
    if (within.stopped()) {
        stopped_ = within.reason;
        within.queue->refuse(*this, within);
        return true;
    }
    home_ = &posting_queue::of(*within.queue);
    try {
        resolver_ = &name_resolver::of_process();
        waiting_ = resolver_->ask(std::move(question_), *this);
    } catch (...) {
        within.current = nullptr;
        throw;
    }
    if (waiting_) {
        home_->lookup_began();
    } else {
        within.current = nullptr;
    }
    return waiting_;
}

result<std::shared_ptr<const sys::name_answer>> lookup_operation::await_resume() {
    if (stopped_ != stop_reason::none) return fail(error_of(stopped_));
    if (lookup_->answer.error) return fail(lookup_->answer.error);
    const auto* const answer = &lookup_->answer;
    return std::shared_ptr<const sys::name_answer>{std::move(lookup_), answer};
}

void lookup_operation::run() noexcept {
    if (std::exchange(waiting_, false)) home_->lookup_ended();
    resume();
}

void lookup_operation::on_stop(stop_reason reason) noexcept {
    if (!waiting_ || !resolver_->forget(*this)) return; // it already has its answer
    waiting_ = false;
    home_->lookup_ended();
    stopped_ = reason;
    within_->queue->push(*this);
}

} // namespace simplenet::v0::detail
