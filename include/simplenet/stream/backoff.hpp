#pragma once
// backoff: how a tcp_client pauses between attempts. Layer stream.

#include <chrono>

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// The pauses between attempts that fail: "full jitter", which means that each pause is random,
/// uniform between 0 and a step that grows. So clients that lost the same server at the same moment
/// return at different moments.
struct backoff {
    std::chrono::nanoseconds initial = std::chrono::milliseconds{100}; ///< The first step.
    std::chrono::nanoseconds maximum = std::chrono::seconds{30};       ///< The largest step.
    /// The next step is so many times as long; at least 1.
    double factor = 2;
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
