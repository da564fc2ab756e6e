#pragma once
// last_bytes: what a client has not taken when its connection ends. Layer http, private.

#include "http/server/uptake.hpp"

#include <simplenet/coro/detail/endable_wait.hpp>
#include <simplenet/coro/detail/promise.hpp>
#include <simplenet/http/limits.hpp>
#include <simplenet/server/server_stop.hpp>
#include <simplenet/time/detail/timed_queue.hpp>
#include <simplenet/time/detail/timer_wheel.hpp>
#include <simplenet/time/sleep.hpp>

#include <chrono>
#include <optional>

namespace simplenet::v0::http::detail {

/// Whether our kernel has something for the client that is not even on its way. Whatever the client
/// sends behind a close resets the connection, and a reset drops such bytes (RFC 9112,
/// section 9.6). Cost: a system call.
[[nodiscard]] bool has_last_bytes(int socket) noexcept;

/// Before a close that does not wait: the kernel gives up what the client does not take within
/// send_idle. Otherwise it would keep that, which may be megabytes, for minutes (TCP_USER_TIMEOUT,
/// tcp(7)). A connection that goes on must not have this limit: its time begins when the client's
/// window closes, and goes on until a whole segment fits, even if the client takes something.
void limit_last_bytes(int socket, const limits& with) noexcept;

/// Ends what a connection waits for behind its last answer: when the client has acknowledged
/// everything and has been silent for a time, when it is too slow, or when others need the room.
/// When the server ends, this no longer waits for a client that takes nothing for linger_idle.
///
/// Cost: a timer; while something is left three system calls for each look, after 1, 2, 4 ms, and
/// so on up to a second.
class last_wait final : public simplenet::detail::endable_wait,
                        simplenet::detail::timer_node,
                        simplenet::detail::stop_waiter {
public:
    using nanoseconds = std::chrono::nanoseconds;

    /// @param with  Borrowed.
    /// @param silence  How long the client may be silent once it has taken everything.
    /// @param so_far  What it has taken of the last answer.
    last_wait(const simplenet::detail::scope& within, int socket, const limits& with,
              nanoseconds silence, const uptake& so_far) noexcept;
    last_wait(const last_wait&) = delete;
    last_wait& operator=(const last_wait&) = delete;
    ~last_wait() { stop_waiter::unlink(); }

    /// The client has sent something.
    void heard() noexcept { heard_at_ = simplenet::detail::timed_queue::present(); }
    /// Whether there is something to wait for.
    [[nodiscard]] bool goes_on() const noexcept {
        return (silence_ > nanoseconds::zero() && !must_end()) || is_client_behind();
    }
    /// Whether the client has something to take, and this has not ended.
    [[nodiscard]] bool is_client_behind() const noexcept;
    /// Waits until this ends. Nothing more can come from the client, so its silence does not count.
    [[nodiscard]] auto rest() {
        silence_ = {};
        return of(async_sleep(nanoseconds::max()));
    }
    [[nodiscard]] bool is_too_slow() const noexcept { return is_too_slow_; }

private:
    void expired() noexcept override;
    void server_stops() noexcept override;
    bool make_room() noexcept override { return end(simplenet::detail::stop_reason::deadline); }
    bool may_lose() const noexcept override { return is_client_behind(); }
    void arm(nanoseconds until_look) noexcept;
    /// The client has until then to take something.
    void limit_from(clock::time_point now) noexcept;
    /// How long to wait until the next look; not positive: the wait is over.
    [[nodiscard]] nanoseconds look() noexcept;

    int socket_;
    const limits& limits_;
    nanoseconds silence_;
    uptake uptake_;
    clock::time_point begin_; // of what uptake_ does not know yet
    clock::time_point heard_at_;
    clock::time_point taken_at_; // the first look that found nothing left; at first begin_
    bool is_taken_ = false;
    bool is_too_slow_ = false;
    std::optional<clock::time_point> no_later_; // when the server ends; moves as the client takes
    nanoseconds pause_;                         // before the next look
};

} // namespace simplenet::v0::http::detail
