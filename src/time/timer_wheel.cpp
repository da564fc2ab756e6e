#include <simplenet/time/detail/timer_wheel.hpp>

#include <algorithm>
#include <bit>

namespace simplenet::v0::detail {

namespace {

/// The clock is never negative, so a negative deadline is as past as zero.
constexpr std::uint64_t from_epoch(std::int64_t ns) noexcept {
    return static_cast<std::uint64_t>(std::max(ns, std::int64_t{0}));
}

constexpr std::int64_t ns_of(timer_wheel::time_point at) noexcept {
    return at.time_since_epoch().count();
}

} // namespace

timer_wheel::timer_wheel(time_point origin) noexcept
    : elapsed_{from_epoch(ns_of(origin)) >> tick_bits}
    , latest_ns_{static_cast<std::int64_t>(from_epoch(ns_of(origin)))} {
    for (std::size_t at = 0; at != batches_.size(); ++at)
        batches_[at].next = &batches_[(at + 1) % batches_.size()];
}

/// A delay in the batch settled just now is due earlier than all others.
void timer_wheel::note_delay(std::int64_t shortest_ns) noexcept {
    note(shortest_ns > never - latest_ns_ ? never : rounded_up_ns(latest_ns_ + shortest_ns));
    // Due at once, although its tick has already begun.
    if (shortest_ns == 0) note(latest_ns_);
}

void timer_wheel::pour(batch& from) const noexcept {
    while (!from.delays.empty()) {
        timer_node& node = from.delays.pop_front();
        // since_ns is not negative, so only the upper bound can be exceeded.
        const std::int64_t delay = std::max(node.when_ns_, std::int64_t{0});
        node.when_ns_ = delay > never - from.since_ns ? never : from.since_ns + delay;
        arm(node);
    }
    while (!from.points.empty())
        arm(from.points.pop_front());
}

void timer_wheel::pour_settled() const noexcept {
    // Oldest first; the open batch is not settled.
    for (batch* at = open_->next; at != open_; at = at->next)
        pour(*at);
}

std::optional<timer_wheel::time_point> timer_wheel::next() const noexcept {
    if (has_fresh()) return time_point{clock::duration{latest_ns_}};
    pour_settled();
    const auto first = first_ns();
    if (!first) return std::nullopt;
    // Not at the start of a slot that is before soonest(): fire() does nothing until then, so the
    // driver would come again and again. On the lowest level it is the tick of the due timer.
    const bool exact = first_occupied().level == 0;
    return time_point{clock::duration{exact ? *first : std::max(*first, soonest_ns_)}};
}

/// When to look at the first nonempty slot.
std::optional<std::int64_t> timer_wheel::first_ns() const noexcept {
    const position first = first_occupied();
    if (first.level == level_count) return std::nullopt;

    std::uint64_t tick = start_of(first);
    if (first.level != 0) {
        // A lone timer, as in a loop that only sleeps, is not worth an early wake-up.
        timer_list& slot = slot_at(first);
        if (&slot.front() == &slot.back()) tick = rounded_up(slot.front().when_ns_);
    }
    const std::uint64_t last = static_cast<std::uint64_t>(never) >> tick_bits;
    if (tick > last) return never;
    return static_cast<std::int64_t>(tick << tick_bits);
}

void timer_wheel::expire(time_point now, timer_list& due) noexcept {
    pour_settled();
    see(now);
    // At the end of time even a tick that starts after it counts as reached.
    const std::uint64_t reached =
        latest_ns_ == never ? rounded_up(latest_ns_) : from_epoch(latest_ns_) >> tick_bits;

    for (;;) {
        const position first = first_occupied();
        if (first.level == level_count) break;
        const std::uint64_t start = start_of(first);
        if (start > reached) break;

        // Nothing is left before `start`, and its own slot is emptied here: the invariant holds.
        elapsed_ = start;
        occupied_[first.level] &= occupied_[first.level] - 1;
        if (first.level == 0) {
            due.splice_back(slot_at(first));
            continue;
        }
        timer_list entered;
        entered.splice_back(slot_at(first));
        while (!entered.empty()) {
            timer_node& node = entered.pop_front();
            place(node, rounded_up(node.when_ns_));
        }
    }
    elapsed_ = reached;
    soonest_ns_ = first_ns().value_or(never);
}

std::size_t timer_wheel::fire_due(time_point now) noexcept {
    timer_list due;
    expire(now, due);

    std::size_t count = 0;
    while (!due.empty()) {
        ++count;
        --armed_;
        due.pop_front().expired();
    }
    return count;
}

bool timer_wheel::empty() const noexcept {
    pour_settled();
    return !has_fresh() && first_occupied().level == level_count;
}

std::size_t timer_wheel::size() const noexcept {
    std::size_t count = 0;
    const auto add = [&count](const timer_node&) { ++count; };
    open_->delays.for_each(add);
    pour_settled();
    for (timer_list& slot : slots_)
        slot.for_each(add);
    return count;
}

std::uint64_t timer_wheel::rounded_up(std::int64_t when_ns) noexcept {
    constexpr std::uint64_t most_of_a_tick = (std::uint64_t{1} << tick_bits) - 1;
    return (from_epoch(when_ns) + most_of_a_tick) >> tick_bits; // 63 bits: no overflow
}

/// Links `node` into the slot for `tick`.
///
/// @pre `tick >= elapsed_`.
void timer_wheel::place(timer_node& node, std::uint64_t tick) const noexcept {
    const auto differing = static_cast<unsigned>(std::bit_width((tick ^ elapsed_) | 1)) - 1;
    const unsigned level = differing / group_bits;
    const unsigned slot = static_cast<unsigned>(tick >> (level * group_bits)) & (slot_count - 1);
    slot_at({level, slot}).push_back(node);
    occupied_[level] |= std::uint64_t{1} << slot;
    levels_ |= 1U << level;
}

void timer_wheel::arm(timer_node& node) const noexcept {
    // A past deadline is not rounded: it goes where the next expire() begins. Rounded up, it could
    // be in a tick that this expire() does not reach.
    const bool past = node.when_ns_ <= latest_ns_;
    place(node, past ? elapsed_ : rounded_up(node.when_ns_));
}

timer_wheel::position timer_wheel::first_occupied() const noexcept {
    for (; levels_ != 0; levels_ &= levels_ - 1) {
        const auto level = static_cast<unsigned>(std::countr_zero(levels_));
        for (std::uint64_t& word = occupied_[level]; word != 0; word &= word - 1) {
            const position at{level, static_cast<unsigned>(std::countr_zero(word))};
            if (!slot_at(at).empty()) return at;
        }
    }
    return {level_count, 0};
}

std::uint64_t timer_wheel::start_of(position at) const noexcept {
    const unsigned shift = at.level * group_bits;
    const std::uint64_t round = (elapsed_ >> shift) & ~std::uint64_t{slot_count - 1};
    return (round | at.slot) << shift;
}

} // namespace simplenet::v0::detail
