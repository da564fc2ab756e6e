#pragma once
// channel: a queue of values between coroutines of one loop. Layer sync.

#include <simplenet/sync/detail/channel_state.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// A bounded queue between coroutines of one loop.
///
/// Owns the values in it. Any number of senders and receivers; values arrive in the order of the
/// sends, and the longest waiter is served first. With a capacity of 0 each send waits for its
/// receiver and hands the value over directly. Loop thread only; cross_channel works between
/// threads. Not movable: waiters hold its address. Destroying it ends their waits with
/// operation_canceled.
///
/// No value is lost to a stop: a failed operation has moved no value, and an operation that moved a
/// value succeeds.
///
/// @tparam T Movable without exceptions.
/// @par Cost
/// One allocation when it is created, none for an operation.
/// @par Example
/// @snippet producer_consumer.cpp produce
template <class T>
class channel {
    static_assert(std::is_object_v<T> && !std::is_const_v<T>, "a channel moves objects");

public:
    template <class Held>
    class send_operation;
    class receive_operation;

    /// Holds up to `capacity` values.
    explicit channel(std::size_t capacity)
        : state_{capacity} {}
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;
    ~channel() = default;

    /// Puts `value` into the channel; waits until there is room.
    ///
    /// If it fails, `value` is destroyed with the operation; send_from() leaves it with the caller.
    ///
    /// @return An awaitable of `result<>`.
    ///
    /// @par Errors
    /// - `std::errc::broken_pipe`: the channel is closed.
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came
    ///   first.
    /// @par Cancellation
    /// A stopped send was not received, and never will be. If the value was taken, the send
    /// succeeds, even if a stop came before it resumes.
    [[nodiscard]] send_operation<T> send(T value) noexcept {
        return send_operation<T>{*this, std::move(value)};
    }
    /// The same from a variable, which is moved from only if the send succeeds.
    ///
    /// @pre `value` outlives the await, and nobody uses it meanwhile.
    [[nodiscard]] send_operation<T&> send_from(T& value) noexcept {
        return send_operation<T&>{*this, value};
    }

    /// Takes the first value; waits until there is one.
    ///
    /// @return An awaitable of `result<T>`.
    ///
    /// @par Errors
    /// - `errc::end_of_stream`: the channel is closed, and empty.
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came
    ///   first; no value was taken.
    [[nodiscard]] receive_operation receive() noexcept { return receive_operation{*this}; }

    /// Puts `value` into the channel if there is room, or gives it to a waiting receiver. Moves
    /// from it only on success.
    ///
    /// @par Errors
    /// - `errc::queue_full`: there is no room.
    /// - `std::errc::broken_pipe`: the channel is closed.
    [[nodiscard]] result<> try_send(T&& value) noexcept {
        if (state_.closed) return fail(std::errc::broken_pipe);
        if (!state_.deliver(std::move(value))) return fail(errc::queue_full);
        return {};
    }
    [[nodiscard]] result<> try_send(const T& value)
        requires std::copy_constructible<T>
    {
        return try_send(T{value});
    }

    /// Takes the first value if there is one.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: there is no value.
    /// - `errc::end_of_stream`: there is no value, and the channel is closed.
    [[nodiscard]] result<T> try_receive() noexcept {
        std::optional<T> value;
        if (state_.take(value)) return *std::move(value);
        if (state_.closed) return fail(errc::end_of_stream);
        return fail(std::errc::operation_would_block);
    }

    /// Ends sending: waiting and later sends fail. Values in the channel can still be received.
    void close() noexcept { state_.close(); }

    [[nodiscard]] bool is_closed() const noexcept { return state_.closed; }
    /// The number of values in it, without those of waiting senders.
    [[nodiscard]] std::size_t size() const noexcept { return state_.size(); }
    [[nodiscard]] bool empty() const noexcept { return state_.size() == 0; }
    [[nodiscard]] std::size_t capacity() const noexcept { return state_.capacity(); }

private:
    detail::channel_state<T, detail::waiter> state_;
};

/// Awaitable of channel::send() and send_from(); the contract is documented there.
template <class T>
template <class Held> // T, or T& for a value that remains the caller's
class [[nodiscard]] channel<T>::send_operation final
    : public detail::sending<detail::waiter, T>,
      public detail::awaited_from_outside<send_operation<Held>> {
public:
    template <class Value>
    send_operation(channel& to, Value&& value) noexcept
        : channel_{&to}
        , held_{std::forward<Value>(value)} {}

    void describe(std::string& text) override { text += "room in a channel"; }
    using detail::awaited_from_outside<send_operation>::await_suspend;
    template <detail::own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       detail::await_site at = detail::await_site::current()) noexcept {
        detail::scope& within = detail::scope_of(caller, at);
        if (this->refused(caller, within)) return true;
        if (channel_->state_.closed) {
            return this->ended_at_once(caller, within, detail::wait_end::closed);
        }
        if (channel_->state_.deliver(std::move(held_))) return this->ended_at_once(caller, within);
        this->value_ = &held_;
        this->suspend(caller, within);
        channel_->state_.senders.push_back(*this);
        return true;
    }
    result<> await_resume() const noexcept { return this->outcome(); }

private:
    channel* channel_; // borrowed
    Held held_;
};

/// Awaitable of channel::receive(); the contract is documented there.
template <class T>
class [[nodiscard]] channel<T>::receive_operation final
    : public detail::receiving<detail::waiter, T>,
      public detail::awaited_from_outside<receive_operation> {
public:
    explicit receive_operation(channel& from) noexcept
        : channel_{&from} {}

    void describe(std::string& text) override { text += "a value from a channel"; }
    using detail::awaited_from_outside<receive_operation>::await_suspend;
    template <detail::own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       detail::await_site at = detail::await_site::current()) noexcept {
        detail::scope& within = detail::scope_of(caller, at);
        if (this->refused(caller, within)) return true;
        if (channel_->state_.take(this->value_)) return this->ended_at_once(caller, within);
        if (channel_->state_.closed) {
            return this->ended_at_once(caller, within, detail::wait_end::no_more);
        }
        this->suspend(caller, within);
        channel_->state_.receivers.push_back(*this);
        return true;
    }
    result<T> await_resume() noexcept {
        if (this->value_) [[likely]]
            return *std::move(this->value_);
        return fail(detail::error_of(this->end_));
    }

private:
    channel* channel_; // borrowed
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
