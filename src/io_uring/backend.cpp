#include "io_uring/backend.hpp"

#include "io/attempts.hpp"
#include "io_uring/make_backend.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include <poll.h>

namespace simplenet::v0::detail {

result<> uring_backend::open(const loop_options& options) {
    const unsigned entries = std::clamp(options.queue_depth, 8U, 4096U);
    // The kernel wants at least as many as entries, which it rounds up.
    const unsigned completions =
        std::max(std::bit_ceil(entries), std::clamp(options.completion_depth, 16U, 65536U));
    // Disabled: the thread that makes the loop need not be the one that runs it.
    if (const int outcome = ring_.open(entries, completions, IORING_SETUP_R_DISABLED);
        outcome != 0) {
        return fail(sys::error_from(outcome));
    }
    const int wake = sys::eventfd(0);
    if (wake < 0) return fail(sys::error_from(wake));
    wake_.reset(wake);
    auto pool = receive_pool::create(options.receive_pool, this);
    if (!pool) return fail(pool);
    pool_ = *pool;
    if (const int outcome = buffers_.open(ring_, pool_->count(), receive_group); outcome != 0) {
        return fail(sys::error_from(outcome));
    }
    // All that fits into the queue, so that set_aside() allocates only for what the kernel kept
    // beyond it. Memory only when it is used.
    aside_.reserve(ring_.get()->cq.ring_entries);
    read_ahead_ = std::max<std::size_t>(options.read_ahead, 1);
    post_buffers(first_buffers);
    return {};
}

bool uring_backend::attempt_read(operation& op) noexcept {
    if (op.record->kind == record_kind::local_stream) return attempt_direct(op);
    if (op.record->reads_directly()) [[unlikely]]
        return attempt_directly(op);
    if (op.kind == request::read_some && take_one_buffer(op)) [[likely]] {
        return true;
    }
    switch (op.kind) {
    case request::receive:
        return take_buffer(static_cast<receive_operation&>(op));
    case request::accept:
        return accept_one(static_cast<accept_base&>(op));
    default:
        return take_bytes(op);
    }
}

void uring_backend::retire(socket_record& record) noexcept {
    drop_ahead(record);
    disarm(record);
    cancel(record, record.uring.edges, subject::edges);
}

void uring_backend::enable() noexcept {
    enabled_ = true;
    const int outcome = ring_.enable();
    SIMPLENET_EXPECTS(outcome == 0, "an io_uring loop was made for another thread");
    watch_wake_ups();
}

void uring_backend::watch_wake_ups() noexcept {
    io_uring_sqe& entry = next_entry();
    // Edge-triggered and never read: every write is a new completion.
    io_uring_prep_poll_multishot(&entry, wake_.get(), POLLIN);
    entry.user_data = tagged(nullptr, subject::wake_up);
}

inline void uring_backend::enter(unsigned wait_for,
                                 const std::chrono::nanoseconds* timeout) noexcept {
    const int outcome = ring_.enter(wait_for, timeout);
    if (outcome < 0) [[unlikely]]
        check_entered(outcome);
}

void uring_backend::check_entered(int outcome) noexcept {
    // ETIME, EINTR: the wait is over. EBUSY, EAGAIN: the kernel wants its completions reaped
    // first, and takes the entries next time. Nothing else is possible with our arguments, but for
    // EBADR: more completions than the ring holds came between two turns, and the kernel had no
    // memory to keep the rest. Their operations would never end, and the kernel may have written
    // to buffers of theirs: there is nothing to go on with.
    SIMPLENET_EXPECTS(outcome != -EBADR,
                      "the kernel had no memory for completions that the ring of io_uring had no "
                      "room for, and has lost them: give the process more memory, or its loops a "
                      "larger loop_options::completion_depth");
    SIMPLENET_EXPECTS(outcome == -ETIME || outcome == -EINTR || outcome == -EBUSY ||
                          outcome == -EAGAIN || outcome == -ENOMEM,
                      "io_uring_enter refused what the backend submitted");
}

io_uring_sqe& uring_backend::next_entry() noexcept {
    for (;;) {
        if (io_uring_sqe* const entry = ring_.next_entry()) return *entry;
        buffers_.publish();
        if (!enabled_) enable();
        enter(0, nullptr);
        if (ring_.has_unsubmitted()) set_aside();
    }
}

void uring_backend::set_aside() noexcept {
    uring::completion seen;
    while (ring_.next_completion(seen))
        aside_.push_back(seen);
}

uring::completion uring_backend::take_aside() noexcept {
    const uring::completion oldest = aside_[aside_next_++];
    if (aside_next_ == aside_.size()) {
        aside_.clear();
        aside_next_ = 0;
    }
    return oldest;
}

inline void uring_backend::dispatch(uring::completion seen) noexcept {
    void* const pointer = reinterpret_cast<void*>(seen.about & ~subject_mask);
    const auto about = static_cast<subject>(seen.about & subject_mask);
    if (about == subject::receive) [[likely]] {
        return receive_completed(*static_cast<socket_record*>(pointer), seen);
    }
    dispatch_any(about, pointer, seen);
}

void uring_backend::dispatch_any(subject about, void* pointer, uring::completion seen) noexcept {
    switch (about) {
    case subject::operation:
        return operation_completed(*static_cast<operation*>(pointer), seen);
    case subject::operation_cancel:
        return cancel_completed(*static_cast<operation*>(pointer), seen.res);
    case subject::receive:
        return; // dispatched by whom this is called from
    case subject::accept:
        return accept_completed(*static_cast<socket_record*>(pointer), seen);
    case subject::record_cancel:
        return record_cancel_completed(*static_cast<socket_record*>(pointer), seen.res);
    case subject::edges:
        return edge_completed(*static_cast<socket_record*>(pointer), seen);
    case subject::wait:
        return wait_completed(*static_cast<readiness_operation*>(pointer), seen.res);
    case subject::wake_up:
        if ((seen.flags & IORING_CQE_F_MORE) == 0) watch_wake_ups();
        return;
    }
}

inline std::size_t uring_backend::reap() noexcept {
    std::size_t count = 0;
    uring::completion seen;
    for (;; ++count) {
        if (!aside_.empty()) [[unlikely]] {
            seen = take_aside();
        } else if (!ring_.next_completion(seen)) {
            break;
        }
        dispatch(seen);
    }
    ring_.give_back();
    return count;
}

std::size_t uring_backend::catch_up() noexcept {
    return enabled_ ? poll(std::chrono::nanoseconds{0}) : 0;
}

std::size_t uring_backend::poll(std::chrono::nanoseconds timeout) noexcept {
    if (!enabled_) enable();
    if (embed_) sys::drain_eventfd(embed_.get());
    buffers_.publish();
    if (timeout.count() != 0 && aside_.empty() && !ring_.has_completions()) {
        enter(1, timeout == forever ? nullptr : &timeout);
    } else if (ring_.has_unsubmitted() || ring_.kernel_has_more()) {
        enter(0, nullptr);
    }
    received_ = 0;
    std::size_t total = reap();
    if (is_to_be_asked_again()) [[unlikely]]
        total += ask_again();
    last_attempts_ = false;
    // What was made of completions from before this poll waits for the next one, which nothing
    // else may call for; nor need what the kernel still has.
    if (embed_ && (ring_.has_unsubmitted() || ring_.kernel_has_more())) announce();
    return total;
}

// The kernel does 20 pieces of deferred work in a pass. Bounded here, so that timers and posts get
// their turn; and those who were received for, before the kernel needs more buffers than there are,
// and while what they were sent is in the processor's caches. But an operation whose limit has
// passed is over after this: what counts for it may be the last that the kernel has to work on,
// which is at most as much as there are entries.
std::size_t uring_backend::ask_again() noexcept {
    std::size_t total = 0;
    const std::size_t most = most_rounds + (last_attempts_ ? references_ / kernel_pass : 0);
    for (std::size_t round = 1; round < most && is_to_be_asked_again(); ++round) {
        buffers_.publish();
        enter(0, nullptr);
        total += reap();
    }
    return total;
}

// An accept in the kernel keeps the socket open, so its cancel is worked on here. What comes of
// that waits for the next poll: somebody up the stack may be dispatching, or walking the records.
void uring_backend::let_go(const socket_record& record) noexcept {
    if (record.kernel_references == 0) return;
    if (!enabled_) enable();
    buffers_.publish();
    for (std::size_t left = 2 + references_ / kernel_pass; left != 0; --left) {
        enter(0, nullptr);
        if (ring_.has_unsubmitted()) {
            set_aside();
        } else if (!ring_.kernel_has_more()) {
            break;
        }
    }
}

void uring_backend::wake() noexcept {
    sys::signal_eventfd(wake_.get());
    // The kernel passes one eventfd's signal on to another only after an RCU grace period,
    // which takes milliseconds.
    if (const int handle = handle_.load(std::memory_order_acquire); handle >= 0)
        sys::signal_eventfd(handle);
}

// The ring's own descriptor does not become readable for deferred work; an eventfd that is
// registered with the ring does. It costs a little each completion, so only where asked for.
int uring_backend::native_handle() noexcept {
    if (!embed_) {
        const int made = sys::eventfd(1);
        if (made < 0) return -1;
        unique_fd signalled{made};
        if (ring_.signal_completions(made) < 0) return -1; // no memory
        embed_ = std::move(signalled);
        handle_.store(made, std::memory_order_release);
    }
    return embed_.get();
}

result<std::unique_ptr<backend_driver>> make_uring_backend(io_queue& owner,
                                                           const loop_options& options) {
    auto made = std::make_unique<uring_backend>(owner);
    if (auto opened = made->open(options); !opened) return fail(opened);
    return made;
}

} // namespace simplenet::v0::detail
