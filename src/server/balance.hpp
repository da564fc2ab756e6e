#pragma once
// balance: which loop of a server serves a connection. Layer server, private.

#include <algorithm>
#include <concepts>
#include <cstddef>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::detail {

/// As long as a loop has fewer connections than this, it keeps those that it accepts. `open` is
/// the number of all loops together.
[[nodiscard]] constexpr std::size_t fair_share(std::size_t open, std::size_t loops) noexcept {
    const std::size_t mean = open / loops;
    return mean + std::max<std::size_t>(4, mean / 32);
}

/// The loop with the fewest connections, or `own` if no other one has fewer. Among equals it is
/// the first from `begin` on.
template <std::invocable<std::size_t> Open, std::predicate<std::size_t> Excluded>
[[nodiscard]] std::size_t least_loaded(std::size_t loops, std::size_t own, std::size_t begin,
                                       Open open_on, Excluded is_excluded) {
    std::size_t best = own;
    std::size_t least = open_on(own);
    for (std::size_t step = 0; step < loops; ++step) {
        const std::size_t each = (begin + step) % loops;
        const std::size_t open = open_on(each);
        if (open < least && !is_excluded(each)) {
            best = each;
            least = open;
        }
    }
    return best;
}

} // namespace simplenet::v0::detail
