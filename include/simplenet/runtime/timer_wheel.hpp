#pragma once
// timer_wheel: the pending timers of one loop, as a hierarchical wheel (Varghese and Lauck, 1987).
// Layer runtime. Private: the loop drives it, awaitables that may time out hold a timer_node.
// Arming and cancelling take constant time and allocate nothing, whatever is pending.

#include <simplenet/core/intrusive_list.hpp>

#include <simplenet/core/contract.hpp>

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace simplenet::detail {

struct timer_tag;

/// One timer. Lives in what waits for it, so usually in a coroutine frame, and can be armed again
/// after it fired or was cancelled. Destroying it cancels it.
///
/// An armed node must not move: its neighbours in the wheel hold its address.
class timer_node : public list_hook<timer_tag> {
public:
    using clock = std::chrono::steady_clock;

    timer_node(const timer_node&) = delete;
    timer_node& operator=(const timer_node&) = delete;

    /// Takes it out of the wheel, or of the list of expired nodes it is in. Does nothing to a node
    /// that is not armed. Eight instructions; needs no wheel, see timer_wheel.
    void cancel() noexcept { unlink(); }

    /// In a wheel, or expired and not yet handed out.
    [[nodiscard]] bool armed() const noexcept { return linked(); }

    /// As it was asked for, not rounded. Unknown between insert_after() and settle().
    [[nodiscard]] clock::time_point deadline() const noexcept {
        return clock::time_point{clock::duration{when_ns_}};
    }

protected:
    timer_node() noexcept = default;
    /// Awaitables move until they are first awaited.
    ///
    /// @pre `other` is not armed.
    timer_node(timer_node&& other) noexcept
        : list_hook{}
        , when_ns_{other.when_ns_} {
        SIMPLENET_DEBUG_EXPECTS(!other.armed(), "an armed timer cannot move");
    }
    ~timer_node() = default;

private:
    friend class timer_wheel;

    /// Called by timer_wheel::fire(). The node is not armed any more: it may be armed again or
    /// destroyed in here, and so may any other node.
    virtual void expired() noexcept = 0;

    std::int64_t when_ns_ = 0; // since the clock's epoch; on the fresh list still the delay
};

using timer_list = intrusive_list<timer_node, timer_tag>;

/// Pending timers by deadline. Borrows its nodes; destroying it leaves them unarmed.
///
/// A tick is 2^14 ns, about 16 us: below the slack that the kernel adds to a thread's timers
/// anyway (50 us, PR_SET_TIMERSLACK in prctl(2)). Nine levels of 64 slots cover every time_point.
/// A timer sits at the level of the highest group of six bits in which its tick differs from the
/// elapsed one, in the slot that this group numbers. So the earliest timers are in the first
/// occupied slot of the first occupied level, and when time enters a slot of a higher level, that
/// slot's timers are relinked to lower ones: eight times at most in the life of a timer. The turn
/// in which that happens pays for all of them: 9 ms of processor time for the 70 000 of a million
/// timers that shared a slot of 4.3 s (a virtual machine; nearly every node a cache miss).
///
/// A slot's bit stays set when cancel() empties the slot, since a node does not know its wheel;
/// whoever looks for the first timer clears such bits on the way. Each insertion sets one bit at
/// most, so this costs it a constant amount, later.
///
/// Time comes from the caller and never runs backwards: an earlier `now` counts as the latest one
/// seen. It is not negative, which steady_clock never is. Loop thread only.
class timer_wheel {
public:
    using clock = timer_node::clock;
    using time_point = clock::time_point;
    static_assert(std::same_as<clock::duration, std::chrono::nanoseconds>);

    explicit timer_wheel(time_point origin) noexcept;
    timer_wheel(const timer_wheel&) = delete;
    timer_wheel& operator=(const timer_wheel&) = delete;

    /// Arms `node`. The deadline is rounded up to a tick, so a timer is late by a tick at most and
    /// never early. One that is not after the latest time seen is due at once: it comes first at
    /// the next expire() or fire(), after those that were due at once before it.
    ///
    /// @pre `node` is not armed.
    void insert(timer_node& node, time_point deadline) noexcept;

    /// Arms `node` for `delay` after the next settle(). Most time limits are cancelled within the
    /// turn that set them: until settle() this costs one list insertion, and no clock read.
    ///
    /// @pre `node` is not armed.
    void insert_after(timer_node& node, std::chrono::nanoseconds delay) noexcept {
        node.when_ns_ = delay.count();
        fresh_.push_back(node);
    }

    /// Nodes wait for settle(). Where there are none, the clock need not be read for it.
    [[nodiscard]] bool has_fresh() const noexcept { return !fresh_.empty(); }

    /// Gives those nodes their deadlines, `now` plus the delay, in the order of their insertion.
    /// Sums saturate; a delay that is not positive is due at once. Once a turn, before the poll.
    ///
    /// @pre `now` was read after the last insert_after(): an older reading makes timers early.
    void settle(time_point now) noexcept;

    /// When to call expire() or fire() at the latest; nullopt if no node is armed.
    ///
    /// Exact, rounded up to the tick, if the first slot has one timer or is of the lowest level.
    /// Otherwise it may be too early: then expire() finds nothing due but sorts that slot more
    /// finely, so that a driver that always goes to next() is there after eight such calls at
    /// most. While has_fresh() it is the latest time seen, so at once. Never late, not held back
    /// by cancelled nodes either.
    [[nodiscard]] std::optional<time_point> next() const noexcept;

    /// Moves every node whose deadline's tick `now` has reached to the back of `due`, by ticks and
    /// within a tick in the order of insertion. A node cancelled later leaves `due` again.
    void expire(time_point now, timer_list& due) noexcept;

    /// Calls expired() on each such node, and returns on how many. That may cancel and destroy
    /// nodes, those that are due too, and arm others: they wait for the next call even if due.
    std::size_t fire(time_point now) noexcept;

    /// No node is armed.
    [[nodiscard]] bool empty() const noexcept;

    /// No node is armed, at a glance: false may also mean that all were cancelled a while ago.
    [[nodiscard]] bool quiet() const noexcept { return levels_ == 0 && fresh_.empty(); }

    /// Armed nodes, fresh ones too. Counted one by one, so up to a cache miss each: a counter would
    /// make cancel() need its wheel.
    [[nodiscard]] std::size_t size() const noexcept;

private:
    static constexpr unsigned tick_bits = 14;
    static constexpr unsigned group_bits = 6;
    static constexpr unsigned slot_count = 1U << group_bits;
    static constexpr unsigned level_count = 9; // 54 bits; the last tick of all is 2^49

    struct position {
        unsigned level;
        unsigned slot;
    };

    /// The first tick that starts at `when` or later; a time below zero counts as zero.
    static std::uint64_t rounded_up(std::int64_t when_ns) noexcept;

    void place(timer_node& node, std::uint64_t tick) noexcept;
    void arm(timer_node& node) noexcept;
    void see(time_point now) noexcept;
    /// The first slot that is not empty, or `level == level_count`.
    position first_occupied() const noexcept;
    std::uint64_t start_of(position at) const noexcept;
    timer_list& slot_at(position at) const noexcept {
        return slots_[at.level * slot_count + at.slot];
    }

    // Mutable, as lists of borrowed nodes: a const wheel does not make its nodes const.
    mutable std::array<timer_list, std::size_t{level_count} * slot_count> slots_;
    mutable timer_list fresh_; // in order of insertion, with delays for deadlines

    // Mutable, since looking for the first timer forgets the bits of emptied slots.
    // Invariant: a slot that holds a node has its bit, a word that is not 0 its bit in levels_,
    // and every bit belongs to a slot that starts after elapsed_, or at it on level 0.
    mutable std::array<std::uint64_t, level_count> occupied_{};
    mutable std::uint32_t levels_ = 0;
    std::uint64_t elapsed_;  // tick; everything up to it has been handed out, or was due on arrival
    std::int64_t latest_ns_; // the latest time seen
};

} // namespace simplenet::detail
