#pragma once
// One attempt at a TCP connection, as async_connect(endpoint) makes it once and async_connect(host)
// several at a time. Layer runtime, private.

#include <simplenet/runtime/connect.hpp>

#include <chrono>
#include <cstddef>
#include <system_error>

namespace simplenet::detail {

/// The place of an attempt in a report, if there is one. Its end is the attempt's.
class attempt_entry {
public:
    using clock = std::chrono::steady_clock;

    attempt_entry(connect_report* report, const endpoint& to, clock::time_point start);
    attempt_entry(const attempt_entry&) = delete;
    attempt_entry& operator=(const attempt_entry&) = delete;
    ~attempt_entry();

    void note(std::error_code error) noexcept;

private:
    connect_report* report_; // borrowed from the options
    clock::time_point start_;
    std::size_t index_ = 0;
};

/// Tries, and reports. `start` is the time of the call that it belongs to.
[[nodiscard]] task<result<tcp_stream>> attempt_connect(endpoint to, connect_options options,
                                                       std::chrono::steady_clock::time_point start);

/// `connecting` within the timeout of the options.
[[nodiscard]] task<result<tcp_stream>> limited_by(connect_options options,
                                                  task<result<tcp_stream>> connecting);

} // namespace simplenet::detail
