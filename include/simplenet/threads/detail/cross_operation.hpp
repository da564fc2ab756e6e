#pragma once
// cross_lock and cross_operation: how coroutines of several loops, and threads without one, wait
// for the same object. Layer threads, private; for cross_channel, broadcast and watch.

#include <simplenet/sync/detail/waiter.hpp>
#include <simplenet/threads/detail/posted.hpp>

#include <array>
#include <condition_variable>
#include <coroutine>
#include <cstddef>
#include <mutex>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// The lock of an object that coroutines of several loops wait for.
///
/// If loops must be woken because a wait on them is over, they are woken after the unlock: waking
/// is a system call, for which nobody should have to hold the lock. A loop may have noticed before,
/// and may end; its destruction waits for threads that are about to wake it.
class cross_lock {
public:
    cross_lock() noexcept = default;
    cross_lock(const cross_lock&) = delete;
    cross_lock& operator=(const cross_lock&) = delete;

    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept {
        if (asleep_count_ != 0) return unlock_and_wake();
        mutex_.unlock();
    }
    /// Unlocks during the wait. @pre locked, and nothing was posted.
    template <class Condition>
    void wait(std::condition_variable& changed, Condition over) noexcept {
        std::unique_lock held{mutex_, std::adopt_lock};
        changed.wait(held, over);
        held.release();
    }

    /// Passes `item` to the loop that `queue` belongs to. @pre locked.
    void post(run_queue& queue, posted& item) noexcept {
        if (!push(queue, item)) return;
        if (asleep_count_ == asleep_.size()) return wake(queue);
        asleep_[asleep_count_++] = &queue;
    }

private:
    /// True: the loop sleeps, and will not end before it is woken.
    [[nodiscard]] static bool push(run_queue& queue, posted& item) noexcept;
    static void wake(run_queue& queue) noexcept;
    void unlock_and_wake() noexcept;

    std::mutex mutex_;
    // Under the mutex: loops that must be woken. A channel wakes one at a time, a broadcast all of
    // its receivers'; those for which there is no room are woken under the lock.
    std::size_t asleep_count_ = 0;
    std::array<run_queue*, 8> asleep_{};
};

/// One wait, by a coroutine or a thread.
///
/// Linked, unlinked and ended under the lock of the object it waits for, by any thread.
class cross_waiter : public list_hook<> {
public:
    virtual void end(wait_end how) noexcept = 0;

protected:
    cross_waiter() noexcept = default;
    cross_waiter(cross_waiter&&) noexcept {} // idle awaitables may be moved
    ~cross_waiter() = default;

    wait_end end_ = wait_end::granted;
};

/// The wait of a coroutine. `Role` is a cross_waiter.
///
/// The thread that ends it posts it to its loop under the lock. So when its own thread holds the
/// lock and finds it unlinked, it is in the loop's inbox, and no other thread refers to it any
/// more.
template <class Role>
class cross_operation : public Role, public suspension, public posted {
public:
    using is_leaf = void; // see with_timeout()
    static bool await_ready() noexcept { return false; }

    void on_stop(stop_reason reason) noexcept final {
        if (!stop_waiting()) return; // ended before, and on the ready list
        this->end_ = end_by(reason);
        within_->queue->push(*this);
    }

protected:
    explicit cross_operation(cross_lock& lock) noexcept
        : lock_{&lock} {}
    cross_operation(cross_operation&& other) noexcept
        : Role{std::move(other)}
        , suspension{}
        , posted{}
        , lock_{other.lock_} {}
    ~cross_operation() { stop_waiting(); }

    /// Starts it: calls `attempt()` under the lock, which returns whether the operation is over; if
    /// not, calls `link()` and waits.
    template <class Attempt, class Link>
    bool start(std::coroutine_handle<> caller, scope& within, Attempt attempt, Link link) noexcept {
        if (within.stopped()) {
            suspend(caller, within);
            this->end_ = end_by(within.reason);
            within.queue->refuse(*this, within);
            return true;
        }
        {
            const std::lock_guard locked{*lock_};
            if (!attempt()) {
                suspend(caller, within);
                waiting_ = true;
                link();
                return true;
            }
        }
        if (within.queue->take_inline_turn()) return false;
        suspend(caller, within);
        within.queue->push(*this);
        return true;
    }
    /// It has resumed: nobody refers to it any more.
    void over() noexcept { waiting_ = false; }

private:
    void end(wait_end how) noexcept final {
        this->end_ = how;
        lock_->post(*within_->queue, *this);
    }
    void run() noexcept final { resume(); } // posted, or on the ready list, never both
    void drop() noexcept final {}           // the enclosing frame is destroyed with its loop

    /// False: it no longer waited.
    bool stop_waiting() noexcept {
        if (!std::exchange(waiting_, false)) return false;
        const std::lock_guard locked{*lock_};
        if (!this->linked()) return false;
        this->unlink();
        return true;
    }

    cross_lock* lock_;     // of the object it waits for
    bool waiting_ = false; // own thread only: linked, or was linked and has not resumed yet
};

/// The wait of a thread without a loop.
template <class Role>
class blocked_thread final : public Role {
public:
    /// Waits for the end and returns it. @pre `locked`, and linked.
    wait_end wait(cross_lock& locked) noexcept {
        locked.wait(ended_, [this] { return over_; });
        return this->end_;
    }
    void with(auto* value) noexcept { this->value_ = value; }
    [[nodiscard]] auto& value() noexcept { return this->value_; }

private:
    void end(wait_end how) noexcept override {
        this->end_ = how;
        over_ = true;
        ended_.notify_one(); // under the lock, because the thread may be gone after it
    }

    std::condition_variable ended_;
    bool over_ = false;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
