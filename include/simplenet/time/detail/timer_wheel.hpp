#pragma once
// timer_wheel: the pending timers of one loop, in a hierarchical wheel (Varghese and Lauck, 1987).
// Layer time. Private: the loop drives it; awaitables with a time limit contain a timer_node.
// Arming and cancelling take constant time and allocate nothing, however many timers are pending.

#include <simplenet/core/detail/intrusive_list.hpp>

#include <simplenet/core/detail/contract.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

struct timer_tag;

// Nodes that were cancelled in this turn of the thread's loop, and that their wheel still counts as
// armed, because a node does not know its wheel. See timer_wheel::count().
inline constinit thread_local std::size_t cancelled_timers = 0;

/// One timer. Lives in the object that waits for it, so usually in a coroutine frame, and can be
/// armed again after it fired or was cancelled. Destroying it cancels it.
///
/// An armed node must not move: its neighbours in the wheel hold its address.
class timer_node : public list_hook<timer_tag> {
public:
    using clock = std::chrono::steady_clock;

    timer_node(const timer_node&) = delete;
    timer_node& operator=(const timer_node&) = delete;

    /// Removes it from the wheel, or from a list of expired nodes. Does nothing if the node is not
    /// armed. Nine instructions; needs no wheel, see timer_wheel. Outside of the turns of its loop
    /// timer_wheel::cancel() does it.
    void cancel() noexcept {
        if (linked()) ++cancelled_timers;
        unlink();
    }

    /// In a wheel, or expired and not yet taken.
    [[nodiscard]] bool armed() const noexcept { return linked(); }

    /// The requested deadline, not rounded. Unknown from insert_after() until the node reaches the
    /// wheel.
    [[nodiscard]] clock::time_point deadline() const noexcept {
        return clock::time_point{clock::duration{when_ns_}};
    }

protected:
    struct without_deadline {};

    timer_node() noexcept
        : when_ns_{0} {}
    /// deadline() is unknown until the timer is armed: for nodes that are created often and armed
    /// rarely.
    explicit timer_node(without_deadline) noexcept {}
    /// Awaitables may be moved until they are first awaited.
    ///
    /// @pre `other` is not armed.
    timer_node(timer_node&& other) noexcept
        : list_hook{}
        , when_ns_{other.when_ns_} {
        SIMPLENET_DEBUG_EXPECTS(!other.armed(), "an armed timer cannot move");
    }
    ~timer_node() { cancel(); }

private:
    friend class timer_wheel;

    /// Called by timer_wheel::fire(). The node is no longer armed: it, and any other node, may be
    /// armed or destroyed here.
    virtual void expired() noexcept = 0;

    std::int64_t when_ns_; // since the clock's epoch; outside the wheel possibly still a delay
};

using timer_list = intrusive_list<timer_node, timer_tag>;

/// Pending timers by deadline. Borrows its nodes; destroying it leaves them unarmed.
///
/// A tick is 2^12 ns, about 4 us: less than a sleep and a wake-up take, and far less than the slack
/// that the kernel adds to a thread's timers (50 us, PR_SET_TIMERSLACK in prctl(2)). Nine levels of
/// 64 slots cover every time_point.
/// A timer's level is that of the highest group of six bits in which its tick differs from the
/// elapsed one; the group's value is its slot. So the earliest timers are in the first occupied
/// slot of the first occupied level. When time enters a slot of a higher level, that slot's timers
/// are relinked to lower levels, at most eight times in a timer's life. The turn in which that
/// happens pays for all of them: 9 ms of processor time for 70 000 timers in one slot (on a virtual
/// machine; nearly every node a cache miss). A slot of the level that holds limits of 30 s covers
/// 1.07 s.
/// Most timers are limits that are cancelled soon, so a node does not go into a slot at once. It
/// joins the open one of four batches. settle() records the clock reading from which the batch's
/// delays count, pours the remaining timers of the oldest batch into the slots, and opens that
/// batch for new timers. A look at due timers pours all batches. For a batch only `soonest_ns_` is
/// known, a time before which none of its timers is due: no node is examined twice.
///
/// When cancel() empties a slot, the slot's bit stays set, because a node does not know its wheel;
/// a search for the first timer clears such bits. Each insertion sets at most one bit, so this adds
/// a constant cost to it, later.
///
/// The caller provides the time, which never runs backwards: an earlier `now` counts as the latest
/// one seen. It is never negative, as steady_clock never is. Loop thread only.
class timer_wheel {
public:
    using clock = timer_node::clock;
    using time_point = clock::time_point;
    static_assert(std::same_as<clock::duration, std::chrono::nanoseconds>);

    explicit timer_wheel(time_point origin) noexcept;
    timer_wheel(const timer_wheel&) = delete;
    timer_wheel& operator=(const timer_wheel&) = delete;

