#pragma once
// broadcast: every receiver gets every value, on any loop; a slow one loses the oldest. Layer
// threads.

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/threads/detail/cross_operation.hpp>

#include <algorithm>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// Why a receive of a broadcast gave no value, and how many values the receiver has missed.
struct broadcast_error {
    std::error_code code;
    std::uint64_t missed = 0; // values; nonzero only with errc::queue_full

    // NOLINTNEXTLINE(google-explicit-constructor): as transfer_error.
    operator std::error_code() const noexcept { return code; }
    /// The meaning of `code` as text.
    [[nodiscard]] std::string message() const { return code.message(); }

    friend bool operator==(const broadcast_error&, const broadcast_error&) noexcept = default;
    friend bool operator==(const broadcast_error& left, const std::error_code& right) noexcept {
        return left.code == right;
    }
    friend bool operator==(const broadcast_error& left,
                           const std::error_condition& right) noexcept {
        return left.code == right;
    }
    friend bool operator==(const broadcast_error& left, errc right) noexcept {
        return left.code == right;
    }
};

} // namespace runtime

namespace detail {

/// What the senders and receivers of a broadcast share. They own it together.
///
/// Values are numbered in the order of the sends, from 0. The last `slots.size()` of them are kept,
/// each until all receivers that were there when it was sent have read it.
template <class T>
struct broadcast_state {
    struct slot {
        std::optional<T> value;
        std::size_t unread = 0; // receivers that have not read it, nor missed it, nor gone
    };

    explicit broadcast_state(std::size_t capacity)
        : slots(capacity) {}

    [[nodiscard]] slot& at(std::uint64_t number) noexcept { return slots[number % slots.size()]; }
    [[nodiscard]] std::uint64_t oldest() const noexcept {
        return next - std::min<std::uint64_t>(next, slots.size());
    }
    [[nodiscard]] bool ended() const noexcept { return closed || senders == 0; }

    cross_lock lock; // for everything below
    std::vector<slot> slots;
    std::uint64_t next = 0; // the number of the next value
    std::size_t senders = 1;
    std::size_t receivers = 0;
    bool closed = false;
    waiter_queue<cross_waiter> waiting; // each has seen all values
};

} // namespace detail

