#include "runtime/receive_pool.hpp"

#include "sys/calls.hpp"

#include <simplenet/core/contract.hpp>
#include <simplenet/runtime/received.hpp>

#include <algorithm>
#include <system_error>

#include <sys/mman.h>

namespace simplenet::inline v0::detail {

void release_buffer(receive_pool& pool, std::uint32_t buffer) noexcept {
    pool.release(buffer);
}

result<receive_pool*> receive_pool::create(std::size_t bytes, listener* told, extent wanted) {
    // 32768 is what a kernel buffer ring can hold (io_uring_register_buf_ring(3)); twice that have
    // numbers of 16 bits, as it wants.
    const std::size_t whole = bytes / buffer_size + (bytes % buffer_size != 0 ? 1 : 0);
    const std::size_t count = std::clamp<std::size_t>(whole, 2, 32768);
    const std::size_t total = wanted == extent::doubled ? 2 * count : count;
    int error = 0;
    void* const memory = sys::map_memory(total * buffer_size, MAP_NORESERVE, error);
    if (memory == nullptr) return fail(std::error_code{error, std::system_category()});
    try {
        return new receive_pool{static_cast<std::byte*>(memory), static_cast<std::uint32_t>(count),
                                static_cast<std::uint32_t>(total), told};
    } catch (...) {
        sys::unmap_memory(memory, total * buffer_size);
        throw;
    }
}

receive_pool::receive_pool(std::byte* memory, std::uint32_t count, std::uint32_t total,
                           listener* told)
    : memory_{memory}
    , count_{count}
    , out_{total}
    , listener_{told}
    , slots_(total) {
    for (std::uint32_t buffer = total; buffer-- > 0;)
        give_back(buffer);
}

receive_pool::~receive_pool() {
    sys::unmap_memory(memory_, slots_.size() * buffer_size);
}

void receive_pool::abandon() noexcept {
    abandoned_ = true;
    listener_ = nullptr;
    if (leases_ == 0) delete this;
}

void receive_pool::release(std::uint32_t buffer) noexcept {
    SIMPLENET_DEBUG_EXPECTS(leases_ > 0, "a lease was released twice");
    --leases_;
    if (abandoned_) {
        if (leases_ == 0) delete this;
        return;
    }
    return_unused(buffer);
}

} // namespace simplenet::inline v0::detail
