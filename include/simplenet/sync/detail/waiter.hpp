#pragma once
// waiter: one coroutine that waits for a mutex, semaphore, event or channel. Layer sync, private.
// They all serve waiters in order, allocate nothing, end the wait on a stop, and never take back
// what they granted.

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
    closed,  // the receiving side is gone
    no_more, // no value will come any more
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

/// One wait. Lives in the awaiter, so in the coroutine frame, and in a list of the object it waits
/// for.
///
/// Invariant: linked exactly as long as it waits. The code that unlinks it decides how the wait
/// ended and puts it on the ready list; from then on it does not touch the object it waited for,
/// which may be gone before it resumes.
class waiter : public suspension, public list_hook<> {
public:
    using is_leaf = void; // see with_timeout()
    static bool await_ready() noexcept { return false; }

    void on_stop(stop_reason reason) noexcept override {
        if (!linked()) return; // ended before, and on the ready list
        unlink();
        end(end_by(reason));
    }

    /// Ends the wait through the ready list. Loop thread only.
    ///
    /// @pre suspended, and not linked.
    void end(wait_end how) noexcept {
        within_->queue->debug_check_thread();
        end_ = how;
        within_->queue->push(*this);
    }

    /// Its frame will be destroyed without resuming, with all others of its loop.
    [[nodiscard]] bool is_lost() const noexcept { return within_->queue->destroying; }

protected:
    waiter() noexcept = default;
    waiter(waiter&&) noexcept {} // idle awaitables may be moved
    ~waiter() = default;

    /// A stopped scope starts nothing. True: refused, and on the ready list.
    [[nodiscard]] bool refused(std::coroutine_handle<> caller, scope& within) noexcept {
        if (!within.stopped()) [[likely]]
            return false;
        refuse(caller, within);
        return true;
    }
    /// The outcome is known at the start. False: the coroutine continues at once. True: it has used
    /// up its inline turns, and continues after the others.
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

/// The waiters, in the order of their arrival. Destroying the queue ends the waits with
/// operation_canceled, like closing a socket.
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
