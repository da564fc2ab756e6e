#pragma once
// oneshot: one value, sent once, such as an answer to a question. Layer sync.

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/sync/detail/channel_state.hpp>

#include <concepts>
#include <coroutine>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// Receives one value, sent by a `oneshot::sender`, such as the answer to a request.
///
/// The asker owns it, usually in a coroutine's frame; the sender can be passed on. Either may be
/// destroyed first: a dropped sender ends the wait, and a value for a receiver that is gone is
/// returned. Loop thread only. Not movable: its sender holds its address. Destroying it ends a wait
/// with operation_canceled.
///
/// @par Cost
/// No allocation.
/// @par Example
/// @snippet synchronisation.cpp oneshot
template <class T>
class oneshot {
    static_assert(std::is_object_v<T> && std::is_nothrow_move_constructible_v<T>,
                  "a oneshot moves an object where nothing may fail: its move constructor must be "
                  "noexcept");

public:
    class sender;
    class receive_operation;

    oneshot() noexcept = default;
    oneshot(const oneshot&) = delete;
    oneshot& operator=(const oneshot&) = delete;
    ~oneshot() {
        if (sender_ != nullptr) sender_->to_ = nullptr;
    }

    /// The sending end.
    ///
    /// @pre Called once.
    [[nodiscard]] sender make_sender() noexcept {
        SIMPLENET_EXPECTS(!std::exchange(has_sender_, true), "a oneshot has one sender");
        return sender{*this};
    }

    /// Waits for the value, once.
    ///
    /// @pre One wait at a time; a value is received once.
    /// @return An awaitable of `result<T>`.
    /// @par Errors
    /// - `errc::end_of_stream`: the sender was dropped without a value.
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came
    ///   first; the value can still be received later.
    [[nodiscard]] receive_operation receive() noexcept { return receive_operation{*this}; }

    /// Whether receive() would not wait.
    [[nodiscard]] bool is_ready() const noexcept { return value_.has_value() || over_; }

private:
    friend sender;

    bool has_sender_ = false;
    bool over_ = false; // no value will come any more
    sender* sender_ = nullptr;
    std::optional<T> value_;
    detail::waiter_queue<detail::receiving<detail::waiter, T>> receiver_; // at most one
};

/// Sends the value of a oneshot. If it is dropped unused, the receiver is told. May outlive the
/// oneshot.
template <class T>
class [[nodiscard]] oneshot<T>::sender {
public:
    sender(sender&& other) noexcept { take_over(other); }
    sender& operator=(sender&& other) noexcept {
        if (this != &other) {
            drop();
            take_over(other);
        }
        return *this;
    }
    ~sender() { drop(); }

    /// Sends `value`, which is moved from only on success. Never waits.
    ///
    /// @pre Nothing was sent yet.
    /// @par Errors
    /// - `std::errc::broken_pipe`: the receiver is gone.
    result<> send(T&& value) noexcept {
        SIMPLENET_EXPECTS(!sent_, "a oneshot takes one value");
        if (to_ == nullptr) return fail(std::errc::broken_pipe);
        sent_ = true;
        oneshot& to = *std::exchange(to_, nullptr);
        to.sender_ = nullptr;
        to.over_ = true;
        if (to.receiver_.empty()) {
            to.value_.emplace(std::move(value));
        } else {
            to.receiver_.pop_front().give(std::move(value));
        }
        return {};
    }
    result<> send(const T& value)
        requires std::copy_constructible<T>
    {
        return send(T{value});
    }

    /// Whether the receiver still exists and has no value yet.
    [[nodiscard]] bool is_wanted() const noexcept { return to_ != nullptr; }

private:
    friend oneshot;
    explicit sender(oneshot& to) noexcept
        : to_{&to} {
        to.sender_ = this;
    }
    void take_over(sender& other) noexcept {
        to_ = std::exchange(other.to_, nullptr);
        sent_ = std::exchange(other.sent_, false);
        if (to_ != nullptr) to_->sender_ = this;
    }
    void drop() noexcept {
        if (to_ == nullptr) return;
        oneshot& to = *std::exchange(to_, nullptr);
        to.sender_ = nullptr;
        to.over_ = true;
        to.receiver_.end_all(detail::wait_end::no_more);
    }

    oneshot* to_ = nullptr; // borrowed; null if it is gone, or has its value
    bool sent_ = false;
};

/// Awaitable of oneshot::receive(); the contract is documented there.
template <class T>
class [[nodiscard]] oneshot<T>::receive_operation final
    : public detail::receiving<detail::waiter, T>,
      public detail::awaited_from_outside<receive_operation> {
public:
    explicit receive_operation(oneshot& from) noexcept
        : oneshot_{&from} {}

    void describe(std::string& text) override { text += "the value of a oneshot"; }
    using detail::awaited_from_outside<receive_operation>::await_suspend;
    template <detail::own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       detail::await_site at = detail::await_site::current()) noexcept {
        detail::scope& within = detail::scope_of(caller, at);
        if (this->refused(caller, within)) return true;
        if (oneshot_->value_) {
            this->value_.emplace(*std::move(oneshot_->value_));
            oneshot_->value_.reset();
            return this->ended_at_once(caller, within);
        }
        if (oneshot_->over_) {
            return this->ended_at_once(caller, within, detail::wait_end::no_more);
        }
        this->suspend(caller, within);
        SIMPLENET_EXPECTS(oneshot_->receiver_.empty(), "one receive() of a oneshot at a time");
        oneshot_->receiver_.push_back(*this);
        return true;
    }
    result<T> await_resume() noexcept {
        if (this->value_) return *std::move(this->value_);
        return fail(detail::error_of(this->end_));
    }

private:
    oneshot* oneshot_; // borrowed
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
