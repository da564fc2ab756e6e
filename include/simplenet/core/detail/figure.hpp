#pragma once
// figure: a number that one thread changes and others read. Layer core, private.

#include <atomic>

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// A figure of a loop. Its thread changes it, by a load and a store that cost no more than those of
/// a plain number; any thread reads it, and sees an old value at worst.
template <class T>
class figure {
public:
    figure() noexcept = default;
    // NOLINTNEXTLINE(google-explicit-constructor): it is a number.
    operator T() const noexcept { return value_.load(std::memory_order_relaxed); }
    figure& operator=(T value) noexcept {
        value_.store(value, std::memory_order_relaxed);
        return *this;
    }
    void operator+=(T more) noexcept { *this = *this + more; }
    void operator-=(T less) noexcept { *this = *this - less; }
    void operator++() noexcept { *this += 1; }
    void operator--() noexcept { *this -= 1; }

private:
    std::atomic<T> value_ = 0;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
