#pragma once
// cross_channel: a queue between threads, with or without loops. Layer threads.

#include <simplenet/sync/detail/channel_state.hpp>
#include <simplenet/threads/detail/cross_operation.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
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
