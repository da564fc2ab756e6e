#pragma once
// once_in_a_while: what should not fill a log. Layer http, private.

#include <simplenet/core/abi.hpp>

#include <atomic>
#include <chrono>

namespace simplenet::v0::http::detail {

/// True at most once in ten seconds; the first time at once. Any thread.
class once_in_a_while {
public:
    [[nodiscard]] bool operator()() noexcept {
        constexpr std::chrono::nanoseconds pause = std::chrono::seconds{10};
        const auto now = std::chrono::steady_clock::now().time_since_epoch();
        std::chrono::nanoseconds::rep next = next_.load(std::memory_order_relaxed);
        return now.count() >= next && next_.compare_exchange_strong(next, (now + pause).count(),
                                                                    std::memory_order_relaxed);
    }

private:
    std::atomic<std::chrono::nanoseconds::rep> next_ = 0;
};

} // namespace simplenet::v0::http::detail
