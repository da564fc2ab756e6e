#pragma once
// The rings of the io_uring backend: entries and completions, and receive buffers for the kernel.
// Layer io_uring, private. Does not know operations.

#if SIMPLENET_SEAMS
#include "io_uring/ring_seam.hpp"
#endif
#include "sys/uring_calls.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>

#include <csignal>
#include <liburing.h>

namespace simplenet::v0::detail::uring {

/// A copy of an io_uring_cqe, whose place in the ring may be given back before it is dispatched.
struct completion {
    std::uint64_t about; // user_data
    int res;
    unsigned flags;
};

/// A ring with its mappings. All waiting is in enter().
class ring {
public:
    ring() noexcept { ring_.ring_fd = -1; }
    ring(const ring&) = delete;
    ring& operator=(const ring&) = delete;
    ~ring();

    /// @param flags  In addition to those that all our rings have.
    [[nodiscard]] int open(unsigned entries, unsigned completions, unsigned flags) noexcept;

    /// Makes the calling thread the one that submits. For a ring that was created disabled.
    [[nodiscard]] int enable() noexcept;

    /// Submits all queued entries and waits until there are `wait_for` completions, or `timeout`
    /// has passed. Null: without a limit.
    [[nodiscard]] int enter(unsigned wait_for, const std::chrono::nanoseconds* timeout) noexcept {
        if (timeout != nullptr) return enter_until(wait_for, *timeout);
        return enter(wait_for, 0, nullptr, 0);
    }

    /// Makes `eventfd` readable when there are completions.
    [[nodiscard]] int signal_completions(int eventfd) noexcept;

    /// An entry to prepare, or null if the queue is full.
    io_uring_sqe* next_entry() noexcept { return io_uring_get_sqe(&ring_); }

    /// Takes the oldest completion. False: there is none. The next give_back() or enter() gives the
    /// places of all taken completions back to the kernel, with one store.
    [[nodiscard]] bool next_completion(completion& seen) noexcept {
#if SIMPLENET_SEAMS
        return seam_.next(seen);
#else
        return next_in_queue(seen);
#endif
    }
    /// The same, without the seam.
    [[nodiscard]] bool next_in_queue(completion& seen) noexcept {
        const io_uring_cq& queue = ring_.cq;
        if (taken_ == known_) {
            known_ = io_uring_smp_load_acquire(queue.ktail);
            if (taken_ == known_) return false;
        }
        const io_uring_cqe& entry = queue.cqes[taken_ & queue.ring_mask];
        seen = {.about = entry.user_data, .res = entry.res, .flags = entry.flags};
        ++taken_;
        return true;
    }
    void give_back() noexcept { io_uring_smp_store_release(ring_.cq.khead, taken_); }
    [[nodiscard]] bool has_completions() const noexcept {
#if SIMPLENET_SEAMS
        if (seam_.holds()) return true;
#endif
        return taken_ != io_uring_smp_load_acquire(ring_.cq.ktail);
    }

    [[nodiscard]] bool has_unsubmitted() const noexcept { return io_uring_sq_ready(&ring_) != 0; }
    /// Whether the kernel has completions that only an enter brings into the queue.
    [[nodiscard]] bool kernel_has_more() const noexcept {
        return (IO_URING_READ_ONCE(*ring_.sq.kflags) &
                (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
    }

    [[nodiscard]] io_uring* get() noexcept { return &ring_; }
    [[nodiscard]] const io_uring* get() const noexcept { return &ring_; }

private:
    int enter(unsigned wait_for, unsigned flags, void* extra, std::size_t extra_size) noexcept {
#if SIMPLENET_SEAMS
        seam_.show_entries();
#endif
        const unsigned to_submit = flush();
        give_back();
        flags |= IORING_ENTER_GETEVENTS;
        if (ring_.enter_ring_fd != ring_.ring_fd) flags |= IORING_ENTER_REGISTERED_RING;
        if (wait_for != 0) flags |= no_iowait_;
        return sys::uring_enter(ring_.enter_ring_fd, to_submit, wait_for, flags, extra, extra_size);
    }
    // A separate function, because a wait without a limit has no structures to fill in.
    [[gnu::noinline]] int enter_until(unsigned wait_for,
                                      std::chrono::nanoseconds timeout) noexcept {
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
        __kernel_timespec limit{};
        limit.tv_sec = seconds.count();
        limit.tv_nsec = (timeout - seconds).count();
        io_uring_getevents_arg argument{};
        argument.sigmask_sz = _NSIG / 8;
        argument.ts = reinterpret_cast<std::uintptr_t>(&limit);
        return enter(wait_for, IORING_ENTER_EXT_ARG, &argument, sizeof argument);
    }

    // The first part of io_uring_submit(), which liburing does not export.
    unsigned flush() noexcept {
        io_uring_sq& queue = ring_.sq;
        if (queue.sqe_head != queue.sqe_tail) {
            queue.sqe_head = queue.sqe_tail;
            io_uring_smp_store_release(queue.ktail, queue.sqe_tail);
        }
        return queue.sqe_tail - io_uring_smp_load_acquire(queue.khead);
    }

    io_uring ring_{};
    unsigned no_iowait_ = 0;
    unsigned taken_ = 0; // completions taken; the position of the next one
    unsigned known_ = 0; // the queue's tail when it was last read
#if SIMPLENET_SEAMS
    ring_seam seam_{*this};
#endif
};

/// The ring through which the kernel takes receive buffers.
class buffer_ring {
public:
    buffer_ring() noexcept = default;
    buffer_ring(const buffer_ring&) = delete;
    buffer_ring& operator=(const buffer_ring&) = delete;
    ~buffer_ring();

    /// @param buffers  The number of buffers it has room for, rounded up to a power of two.
    [[nodiscard]] int open(ring& owner, std::uint32_t buffers, std::uint16_t group) noexcept;

    void add(void* memory, std::size_t size, std::uint32_t number) noexcept {
        io_uring_buf_ring_add(memory_, memory, static_cast<unsigned>(size),
                              static_cast<unsigned short>(number), io_uring_buf_ring_mask(entries_),
                              static_cast<int>(added_));
        ++added_;
    }
    /// Shows added buffers to the kernel. One store per enter.
    void publish() noexcept {
        if (added_ == 0) return;
#if SIMPLENET_SEAMS
        if (!sys::intercept_buffers()) return;
#endif
        io_uring_buf_ring_advance(memory_, static_cast<int>(added_));
        added_ = 0;
    }

private:
    io_uring_buf_ring* memory_ = nullptr;
    std::size_t bytes_ = 0;
    std::uint32_t entries_ = 0;
    std::uint32_t added_ = 0; // since publish()
};

} // namespace simplenet::v0::detail::uring
