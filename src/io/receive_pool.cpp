#include "io/receive_pool.hpp"

#include "sys/calls.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/io/scratch.hpp>

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include <sys/mman.h>

namespace simplenet::v0::detail {

void release_buffer(receive_pool* pool, std::uint32_t buffer, const std::byte* memory) noexcept {
    if (pool != nullptr) {
        pool->release(buffer, memory);
    } else {
        static_cast<void>(receive_pool::release_on_heap(buffer, memory));
    }
}

shared_buffer share_buffer(receive_pool* pool, std::uint32_t buffer, const std::byte* memory,
                           std::size_t count) noexcept {
    return pool != nullptr ? pool->share(buffer, memory, count)
                           : receive_pool::share_on_heap(buffer, memory, count);
}

std::byte* allocate_lease(std::size_t bytes) noexcept {
    return receive_pool::allocate_from_cache(bytes);
}

result<receive_pool*> receive_pool::create(std::size_t bytes, observer* told) {
    // 32768 is what a kernel buffer ring can hold (io_uring_register_buf_ring(3)).
    const std::size_t whole = bytes / buffer_size + (bytes % buffer_size != 0 ? 1 : 0);
    const std::size_t count = std::clamp<std::size_t>(whole, 2, 32768);
    int error = 0;
    void* const memory = sys::map_memory(count * buffer_size, MAP_NORESERVE, error);
    if (memory == nullptr) return fail(std::error_code{error, std::system_category()});
    try {
        return new receive_pool{static_cast<std::byte*>(memory), static_cast<std::uint32_t>(count),
                                told};
    } catch (...) {
        sys::unmap_memory(memory, count * buffer_size);
        throw;
    }
}

receive_pool::receive_pool(std::byte* memory, std::uint32_t count, observer* told)
    : memory_{memory}
    , observer_{told}
    , slots_(count) {
    for (std::uint32_t buffer = count; buffer-- > 0;)
        give_back(buffer);
}

receive_pool::~receive_pool() {
    sys::unmap_memory(memory_, slots_.size() * buffer_size);
}

void receive_pool::abandon() noexcept {
    abandoned_ = true;
    observer_ = nullptr;
    if (leases_.own() == 0) delete this;
}

namespace {

/// In front of memory from the heap.
struct alignas(__STDCPP_DEFAULT_NEW_ALIGNMENT__) overflow_header {
    scratch memory;       // owns this as well; empty: operator new made it
    std::uint32_t leases; // that share it
};
static_assert(sizeof(overflow_header) == lease_overhead);

overflow_header& header_of(const std::byte* begin) noexcept {
    return *reinterpret_cast<overflow_header*>(const_cast<std::byte*>(begin) - lease_overhead);
}

std::byte* behind_header(void* block, scratch memory) noexcept {
    ::new (block) overflow_header{std::move(memory), 0};
    return static_cast<std::byte*>(block) + lease_overhead;
}

} // namespace

// Leases beyond the pool may be held in large numbers, so they are no larger than their data.
std::byte* receive_pool::allocate_overflow(std::size_t bytes) noexcept {
    void* const block = ::operator new(lease_overhead + bytes, std::nothrow);
    return block == nullptr ? nullptr : behind_header(block, {});
}

std::byte* receive_pool::allocate_from_cache(std::size_t bytes) noexcept {
    try {
        scratch memory = scratch::borrow(lease_overhead + bytes);
        void* const block = memory.data();
        return behind_header(block, std::move(memory));
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void receive_pool::free_overflow(const std::byte* memory) noexcept {
    overflow_header& header = header_of(memory);
    if (header.memory.data() == nullptr) {
        ::operator delete(&header);
    } else {
        const scratch last = std::move(header.memory);
    }
}

/// For memory from the heap that begins at `begin`.
std::uint32_t& receive_pool::leases_on_heap(const std::byte* begin) noexcept {
    return header_of(begin).leases;
}

shared_buffer receive_pool::share_on_heap(std::uint32_t buffer, const std::byte* memory,
                                          std::size_t count) noexcept {
    if (buffer == on_heap) { // not shared yet
        buffer = shared_on_heap;
        leases_on_heap(memory) = 1;
    }
    ++leases_on_heap(memory - (buffer - shared_on_heap));
    return {.first = buffer, .rest = buffer + static_cast<std::uint32_t>(count)};
}

shared_buffer receive_pool::share(std::uint32_t buffer, const std::byte* memory,
                                  std::size_t count) noexcept {
    if (buffer >= shared_on_heap) return share_on_heap(buffer, memory, count);
    if (buffer < shared) { // not shared yet
        slots_[buffer].next = 1;
        buffer += shared;
    }
    ++slots_[buffer - shared].next;
    return {.first = buffer, .rest = buffer};
}

bool receive_pool::release_on_heap(std::uint32_t buffer, const std::byte* memory) noexcept {
    if (buffer != on_heap) {
        memory -= buffer - shared_on_heap;
        if (--leases_on_heap(memory) != 0) return false;
    }
    free_overflow(memory);
    return true;
}

void receive_pool::release(std::uint32_t buffer, const std::byte* memory) noexcept {
    SIMPLENET_DEBUG_EXPECTS(leases_.own() > 0, "a lease was released twice");
    const bool from_heap = buffer >= shared_on_heap;
    if (buffer >= shared) [[unlikely]] {
        if (from_heap) {
            if (!release_on_heap(buffer, memory)) return;
        } else {
            buffer -= shared;
            if (--slots_[buffer].next != 0) return;
        }
    }
    --leases_;
    if (abandoned_) {
        if (leases_.own() == 0) delete this;
        return;
    }
    if (from_heap) return;
    give_back(buffer);
    if (observer_ != nullptr) observer_->buffer_returned();
}

} // namespace simplenet::v0::detail
