#pragma once
// last_bytes: what a client has not taken when its connection ends. Layer http, private.

#include "http/server/uptake.hpp"

#include <simplenet/coro/detail/endable_wait.hpp>
#include <simplenet/coro/detail/promise.hpp>
#include <simplenet/http/limits.hpp>
#include <simplenet/server/server_stop.hpp>
#include <simplenet/time/detail/timed_queue.hpp>
#include <simplenet/time/detail/timer_wheel.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace simplenet::v0::http::detail {

/// Whether our kernel has something for the client that is not even on its way. A close does not
/// wait for that, and whatever the client sends behind a close resets the connection, which drops
/// it (RFC 9112, section 9.6). Cost: a system call.
[[nodiscard]] bool has_last_bytes(int socket) noexcept;

/// Before a close: what a client that reads nothing has not taken is kept for send_idle. The kernel
/// would keep it for minutes, and it may be megabytes (TCP_USER_TIMEOUT, tcp(7)).
void leave_last_bytes(int socket, const limits& with) noexcept;

/// Ends what a connection waits for behind its last answer: when the client has taken everything
/// and has been silent for a time, is too slow, or somebody else needs the room. When the server
/// ends, a client has one more second to take something.
///
/// Cost: a timer; while something is left three system calls for each look, after 1, 2, 4 ms, and
/// so on up to a second.
class last_wait final : public simplenet::detail::endable_wait,
                        simplenet::detail::timer_node,
                        simplenet::detail::stop_waiter {
public:
    using nanoseconds = std::chrono::nanoseconds;
    /// What a client has to do: let everything be on its way, or acknowledge it, which may take
    /// 40 ms longer.
    enum class step : bool { sent, acknowledged };

    /// All that are passed by reference are borrowed.
    ///
    /// @param silence  How long the client may be silent once it has taken everything.
    /// @param so_far  What it took of the last answer.
    last_wait(const simplenet::detail::scope& within, int socket, const limits& with, step until,
              nanoseconds silence, const uptake& so_far) noexcept;
    last_wait(const last_wait&) = delete;
    last_wait& operator=(const last_wait&) = delete;
    ~last_wait() { stop_waiter::unlink(); }

    /// The client has sent something.
    void heard() noexcept { heard_at_ = simplenet::detail::timed_queue::present(); }
    /// Whether there is something to wait for.
    [[nodiscard]] bool goes_on() const noexcept {
        return !must_end() && (silence_ > nanoseconds::zero() || is_something_left());
    }
    [[nodiscard]] bool is_something_left() const noexcept;
    [[nodiscard]] bool is_too_slow() const noexcept { return uptake_.is_too_slow(limits_); }

private:
    void expired() noexcept override;
    void server_stops() noexcept override;
    void arm(nanoseconds until_look) noexcept;
    bool make_room() noexcept override { return end(simplenet::detail::stop_reason::deadline); }
    /// How long to wait until the next look; not positive: the wait is over.
    [[nodiscard]] nanoseconds look() noexcept;

    int socket_;
    const limits& limits_;
    step until_;
    nanoseconds silence_;
    uptake uptake_;
    clock::time_point begin_; // of what uptake_ does not know yet
    clock::time_point heard_at_;
    clock::time_point taken_at_;                // nothing is waited for since
    std::optional<clock::time_point> no_later_; // the server ends
    nanoseconds pause_;                         // before the next look
};

} // namespace simplenet::v0::http::detail
