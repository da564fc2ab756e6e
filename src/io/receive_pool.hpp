#pragma once
// receive_pool: the receive buffers of one loop. Layer io, private.
//
// One reservation of address space; only buffers that were used take memory. A buffer is free,
// posted to the kernel (io_uring), queued on a stream, or held by a lease. When none is free, a
// lease takes memory from the heap: no reader waits for buffers that others hold.

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/core/detail/figure.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/io/received.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace simplenet::v0::detail {

/// Owned by its loop and by the leases on its buffers: the last of them frees it.
class receive_pool {
public:
    // Bytes; docs/development/decisions/0010.
    static constexpr std::size_t buffer_size = std::size_t{16} * 1024;
    static constexpr std::uint32_t none = 0xffffffff;
    static constexpr std::uint32_t on_heap = lease_on_heap;
    // Of leases that share a buffer: with its number, or with the offset in memory from the heap.
    static constexpr std::uint32_t shared = 0x80000000;
    static constexpr std::uint32_t shared_on_heap = 0xc0000000;

    /// Notified when a lease gives a buffer back. Loop thread only.
    class observer {
    public:
        virtual void buffer_returned() noexcept = 0;

    protected:
        ~observer() = default;
    };

    /// @param told  May be null.
    [[nodiscard]] static result<receive_pool*> create(std::size_t bytes, observer* told);
    /// The loop no longer uses the pool; leases may remain.
    void abandon() noexcept;

    receive_pool(const receive_pool&) = delete;
    receive_pool& operator=(const receive_pool&) = delete;

    /// A free buffer, or none. The last one given back comes first, because it is in the cache.
    [[nodiscard]] std::uint32_t claim() noexcept {
        const std::uint32_t buffer = free_;
        if (buffer != none) free_ = slots_[buffer].next;
        return buffer;
    }
    /// Puts an unused buffer on the free list. On io_uring the kernel does not get it: that is
    /// receiver::give_back().
    void give_back(std::uint32_t buffer) noexcept {
        slots_[buffer].next = free_;
        free_ = buffer;
    }
    /// Memory for a lease when no buffer is free; null if there is none. Freed by release(), or by
    /// free_overflow() if nothing was received.
    [[nodiscard]] static std::byte* allocate_overflow(std::size_t bytes) noexcept;
    /// The same from the thread's cache, whose blocks have 1 KiB at least.
    [[nodiscard]] static std::byte* allocate_from_cache(std::size_t bytes) noexcept;
    static void free_overflow(const std::byte* memory) noexcept;

    void count_overflow() noexcept { ++overflow_; }

    /// A lease takes over a buffer.
    void lend() noexcept { ++leases_; }
    /// The end of a lease that begins at `memory`. The last of several that share a buffer returns
    /// it.
    void release(std::uint32_t buffer, const std::byte* memory) noexcept;
    /// Makes two leases of the one that begins at `memory`, which count as one. Returns the numbers
    /// for the first `count` bytes and for the rest.
    [[nodiscard]] shared_buffer share(std::uint32_t buffer, const std::byte* memory,
                                      std::size_t count) noexcept;
    /// The same for memory from the heap, which needs no pool. release_on_heap() returns whether
    /// the lease was the last one, and the memory is freed.
    [[nodiscard]] static bool release_on_heap(std::uint32_t buffer,
                                              const std::byte* memory) noexcept;
    [[nodiscard]] static shared_buffer share_on_heap(std::uint32_t buffer, const std::byte* memory,
                                                     std::size_t count) noexcept;

    [[nodiscard]] std::byte* memory(std::uint32_t buffer) const noexcept {
        return memory_ + buffer * buffer_size;
    }
    /// Buffers of the pool.
    [[nodiscard]] std::uint32_t count() const noexcept {
        return static_cast<std::uint32_t>(slots_.size());
    }
    /// Buffers that leases hold. Any thread.
    [[nodiscard]] std::size_t leases() const noexcept { return leases_; }
    /// Receives that took memory from the heap. Any thread.
    [[nodiscard]] std::uint64_t overflow() const noexcept { return overflow_; }

    // The state of a buffer that is queued on a stream.
    struct slot {
        std::uint32_t next = none; // of a shared one: the number of leases
        std::uint32_t offset = 0;  // bytes already taken
        std::uint32_t length = 0;  // bytes received
    };
    [[nodiscard]] slot& at(std::uint32_t buffer) noexcept { return slots_[buffer]; }

private:
    [[nodiscard]] static std::uint32_t& leases_on_heap(const std::byte* begin) noexcept;

    receive_pool(std::byte* memory, std::uint32_t count, observer* told);
    ~receive_pool();

    std::byte* memory_;
    std::uint32_t free_ = none; // linked through the slots
    figure<std::size_t> leases_;
    figure<std::uint64_t> overflow_;
    bool abandoned_ = false;
    observer* observer_;
    std::vector<slot> slots_;
};

} // namespace simplenet::v0::detail