    /// Arms `node`. The deadline is rounded up to a tick, so a timer is at most a tick late and
    /// never early. If the deadline is not later than the latest time seen, the timer is due at
    /// once: it comes first at the next expire() or fire(), after earlier such timers.
    ///
    /// @pre `node` is not armed.
    void insert(timer_node& node, time_point deadline) noexcept {
        node.when_ns_ = deadline.time_since_epoch().count();
        newest_->points.push_back(node);
        ++armed_;
        // A past deadline is due at once, even if its tick is not over.
        note(node.when_ns_ <= latest_ns_ ? node.when_ns_ : rounded_up_ns(node.when_ns_));
        quiet_ = false;
    }

    /// Arms `node` for `delay` after the next settle(). Most time limits are cancelled within the
    /// turn that set them: until settle() this costs one list insertion, and no clock reading.
    ///
    /// @pre `node` is not armed.
    void insert_after(timer_node& node, std::chrono::nanoseconds delay) noexcept {
        node.when_ns_ = delay.count();
        open_->delays.push_back(node);
        ++armed_;
        if (node.when_ns_ < shortest_fresh_ns_) shortest_fresh_ns_ = node.when_ns_;
        quiet_ = false;
    }

    /// Cancels `node` if it is armed, which it then is in this wheel.
    void cancel(timer_node& node) noexcept {
        if (!node.armed()) return;
        node.unlink();
        --armed_;
    }

    /// Whether nodes wait for settle(). If none do, it needs no clock reading.
    [[nodiscard]] bool has_fresh() const noexcept { return !open_->delays.empty(); }

    /// The delays of those nodes count from `now`. Sums saturate; a delay that is not positive is
    /// due at once, in insertion order. Called once per turn, before the poll. Constant time, plus
    /// the nodes that move into the slots.
    ///
    /// @pre `now` was read after the last insert_after(): an older reading makes timers early.
    // Inline, and straight-line if the new limits are not shorter than earlier ones, because every
    // turn that sets a limit runs this.
    void settle(time_point now) noexcept {
        if (!has_fresh() && newest_->points.empty()) return;
        // Before `latest_ns_` moves: timers that are due by then must be sorted in first.
        if (now.time_since_epoch().count() >= soonest_ns_) [[unlikely]]
            pour_settled();
        batch* const oldest = open_->next;
        if (!oldest->delays.empty() || !oldest->points.empty()) [[unlikely]]
            pour(*oldest);
        see(now);
        open_->since_ns = latest_ns_;
        newest_ = std::exchange(open_, oldest);
        const std::int64_t shortest = std::exchange(shortest_fresh_ns_, never);
        // The latest time is not negative, so the sum can only exceed the upper bound.
        std::int64_t due = 0;
        const bool beyond = __builtin_add_overflow(latest_ns_, shortest, &due);
        if (!beyond && due < soonest_ns_) note_delay(std::max(shortest, std::int64_t{0}));
    }
    /// Like settle(), and afterwards every deadline() is known. For rare callers: pours every
    /// batch.
    void settle_all(time_point now) noexcept {
        settle(now);
        pour_settled();
    }

    /// When to call fire() at the latest. May be too early, at most once for each timer cancelled
    /// meanwhile; time_point::max() if there is no need. Two instructions.
    ///
    /// @pre not has_fresh().
    [[nodiscard]] time_point soonest() const noexcept {
        return time_point{clock::duration{soonest_ns_}};
    }

    /// When to call expire() or fire() at the latest; nullopt if no node is armed. For rare
    /// callers: pours every batch.
    ///
    /// Exact, rounded up to the tick, if the first slot has one timer or is at the lowest level.
    /// Otherwise it may be too early, but not before soonest(): then expire() and fire() find
    /// nothing due but sort that slot more finely, so a driver that always waits for next() is
    /// exact after at most eight such calls. While has_fresh() it is the latest time seen, so now.
    /// Never late, and not delayed by cancelled nodes.
    [[nodiscard]] std::optional<time_point> next() const noexcept;

    /// Moves every node whose deadline's tick `now` has reached to the end of `due`, ordered by
    /// tick and then by insertion. A node that is cancelled later leaves `due` again.
    void expire(time_point now, timer_list& due) noexcept;

    /// Calls expired() on each such node and returns their number. expired() may cancel and destroy
    /// nodes, even due ones, and arm others: those wait for the next call even if due.
    std::size_t fire(time_point now) noexcept {
        return now.time_since_epoch().count() < soonest_ns_ ? 0 : fire_due(now);
    }

    /// Whether no node is armed.
    [[nodiscard]] bool empty() const noexcept;

