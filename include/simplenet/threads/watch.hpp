#pragma once
// watch: one value that changes, seen from any loop; receivers get the latest. Layer threads.

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/threads/detail/cross_operation.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

/// What the senders and receivers of a watch share. They own it together.
template <class T>
struct watch_state {
    explicit watch_state(T initial)
        : value{std::move(initial)} {}

    /// @pre locked.
    void changed() noexcept {
        ++version;
        waiting.end_all(wait_end::granted);
    }

    cross_lock lock; // for everything below
    T value;
    std::uint64_t version = 0; // of the value
    std::size_t senders = 1;
    waiter_queue<cross_waiter> waiting; // each has seen this version
};

} // namespace detail

inline namespace runtime {

/// A value that changes, and that others wait for: a configuration, a state, a number of clients.
///
/// This object is the sending end. Copies are further senders of the same value; each receiver
/// comes from subscribe(). All of them share the value, so they may be destroyed in any order, on
/// any thread, also after the loops that used them.
///
/// A receiver gets the latest value, and misses those that were replaced before it looked; use a
/// broadcast if each value counts.
///
/// @tparam T Copyable, on any thread. Use a `std::shared_ptr<const X>` if copies are expensive.
/// @par Thread safety
/// Any thread; each receiver is used by one task at a time.
/// @par Cost
/// A mutex, held while a value is copied or replaced. One allocation, none for an operation. A
/// change makes one system call for each loop that sleeps because its receivers wait; none
/// otherwise.
/// @par Example
/// @snippet synchronisation.cpp watch
template <class T>
class watch {
    static_assert(std::is_object_v<T> && !std::is_const_v<T> && std::copyable<T>,
                  "a watch copies its value");
    using state = detail::watch_state<T>;

public:
    class receiver;
    class changed_operation;

    explicit watch(T initial)
        : state_{std::make_shared<state>(std::move(initial))} {}
    /// One more sender.
    watch(const watch& other) noexcept
        : state_{other.state_} {
        if (state_ == nullptr) return;
        const std::lock_guard locked{state_->lock};
        ++state_->senders;
    }
    /// `other` may then only be destroyed or assigned to.
    watch(watch&& other) noexcept = default;
    watch& operator=(watch other) noexcept {
        std::swap(state_, other.state_);
        return *this;
    }
    /// After the last sender, receivers wait no longer.
    ~watch() {
        if (state_ == nullptr) return;
        const std::lock_guard locked{state_->lock};
        if (--state_->senders == 0) state_->waiting.end_all(detail::wait_end::granted);
    }

    /// Replaces the value. Receivers are told, also if it is equal to the one before.
    ///
    /// If the assignment throws, they are not told.
    void set(T value) {
        const std::lock_guard locked{shared().lock};
        using std::swap;
        swap(state_->value, value); // the old one is destroyed after the unlock: it may use this
        state_->changed();
    }

    /// Calls `change` with a reference to the value, then tells the receivers. No other change is
    /// made meanwhile.
    ///
    /// If `change` throws, receivers are told nevertheless, because the value may have changed.
    ///
    /// @pre `change` does not use this watch; it delays everybody who does.
    template <std::invocable<T&> Change>
    void update(Change&& change) {
        struct at_the_end {
            state& of;
            ~at_the_end() { of.changed(); }
        };
        const std::lock_guard locked{shared().lock};
        const at_the_end tell{*state_};
        std::invoke(std::forward<Change>(change), state_->value);
    }

    /// A copy of the latest value.
    [[nodiscard]] T get() const {
        const std::lock_guard locked{shared().lock};
        return state_->value;
    }

    /// A new receiver, which has seen the present value.
    [[nodiscard]] receiver subscribe() const {
        const std::lock_guard locked{shared().lock};
        return receiver{state_, state_->version};
    }

private:
    [[nodiscard]] state& shared() const noexcept {
        SIMPLENET_EXPECTS(state_ != nullptr, "a watch was used after it had been moved from");
        return *state_;
    }

    std::shared_ptr<state> state_; // null: moved from
};

/// One receiving end of a watch. Movable while nobody awaits it. A copy has seen what the original
/// has.
///
/// Any thread, one task at a time: a receiver may be made on one thread and used on another.
template <class T>
class [[nodiscard]] watch<T>::receiver {
public:
    receiver(const receiver& other) noexcept
        : state_{other.state_}
        , seen_{other.seen_} {}
    /// `other` may then only be destroyed or assigned to.
    receiver(receiver&& other) noexcept
        : state_{std::move(other.state_)}
        , seen_{other.seen_} {
        other.require_idle();
    }
    receiver& operator=(receiver other) noexcept {
        require_idle();
        std::swap(state_, other.state_);
        seen_ = other.seen_;
        return *this;
    }
    /// @pre Nobody awaits it.
    ~receiver() { require_idle(); }

    /// Waits for a value that this receiver has not seen, and counts it as seen. On any loop.
    ///
    ///     while (const auto changed = co_await settings.changed())
    ///         apply(settings.get());
    ///
    /// @pre The receiver outlives the await, and nobody else uses it meanwhile.
    /// @return An awaitable of `result<>`.
    ///
    /// @par Errors
    /// - `errc::end_of_stream`: all senders are gone, and the last value was seen.
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came
    ///   first; nothing counts as seen.
    [[nodiscard]] changed_operation changed() noexcept { return changed_operation{*this}; }

    /// Whether changed() would not wait for a value.
    [[nodiscard]] bool has_changed() const noexcept {
        const std::lock_guard locked{shared().lock};
        return seen_ != state_->version;
    }

    /// A copy of the latest value, which counts as seen: changed() does not report it again. Also
    /// after the last sender.
    [[nodiscard]] T get() {
        const std::lock_guard locked{shared().lock};
        T copy{state_->value};
        seen_ = state_->version;
        return copy;
    }

private:
    friend watch;
    friend changed_operation;

    receiver(std::shared_ptr<state> of, std::uint64_t version) noexcept
        : state_{std::move(of)}
        , seen_{version} {}

    [[nodiscard]] state& shared() const noexcept {
        SIMPLENET_EXPECTS(state_ != nullptr,
                          "a watch's receiver was used after it had been moved from");
        return *state_;
    }
    void require_idle() const noexcept {
        SIMPLENET_EXPECTS(!receiving_, "a watch's receiver was moved, destroyed or used by a "
                                       "second task while a task waited on it");
    }
    /// @pre locked.
    [[nodiscard]] bool has_answer() const noexcept {
        return seen_ != state_->version || state_->senders == 0;
    }

    std::shared_ptr<state> state_; // null: moved from
    std::uint64_t seen_;           // version
    bool receiving_ = false;
};

/// Awaitable of watch::receiver::changed(); the contract is documented there.
template <class T>
class [[nodiscard]] watch<T>::changed_operation final
    : public detail::cross_operation<detail::cross_waiter>,
      public detail::awaited_from_outside<changed_operation> {
    using base = detail::cross_operation<detail::cross_waiter>;

public:
    explicit changed_operation(receiver& of) noexcept
        : base{of.shared().lock}
        , receiver_{&of} {}
    changed_operation(changed_operation&& other) noexcept = default;
    ~changed_operation() { leave(); }

    void describe(std::string& text) override { text += "a change of a watch"; }
    using detail::awaited_from_outside<changed_operation>::await_suspend;
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
    result<> await_resume() noexcept {
        this->over();
        leave();
        if (this->end_ != detail::wait_end::granted) return fail(detail::error_of(this->end_));
        const std::lock_guard locked{receiver_->state_->lock};
        const std::uint64_t latest = receiver_->state_->version;
        if (receiver_->seen_ == latest) return fail(errc::end_of_stream);
        receiver_->seen_ = latest;
        return {};
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
