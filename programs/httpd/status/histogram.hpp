#pragma once
// Buckets for durations. Used by traffic and by what shows it.

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace httpd {

/// A histogram of durations from a microsecond to two minutes. Each power of two has 16 buckets of
/// equal size, so the width of a bucket is at most 1/16 of its lower end.
struct duration_buckets {
    static constexpr unsigned first_power = 10; ///< 2^10 ns; shorter ones are in bucket 0
    static constexpr unsigned last_power = 36;  ///< 2^37 ns and longer ones are in the last bucket
    static constexpr std::size_t for_each_power = 16;
    static constexpr std::size_t count = 2 + (last_power - first_power + 1) * for_each_power;

    [[nodiscard]] static constexpr std::size_t
    index_of(std::chrono::nanoseconds duration) noexcept {
        if (duration.count() < 1 << first_power) return 0;
        const auto value = static_cast<std::uint64_t>(duration.count());
        const auto power = static_cast<unsigned>(std::bit_width(value)) - 1;
        if (power > last_power) return count - 1;
        return 1 + (power - first_power) * for_each_power +
               ((value >> (power - 4)) & (for_each_power - 1));
    }

    /// The shortest duration that is in none of the buckets up to `index`.
    ///
    /// @pre `index` is not the last one.
    [[nodiscard]] static constexpr std::chrono::nanoseconds end_of(std::size_t index) noexcept {
        const std::size_t part = index % for_each_power; // of the power; 0: all of the one before
        const std::size_t power = first_power + index / for_each_power;
        return std::chrono::nanoseconds{
            static_cast<std::int64_t>((for_each_power + part) << (power - 4))};
    }
};

using duration_counts = std::array<std::uint64_t, duration_buckets::count>;

/// The duration that the share `q` of all is not longer than, as the end of its bucket. Zero if
/// there are none.
[[nodiscard]] inline std::chrono::nanoseconds percentile(const duration_counts& counts,
                                                         double q) noexcept {
    std::uint64_t all = 0;
    for (const auto each : counts)
        all += each;
    if (all == 0) return std::chrono::nanoseconds{0};
    const double wanted = q * static_cast<double>(all);
    std::uint64_t below = 0;
    for (std::size_t index = 0; index + 1 < counts.size(); ++index) {
        below += counts[index];
        if (static_cast<double>(below) >= wanted) return duration_buckets::end_of(index);
    }
    return duration_buckets::end_of(counts.size() - 2);
}

} // namespace httpd