    /// Whether no node is armed, cheaply: false may also mean that all were cancelled some time
    /// ago, or that attend() was called since.
    [[nodiscard]] bool quiet() const noexcept { return quiet_; }
    /// Ends quiet(), for a driver that needs the time for other reasons.
    void attend() noexcept { quiet_ = false; }
    /// Like attend(); also the next check of soonest() finds that it has passed, once, as for a
    /// cancelled timer.
    void look_now() noexcept {
        quiet_ = false;
        soonest_ns_ = 0;
    }
    /// Checks whether quiet() can begin again. Call after fire().
    void calm_down() noexcept {
        if (soonest_ns_ == never && !has_fresh()) quiet_ = true;
    }

    /// The number of armed nodes, including fresh ones. Counts one by one, at up to a cache miss
    /// each.
    [[nodiscard]] std::size_t size() const noexcept;

    /// The same in constant time, for a wheel that is driven with fire(). Takes all nodes that this
    /// thread has cancelled since the last call for nodes of this wheel: on a thread with several
    /// wheels, call it before another one is driven.
    [[nodiscard]] std::size_t count() noexcept {
        SIMPLENET_DEBUG_EXPECTS(cancelled_timers <= armed_,
                                "timers of another loop were cancelled in a turn of this one");
        // If they were, a release build shows too few timers, and not nearly 2^64.
        armed_ -= std::min(armed_, std::exchange(cancelled_timers, 0));
        return armed_;
    }

private:
    static constexpr unsigned tick_bits = 12;
    static constexpr unsigned group_bits = 6;
    static constexpr unsigned slot_count = 1U << group_bits;
    static constexpr unsigned level_count = 9; // 54 bits; the very last tick is 2^51

    static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

    /// Nodes on their way into the slots, in the order in which they will get there.
    struct batch {
        timer_list delays; // from `since_ns`
        timer_list points;
        std::int64_t since_ns = 0;
        batch* next; // circular
    };

    struct position {
        unsigned level;
        unsigned slot;
    };

    /// The first tick that starts at `when` or later; negative times count as zero.
    static std::uint64_t rounded_up(std::int64_t when_ns) noexcept;

    /// The start of that tick, or the end of time.
    static std::int64_t rounded_up_ns(std::int64_t when_ns) noexcept {
        constexpr std::int64_t most_of_a_tick = (std::int64_t{1} << tick_bits) - 1;
        return when_ns > never - most_of_a_tick ? never
                                                : (when_ns + most_of_a_tick) & ~most_of_a_tick;
    }

    void note(std::int64_t soon_ns) noexcept {
        if (soon_ns < soonest_ns_) soonest_ns_ = soon_ns;
    }
    void note_delay(std::int64_t shortest_ns) noexcept;
    void pour(batch& from) const noexcept;
    void pour_settled() const noexcept;
    std::size_t fire_due(time_point now) noexcept;
    [[nodiscard]] std::optional<std::int64_t> first_ns() const noexcept;
    void place(timer_node& node, std::uint64_t tick) const noexcept;
    void arm(timer_node& node) const noexcept;
    void see(time_point now) noexcept {
        latest_ns_ = std::max(latest_ns_, std::int64_t{now.time_since_epoch().count()});
    }
    /// The first nonempty slot, or `level == level_count`.
    position first_occupied() const noexcept;
    std::uint64_t start_of(position at) const noexcept;
    timer_list& slot_at(position at) const noexcept {
        return slots_[at.level * slot_count + at.slot];
    }

    // Mutable, like lists of borrowed nodes: a const wheel does not make its nodes const.
    mutable std::array<timer_list, std::size_t{level_count} * slot_count> slots_;
    mutable std::array<batch, 4> batches_;
    // Invariant: `open_` follows `newest_` circularly and has only delays, which do not count from
    // any time yet.
    batch* open_ = &batches_[1];
    batch* newest_ = batches_.data();        // settled last
    std::int64_t shortest_fresh_ns_ = never; // in the open batch
    // No settled node is due earlier. Always the start of a tick, or the end of time, because
    // deadlines there count as never.
    std::int64_t soonest_ns_ = never;
    std::size_t armed_ = 0; // nodes, and those that were cancelled since the last count()
    bool quiet_ = true;

    // Mutable, because a search for the first timer clears the bits of emptied slots. Invariant: a
    // slot that holds a node has its bit set, a nonzero word has its bit in levels_, and every bit
    // belongs to a slot that starts after elapsed_, or at it on level 0.
    mutable std::array<std::uint64_t, level_count> occupied_{};
    mutable std::uint32_t levels_ = 0;
    std::uint64_t elapsed_;  // tick; everything up to it has been handed out, or was due on arrival
    std::int64_t latest_ns_; // the latest time seen
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
