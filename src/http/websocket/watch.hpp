#pragma once
// watched(): an operation of a stream that its websocket can end, by a timer or by a wake-up. Layer
// http, private.

#include "http/websocket/connection.hpp"

#include <simplenet/coro/task.hpp>
#include <simplenet/stream/any_stream.hpp>
#include <simplenet/time/detail/timed_queue.hpp>
#include <simplenet/time/detail/timer_wheel.hpp>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <utility>

namespace simplenet::v0::http::detail {

/// Why a watched operation has failed with errc::deadline_exceeded: one of these, or a deadline of
/// the caller.
enum class woken : std::uint8_t { by_nobody, by_timer, by_writer };

class watch_base : public simplenet::detail::timer_node {
public:
    /// Ends the operation, unless it has succeeded.
    void wake(woken how) noexcept {
        how_ = how;
        stop_operation();
    }

protected:
    explicit watch_base(woken& how) noexcept
        : timer_node{without_deadline{}}
        , how_{how} {}
    ~watch_base() = default;

private:
    void expired() noexcept final { wake(woken::by_timer); }
    virtual void stop_operation() noexcept = 0;

    woken& how_;
};

/// What an operation does, and so how long it may take.
enum class watched_for : std::uint8_t {
    bytes_to_come, // silence_ends(); a writer may end it, to leave its output to the reader
    bytes_to_leave // stuck_ends()
};

/// Awaits an operation of an any_stream with a limit, like with_timeout().
///
/// A limit of the caller and one of the websocket must not be mistaken for each other: the first
/// one is reported, the second one ends the connection or sends a ping. So this says which it was.
template <class Operation>
class [[nodiscard]] watched final : private watch_base {
public:
    /// @param how  Says why it ended. Outlives the await.
    watched(Operation&& operation, websocket_connection& on, watched_for what, woken& how) noexcept
        : watch_base{how}
        , operation_{std::move(operation)}
        , on_{on}
        , what_{what} {
        how = woken::by_nobody;
    }
    watched(const watched&) = delete;
    watched& operator=(const watched&) = delete;
    ~watched() { leave(); } // the end of a loop destroys it while it waits

    static bool await_ready() noexcept { return false; }
    template <class Promise>
    bool
    await_suspend(std::coroutine_handle<Promise> caller,
                  simplenet::detail::await_site at = simplenet::detail::await_site::current()) {
        if (!simplenet::detail::await_suspend_at(operation_, caller, at)) return false;
        // Only what waits costs a look at the clock.
        auto& within = simplenet::detail::innermost_scope(caller);
        auto& timers = simplenet::detail::timed_queue::of(within).timers;
        const bool reads = what_ == watched_for::bytes_to_come;
        if (reads) on_.wait = this;
        const auto until = reads ? on_.silence_ends() : on_.stuck_ends();
        if (until != never) timers.insert(*this, until);
        return true;
    }
    auto await_resume() {
        cancel();
        leave();
        return operation_.await_resume();
    }

private:
    void stop_operation() noexcept override {
        operation_.on_stop(simplenet::detail::stop_reason::deadline);
    }
    void leave() noexcept {
        if (on_.wait == this) on_.wait = nullptr;
    }

    Operation operation_;
    websocket_connection& on_;
    watched_for what_;
};

/// A stop of the caller, or a wake-up: the stream is as it was.
[[nodiscard]] inline bool is_stop(std::error_code error) noexcept {
    return error == std::errc::operation_canceled || error == simplenet::errc::deadline_exceeded;
}

} // namespace simplenet::v0::http::detail
