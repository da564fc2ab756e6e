#pragma once
// One attempt at a TCP connection. async_connect(endpoint) makes one, async_connect(host) several
// at a time. Layer net, private.

#include <simplenet/net/connect.hpp>
#include <simplenet/time/detail/timed_queue.hpp>

#include <chrono>
#include <cstddef>
#include <system_error>

namespace simplenet::v0::detail {

/// The time of a call, by the clock of this thread's loop.
class call_time {
public:
    /// Now. @pre a loop runs on this thread.
    call_time() noexcept
        : queue_{static_cast<timed_queue*>(&run_queue::require_current())}
        , start_{queue_->now()} {}

    [[nodiscard]] std::chrono::steady_clock::time_point now() const noexcept {
        return queue_->now();
    }
    [[nodiscard]] std::chrono::nanoseconds elapsed() const noexcept { return now() - start_; }

private:
    timed_queue* queue_; // borrowed: nothing of the call outlives the loop
    std::chrono::steady_clock::time_point start_;
};

/// The entry of an attempt in a report, if there is one. Completed when the attempt ends.
class attempt_entry {
public:
    attempt_entry(connect_report* report, const endpoint& to, const call_time& since);
    attempt_entry(const attempt_entry&) = delete;
    attempt_entry& operator=(const attempt_entry&) = delete;
    ~attempt_entry();

    void note(std::error_code error) noexcept;

private:
    connect_report* report_; // borrowed from the options
    call_time since_;
    std::size_t index_ = 0;
};

/// Tries to connect, and reports to the call that it belongs to.
[[nodiscard]] task<result<tcp_stream>> attempt_connect(endpoint to, connect_options options,
                                                       call_time since);

/// The same for a call that makes only this attempt. @pre the options have a report.
[[nodiscard]] task<result<tcp_stream>> connect_and_report(endpoint to, connect_options options);

/// `connecting` with the timeout of the options.
[[nodiscard]] task<result<tcp_stream>> limited_by(connect_options options,
                                                  task<result<tcp_stream>> connecting);

} // namespace simplenet::v0::detail
