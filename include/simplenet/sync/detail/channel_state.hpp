#pragma once
// channel_state: what channel and cross_channel have in common. Layer sync, private.

#include <simplenet/core/detail/ring.hpp>
#include <simplenet/sync/detail/waiter.hpp>

#include <cstddef>
#include <optional>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// Waits with a value that somebody is to take. `Waiter` has `end(wait_end)` and list links.
template <class Waiter, class T>
class sending : public Waiter {
public:
    /// Gives the value away. @pre taken out of its list.
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
    /// @pre taken out of its list.
    void give(T&& value) noexcept {
        value_.emplace(std::move(value));
        this->end(wait_end::granted);
    }

protected:
    std::optional<T> value_;
};

/// The values of a channel, and who waits at it.
///
/// Invariant: receivers wait only where there is no value, senders only where there is no room.
/// Who comes when nobody waits in front of it is served at once; so order is kept.
template <class T, class Waiter>
class channel_state {
public:
    explicit channel_state(std::size_t capacity)
        : values_{capacity} {}

    /// To a receiver, or into the queue. False: neither was there, and `value` is untouched.
    [[nodiscard]] bool deliver(T&& value) noexcept {
        if (!receivers.empty()) {
            receivers.pop_front().give(std::move(value));
            return true;
        }
        if (values_.full()) return false;
        values_.push_back(std::move(value));
        return true;
    }
    /// From the queue, or from a sender. False: there is nothing.
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
    // After the values: nobody waits when they are destroyed.
    waiter_queue<sending<Waiter, T>> senders;
    waiter_queue<receiving<Waiter, T>> receivers;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
