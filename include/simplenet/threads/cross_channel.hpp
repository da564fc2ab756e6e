#pragma once
// cross_channel: a queue between threads, with or without loops. Layer threads.

#include <simplenet/sync/detail/channel_state.hpp>
#include <simplenet/threads/detail/posted.hpp>

#include <concepts>
#include <condition_variable>
#include <coroutine>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

/// The lock of a cross_channel.
///
/// If a loop must be woken because a wait on it is over, it is woken after the unlock: waking is a
/// system call, for which nobody should have to hold the lock. The loop may have noticed before,
/// and may end; its destruction waits for threads that are about to wake it.
class cross_lock {
public:
    cross_lock() noexcept = default;
    cross_lock(const cross_lock&) = delete;
    cross_lock& operator=(const cross_lock&) = delete;

    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept {
        run_queue* const asleep = std::exchange(asleep_, nullptr);
        mutex_.unlock();
        if (asleep != nullptr) wake(*asleep);
    }
    /// Unlocks during the wait. @pre locked, and nothing was posted.
    template <class Condition>
    void wait(std::condition_variable& changed, Condition over) noexcept {
        std::unique_lock held{mutex_, std::adopt_lock};
        changed.wait(held, over);
        held.release();
    }

    /// Passes `item` to the loop that `queue` belongs to. @pre locked.
    void post(run_queue& queue, posted& item) noexcept {
        if (!push(queue, item)) return;
        // More than one loop only on a close.
        if (run_queue* const other = std::exchange(asleep_, &queue)) wake(*other);
    }

private:
    /// True: the loop sleeps, and will not end before it is woken.
    [[nodiscard]] static bool push(run_queue& queue, posted& item) noexcept;
    static void wake(run_queue& queue) noexcept;

    std::mutex mutex_;
    run_queue* asleep_ = nullptr; // under the mutex: must be woken
};

/// One wait on a cross_channel, by a coroutine or a thread.
///
/// Linked, unlinked and ended under the channel's lock, by any thread.
class cross_waiter : public list_hook<> {
public:
    virtual void end(wait_end how) noexcept = 0;

protected:
    cross_waiter() noexcept = default;
    cross_waiter(cross_waiter&&) noexcept {} // idle awaitables may be moved
    ~cross_waiter() = default;

    wait_end end_ = wait_end::granted;
};

/// The wait of a coroutine. `Role` is a sending or receiving cross_waiter.
///
/// The thread that ends it posts it to its loop under the lock. So when its own thread holds the
/// lock and finds it unlinked, it is in the loop's inbox, and no other thread refers to it any
/// more.
template <class Role>
class cross_operation : public Role, public suspension, public posted {
public:
    using is_leaf = void; // see with_timeout()
    static bool await_ready() noexcept { return false; }

    void on_stop(stop_reason reason) noexcept final {
        if (!stop_waiting()) return; // ended before, and on the ready list
        this->end_ = end_by(reason);
        within_->queue->push(*this);
    }

protected:
    explicit cross_operation(cross_lock& lock) noexcept
        : lock_{&lock} {}
    cross_operation(cross_operation&& other) noexcept
        : Role{std::move(other)}
        , suspension{}
        , posted{}
        , lock_{other.lock_} {}
    ~cross_operation() { stop_waiting(); }

    /// Starts it: calls `attempt()` under the lock, which returns whether the operation is over; if
    /// not, calls `link()` and waits.
    template <class Attempt, class Link>
    bool start(std::coroutine_handle<> caller, scope& within, Attempt attempt, Link link) noexcept {
        if (within.stopped()) {
            suspend(caller, within);
            this->end_ = end_by(within.reason);
            within.queue->refuse(*this, within);
            return true;
        }
        {
            const std::lock_guard locked{*lock_};
            if (!attempt()) {
                suspend(caller, within);
                waiting_ = true;
                link();
                return true;
            }
        }
        if (within.queue->take_inline_turn()) return false;
        suspend(caller, within);
        within.queue->push(*this);
        return true;
    }
    /// It has resumed: the channel no longer refers to it.
    void over() noexcept { waiting_ = false; }

private:
    void end(wait_end how) noexcept final {
        this->end_ = how;
        lock_->post(*within_->queue, *this);
    }
    void run() noexcept final { resume(); } // posted, or on the ready list, never both
    void drop() noexcept final {}           // the enclosing frame is destroyed with its loop

    /// False: it no longer waited.
    bool stop_waiting() noexcept {
        if (!std::exchange(waiting_, false)) return false;
        const std::lock_guard locked{*lock_};
        if (!this->linked()) return false;
        this->unlink();
        return true;
    }

