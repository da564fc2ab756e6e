#include "support/failing_allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

thread_local std::size_t first_failing = never;
thread_local bool goes_on = false;
thread_local std::size_t count = 0;
thread_local int exemptions = 0;
std::atomic<std::ptrdiff_t> outstanding = 0;

bool fails() noexcept {
    if (exemptions != 0) return false;
    const std::size_t index = count++;
    return index == first_failing || (goes_on && index > first_failing);
}

void* allocate(std::size_t size) noexcept {
    if (fails()) return nullptr;
    void* const memory = std::malloc(size != 0 ? size : 1);
    if (memory != nullptr) outstanding.fetch_add(1, std::memory_order_relaxed);
    return memory;
}

void release(void* memory) noexcept {
    if (memory != nullptr) outstanding.fetch_sub(1, std::memory_order_relaxed);
    std::free(memory);
}

} // namespace

// Not inlined: GCC would match malloc() with operator delete, and warn.
[[gnu::noinline]] void* operator new(std::size_t size) {
    if (void* const memory = allocate(size)) return memory;
    throw std::bad_alloc{};
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return allocate(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    release(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    release(memory);
}
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
    release(memory);
}

namespace simplenet::v0::testing {

failing_allocations::failing_allocations(std::size_t index, bool lasts) noexcept {
    count = 0;
    first_failing = index;
    goes_on = lasts;
}

failing_allocations::~failing_allocations() {
    first_failing = never;
    goes_on = false;
}

std::size_t failing_allocations::seen() noexcept {
    return count;
}

std::ptrdiff_t failing_allocations::live() noexcept {
    return outstanding.load(std::memory_order_relaxed);
}

void* failing_malloc(std::size_t size) noexcept {
    return allocate(size);
}

void* failing_realloc(void* memory, std::size_t size) noexcept {
    if (memory == nullptr) return allocate(size);
    return fails() ? nullptr : std::realloc(memory, size);
}

void failing_free(void* memory) noexcept {
    release(memory);
}

exempt_allocations::exempt_allocations() noexcept {
    ++exemptions;
}

exempt_allocations::~exempt_allocations() {
    --exemptions;
}

} // namespace simplenet::v0::testing
