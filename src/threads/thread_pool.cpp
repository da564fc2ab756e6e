#include <simplenet/threads/thread_pool.hpp>

#include "sys/processors.hpp"
#include "sys/threads.hpp"
#include "threads/pool_core.hpp"
#include "threads/signals_blocked.hpp"
#include "threads/thread_names.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <system_error>
#include <utility>

#include <pthread.h>

namespace simplenet::v0 {
namespace detail {

namespace {

constexpr std::chrono::seconds longest_idle{10};

constinit thread_local const pool_core* working_for = nullptr;

} // namespace

void pool_core::start(std::size_t count) {
    try {
        lock held = locked();
        joined_.reserve(count);
        while (joined_.size() != count)
            start_thread();
    } catch (...) {
        end();
        throw;
    }
}

void pool_core::start_growing(std::size_t most) {
    const lock held = locked();
    most_ = most;
    if (threads_ == 0) start_thread();
    grows_.store(true, std::memory_order_release);
}

/// @pre The mutex is held.
void pool_core::start_thread() {
    const signals_blocked inherited;
    std::thread started = sys::start_thread([this] { work(); });
    name_thread(started.native_handle(), name_, started_);
    ++started_;
    ++threads_;
    if (most_ == 0) {
        joined_.push_back(std::move(started)); // there is room
    } else {
        started.detach();
    }
}

void pool_core::end() noexcept {
    SIMPLENET_EXPECTS(working_for != this, "a thread_pool is destroyed on a thread of its own: it "
                                           "would wait for itself");
    close();
    {
        const lock held = locked(); // a thread either sleeps or has not looked yet
        ready_.notify_all();
    }
    for (std::thread& each : joined_)
        each.join();
    joined_.clear();
}

std::size_t pool_core::threads() const noexcept {
    const lock held = locked();
    return threads_;
}

void pool_core::notify(lock held) noexcept {
    if (most_ != 0 && places_taken() > idle_ && threads_ < most_) {
        try {
            start_thread();
        } catch (...) {
            // One thread fewer than possible does no harm: at least one runs.
        }
    }
    const bool wakes = idle_ != 0;
    held.unlock();
    if (wakes) ready_.notify_one();
}

void pool_core::work() noexcept {
    working_for = this;
    lock held = locked();
    while (!is_closed()) {
        if (empty()) {
            sleep(held);
            if (!empty() || is_closed()) continue;
            if (most_ != 0 && threads_ > 1)
                break; // idle for so long that there may be no more work
            continue;
        }
        work_item& item = pop();
        const bool more = !empty() && idle_ != 0; // an applicant has got the place
        held.unlock();
        if (more) ready_.notify_one();
        item.run();
        held.lock();
    }
    --threads_;
}

/// @pre The mutex is held, and the queue is empty.
void pool_core::sleep(lock& held) noexcept {
    const auto over = [this] { return !empty() || is_closed(); };
    ++idle_;
    if (most_ != 0) {
        ready_.wait_for(held, longest_idle, over);
    } else {
        ready_.wait(held, over);
    }
    --idle_;
}

} // namespace detail

inline namespace runtime {

thread_pool::thread_pool(thread_pool_options options)
    : core_{std::make_shared<detail::pool_core>(options.queue_limit, options.name)} {
    core_->start(options.threads != 0 ? options.threads : detail::sys::usable_processors());
}

thread_pool::~thread_pool() {
    if (core_->is_inherited()) {
        // Its threads do not exist in this process, and one of them may have held the mutex: so it
        // is only forgotten.
        static_cast<void>(new auto{std::move(core_)});
        return;
    }
    core_->end();
}

detail::work_queue& thread_pool::queue() const noexcept {
    return *core_;
}

} // namespace runtime
} // namespace simplenet::v0
