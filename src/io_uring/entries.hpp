#pragma once
// entries: the ring of a loop and the entries in it. Layer io_uring, private.

#include "io/io_queue.hpp"
#include "io_uring/ring.hpp"

#include <simplenet/core/unique_fd.hpp>
#include <simplenet/io/loop_options.hpp>
#include <simplenet/io/readiness.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace simplenet::v0::detail {

// The subject of a completion, in the low bits of its user_data; the rest is a pointer.
enum class subject : std::uintptr_t {
    operation,        // the operation itself
    operation_cancel, // a cancel of it
    receive,          // a record's multishot receive
    accept,           // a record's multishot accept
    record_cancel,    // a cancel of one of these, or of the next
    edges,            // a record's multishot poll
    wake_up,          // the eventfd
    wait,             // a wait for readiness, or a cancel of it
};
inline constexpr std::uintptr_t subject_mask = 7;

inline std::uint64_t tagged(const void* pointer, subject about) noexcept {
    return reinterpret_cast<std::uintptr_t>(pointer) | static_cast<std::uintptr_t>(about);
}

/// Entries can be made at any time: a full queue is submitted, and completions that the kernel
/// wants reaped first are set aside. Counts the entries that refer to a record or an operation:
/// neither is freed before the kernel no longer refers to it.
class entries {
public:
    /// @param buffers  The kernel's receive buffers; published with each enter().
    entries(io_queue& owner, uring::buffer_ring& buffers) noexcept
        : queue_{owner}
        , buffers_{buffers} {}

    [[nodiscard]] int open(const loop_options& options);
    [[nodiscard]] uring::ring& ring() noexcept { return ring_; }

    // --- making entries ---

    /// An entry that refers to no record or operation.
    [[nodiscard]] io_uring_sqe& make() noexcept;
    [[nodiscard]] io_uring_sqe& make(socket_record& record) noexcept {
        io_uring_sqe& made = make();
        ++record.kernel_references;
        ++references_;
        return made;
    }
    [[nodiscard]] io_uring_sqe& make(operation& op) noexcept {
        io_uring_sqe& made = make(*op.record);
        ++op.kernel_references;
        op.phase = operation::state::in_kernel;
        return made;
    }
    [[nodiscard]] io_uring_sqe& make(readiness_operation& op) noexcept {
        io_uring_sqe& made = make();
        ++op.kernel_references;
        ++references_;
        return made;
    }

    /// Cancels a multishot entry of `record`, unless there is none or it is already being canceled.
    void cancel(socket_record& record, multishot& entry, subject about) noexcept;
    /// The same after a failed cancel: the kernel does not find an entry that is between two
    /// attempts (ENOENT), and ignores the request.
    void cancel_again(socket_record& record, multishot& entry, subject about) noexcept;

    // --- submitting ---

    /// Makes this thread the one that submits, because another thread may have created the loop.
    void enable_once() noexcept {
        if (!enabled_) [[unlikely]]
            enable();
    }
    [[nodiscard]] bool is_enabled() const noexcept { return enabled_; }

    /// Submits all entries and waits for a completion. Null: without a limit.
    void wait(const std::chrono::nanoseconds* timeout) noexcept { enter(1, timeout); }
    /// Submits all entries, and lets the kernel do deferred work.
    void submit() noexcept { enter(0, nullptr); }
    /// Submits, and sets completions aside that the kernel wants reaped first. False: nothing is
    /// left to do.
    [[nodiscard]] bool submit_now() noexcept;
    /// Whether submit() has something to do.
    [[nodiscard]] bool has_work() const noexcept {
        return ring_.has_unsubmitted() || ring_.kernel_has_more();
    }
    [[nodiscard]] bool kernel_has_more() const noexcept { return ring_.kernel_has_more(); }

    // --- completions ---

    /// One entry less refers to `record`.
    void release(socket_record& record) noexcept {
        --record.kernel_references;
        --references_;
        queue_.advance_close(record);
    }
    void release(readiness_operation& op) noexcept {
        --op.kernel_references;
        --references_;
    }
    /// The number of entries that refer to a record or an operation.
    [[nodiscard]] std::size_t references() const noexcept { return references_; }

    [[nodiscard]] bool has_completions() const noexcept {
        return !aside_.empty() || ring_.has_completions();
    }
    /// Takes the oldest completion. False: there is none.
    [[nodiscard]] bool next(uring::completion& seen) noexcept {
        if (!aside_.empty()) [[unlikely]] {
            seen = take_aside();
            return true;
        }
        return ring_.next_completion(seen);
    }
    /// Gives the kernel the places of taken completions back.
    void give_back_places() noexcept { ring_.give_back(); }

    // --- the eventfd ---

    /// Ends wait(). Any thread.
    void wake() noexcept;
    /// Watches the eventfd, at first and when the kernel no longer does.
    void watch_wake_ups() noexcept;

private:
    void enable() noexcept;
    void enter(unsigned wait_for, const std::chrono::nanoseconds* timeout) noexcept {
        buffers_.publish();
        const int outcome = ring_.enter(wait_for, timeout);
        if (outcome < 0) [[unlikely]]
            check_entered(outcome);
    }
    [[gnu::cold]] static void check_entered(int outcome) noexcept;
    void set_aside() noexcept;
    [[gnu::cold]] uring::completion take_aside() noexcept;

    io_queue& queue_;
    uring::buffer_ring& buffers_; // outlives the ring, which uses it
    uring::ring ring_;
    unique_fd wake_;
    bool enabled_ = false;
    std::size_t references_ = 0;
    std::vector<uring::completion> aside_; // reaped when they could not be dispatched
    std::size_t aside_next_ = 0;
};

} // namespace simplenet::v0::detail
