#pragma once
// httpd::traffic: how many requests there were, and how they ended. Used by status_board.

#include "httpd/log/access_entry.hpp"
#include "httpd/status/histogram.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace httpd {

/// How requests ended. Index 0: before an answer; 1 to 5: by the first digit of the status.
using status_classes = std::array<std::uint64_t, 6>;

struct site_figures {
    status_classes requests{};
    std::uint64_t bytes = 0;
};

/// The sum of all threads since the beginning.
struct traffic_figures {
    status_classes requests{};
    std::uint64_t bytes = 0;      ///< Of bodies.
    std::uint64_t incomplete = 0; ///< Answers that have begun and were cut off.
    std::uint64_t secure = 0;     ///< By https, to this server or to a trusted proxy.
    duration_counts durations{};  ///< Of requests with an answer.
    std::chrono::nanoseconds duration_sum{0};
    std::map<std::string, site_figures, std::less<>> sites;
};

/// Counts requests. Each thread has counters of its own, which others only read: no cache line is
/// shared between threads that count.
///
/// @par Thread safety
/// Any thread.
class traffic {
public:
    traffic();
    traffic(const traffic&) = delete;
    traffic& operator=(const traffic&) = delete;
    ~traffic();

    /// Never blocks, but for the first call of a thread, which takes a mutex. Without memory for
    /// its counters the request is not counted.
    void count(const access_entry& entry) noexcept;

    /// Throws std::bad_alloc.
    [[nodiscard]] traffic_figures figures() const;

private:
    struct site_counters;
    struct counters;

    [[nodiscard]] counters* make_counters() noexcept;

    const std::uint64_t generation_;
    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<counters>> all_; // of threads that have ended, too
};

} // namespace httpd
