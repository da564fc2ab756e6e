#include "io_uring/ring_seam.hpp"

#include "io_uring/ring.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace simplenet::v0::detail::uring {

namespace {

// A bit that no pointer has, so no completion of the backend has it; the bits below are a number.
constexpr std::uint64_t ours = std::uint64_t{1} << 63U;
constexpr std::uint64_t of_cancel = ours;

constexpr std::uint64_t mark_of(std::size_t number) noexcept {
    return ours | (static_cast<std::uint64_t>(number) + 1);
}

bool is_multishot(const io_uring_sqe& entry) noexcept {
    switch (entry.opcode) {
    case IORING_OP_RECV:
        return (entry.ioprio & IORING_RECV_MULTISHOT) != 0;
    case IORING_OP_ACCEPT:
        return (entry.ioprio & IORING_ACCEPT_MULTISHOT) != 0;
    case IORING_OP_POLL_ADD:
        return (entry.len & IORING_POLL_ADD_MULTI) != 0;
    default:
        return false;
    }
}

} // namespace

void ring_seam::show_entries() noexcept {
    const io_uring_sq& queue = ring_.get()->sq;
    for (unsigned at = queue.sqe_head; at != queue.sqe_tail; ++at) {
        io_uring_sqe& entry = queue.sqes[at & queue.ring_mask];
        if ((entry.user_data & ours) != 0) continue;
        sys::pending_entry shown{.opcode = entry.opcode,
                                 .multishot = is_multishot(entry),
                                 .fd = entry.fd,
                                 .about = entry.user_data,
                                 .length = entry.len};
        const int outcome = sys::intercept(shown);
        if (outcome == 0) continue;
        replaced_.push_back({.about = entry.user_data, .outcome = outcome});
        io_uring_prep_nop(&entry);
        entry.user_data = mark_of(replaced_.size() - 1);
    }
}

bool ring_seam::take(held& next) noexcept {
    if (!waiting_.empty()) {
        next = waiting_.front();
        waiting_.erase(waiting_.begin());
        return true;
    }
    completion seen{};
    if (!ring_.next_in_queue(seen)) return false;
    next = {.about = seen.about, .res = seen.res, .flags = seen.flags, .passes = 0, .shown = false};
    if ((seen.about & ours) != 0 && seen.about != of_cancel) {
        const replaced& instead = replaced_[(seen.about & ~ours) - 1];
        next.about = instead.about;
        next.res = instead.outcome;
        next.flags = 0;
        next.shown = true;
    }
    return true;
}

bool ring_seam::next(completion& seen) noexcept {
    held each{};
    while (take(each)) {
        if (each.about == of_cancel) continue;
        const auto earlier = std::ranges::find(held_, each.about, &held::about);
        if (earlier != held_.end()) {
            each.passes = earlier->passes;
            held_.push_back(each);
            continue;
        }
        if (!each.shown) {
            each.shown = true;
            sys::reaped_completion shown{.about = each.about, .res = each.res, .flags = each.flags};
            const sys::verdict given = sys::intercept(shown);
            each.res = shown.res;
            each.flags = shown.flags;
            if (given.ends && (each.flags & IORING_CQE_F_MORE) != 0) {
                end_multishot(each, given.error);
            }
            if (given.polls != 0) {
                each.passes = given.polls;
                held_.push_back(each);
                continue;
            }
        }
        seen = {.about = each.about, .res = each.res, .flags = each.flags};
        return true;
    }
    end_pass();
    return false;
}

/// Cancels a multishot entry in the kernel and collects its remaining completions, after `last`.
void ring_seam::end_multishot(held& last, int error) noexcept {
    io_uring_sqe* entry = ring_.next_entry();
    while (entry == nullptr) {
        static_cast<void>(ring_.enter(0, nullptr));
        entry = ring_.next_entry();
    }
    io_uring_prep_cancel64(entry, last.about, 0);
    entry->user_data = of_cancel;

    const auto is_its_own = [&](const held& each) { return each.about == last.about; };
    std::vector<held> came = std::exchange(waiting_, {});
    bool cancelled = false;
    bool over = std::ranges::any_of(came, [&](const held& each) {
        return is_its_own(each) && (each.flags & IORING_CQE_F_MORE) == 0;
    });
    while (!cancelled || !over) {
        static_cast<void>(ring_.enter(0, nullptr));
        completion seen{};
        while (ring_.next_in_queue(seen)) {
            if (seen.about == of_cancel) {
                cancelled = true;
                over = over || seen.res == -ENOENT; // its last completion had already arrived
                continue;
            }
            over = over || (seen.about == last.about && (seen.flags & IORING_CQE_F_MORE) == 0);
            came.push_back({.about = seen.about,
                            .res = seen.res,
                            .flags = seen.flags,
                            .passes = 0,
                            .shown = false});
        }
    }
    const auto from_end = std::find_if(came.rbegin(), came.rend(), is_its_own);
    // If it did not end because of the cancel, it ended by itself, which is as good.
    if (from_end != came.rend() && from_end->res == -ECANCELED) {
        if (error != 0) {
            from_end->res = error;
            from_end->shown = true;
        } else {
            came.erase(std::next(from_end).base());
            const auto before = std::find_if(came.rbegin(), came.rend(), is_its_own);
            (before == came.rend() ? last : *before).flags &= ~unsigned{IORING_CQE_F_MORE};
        }
    }
    waiting_ = std::move(came);
}

/// Completions whose time has come are delivered with the next pass.
void ring_seam::end_pass() noexcept {
    for (std::size_t left = held_.size(); left != 0; --left) {
        held each = held_.front();
        held_.erase(held_.begin());
        if (--each.passes == 0) {
            each.shown = true;
            waiting_.push_back(each);
        } else {
            held_.push_back(each);
        }
    }
}

} // namespace simplenet::v0::detail::uring
