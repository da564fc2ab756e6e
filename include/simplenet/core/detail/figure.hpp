#pragma once
// figure: a number that one thread changes and others read. Layer core, private.

#include <cstdint>

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// A figure of a loop. Its thread changes it and reads it with own(), at the price of a plain
/// number; any thread reads it by its conversion, and sees an old value at worst.
template <class T>
class figure {
public:
    figure() noexcept = default;
    figure(const figure&) = delete;
    /// Only its thread.
    figure& operator=(T value) noexcept {
        __atomic_store_n(&value_, value, __ATOMIC_RELAXED);
        return *this;
    }
    void operator+=(T more) noexcept {
#if defined(__x86_64__) && !defined(__clang__)
        // GCC compiles an addition to an atomic number, whether relaxed or volatile, to three
        // instructions. This one, which Clang chooses by itself, writes all eight bytes at once.
        asm("add{q %1, %0| %0, %1}" : "+m"(value_) : "er"(more) : "cc");
#else
        *this = *this + more;
#endif
    }
    void operator-=(T less) noexcept { *this += T{0} - less; }
    void operator++() noexcept { *this += 1; }
    void operator--() noexcept { *this -= 1; }
    [[nodiscard]] T own() const noexcept { return value_; }

    /// Any thread.
    // NOLINTNEXTLINE(google-explicit-constructor): it is a number.
    operator T() const noexcept { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }

private:
    static_assert(sizeof(T) == sizeof(std::uint64_t));

    alignas(sizeof(T)) T value_ = 0;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
