#pragma once
// random_source: all choices of a simulation, from one seed.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::simulation {

/// The same numbers for the same seed, with every compiler and standard library: the distributions
/// of <random> are not specified in that detail. (Steele, Lea, Flood, Fast splittable pseudorandom
/// number generators, 2014.)
class random_source {
public:
    explicit random_source(std::uint64_t seed) noexcept
        : state_{seed} {}

    std::uint64_t next() noexcept {
        std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15U;
        mixed = (mixed ^ mixed >> 30U) * 0xbf58476d1ce4e5b9U;
        mixed = (mixed ^ mixed >> 27U) * 0x94d049bb133111ebU;
        return mixed ^ mixed >> 31U;
    }

    /// 0 to `bound` - 1.
    ///
    /// @pre `bound` is not 0.
    std::uint64_t below(std::uint64_t bound) noexcept { return next() % bound; }

    /// Both included.
    std::uint64_t between(std::uint64_t least, std::uint64_t most) noexcept {
        return least + below(most - least + 1);
    }
    std::chrono::nanoseconds between(std::chrono::nanoseconds least,
                                     std::chrono::nanoseconds most) noexcept {
        return std::chrono::nanoseconds{static_cast<std::int64_t>(between(
            static_cast<std::uint64_t>(least.count()), static_cast<std::uint64_t>(most.count())))};
    }

    /// True `per_mille` times in a thousand.
    bool chance(unsigned per_mille) noexcept { return per_mille != 0 && below(1000) < per_mille; }

    /// Sizes of all magnitudes: below 10 as often as between `most` / 10 and `most`. At least 1.
    std::size_t size_up_to(std::size_t most) noexcept {
        std::size_t bound = most;
        while (bound > 8 && chance(500))
            bound /= 8;
        return 1 + below(std::max<std::size_t>(bound, 1));
    }

    template <class Value>
    void shuffle(std::span<Value> values) noexcept {
        for (std::size_t left = values.size(); left > 1; --left) {
            using std::swap;
            swap(values[left - 1], values[below(left)]);
        }
    }

    /// Another source, whose numbers are independent of the following ones of this source.
    random_source split() noexcept { return random_source{next()}; }

private:
    std::uint64_t state_;
};

} // namespace simplenet::v0::simulation
