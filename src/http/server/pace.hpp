#pragma once
// pace: how fast a peer moves a body. Layer http, private.

#include <simplenet/core/abi.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace simplenet::v0::http::detail {

/// Counts the bytes that a peer has moved, and the time that was spent waiting for it. The first
/// thirty seconds are free, or the time that a single pause may last, whichever is longer.
class pace {
public:
    using nanoseconds = std::chrono::nanoseconds;

    void reset() noexcept { *this = {}; }
    void moved(std::uint64_t bytes) noexcept { bytes_ += bytes; }
    void waited(nanoseconds time) noexcept { waited_ += time; }

    /// How much longer the peer may take at `rate` bytes a second, in the mean, if a pause may last
    /// for `idle`; negative: it was too slow.
    ///
    /// @pre `rate` is not 0.
    [[nodiscard]] nanoseconds left(nanoseconds idle, std::uint64_t rate) const noexcept {
        // In double: a body may have 2^63 bytes.
        const std::chrono::duration<double> earned{static_cast<double>(bytes_) /
                                                   static_cast<double>(rate)};
        constexpr std::chrono::hours most{24 * 365};
        return std::chrono::duration_cast<nanoseconds>(
                   std::min<std::chrono::duration<double>>(earned, most)) +
               std::clamp<nanoseconds>(idle, grace, most) - waited_;
    }
    /// How long the next wait may take. `idle` and `rate` are 0 where there is no limit.
    [[nodiscard]] nanoseconds allowance(nanoseconds idle, std::uint64_t rate) const noexcept {
        const nanoseconds allowed = idle > nanoseconds::zero() ? idle : nanoseconds::max();
        return rate == 0 ? allowed : std::min(allowed, std::max(left(idle, rate), nanoseconds{1}));
    }

private:
    static constexpr std::chrono::seconds grace{30};

    std::uint64_t bytes_ = 0;
    nanoseconds waited_{0};
};

} // namespace simplenet::v0::http::detail
