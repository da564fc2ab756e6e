#pragma once
// timer_wheel: the pending timers of one loop, as a hierarchical wheel (Varghese and Lauck, 1987).
// Layer time. Private: the loop drives it, awaitables that may time out hold a timer_node.
// Arming and cancelling take constant time and allocate nothing, whatever is pending.

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

    /// As it was asked for, not rounded. Unknown from insert_after() until the node reaches the
    /// wheel.
    [[nodiscard]] clock::time_point deadline() const noexcept {
        return clock::time_point{clock::duration{when_ns_}};
    }

protected:
    struct without_deadline {};

    timer_node() noexcept
        : when_ns_{0} {}
    /// deadline() is unknown until it is armed: for those that are made often and armed rarely.
    explicit timer_node(without_deadline) noexcept {}
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

    std::int64_t when_ns_; // since the clock's epoch; outside of the wheel maybe still a delay
};

using timer_list = intrusive_list<timer_node, timer_tag>;

/// Pending timers by deadline. Borrows its nodes; destroying it leaves them unarmed.
///
/// A tick is 2^12 ns, about 4 us: less than falling asleep and waking up takes, and far below the
/// slack that the kernel adds to a thread's timers anyway (50 us, PR_SET_TIMERSLACK in prctl(2)).
/// Nine levels of 64 slots cover every time_point.
/// A timer sits at the level of the highest group of six bits in which its tick differs from the
/// elapsed one, in the slot that this group numbers. So the earliest timers are in the first
/// occupied slot of the first occupied level, and when time enters a slot of a higher level, that
/// slot's timers are relinked to lower ones: eight times at most in the life of a timer. The turn
/// in which that happens pays for all of them: 9 ms of processor time for 70 000 timers in one slot
/// (a virtual machine; nearly every node a cache miss). A slot of the level where a limit of 30 s
/// sits takes in 1.07 s.
///
/// Most timers are limits that are cancelled soon after they were set, so a node does not go into a
/// slot at once. It joins one of four batches, the open one; settle() notes the clock reading from
/// which the delays in it count, and opens the oldest batch for the next ones, having poured what
/// is left of it by then into the slots. So does whoever comes when something may be due. Of a
/// batch only `soonest_ns_` is known, a time before which nothing in it is due: no node is looked
/// at twice.
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
    void insert(timer_node& node, time_point deadline) noexcept {
        node.when_ns_ = deadline.time_since_epoch().count();
        newest_->points.push_back(node);
        // What is past is due at once, although its tick may not be over.
        note(node.when_ns_ <= latest_ns_ ? node.when_ns_ : rounded_up_ns(node.when_ns_));
        quiet_ = false;
    }

    /// Arms `node` for `delay` after the next settle(). Most time limits are cancelled within the
    /// turn that set them: until settle() this costs one list insertion, and no clock read.
    ///
    /// @pre `node` is not armed.
    void insert_after(timer_node& node, std::chrono::nanoseconds delay) noexcept {
        node.when_ns_ = delay.count();
        open_->delays.push_back(node);
        if (node.when_ns_ < shortest_fresh_ns_) shortest_fresh_ns_ = node.when_ns_;
        quiet_ = false;
    }

    /// Nodes wait for settle(). Where there are none, the clock need not be read for it.
    [[nodiscard]] bool has_fresh() const noexcept { return !open_->delays.empty(); }

    /// The delays of those nodes count from `now`. Sums saturate; a delay that is not positive is
    /// due at once, in the order of insertion. Once a turn, before the poll. Constant time, beside
    /// the nodes that go into the slots.
    ///
    /// @pre `now` was read after the last insert_after(): an older reading makes timers early.
    // Inline, and straight-line for limits that are longer than those before: a part of every turn
    // that sets a limit.
    void settle(time_point now) noexcept {
        if (!has_fresh() && newest_->points.empty()) return;
        // Before `latest_ns_` moves: what is due then has to find its place among the others first.
        if (now.time_since_epoch().count() >= soonest_ns_) [[unlikely]]
            pour_settled();
        batch* const oldest = open_->next;
        if (!oldest->delays.empty() || !oldest->points.empty()) [[unlikely]]
            pour(*oldest);
        see(now);
        open_->since_ns = latest_ns_;
        newest_ = std::exchange(open_, oldest);
        const std::int64_t shortest = std::exchange(shortest_fresh_ns_, never);
        // The latest time is not negative, so only the upper end can be passed.
        std::int64_t due = 0;
        const bool beyond = __builtin_add_overflow(latest_ns_, shortest, &due);
        if (!beyond && due < soonest_ns_) note_delay(std::max(shortest, std::int64_t{0}));
    }
    /// settle(), after which every deadline() is known. For those who ask rarely: pours every
    /// batch.
    void settle_all(time_point now) noexcept {
        settle(now);
        pour_settled();
    }

    /// When to call fire() at the latest, for a driver that may come too early, once for each timer
    /// at most that was cancelled meanwhile; time_point::max() if there is no need. Two
    /// instructions.
    ///
    /// @pre not has_fresh().
    [[nodiscard]] time_point soonest() const noexcept {
        return time_point{clock::duration{soonest_ns_}};
    }

    /// When to call expire() or fire() at the latest; nullopt if no node is armed. For those who
    /// ask rarely: pours every batch.
    ///
    /// Exact, rounded up to the tick, if the first slot has one timer or is of the lowest level.
    /// Otherwise it may be too early, but not before soonest(): then expire() and fire() find
    /// nothing due but sort that slot more finely, so that a driver that always goes to next() is
    /// there after eight such calls at most. While has_fresh() it is the latest time seen, so at
    /// once. Never late, not held back by cancelled nodes either.
    [[nodiscard]] std::optional<time_point> next() const noexcept;

    /// Moves every node whose deadline's tick `now` has reached to the back of `due`, by ticks and
    /// within a tick in the order of insertion. A node cancelled later leaves `due` again.
    void expire(time_point now, timer_list& due) noexcept;

    /// Calls expired() on each such node, and returns on how many. That may cancel and destroy
    /// nodes, those that are due too, and arm others: they wait for the next call even if due.
    std::size_t fire(time_point now) noexcept {
        return now.time_since_epoch().count() < soonest_ns_ ? 0 : fire_due(now);
    }

    /// No node is armed.
    [[nodiscard]] bool empty() const noexcept;

    /// No node is armed, at a glance: false may also mean that all were cancelled a while ago, or
    /// that attend() was called since.
    [[nodiscard]] bool quiet() const noexcept { return quiet_; }
    /// Ends quiet(), for a driver with other things to do that need the time.
    void attend() noexcept { quiet_ = false; }
    /// The same, and the next look at soonest() finds that it has passed: once, like a timer that
    /// was cancelled.
    void look_now() noexcept {
        quiet_ = false;
        soonest_ns_ = 0;
    }
    /// Whether quiet() can begin again. After fire().
    void calm_down() noexcept {
        if (soonest_ns_ == never && !has_fresh()) quiet_ = true;
    }

    /// Armed nodes, fresh ones too. Counted one by one, so up to a cache miss each: a counter would
    /// make cancel() need its wheel.
    [[nodiscard]] std::size_t size() const noexcept;

