#pragma once
// uptake: what a client takes of an answer while it is waited for. Layer http, private.

#include "http/server/pace.hpp"

#include <simplenet/coro/detail/endable_wait.hpp>
#include <simplenet/http/limits.hpp>
#include <simplenet/time/detail/timed_queue.hpp>
#include <simplenet/time/detail/timer_wheel.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace simplenet::v0::http::detail {

/// Adds up how long an answer has waited for its client, and what that took meanwhile.
///
/// A client has taken what its kernel has acknowledged. What ours accepts is too much: megabytes,
/// which nobody may ever read, and more when it enlarges its buffer.
class uptake {
public:
    using nanoseconds = std::chrono::nanoseconds;

    void reset() noexcept { *this = {}; }
    /// How long to wait until the next look at what the client has taken.
    [[nodiscard]] nanoseconds until_look(const limits& within) const noexcept;
    void waited(nanoseconds time) noexcept {
        pace_.waited(time);
        idle_ += time;
        unseen_ += time;
    }
    [[nodiscard]] bool has_seen_any() const noexcept { return seen_.has_value(); }
    /// Tells how much the client has taken since the connection was made. The first call sets the
    /// baseline, and the time begins.
    void saw(std::int64_t taken) noexcept;
    /// Whether it had taken something at the last look, and was not waited for since. Also true at
    /// the first look, which has nothing to compare with.
    [[nodiscard]] bool has_just_taken() const noexcept { return idle_ == nanoseconds::zero(); }
    /// Whether it has taken nothing for send_idle, or in the mean less than minimum_rate.
    [[nodiscard]] bool is_too_slow(const limits& within) const noexcept;

private:
    std::optional<std::int64_t> seen_; // at the last look
    pace pace_;
    nanoseconds idle_{0};   // since the client took something
    nanoseconds unseen_{0}; // since the last look
};

/// Ends a write, as by a deadline, that waits for a client which is too slow: up to an eighth of
/// send_idle late, and five seconds at most. Such a write may still succeed, when our kernel takes
/// the rest: must_end() tells.
///
/// Cost: a timer for each wait; a getsockopt(2) for each eighth of send_idle that was waited, and
/// one where the time of an answer begins.
class patience final : public simplenet::detail::endable_wait, simplenet::detail::timer_node {
public:
    /// When the first look at an answer is made, and its time begins. `soon`: after 20 ms, so that
    /// a wait that is over by then costs no system call.
    enum class start : bool { soon, at_once };

    /// All are borrowed. `socket` is that of the client.
    patience(int socket, const limits& within, uptake& so_far, start when) noexcept
        : socket_{socket}
        , limits_{within}
        , so_far_{so_far}
        , begin_{simplenet::detail::timed_queue::present()} {
        if (when == start::at_once && !so_far_.has_seen_any()) look();
        arm();
    }
    patience(const patience&) = delete;
    patience& operator=(const patience&) = delete;
    ~patience() { add_wait(); }

private:
    void expired() noexcept override;
    void arm() noexcept;
    void look() noexcept;
    /// Adds the time since the last call.
    void add_wait() noexcept;

    int socket_;
    const limits& limits_;
    uptake& so_far_;
    clock::time_point begin_;
    std::chrono::nanoseconds pause_{}; // until the next look
};

} // namespace simplenet::v0::http::detail