    cross_lock* lock_;     // the channel's
    bool waiting_ = false; // own thread only: linked, or was linked and has not resumed yet
};

/// The wait of a thread without a loop.
template <class Role>
class blocked_thread final : public Role {
public:
    /// Waits for the end and returns it. @pre `locked`, and linked.
    wait_end wait(cross_lock& locked) noexcept {
        locked.wait(ended_, [this] { return over_; });
        return this->end_;
    }
    void with(auto* value) noexcept { this->value_ = value; }
    [[nodiscard]] auto& value() noexcept { return this->value_; }

private:
    void end(wait_end how) noexcept override {
        this->end_ = how;
        over_ = true;
        ended_.notify_one(); // under the lock, because the thread may be gone after it
    }

    std::condition_variable ended_;
    bool over_ = false;
};

} // namespace detail

inline namespace runtime {

/// A bounded queue between threads, with or without loops.
///
/// Owns the values in it. Any number of senders and receivers, on any thread; the values of each
/// sender arrive in order, and the longest waiter is served first. With a capacity of 0 each send
/// waits for its receiver. Not movable: waiters hold its address.
///
/// No value is lost to a stop, or to a loop that ends: a failed operation has moved no value, and
/// an operation that moved a value succeeds. A failed send() destroys the value; send_from() leaves
/// it with the caller.
///
/// @tparam T Movable without exceptions, on any thread.
/// @pre When it is destroyed, nobody waits, and no call is in progress.
/// @par Thread safety
/// Any thread.
/// @par Cost
/// A mutex, held during a move. One allocation when it is created, none for an operation. One
/// system call to wake a sleeping loop, or a sleeping thread; none otherwise.
/// @par Example
/// @snippet synchronisation.cpp cross
template <class T>
class cross_channel {
    static_assert(std::is_object_v<T> && !std::is_const_v<T>, "a channel moves objects");
    using sending = detail::sending<detail::cross_waiter, T>;
    using receiving = detail::receiving<detail::cross_waiter, T>;

public:
    template <class Held>
    class send_operation;
    class receive_operation;

    /// Holds up to `capacity` values.
    explicit cross_channel(std::size_t capacity)
        : state_{capacity} {}
    cross_channel(const cross_channel&) = delete;
    cross_channel& operator=(const cross_channel&) = delete;
    ~cross_channel() {
        const std::lock_guard locked{lock_};
        SIMPLENET_EXPECTS(state_.senders.empty() && state_.receivers.empty(),
                          "a cross_channel was destroyed while a user waited on it: close it, "
                          "and join its users");
    }

    /// Puts `value` into the channel; waits until there is room. On any loop.
    ///
    /// @return An awaitable of `result<>`.
    ///
    /// @par Errors
    /// - `std::errc::broken_pipe`: the channel is closed.
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came
    ///   first.
    /// @par Cancellation
    /// The same as for channel::send().
    [[nodiscard]] send_operation<T> send(T value) noexcept {
        return send_operation<T>{*this, std::move(value)};
    }
    /// The same from a variable, which is moved from only if the send succeeds.
    ///
    /// @pre `value` outlives the await, and nobody uses it meanwhile.
    [[nodiscard]] send_operation<T&> send_from(T& value) noexcept {
        return send_operation<T&>{*this, value};
    }
    /// Takes the first value; waits until there is one. On any loop.
    ///
    /// @return An awaitable of `result<T>`.
    ///
    /// @par Errors
    /// - `errc::end_of_stream`: the channel is closed, and empty.
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came
    ///   first; no value was taken.
    [[nodiscard]] receive_operation receive() noexcept { return receive_operation{*this}; }

    /// The same as channel::try_send(). Never waits for room; on any thread.
    [[nodiscard]] result<> try_send(T&& value) noexcept {
        const std::lock_guard locked{lock_};
        if (state_.closed) return fail(std::errc::broken_pipe);
        if (!state_.deliver(std::move(value))) return fail(errc::queue_full);
        return {};
    }
    [[nodiscard]] result<> try_send(const T& value)
        requires std::copy_constructible<T>
    {
        return try_send(T{value});
    }
    /// The same as channel::try_receive(). Never waits for a value; on any thread.
    [[nodiscard]] result<T> try_receive() noexcept {
        std::optional<T> value;
        const std::lock_guard locked{lock_};
        if (state_.take(value)) return *std::move(value);
        if (state_.closed) return fail(errc::end_of_stream);
        return fail(std::errc::operation_would_block);
    }

    /// send() for a thread that runs no loop: blocks the thread. Moves from `value` only on
    /// success.
    ///
    /// @pre No loop runs on this thread.
    /// @par Errors
    /// - `std::errc::broken_pipe`: the channel is closed.
    [[nodiscard]] result<> blocking_send(T&& value) noexcept {
        require_no_loop();
        const std::lock_guard locked{lock_};
        if (state_.closed) return fail(std::errc::broken_pipe);
        if (state_.deliver(std::move(value))) return {};
        detail::blocked_thread<sending> self;
        self.with(&value);
        state_.senders.push_back(self);
        const auto end = self.wait(lock_);
        if (end != detail::wait_end::granted) return fail(detail::error_of(end));
        return {};
    }
    [[nodiscard]] result<> blocking_send(const T& value)
        requires std::copy_constructible<T>
    {
        return blocking_send(T{value});
    }
    /// receive() for a thread that runs no loop: blocks the thread.
    ///
    /// @pre No loop runs on this thread.
    /// @par Errors
    /// - `errc::end_of_stream`: the channel is closed, and empty.
    [[nodiscard]] result<T> blocking_receive() noexcept {
        require_no_loop();
        std::optional<T> value;
        const std::lock_guard locked{lock_};
        if (state_.take(value)) return *std::move(value);
        if (state_.closed) return fail(errc::end_of_stream);
        detail::blocked_thread<receiving> self;
        state_.receivers.push_back(self);
        const auto end = self.wait(lock_);
        if (end != detail::wait_end::granted) return fail(detail::error_of(end));
        return *std::move(self.value());
    }

    /// Ends sending: waiting and later sends fail. Values in the channel can still be received.
    void close() noexcept {
        const std::lock_guard locked{lock_};
        state_.close();
    }

    [[nodiscard]] bool is_closed() const noexcept {
        const std::lock_guard locked{lock_};
        return state_.closed;
    }
    /// The number of values in it at some moment during the call.
    [[nodiscard]] std::size_t size() const noexcept {
        const std::lock_guard locked{lock_};
        return state_.size();
    }
    [[nodiscard]] std::size_t capacity() const noexcept { return state_.capacity(); }

private:
    static void require_no_loop() noexcept {
        SIMPLENET_EXPECTS(detail::run_queue::current() == nullptr,
                          "this would block the thread's event loop: await send() or receive()");
    }

    mutable detail::cross_lock lock_;
    detail::channel_state<T, detail::cross_waiter> state_; // under lock_
};

/// Awaitable of cross_channel::send() and send_from(); the contract is documented there.
template <class T>
template <class Held> // T, or T& for a value that remains the caller's
class [[nodiscard]] cross_channel<T>::send_operation final
    : public detail::cross_operation<sending>,
      public detail::awaited_from_outside<send_operation<Held>> {
public:
    template <class Value>
    send_operation(cross_channel& to, Value&& value) noexcept
        : detail::cross_operation<sending>{to.lock_}
        , channel_{&to}
        , held_{std::forward<Value>(value)} {}

    void describe(std::string& text) override { text += "room in a cross_channel"; }
    using detail::awaited_from_outside<send_operation>::await_suspend;
    template <detail::own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       detail::await_site at = detail::await_site::current()) noexcept {
        auto& state = channel_->state_;
        return this->start(
            caller, detail::scope_of(caller, at),
            [&] {
                if (!state.closed) return state.deliver(std::move(held_));
                this->end_ = detail::wait_end::closed;
                return true;
            },
            [&] {
                this->value_ = &held_;
                state.senders.push_back(*this);
            });
    }
    result<> await_resume() noexcept {
        this->over();
        if (this->end_ != detail::wait_end::granted) return fail(detail::error_of(this->end_));
        return {};
    }

private:
    cross_channel* channel_; // borrowed
    Held held_;
};

/// Awaitable of cross_channel::receive(); the contract is documented there.
template <class T>
class [[nodiscard]] cross_channel<T>::receive_operation final
    : public detail::cross_operation<receiving>,
      public detail::awaited_from_outside<receive_operation> {
public:
    explicit receive_operation(cross_channel& from) noexcept
        : detail::cross_operation<receiving>{from.lock_}
        , channel_{&from} {}

    void describe(std::string& text) override { text += "a value from a cross_channel"; }
    using detail::awaited_from_outside<receive_operation>::await_suspend;
    template <detail::own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       detail::await_site at = detail::await_site::current()) noexcept {
        auto& state = channel_->state_;
        return this->start(
            caller, detail::scope_of(caller, at),
            [&] {
                if (state.take(this->value_)) return true;
                this->end_ = detail::wait_end::no_more;
                return state.closed;
            },
            [&] { state.receivers.push_back(*this); });
    }
    result<T> await_resume() noexcept {
        this->over();
        if (this->value_) return *std::move(this->value_);
        return fail(detail::error_of(this->end_));
    }

private:
    cross_channel* channel_; // borrowed
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
