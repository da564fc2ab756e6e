#pragma once
// posting_queue: a timed_queue that other threads can reach. Layer threads, private.

#include "threads/inbox.hpp"

#include <simplenet/time/detail/timed_queue.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace simplenet::v0::detail {

/// Ends the sleep of a loop.
class waker {
public:
    /// Any thread. Ends the current sleep, or the next one.
    virtual void wake() noexcept = 0;

protected:
    ~waker() = default;
};

class posting_queue : public timed_queue {
public:
    /// Every run_queue of this library is a loop's.
    [[nodiscard]] static posting_queue& of(run_queue& queue) noexcept {
        return static_cast<posting_queue&>(queue);
    }

    /// For the library: a wait that is over, a stop. Its owner makes sure that the loop still runs.
    /// Any thread.
    void post(posted& item) noexcept {
        if (post_asleep(item)) wake_for_post();
    }
    /// For programs, which may come too late: runs `item`, or drops it if refuse_offers() was
    /// called before. The loop may have ended; it has not been destroyed. Any thread.
    // Sequentially consistent, like refuse_offers(): either this sees the refusal, or the end of
    // the loop sees this caller, waits for it, and finds its item.
    void offer(posted& item) noexcept {
        callers_.fetch_add(1, std::memory_order_seq_cst);
        if (refuses_offers_.load(std::memory_order_seq_cst)) [[unlikely]] {
            callers_.fetch_sub(1, std::memory_order_release);
            item.drop();
        } else if (inbox_.push(item)) {
            wake_for_post();
        } else {
            callers_.fetch_sub(1, std::memory_order_release);
        }
    }
    /// From its return on, offer() drops. Any thread.
    void refuse_offers() noexcept { refuses_offers_.store(true, std::memory_order_seq_cst); }
    /// post() in two parts. True: call wake_for_post() next; the loop does not end before that. Any
    /// thread.
    [[nodiscard]] bool post_asleep(posted& item) noexcept {
        callers_.fetch_add(1, std::memory_order_relaxed);
        if (inbox_.push(item)) return true;
        callers_.fetch_sub(1, std::memory_order_release);
        return false;
    }
    /// Any thread.
    void wake_for_post() noexcept {
        wake_ups_.fetch_add(1, std::memory_order_relaxed);
        waker_->wake();
        callers_.fetch_sub(1, std::memory_order_release);
    }
    /// Whether it sleeps, is about to, or was woken and has not noticed. Any thread.
    [[nodiscard]] bool is_parked() const noexcept { return inbox_.is_parked(); }

    /// Called in a forked child in the middle of a turn: the loop aborts before its next poll.
    void forked() noexcept {
        forked_ = true;
        timers.look_now(); // a turn without a due timer pays for no check
    }

    /// A task waits for a question to another thread, or has stopped waiting.
    void lookup_began() noexcept { ++live_lookups_; }
    void lookup_ended() noexcept { --live_lookups_; }

protected:
    /// A thread inside stop() or post(): the end of the loop waits for it.
    class caller {
    public:
        explicit caller(std::atomic<unsigned>& count) noexcept
            : count_{count} {
            count_.fetch_add(1, std::memory_order_relaxed);
        }
        caller(const caller&) = delete;
        caller& operator=(const caller&) = delete;
        ~caller() { count_.fetch_sub(1, std::memory_order_release); }

    private:
        std::atomic<unsigned>& count_;
    };

    explicit posting_queue(virtual_time* time) noexcept
        : timed_queue{time} {}
    ~posting_queue() = default;

    /// Waits until no thread is inside stop(), post() or offer().
    void wait_for_callers() const noexcept {
        while (callers_.load(std::memory_order_seq_cst) != 0)
            std::this_thread::yield();
    }

    inbox inbox_;
    std::atomic<unsigned> callers_ = 0; // of stop(), post() and offer(), at the moment
    std::atomic<bool> refuses_offers_ = false;
    std::atomic<std::uint64_t> wake_ups_ = 0;
    waker* waker_ = nullptr; // the backend, which the loop owns
    std::size_t live_lookups_ = 0;
    bool forked_ = false; // in this turn
};

} // namespace simplenet::v0::detail
