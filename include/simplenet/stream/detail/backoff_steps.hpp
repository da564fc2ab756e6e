#pragma once
// backoff_steps: the pauses between attempts that fail. Layer stream; used by tcp_client.

#include <simplenet/stream/backoff.hpp>

#include <chrono>
#include <cstdint>
#include <random>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

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

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
