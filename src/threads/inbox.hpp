#pragma once
// inbox: how other threads reach a loop. Layer threads, private. One atomic exchange per turn
// drains it; only the first post to a sleeping loop makes a system call.

#include <simplenet/threads/detail/posted.hpp>

#include <atomic>
#include <cstdint>

namespace simplenet::v0::detail {

/// A list to which any thread adds and which one thread empties. Owned by its loop.
class inbox {
public:
    inbox() noexcept = default;
    inbox(const inbox&) = delete;
    inbox& operator=(const inbox&) = delete;

    /// Any thread. True if the loop sleeps and this caller has to wake it.
    [[nodiscard]] bool push(posted& item) noexcept {
        posted* head = newest_.load(std::memory_order_relaxed);
        do {
            item.next_ = head;
        } while (!newest_.compare_exchange_weak(head, &item, std::memory_order_seq_cst,
                                                std::memory_order_relaxed));
        return claim_wake_up();
    }

    /// Any thread. True if the loop sleeps and no thread has woken it yet.
    // Sequentially consistent, like everything in park(): either the loop sees what was published
    // before this call, or this call sees that the loop is parked. (No fences: ThreadSanitizer does
    // not support them.)
    [[nodiscard]] bool claim_wake_up() noexcept {
        auto expected = state::parked;
        return state_.load(std::memory_order_seq_cst) == state::parked &&
               state_.compare_exchange_strong(expected, state::notified, std::memory_order_seq_cst);
    }

    /// Loop thread. Takes everything pushed so far, oldest first; null if there is nothing.
    [[nodiscard]] posted* take() noexcept {
        if (newest_.load(std::memory_order_relaxed) == nullptr) return nullptr;
        posted* newest = newest_.exchange(nullptr, std::memory_order_acquire);
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
        return newest_.load(std::memory_order_relaxed) == nullptr;
    }

    /// Any thread.
    [[nodiscard]] bool is_parked() const noexcept {
        return state_.load(std::memory_order_relaxed) != state::running;
    }

    /// Loop thread, before it sleeps. False: an item arrived, so the loop must not sleep. Check
    /// other reasons not to sleep after this call.
    [[nodiscard]] bool park() noexcept {
        state_.store(state::parked, std::memory_order_seq_cst);
        if (newest_.load(std::memory_order_seq_cst) == nullptr) return true;
        unpark();
        return false;
    }
    /// Loop thread, after it has slept.
    void unpark() noexcept { state_.store(state::running, std::memory_order_relaxed); }

private:
    // running   checks the list before it sleeps
    // parked    sleeps or is about to: a thread that changes this wakes it
    // notified  another thread has woken it
    enum class state : std::uint8_t { running, parked, notified };

    std::atomic<posted*> newest_ = nullptr;
    std::atomic<state> state_ = state::running;
};

} // namespace simplenet::v0::detail
