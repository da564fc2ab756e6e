#include "io_uring/backend.hpp"

#include "io_uring/make_backend.hpp"

#include <utility>

namespace simplenet::v0::detail {

result<> uring_backend::open(const loop_options& options) {
    if (const int outcome = entries_.open(options); outcome != 0)
        return fail(sys::error_from(outcome));
    return receiver_.open(options);
}

bool uring_backend::attempt_read(operation& op) noexcept {
    if (op.kind == request::accept) return acceptor_.attempt(static_cast<accept_base&>(op));
    return receiver_.attempt(op);
}

void uring_backend::stop_accepting_ahead(socket_record& listener) noexcept {
    acceptor_.stop(listener);
}

void uring_backend::retire(socket_record& record) noexcept {
    record.kind == record_kind::listener ? acceptor_.retire(record) : receiver_.retire(record);
    poller_.unwatch(record);
}

inline void uring_backend::dispatch(uring::completion seen) noexcept {
    void* const pointer = reinterpret_cast<void*>(seen.about & ~subject_mask);
    const auto about = static_cast<subject>(seen.about & subject_mask);
    if (about == subject::receive) [[likely]] {
        return receiver_.completed(*static_cast<socket_record*>(pointer), seen);
    }
    dispatch_any(about, pointer, seen);
}

void uring_backend::dispatch_any(subject about, void* pointer, uring::completion seen) noexcept {
    switch (about) {
    case subject::operation:
        return completed(*static_cast<operation*>(pointer), seen);
    case subject::operation_cancel:
        return cancel_completed(*static_cast<operation*>(pointer), seen.res);
    case subject::receive:
        return; // dispatched by the caller
    case subject::accept:
        return acceptor_.completed(*static_cast<socket_record*>(pointer), seen);
    case subject::record_cancel:
        return record_cancel_completed(*static_cast<socket_record*>(pointer), seen.res);
    case subject::edges:
        return poller_.watch_completed(*static_cast<socket_record*>(pointer), seen);
    case subject::wait:
        return wait_completed(*static_cast<readiness_operation*>(pointer), seen.res);
    case subject::wake_up:
        if ((seen.flags & IORING_CQE_F_MORE) == 0) entries_.watch_wake_ups();
        return;
    }
}

inline std::size_t uring_backend::reap() noexcept {
    std::size_t count = 0;
    uring::completion seen;
    for (; entries_.next(seen); ++count)
        dispatch(seen);
    entries_.give_back_places();
    return count;
}

std::size_t uring_backend::catch_up() noexcept {
    return entries_.is_enabled() ? poll(std::chrono::nanoseconds{0}) : 0;
}

std::size_t uring_backend::poll(std::chrono::nanoseconds timeout) noexcept {
    entries_.enable_once();
    if (embed_) sys::drain_eventfd(embed_.get());
    if (timeout.count() != 0 && !entries_.has_completions()) {
        entries_.wait(timeout == forever ? nullptr : &timeout);
    } else if (entries_.has_work()) {
        entries_.submit();
    }
    receiver_.begin_poll();
    std::size_t total = reap();
    if (is_to_be_asked_again()) [[unlikely]]
        total += ask_again();
    last_attempts_ = false;
    // Entries made during this poll, and work that the kernel still has, wait for the next poll,
    // which nothing else may trigger.
    if (embed_ && entries_.has_work()) announce();
    return total;
}

// The kernel does 20 pieces of deferred work per pass. The number of passes is bounded, so that
// timers and posts get their turn. But an operation whose deadline has passed ends after this, and
// its data may be the last piece of work; there is at most one piece per entry.
std::size_t uring_backend::ask_again() noexcept {
    std::size_t total = 0;
    const std::size_t most =
        most_rounds + (last_attempts_ ? entries_.references() / kernel_pass : 0);
    for (std::size_t round = 1; round < most && is_to_be_asked_again(); ++round) {
        entries_.submit();
        total += reap();
    }
    return total;
}

// An accept in the kernel keeps the socket open, so its cancel is processed here. The completions
// wait for the next poll: a caller may be dispatching, or walking the records.
void uring_backend::let_go(const socket_record& record) noexcept {
    if (record.kernel_references == 0) return;
    std::size_t left = 2 + entries_.references() / kernel_pass;
    while (left != 0 && entries_.submit_now())
        --left;
}

void uring_backend::wake() noexcept {
    entries_.wake();
    // The kernel passes one eventfd's signal on to another only after an RCU grace period,
    // which takes milliseconds.
    if (const int handle = handle_.load(std::memory_order_acquire); handle >= 0)
        sys::signal_eventfd(handle);
}

// The ring's own descriptor does not become readable for deferred work; an eventfd registered with
// the ring does. It costs a little per completion, so it is registered only on request.
int uring_backend::native_handle() noexcept {
    if (!embed_) {
        const int made = sys::eventfd(1);
        if (made < 0) return -1;
        unique_fd signalled{made};
        if (entries_.ring().signal_completions(made) < 0) return -1; // no memory
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
