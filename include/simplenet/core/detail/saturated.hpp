#pragma once
// saturated: durations of any type as nanoseconds, without overflow. Layer core.

#include <chrono>
#include <ratio>
#include <type_traits>

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// A duration of any type as nanoseconds, rounded up, clamped to the range.
template <class Rep, class Period>
[[nodiscard]] std::chrono::nanoseconds
saturated(std::chrono::duration<Rep, Period> given) noexcept {
    using std::chrono::nanoseconds;
    using factor = std::ratio_divide<Period, std::nano>;
    // Every literal of <chrono>. Integer arithmetic, because the comparison below takes 20
    // instructions, for each operation with a time limit.
    if constexpr (std::is_integral_v<Rep> && factor::den == 1) {
        nanoseconds::rep product = 0;
        if (__builtin_mul_overflow(given.count(), factor::num, &product)) {
            return given.count() > 0 ? nanoseconds::max() : nanoseconds::min();
        }
        return nanoseconds{product};
    }
    // Compared as long double, because the widest integral duration overflows in any common type.
    using wide = std::chrono::duration<long double, std::nano>;
    const wide exact = std::chrono::duration_cast<wide>(
        std::chrono::duration<long double, Period>(static_cast<long double>(given.count())));
    if (!(exact < wide{nanoseconds::max()})) return nanoseconds::max();
    if (exact <= wide{nanoseconds::min()}) return nanoseconds::min();
    return std::chrono::ceil<nanoseconds>(given);
}
[[nodiscard]] constexpr std::chrono::nanoseconds
saturated(std::chrono::nanoseconds given) noexcept {
    return given;
}

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
