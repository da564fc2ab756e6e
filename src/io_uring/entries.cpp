#include "io_uring/entries.hpp"

#include "sys/calls.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>

#include <poll.h>

namespace simplenet::v0::detail {

int entries::open(const loop_options& options) {
    const unsigned depth = std::clamp(options.queue_depth, 8U, 4096U);
    // The kernel requires at least as many completions as entries, which it rounds up.
    const unsigned completions =
        std::max(std::bit_ceil(depth), std::clamp(options.completion_depth, 16U, 65536U));
    const int outcome = ring_.open(depth, completions, IORING_SETUP_R_DISABLED);
    if (outcome != 0) return outcome;
    const int wake = sys::eventfd(0);
    if (wake < 0) return wake;
    wake_.reset(wake);
    // Room for a full queue, so that set_aside() allocates only for completions that the kernel
    // kept beyond it. Takes memory only when used.
    aside_.reserve(ring_.get()->cq.ring_entries);
    return 0;
}

void entries::enable() noexcept {
    enabled_ = true;
    const int outcome = ring_.enable();
    SIMPLENET_EXPECTS(outcome == 0, "an io_uring loop was made for another thread");
    watch_wake_ups();
}

void entries::watch_wake_ups() noexcept {
    io_uring_sqe& entry = make();
    // Edge-triggered and never read: every write is a new completion.
    io_uring_prep_poll_multishot(&entry, wake_.get(), POLLIN);
    entry.user_data = tagged(nullptr, subject::wake_up);
}

void entries::wake() noexcept {
    sys::signal_eventfd(wake_.get());
}

void entries::check_entered(int outcome) noexcept {
    // ETIME, EINTR: the wait is over. EBUSY, EAGAIN: the kernel wants its completions reaped first,
    // and takes the entries next time. With our arguments the only other error is EBADR: more
    // completions than the ring holds arrived between two turns, and the kernel had no memory to
    // keep the rest. Their operations would never end, and the kernel may have written to their
    // buffers: the loop cannot continue.
    SIMPLENET_EXPECTS(outcome != -EBADR,
                      "the kernel had no memory for completions that the ring of io_uring had no "
                      "room for, and has lost them: give the process more memory, or its loops a "
                      "larger loop_options::completion_depth");
    SIMPLENET_EXPECTS(outcome == -ETIME || outcome == -EINTR || outcome == -EBUSY ||
                          outcome == -EAGAIN || outcome == -ENOMEM,
                      "io_uring_enter refused what the backend submitted");
}

io_uring_sqe& entries::make() noexcept {
    for (;;) {
        if (io_uring_sqe* const made = ring_.next_entry()) return *made;
        enable_once();
        submit();
        if (ring_.has_unsubmitted()) set_aside();
    }
}

bool entries::submit_now() noexcept {
    enable_once();
    submit();
    if (ring_.has_unsubmitted()) {
        set_aside();
        return true;
    }
    return ring_.kernel_has_more();
}

// The kernel takes no entry before its completions are reaped, but a caller may be dispatching one:
// so they wait for next(), in order.
void entries::set_aside() noexcept {
    uring::completion seen;
    while (ring_.next_completion(seen))
        aside_.push_back(seen);
}

uring::completion entries::take_aside() noexcept {
    const uring::completion oldest = aside_[aside_next_++];
    if (aside_next_ == aside_.size()) {
        aside_.clear();
        aside_next_ = 0;
    }
    return oldest;
}

void entries::cancel(socket_record& record, multishot& entry, subject about) noexcept {
    if (!entry.armed() || entry.canceling()) return;
    entry.cancel();
    io_uring_sqe& cancel = make(record);
    io_uring_prep_cancel64(&cancel, tagged(&record, about), 0);
    cancel.user_data = tagged(&record, subject::record_cancel);
}

void entries::cancel_again(socket_record& record, multishot& entry, subject about) noexcept {
    if (!entry.canceling()) return;
    entry.cancel_failed();
    cancel(record, entry, about);
}

} // namespace simplenet::v0::detail
