#pragma once
// counted_allocations: counts the allocations of a program. Replaces the allocation functions, so
// only the single source of a program marked ALONE may include it.

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include <malloc.h>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

/// The number in all threads; tests compare it before and after.
inline std::atomic<std::size_t> allocations = 0;
inline std::atomic<std::size_t> live_bytes = 0;
inline std::atomic<std::size_t> largest_allocation = 0; // in bytes; a test may reset it to 0

inline void* counted(std::size_t size) noexcept {
    void* const memory = std::malloc(size != 0 ? size : 1);
    if (memory == nullptr) return nullptr;
    allocations.fetch_add(1, std::memory_order_relaxed);
    live_bytes.fetch_add(::malloc_usable_size(memory), std::memory_order_relaxed);
    if (size > largest_allocation.load(std::memory_order_relaxed)) largest_allocation = size;
    return memory;
}

} // namespace simplenet::v0::testing

// Not inlined: GCC would match malloc() with operator delete, and warn. All of them are replaced,
// because those of a sanitizer do not call each other.
[[gnu::noinline]] void* operator new(std::size_t size) {
    if (void* const memory = simplenet::testing::counted(size)) return memory;
    throw std::bad_alloc{};
}
[[gnu::noinline]] void* operator new[](std::size_t size) {
    return ::operator new(size);
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return simplenet::testing::counted(size);
}
[[gnu::noinline]] void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
    return simplenet::testing::counted(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    simplenet::testing::live_bytes.fetch_sub(::malloc_usable_size(memory),
                                             std::memory_order_relaxed);
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    ::operator delete(memory);
}
[[gnu::noinline]] void operator delete[](void* memory) noexcept {
    ::operator delete(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept {
    ::operator delete(memory);
}
