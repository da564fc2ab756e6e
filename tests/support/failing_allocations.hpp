#pragma once
// failing_allocations: operator new gives nothing from the n-th time on, or once. A program that
// uses it links support/failing_allocations.cpp, which replaces the allocation functions.

#include <cstddef>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

/// For this thread and as long as it lives.
class failing_allocations {
public:
    /// The `index`-th allocation, counted from 0, fails with std::bad_alloc; if it `lasts` those
    /// that follow as well.
    failing_allocations(std::size_t index, bool lasts) noexcept;
    failing_allocations(const failing_allocations&) = delete;
    failing_allocations& operator=(const failing_allocations&) = delete;
    ~failing_allocations();

    /// How many there were.
    [[nodiscard]] static std::size_t seen() noexcept;
    /// Allocated by the process and not freed.
    [[nodiscard]] static std::ptrdiff_t live() noexcept;
};

/// What the test allocates for itself while they fail.
class exempt_allocations {
public:
    exempt_allocations() noexcept;
    exempt_allocations(const exempt_allocations&) = delete;
    exempt_allocations& operator=(const exempt_allocations&) = delete;
    ~exempt_allocations();
};

} // namespace simplenet::v0::testing
