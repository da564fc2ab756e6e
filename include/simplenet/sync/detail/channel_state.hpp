#pragma once
// channel_state: shared by channel and cross_channel. Layer sync, private.

#include <simplenet/core/detail/ring.hpp>
#include <simplenet/sync/detail/waiter.hpp>

#include <cstddef>
#include <optional>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// Waits with a value for a receiver. `Waiter` has `end(wait_end)` and list links.
template <class Waiter, class T>
class sending : public Waiter {
public:
    /// Returns the value. @pre removed from its list.
    [[nodiscard]] T taken() noexcept {
        T value{std::move(*value_)};
        this->end(wait_end::granted);
        return value;
    }

protected:
    T* value_ = nullptr; // borrowed, or in the awaiter; set when the wait begins
};

/// Waits for a value.
template <class Waiter, class T>
class receiving : public Waiter {
public:
    /// @pre removed from its list.
    void give(T&& value) noexcept {
        value_.emplace(std::move(value));
        this->end(wait_end::granted);
    }

protected:
    std::optional<T> value_;
};

/// The values of a channel, and its waiters.
///
/// Invariant: receivers wait only if there is no value, senders only if there is no room. An
/// operation with no waiter before it is served at once, so order is kept.
template <class T, class Waiter>
class channel_state {
public:
    explicit channel_state(std::size_t capacity)
        : values_{capacity} {}

    /// Gives the value to a receiver, or to the queue. False: neither was possible, and `value` is
    /// unchanged.
    [[nodiscard]] bool deliver(T&& value) noexcept {
        if (!receivers.empty()) {
            receivers.pop_front().give(std::move(value));
            return true;
        }
        if (values_.full()) return false;
        values_.push_back(std::move(value));
        return true;
    }
    /// Takes a value from the queue, or from a sender. False: there is none.
    [[nodiscard]] bool take(std::optional<T>& into) noexcept {
        if (!values_.empty()) {
            into.emplace(std::move(values_.front()));
            values_.drop_front();
            if (!senders.empty()) values_.push_back(senders.pop_front().taken());
            return true;
        }
        if (senders.empty()) return false;
        into.emplace(senders.pop_front().taken());
        return true;
    }
    void close() noexcept {
        closed = true;
        senders.end_all(wait_end::closed);
        receivers.end_all(wait_end::no_more);
    }

    [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
    [[nodiscard]] std::size_t capacity() const noexcept { return values_.capacity(); }

    bool closed = false;

private:
    ring<T> values_;

public:
    // Declared after the values: no waiter is left when those are destroyed.
    waiter_queue<sending<Waiter, T>> senders;
    waiter_queue<receiving<Waiter, T>> receivers;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