private:
    static constexpr unsigned tick_bits = 12;
    static constexpr unsigned group_bits = 6;
    static constexpr unsigned slot_count = 1U << group_bits;
    static constexpr unsigned level_count = 9; // 54 bits; the last tick of all is 2^51

    static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

    /// Nodes on their way into the slots, in the order in which they will get there.
    struct batch {
        timer_list delays; // from `since_ns`
        timer_list points;
        std::int64_t since_ns = 0;
        batch* next; // around the end
    };

    struct position {
        unsigned level;
        unsigned slot;
    };

    /// The first tick that starts at `when` or later; a time below zero counts as zero.
    static std::uint64_t rounded_up(std::int64_t when_ns) noexcept;

    /// The time of that tick, or the end of time.
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
    /// The first slot that is not empty, or `level == level_count`.
    position first_occupied() const noexcept;
    std::uint64_t start_of(position at) const noexcept;
    timer_list& slot_at(position at) const noexcept {
        return slots_[at.level * slot_count + at.slot];
    }

    // Mutable, as lists of borrowed nodes: a const wheel does not make its nodes const.
    mutable std::array<timer_list, std::size_t{level_count} * slot_count> slots_;
    mutable std::array<batch, 4> batches_;
    // Invariant: `open_` comes after `newest_`, around the end, and has delays only, which count
    // from nothing yet.
    batch* open_ = &batches_[1];
    batch* newest_ = batches_.data();        // settled last
    std::int64_t shortest_fresh_ns_ = never; // in the open one
    // Nothing that is settled is due before; always the start of a tick, or the end of time, which
    // are deadlines that count as never.
    std::int64_t soonest_ns_ = never;
    bool quiet_ = true;

    // Mutable, since looking for the first timer forgets the bits of emptied slots.
    // Invariant: a slot that holds a node has its bit, a word that is not 0 its bit in levels_,
    // and every bit belongs to a slot that starts after elapsed_, or at it on level 0.
    mutable std::array<std::uint64_t, level_count> occupied_{};
    mutable std::uint32_t levels_ = 0;
    std::uint64_t elapsed_;  // tick; everything up to it has been handed out, or was due on arrival
    std::int64_t latest_ns_; // the latest time seen
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
