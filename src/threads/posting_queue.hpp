#pragma once
// posting_queue: a timed_queue that other threads can reach. Layer threads, private.

#include "threads/inbox.hpp"

#include <simplenet/core/detail/figure.hpp>
#include <simplenet/time/detail/timed_queue.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

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

    /// For the library: a wait that is over, a stop. Its owner makes sure that the loop runs until
    /// it has taken the item. Any thread.
    void post(posted& item) noexcept {
        if (post_asleep(item)) wake_for_post();
    }
    /// For programs, which may come too late: runs `item`, or drops it if refuse_offers() was
    /// called before. The loop may have ended; it has not been destroyed. Any thread.
    void offer(posted& item) noexcept {
        switch (inbox_.offer(item)) {
        case inbox::outcome::taken:
            return;
        case inbox::outcome::asleep:
            return wake_for_post();
        case inbox::outcome::refused:
            return item.drop();
        }
    }
    /// From its return on, offer() drops. Any thread.
    void refuse_offers() noexcept { inbox_.refuse_offers(); }
    /// post() in two parts. True: call wake_for_post() next; the loop does not end before that. Any
    /// thread.
    [[nodiscard]] bool post_asleep(posted& item) noexcept { return inbox_.push(item); }
    /// Any thread.
    void wake_for_post() noexcept {
        wake_ups_.fetch_add(1, std::memory_order_relaxed);
        waker_->wake();
        inbox_.has_woken();
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
    explicit posting_queue(virtual_time* time) noexcept
        : timed_queue{time} {}
    ~posting_queue() = default;

    inbox inbox_;
    std::atomic<std::uint64_t> wake_ups_ = 0;
    waker* waker_ = nullptr; // the backend, which the loop owns
    figure<std::size_t> live_lookups_;
    bool forked_ = false; // in this turn
};

} // namespace simplenet::v0::detail
