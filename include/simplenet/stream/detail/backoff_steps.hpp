#pragma once
// backoff_steps: the pauses between attempts that fail. Layer stream; used by tcp_client.

#include <chrono>
#include <cstdint>
#include <random>

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
    double factor = 2; ///< The next step is so many times as long; at least 1.
};

} // namespace runtime

namespace detail {

class backoff_steps {
public:
    /// @pre No duration is negative, and the factor is at least 1.
    backoff_steps(backoff how, std::uint32_t seed);

    /// The pause after a failure.
    [[nodiscard]] std::chrono::nanoseconds next();
    /// Begins anew with the first step.
    void reset() noexcept;

private:
    backoff how_;
    double step_ = 0;         // nanoseconds
    std::minstd_rand random_; // 4 bytes: a program may have many clients
};

/// A different one in each call, also in the children of fork(2).
[[nodiscard]] std::uint32_t random_seed();

} // namespace detail
} // namespace simplenet::v0

#pragma GCC visibility pop
