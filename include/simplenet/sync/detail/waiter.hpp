#pragma once
// waiter: one coroutine that waits at a mutex, semaphore, event or channel. Layer sync, private.
// What these have in common: who comes first is served first, nothing is allocated, a stop ends
// the wait, and what was granted stays granted.

#include <simplenet/coro/task.hpp>

#include <coroutine>
#include <cstdint>
#include <system_error>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// How a wait ended.
enum class wait_end : std::uint8_t {
    granted,
    canceled,
    deadline,
    closed,  // nobody takes what is sent here any more
    no_more, // nothing comes any more
};

[[nodiscard]] inline wait_end end_by(stop_reason reason) noexcept {
    return reason == stop_reason::deadline ? wait_end::deadline : wait_end::canceled;
}

/// @pre `end` is not granted.
[[nodiscard]] inline std::error_code error_of(wait_end end) noexcept {
    switch (end) {
    case wait_end::deadline:
        return make_error_code(errc::deadline_exceeded);
    case wait_end::closed:
        return std::make_error_code(std::errc::broken_pipe);
    case wait_end::no_more:
        return make_error_code(errc::end_of_stream);
    case wait_end::granted:
    case wait_end::canceled:
        break;
    }
    return std::make_error_code(std::errc::operation_canceled);
}

/// One wait. Lives in the awaiter, so in the coroutine frame, and in the list of what it waits at.
///
/// Invariant: linked exactly as long as it waits. Whoever unlinks it decides how the wait ended and
/// puts it on the ready list; from then on it does not look at what it waited at any more, which
/// may be gone before it resumes.
class waiter : public suspension, public list_hook<> {
public:
    using is_leaf = void; // see with_timeout()
    static bool await_ready() noexcept { return false; }

    void on_stop(stop_reason reason) noexcept override {
        if (!linked()) return; // it ended before, and is on its way
        unlink();
        end(end_by(reason));
    }

    /// Ends the wait by way of the ready list. Loop thread only.
    ///
    /// @pre suspended, and not linked.
    void end(wait_end how) noexcept {
        within_->queue->debug_check_thread();
        end_ = how;
        within_->queue->push(*this);
    }

    /// Its frame is about to be destroyed unresumed, with all others of its loop.
    [[nodiscard]] bool is_lost() const noexcept { return within_->queue->destroying; }

protected:
    waiter() noexcept = default;
    waiter(waiter&&) noexcept {} // idle awaitables move
    ~waiter() = default;

    /// A stopped scope starts nothing. True: refused, and on its way.
    [[nodiscard]] bool refused(std::coroutine_handle<> caller, scope& within) noexcept {
        if (!within.stopped()) [[likely]]
            return false;
        refuse(caller, within);
        return true;
    }
    /// The outcome is known at the start. False: the coroutine goes on at once; true: it has used
    /// up its turns, and goes on when the others had theirs.
    [[nodiscard]] bool ended_at_once(std::coroutine_handle<> caller, scope& within,
                                     wait_end how = wait_end::granted) noexcept {
        end_ = how;
        if (within.queue->take_inline_turn()) [[likely]]
            return false;
        suspend(caller, within);
        within.queue->push(*this);
        return true;
    }
    [[nodiscard]] result<> outcome() const noexcept {
        if (end_ != wait_end::granted) [[unlikely]]
            return fail(error_of(end_));
        return {};
    }

    wait_end end_ = wait_end::granted;

private:
    void refuse(std::coroutine_handle<> caller, scope& within) noexcept;
};

/// Who waits, in the order of their coming. Destroying it ends the waits with operation_canceled,
/// as closing a socket does.
template <class Waiter>
class waiter_queue {
public:
    waiter_queue() noexcept = default;
    waiter_queue(const waiter_queue&) = delete;
    waiter_queue& operator=(const waiter_queue&) = delete;
    ~waiter_queue() { end_all(wait_end::canceled); }

    [[nodiscard]] bool empty() const noexcept { return waiters_.empty(); }
    void push_back(Waiter& added) noexcept { waiters_.push_back(added); }
    [[nodiscard]] Waiter& front() noexcept { return waiters_.front(); }
    [[nodiscard]] Waiter& pop_front() noexcept { return waiters_.pop_front(); }

    void end_all(wait_end how) noexcept {
        while (!empty())
            pop_front().end(how);
    }

private:
    intrusive_list<Waiter> waiters_;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
