#pragma once
// The median of what the rounds of a program have measured.

#include <algorithm>
#include <vector>

namespace bench {

/// @pre not empty.
[[nodiscard]] inline double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

} // namespace bench