inline namespace runtime {

/// A queue whose values go to every receiver: events, chat messages, changes.
///
/// This object is the sending end. Copies are further senders of the same broadcast; each receiver
/// comes from subscribe(). All of them share the values, so they may be destroyed in any order, on
/// any thread, also after the loops that used them.
///
/// send() never waits. The last `capacity` values are kept for receivers that are slower than the
/// senders. A receiver that falls further behind loses the oldest values, learns how many, and goes
/// on with the oldest value that is still there: so a slow receiver neither slows the others down
/// nor holds memory for ever. All receivers get the values in the same order.
///
/// @tparam T Copyable: each receiver gets a copy, made on its own thread, the last one the value
///           itself. Movable without exceptions. Send a `std::shared_ptr<const X>` if copies are
///           expensive.
/// @par Thread safety
/// Any thread; each receiver is used by one task at a time.
/// @par Cost
/// A mutex, held during a copy of a value. One allocation for the capacity, one for the rest, none
/// for an operation. A send makes one system call for each loop that sleeps because its receivers
/// wait; none otherwise.
/// @par Example
/// @snippet synchronisation.cpp broadcast
template <class T>
class broadcast {
    static_assert(std::is_object_v<T> && !std::is_const_v<T> && std::copy_constructible<T>,
                  "a broadcast copies objects to its receivers");
    static_assert(std::is_nothrow_move_constructible_v<T>,
                  "a value is moved where nothing may fail: its move constructor must be noexcept "
                  "(or send a std::shared_ptr to it)");
    using state = detail::broadcast_state<T>;

public:
    class receiver;
    class receive_operation;

    /// Keeps up to `capacity` values for slow receivers.
    ///
    /// @pre `capacity` is at least 1.
    explicit broadcast(std::size_t capacity)
        : state_{std::make_shared<state>(capacity)} {
        SIMPLENET_EXPECTS(capacity != 0, "a broadcast keeps at least one value");
    }
    /// One more sender.
    broadcast(const broadcast& other) noexcept
        : state_{other.state_} {
        if (state_ == nullptr) return;
        const std::lock_guard locked{state_->lock};
        ++state_->senders;
    }
    /// `other` may then only be destroyed or assigned to.
    broadcast(broadcast&& other) noexcept = default;
    broadcast& operator=(broadcast other) noexcept {
        std::swap(state_, other.state_);
        return *this;
    }
    /// The last sender ends the broadcast, like close().
    ~broadcast() {
        if (state_ == nullptr) return;
        const std::lock_guard locked{state_->lock};
        if (--state_->senders == 0) state_->waiting.end_all(detail::wait_end::granted);
    }

    /// Passes `value` to all receivers that exist now. Never waits.
    ///
    /// @return The number of receivers. 0: `value` was destroyed, because nobody has subscribed, or
    ///         the broadcast is closed.
    std::size_t send(T value) noexcept(std::is_nothrow_destructible_v<T>) {
        std::optional<T> dropped; // destroyed after the unlock: it may use this broadcast
        const std::lock_guard locked{shared().lock};
        if (state_->closed || state_->receivers == 0) return 0;
        auto& slot = state_->at(state_->next++);
        if (slot.value) dropped.emplace(std::move(*slot.value));
        slot.value.emplace(std::move(value));
        slot.unread = state_->receivers;
        state_->waiting.end_all(detail::wait_end::granted);
        return state_->receivers;
    }

    /// A new receiver, of all values that are sent from here on.
    [[nodiscard]] receiver subscribe() const { return receiver{state_, shared().lock}; }

    /// Ends the broadcast for all senders: receivers get what was sent before, then
    /// `errc::end_of_stream`.
    void close() noexcept {
        const std::lock_guard locked{shared().lock};
        state_->closed = true;
        state_->waiting.end_all(detail::wait_end::granted);
    }

    /// Receivers that exist at some moment during the call.
    [[nodiscard]] std::size_t receivers() const noexcept {
        const std::lock_guard locked{shared().lock};
        return state_->receivers;
    }
    [[nodiscard]] std::size_t capacity() const noexcept { return shared().slots.size(); }

private:
    [[nodiscard]] state& shared() const noexcept {
        SIMPLENET_EXPECTS(state_ != nullptr, "a broadcast was used after it had been moved from");
        return *state_;
    }

    std::shared_ptr<state> state_; // null: moved from
};

/// One receiving end of a broadcast. Movable while nobody awaits it.
///
/// Any thread, one task at a time: a receiver may be made on one thread and used on another.
template <class T>
class [[nodiscard]] broadcast<T>::receiver {
public:
    /// `other` may then only be destroyed or assigned to.
    receiver(receiver&& other) noexcept
        : state_{std::move(other.state_)}
        , next_{other.next_}
        , missed_{other.missed_} {
        other.require_idle();
    }
    receiver& operator=(receiver&& other) noexcept {
        if (this == &other) return *this;
        leave();
        other.require_idle();
        state_ = std::move(other.state_);
        next_ = other.next_;
        missed_ = other.missed_;
        return *this;
    }
    /// @pre Nobody awaits it.
    ~receiver() { leave(); }

    /// Waits for the next value. On any loop.
    ///
    /// @pre The receiver outlives the await, and nobody else receives with it meanwhile.
    /// @return An awaitable of `std::expected<T, broadcast_error>`.
    ///
    /// @par Errors
    /// - `errc::queue_full`: the receiver was too slow; `missed` values are lost. The next receive
    ///   gives the oldest value that is still there.
    /// - `errc::end_of_stream`: all senders are gone, or close() was called, and everything was
    ///   received.
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came
    ///   first; no value was taken.
    ///
    /// If copying the value throws, so does the await; the value was not taken.
    [[nodiscard]] receive_operation receive() noexcept { return receive_operation{*this}; }

    /// The same without waiting; on any thread.
    ///
    /// @par Errors
    /// Those of receive(), and
    /// - `std::errc::operation_would_block`: no value is there.
    [[nodiscard]] std::expected<T, broadcast_error> try_receive() {
        const std::lock_guard locked{shared().lock};
        return take();
    }

    /// The values that this receiver has lost since it subscribed.
    [[nodiscard]] std::uint64_t missed() const noexcept { return missed_; }

private:
    friend broadcast;
    friend receive_operation;

    receiver(std::shared_ptr<state> of, detail::cross_lock& lock) noexcept
        : state_{std::move(of)} {
        const std::lock_guard locked{lock};
        ++state_->receivers;
        next_ = state_->next;
    }

    [[nodiscard]] state& shared() const noexcept {
        SIMPLENET_EXPECTS(state_ != nullptr,
                          "a broadcast's receiver was used after it had been moved from");
        return *state_;
    }
    void require_idle() const noexcept {
        SIMPLENET_EXPECTS(!receiving_, "a broadcast's receiver was moved, destroyed or used by a "
                                       "second task while a task waited on it");
    }

    /// @pre locked. Whether take() has an answer.
    [[nodiscard]] bool has_answer() const noexcept {
        return next_ != state_->next || state_->ended();
    }
    /// @pre locked.
    [[nodiscard]] std::expected<T, broadcast_error> take() {
        const std::uint64_t oldest = state_->oldest();
        if (next_ < oldest) {
            const std::uint64_t lost = oldest - next_;
            next_ = oldest;
            missed_ += lost;
            return std::unexpected{broadcast_error{make_error_code(errc::queue_full), lost}};
        }
        if (next_ == state_->next) {
            return std::unexpected{broadcast_error{
                state_->ended() ? make_error_code(errc::end_of_stream)
                                : std::make_error_code(std::errc::operation_would_block)}};
        }
        auto& slot = state_->at(next_);
        if (slot.unread > 1) {
            std::expected<T, broadcast_error> copy{std::in_place, std::as_const(*slot.value)};
            --slot.unread;
            ++next_;
            return copy;
        }
        std::expected<T, broadcast_error> last{std::in_place, std::move(*slot.value)};
        slot.value.reset();
        slot.unread = 0;
        ++next_;
        return last;
    }

    /// Drops what it has not read.
    void leave() noexcept {
        require_idle();
        if (state_ == nullptr) return;
        std::uint64_t end = 0;
        {
            const std::lock_guard locked{state_->lock};
            --state_->receivers;
            end = state_->next;
        }
        for (; next_ < end; ++next_) {
            std::optional<T> dropped; // destroyed after the unlock: it may use this broadcast
            const std::lock_guard locked{state_->lock};
            next_ = std::max(next_, state_->oldest());
            if (next_ >= end) break;
            auto& slot = state_->at(next_);
            if (--slot.unread != 0) continue;
            dropped.emplace(std::move(*slot.value));
            slot.value.reset();
        }
        state_.reset();
    }

    std::shared_ptr<state> state_; // null: moved from
    std::uint64_t next_ = 0;       // the number of the value to receive
    std::uint64_t missed_ = 0;
    bool receiving_ = false;
};

/// Awaitable of broadcast::receiver::receive(); the contract is documented there.
template <class T>
class [[nodiscard]] broadcast<T>::receive_operation final
    : public detail::cross_operation<detail::cross_waiter>,
      public detail::awaited_from_outside<receive_operation> {
    using base = detail::cross_operation<detail::cross_waiter>;

public:
    explicit receive_operation(receiver& from) noexcept
        : base{from.shared().lock}
        , receiver_{&from} {}
    receive_operation(receive_operation&& other) noexcept = default;
    ~receive_operation() { leave(); }

    void describe(std::string& text) override { text += "a value from a broadcast"; }
    using detail::awaited_from_outside<receive_operation>::await_suspend;
    template <detail::own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       detail::await_site at = detail::await_site::current()) noexcept {
        receiver_->require_idle();
        receiver_->receiving_ = true;
        receives_ = true;
        return this->start(
            caller, detail::scope_of(caller, at), [&] { return receiver_->has_answer(); },
            [&] { receiver_->state_->waiting.push_back(*this); });
    }
    std::expected<T, broadcast_error> await_resume() {
        this->over();
        leave();
        if (this->end_ != detail::wait_end::granted) {
            return std::unexpected{broadcast_error{detail::error_of(this->end_)}};
        }
        return receiver_->try_receive();
    }

private:
    void leave() noexcept {
        if (std::exchange(receives_, false)) receiver_->receiving_ = false;
    }

    receiver* receiver_; // borrowed
    bool receives_ = false;
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
