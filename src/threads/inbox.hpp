#pragma once
// inbox: how other threads reach a loop. Layer threads, private. A push is one compare-and-swap,
// and the loop takes the whole list at once. Only the first push to a sleeping loop makes a system
// call.

#include <simplenet/threads/detail/posted.hpp>

#include <atomic>
#include <cstdint>
#include <thread>

namespace simplenet::v0::detail {

/// A list to which any thread adds and which one thread empties. Owned by its loop.
// The newest item and the state of the loop are one word, so that a thread that has pushed to a
// running loop does not touch the inbox again: the item may already have ended the loop.
class inbox {
public:
    // taken    the loop is awake, and will see the item
    // asleep   taken; the caller wakes the loop, which stays until the caller calls has_woken()
    // refused  refuse_offers() was called before; the item is the caller's
    enum class outcome : std::uint8_t { taken, asleep, refused };

    inbox() noexcept = default;
    inbox(const inbox&) = delete;
    inbox& operator=(const inbox&) = delete;

    /// Any thread. True if the loop sleeps: the caller wakes it, and then calls has_woken().
    [[nodiscard]] bool push(posted& item) noexcept { return add(item, 0) == outcome::asleep; }
    /// The same, unless refuse_offers() was called before. Any thread.
    [[nodiscard]] outcome offer(posted& item) noexcept { return add(item, refusing); }
    /// Any thread. After it every offer() is refused.
    void refuse_offers() noexcept { head_.fetch_or(refusing, std::memory_order_acq_rel); }

    /// Any thread, between begin_waking() and has_woken(). True if the loop sleeps and no thread
    /// has woken it yet: the caller wakes it.
    // Sequentially consistent, like park(): either the loop sees what was published before this
    // call, or this call sees that the loop is parked. (No fences: ThreadSanitizer does not support
    // them.)
    [[nodiscard]] bool claim_wake_up() noexcept {
        word head = head_.load(std::memory_order_seq_cst);
        while ((head & parked) != 0) {
            if (head_.compare_exchange_weak(head, head ^ (parked | notified),
                                            std::memory_order_seq_cst)) {
                return true;
            }
        }
        return false;
    }
    /// Any thread, before it publishes what it wakes the loop for: the loop does not end before
    /// has_woken().
    void begin_waking() noexcept { wakers_.fetch_add(1, std::memory_order_relaxed); }
    /// Any thread, after it has woken the loop.
    void has_woken() noexcept { wakers_.fetch_sub(1, std::memory_order_release); }
    /// Returns when no thread is between begin_waking() and has_woken().
    void wait_for_wakers() const noexcept {
        while (wakers_.load(std::memory_order_acquire) != 0)
            std::this_thread::yield();
    }

    /// Loop thread. Takes every item pushed so far, as a list with the oldest first; null if there
    /// is none.
    [[nodiscard]] posted* take() noexcept {
        if (empty()) return nullptr;
        posted* newest = newest_of(head_.fetch_and(refusing, std::memory_order_acquire));
        posted* oldest = nullptr;
        while (newest != nullptr) {
            posted* const next = newest->next_;
            newest->next_ = oldest;
            oldest = newest;
            newest = next;
        }
        return oldest;
    }

    /// Removes and returns the first item of a list from take().
    ///
    /// @pre `list` is not null.
    [[nodiscard]] static posted& pop(posted*& list) noexcept {
        posted& first = *list;
        list = first.next_;
        return first;
    }

    [[nodiscard]] bool empty() const noexcept {
        return newest_of(head_.load(std::memory_order_relaxed)) == nullptr;
    }

    /// Any thread.
    [[nodiscard]] bool is_parked() const noexcept {
        return (head_.load(std::memory_order_relaxed) & (parked | notified)) != 0;
    }

    /// Loop thread, before it sleeps. False: an item arrived, so the loop must not sleep. Check
    /// other reasons not to sleep after this call.
    [[nodiscard]] bool park() noexcept {
        word head = head_.load(std::memory_order_relaxed);
        while (newest_of(head) == nullptr) {
            if (head_.compare_exchange_weak(head, (head & refusing) | parked,
                                            std::memory_order_seq_cst)) {
                return true;
            }
        }
        return false;
    }
    /// Loop thread, after it has slept.
    // Acquires, so that wait_for_wakers() sees every thread that found the loop parked before.
    void unpark() noexcept { head_.fetch_and(~(parked | notified), std::memory_order_acquire); }

private:
    // The address of the newest item, and in the bits that its alignment leaves:
    // parked    the loop sleeps or is about to: a thread that changes this wakes it
    // notified  another thread has woken it, and it has not noticed
    // refusing  refuse_offers() was called
    // With neither `parked` nor `notified` the loop is running: it checks the list before it
    // sleeps.
    using word = std::uintptr_t;
    static constexpr word parked = 1;
    static constexpr word notified = 2;
    static constexpr word refusing = 4;
    static constexpr word bits = parked | notified | refusing;
    static_assert(alignof(posted) > bits);

    [[nodiscard]] static posted* newest_of(word head) noexcept {
        return reinterpret_cast<posted*>(head & ~bits);
    }

    [[nodiscard]] outcome add(posted& item, word refused_if) noexcept {
        word head = head_.load(std::memory_order_relaxed);
        for (;;) {
            if ((head & refused_if) != 0) [[unlikely]]
                return outcome::refused;
            item.next_ = newest_of(head);
            const word pushed = reinterpret_cast<word>(&item);
            if ((head & parked) == 0) [[likely]] {
                if (head_.compare_exchange_weak(head, pushed | (head & bits),
                                                std::memory_order_release,
                                                std::memory_order_relaxed)) {
                    return outcome::taken;
                }
            } else {
                begin_waking(); // before the loop can see the item
                if (head_.compare_exchange_weak(head, pushed | notified | (head & refusing),
                                                std::memory_order_release,
                                                std::memory_order_relaxed)) {
                    return outcome::asleep;
                }
                has_woken();
            }
        }
    }

    std::atomic<word> head_ = 0;
    std::atomic<unsigned> wakers_ = 0; // threads that wake the loop, or are about to
};

} // namespace simplenet::v0::detail
