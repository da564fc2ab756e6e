#pragma once
// channel: values from some coroutines to others of the same loop. Layer sync.

#include <simplenet/core/ring.hpp>
#include <simplenet/sync/waiter.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

namespace simplenet {
namespace detail {

/// Waits with a value that somebody is to take.
template <class T>
class send_waiter : public waiter {
public:
    /// Gives the value away. @pre taken out of the channel's list.
    [[nodiscard]] T&& taken() noexcept {
        end(wait_end::granted);
        return std::move(*value_);
    }

protected:
    T* value_ = nullptr; // borrowed, or in the awaiter; set when it starts
};

/// Waits for a value.
template <class T>
class receive_waiter : public waiter {
public:
    /// @pre taken out of the channel's list.
    void give(T&& value) noexcept {
        value_.emplace(std::move(value));
        end(wait_end::granted);
    }

protected:
    std::optional<T> value_;
};

} // namespace detail

inline namespace runtime {

/// A bounded queue between coroutines of one loop.
///
/// Owns the values in it. Any number of senders and receivers; values arrive in the order of the
/// sends, and who waits longest is served first. With a capacity of 0 a value goes from hand to
/// hand: each send waits for its receiver. Loop thread only; cross_channel goes between threads.
/// Not movable: its address is in those who wait. Destroying it ends their waits with
/// operation_canceled.
///
/// No value is lost to a stop: an operation that fails has not moved one, one that moved a value
/// has succeeded.
///
/// @tparam T Movable, without exceptions.
/// @par Cost
/// One allocation when it is made, none for an operation.
/// @par Example
/// @snippet producer_consumer.cpp produce
template <class T>
class channel {
    static_assert(std::is_object_v<T> && !std::is_const_v<T>, "a channel moves objects");

public:
    template <class Held>
    class send_operation;
    class receive_operation;

    /// Room for `capacity` values.
    explicit channel(std::size_t capacity)
        : values_{capacity} {}
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;
    ~channel() = default;

    /// Puts `value` into the channel; waits until there is room.
    ///
    /// If it fails, `value` is gone with the operation: send_from() leaves it with the caller.
    ///
    /// @par Errors
    /// - `std::errc::broken_pipe`: the channel is closed.
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came
    ///   first.
    /// @par Cancellation
    /// A stopped send was not received, and never will be. One whose value was taken is a success,
    /// even if a stop came before it resumes.
    [[nodiscard]] send_operation<T> send(T value) noexcept {
        return send_operation<T>{*this, std::move(value)};
    }
    /// The same out of a variable, which is moved from if, and only if, the send succeeds.
    ///
    /// @pre `value` outlives the await, and is left alone meanwhile.
    [[nodiscard]] send_operation<T&> send_from(T& value) noexcept {
        return send_operation<T&>{*this, value};
    }

    /// Takes the first value; waits until there is one.
    ///
    /// @par Errors
    /// - `errc::end_of_stream`: the channel is closed, and empty.
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came
    ///   first; no value was taken.
    [[nodiscard]] receive_operation receive() noexcept { return receive_operation{*this}; }

    /// Puts `value` into the channel if there is room, or somebody waits for it. Moved from if, and
    /// only if, that succeeds.
    ///
    /// @par Errors
    /// - `errc::queue_full`: there is no room.
    /// - `std::errc::broken_pipe`: the channel is closed.
    [[nodiscard]] result<> try_send(T&& value) noexcept {
        if (closed_) return fail(std::errc::broken_pipe);
        if (!deliver(std::move(value))) return fail(errc::queue_full);
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
    /// - `std::errc::operation_would_block`: there is none.
    /// - `errc::end_of_stream`: there is none, and the channel is closed.
    [[nodiscard]] result<T> try_receive() noexcept {
        std::optional<T> value;
        if (take(value)) return *std::move(value);
        if (closed_) return fail(errc::end_of_stream);
        return fail(std::errc::operation_would_block);
    }

    /// No value is put in any more; those that are in are still received. Sends that wait fail.
    void close() noexcept {
        closed_ = true;
        senders_.end_all(detail::wait_end::closed);
        receivers_.end_all(detail::wait_end::no_more);
    }

    [[nodiscard]] bool is_closed() const noexcept { return closed_; }
    /// Values in it; not those that senders wait with.
    [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
    [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
    [[nodiscard]] std::size_t capacity() const noexcept { return values_.capacity(); }

private:
    // Invariant: receivers wait only at an empty channel, senders only at a full one.

    /// False: there is neither a receiver nor room, and `value` is untouched.
    [[nodiscard]] bool deliver(T&& value) noexcept {
        if (!receivers_.empty()) {
            receivers_.pop_front().give(std::move(value));
            return true;
        }
        if (values_.full()) return false;
        values_.push_back(std::move(value));
        return true;
    }
    /// False: there is nothing.
    [[nodiscard]] bool take(std::optional<T>& into) noexcept {
        if (!values_.empty()) {
            into.emplace(std::move(values_.front()));
            values_.drop_front();
            if (!senders_.empty()) values_.push_back(senders_.pop_front().taken());
            return true;
        }
        if (senders_.empty()) return false;
        into.emplace(senders_.pop_front().taken());
        return true;
    }

    detail::ring<T> values_;
    bool closed_ = false;
    detail::waiter_queue<detail::send_waiter<T>> senders_;
    detail::waiter_queue<detail::receive_waiter<T>> receivers_;
};

/// Awaitable of channel::send() and send_from(); the contract is documented there.
template <class T>
template <class Held> // T, or T& for a value that stays with the caller
class [[nodiscard]] channel<T>::send_operation final : public detail::send_waiter<T> {
public:
    template <class Value>
    send_operation(channel& to, Value&& value) noexcept
        : channel_{&to}
        , held_{std::forward<Value>(value)} {}

    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       detail::await_site at = detail::await_site::current()) noexcept {
        detail::scope& within = detail::scope_of(caller, at);
        if (this->refused(caller, within)) return true;
        if (channel_->closed_) {
            return this->ended_at_once(caller, within, detail::wait_end::closed);
        }
        if (channel_->deliver(std::move(held_))) return this->ended_at_once(caller, within);
        this->value_ = &held_;
        this->suspend(caller, within);
        channel_->senders_.push_back(*this);
        return true;
    }
    result<> await_resume() const noexcept { return this->outcome(); }

private:
    channel* channel_; // borrowed
    Held held_;
};

/// Awaitable of channel::receive(); the contract is documented there.
template <class T>
class [[nodiscard]] channel<T>::receive_operation final : public detail::receive_waiter<T> {
public:
    explicit receive_operation(channel& from) noexcept
        : channel_{&from} {}

    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       detail::await_site at = detail::await_site::current()) noexcept {
        detail::scope& within = detail::scope_of(caller, at);
        if (this->refused(caller, within)) return true;
        if (channel_->take(this->value_)) return this->ended_at_once(caller, within);
        if (channel_->closed_) {
            return this->ended_at_once(caller, within, detail::wait_end::no_more);
        }
        this->suspend(caller, within);
        channel_->receivers_.push_back(*this);
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
} // namespace simplenet
