#pragma once
// failing_allocations: makes the n-th operator new fail, alone or with all later ones. A program
// that uses it links support/failing_allocations.cpp, which replaces the allocation functions.

#include <cstddef>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

/// Affects this thread, for as long as the object lives.
class failing_allocations {
public:
    /// The `index`-th allocation, counted from 0, fails with std::bad_alloc; if it `lasts`, the
    /// following ones fail as well.
    failing_allocations(std::size_t index, bool lasts) noexcept;
    failing_allocations(const failing_allocations&) = delete;
    failing_allocations& operator=(const failing_allocations&) = delete;
    ~failing_allocations();

    /// The number of allocations so far.
    [[nodiscard]] static std::size_t seen() noexcept;
    /// The number of blocks of the process that are not freed.
    [[nodiscard]] static std::ptrdiff_t live() noexcept;
};

/// malloc(3), realloc(3) and free(3) for a library that lets its memory functions be replaced.
/// Their allocations count, and fail, as those by operator new do.
[[nodiscard]] void* failing_malloc(std::size_t size) noexcept;
[[nodiscard]] void* failing_realloc(void* memory, std::size_t size) noexcept;
void failing_free(void* memory) noexcept;

/// Exempts the allocations of the test itself.
class exempt_allocations {
public:
    exempt_allocations() noexcept;
    exempt_allocations(const exempt_allocations&) = delete;
    exempt_allocations& operator=(const exempt_allocations&) = delete;
    ~exempt_allocations();
};

} // namespace simplenet::v0::testing
