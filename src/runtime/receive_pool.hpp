#pragma once
// receive_pool: the receive buffers of one loop. Layer runtime, private.
//
// One reservation of address space; memory is taken only for buffers that were used. A buffer is
// free, posted to the kernel (io_uring), queued on a stream, or held by a lease.

#include <simplenet/core/contract.hpp>
#include <simplenet/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace simplenet::inline v0::detail {

/// Owned by its loop and by the leases on its buffers: the last of them frees it.
class receive_pool {
public:
    // Bytes; docs/development/decisions/0010.
    static constexpr std::size_t buffer_size = std::size_t{16} * 1024;
    static constexpr std::uint32_t none = 0xffffffff;

    /// Told when a buffer comes back. Loop thread only.
    class listener {
    public:
        virtual void buffer_returned() noexcept = 0;

    protected:
        ~listener() = default;
    };

    /// Whether there are as many buffers again, from which only claim_for_lease() takes more than
    /// count().
    enum class extent : std::uint8_t { as_asked, doubled };

    /// @param bytes  What claim() may hand out.
    [[nodiscard]] static result<receive_pool*> create(std::size_t bytes, listener* told,
                                                      extent wanted = extent::as_asked);
    /// Who is told from here on; null: nobody.
    void tell(listener* told) noexcept { listener_ = told; }
    /// The loop lets go; leases may remain.
    void abandon() noexcept;

    receive_pool(const receive_pool&) = delete;
    receive_pool& operator=(const receive_pool&) = delete;

    /// A free buffer, or none if count() are out. The last one given back comes first: it is warm.
    [[nodiscard]] std::uint32_t claim() noexcept { return out_ < count_ ? take() : none; }
    /// One for a lease, where there are twice as many: none only if count() or more are out for
    /// leases. `others` are out for anything else; while that is count() at most, one is left.
    [[nodiscard]] std::uint32_t claim_for_lease(std::size_t others) noexcept {
        SIMPLENET_DEBUG_EXPECTS(others <= count_, "leases have too few of the receive buffers");
        return out_ - others < count_ ? take() : none;
    }
    void give_back(std::uint32_t buffer) noexcept {
        slots_[buffer].next = free_;
        free_ = buffer;
        --out_;
    }
    /// The same, and tells.
    void return_unused(std::uint32_t buffer) noexcept {
        give_back(buffer);
        if (listener_ != nullptr) listener_->buffer_returned();
    }
    /// A held buffer leaves the loop's books for a lease.
    void lend() noexcept { ++leases_; }
    void release(std::uint32_t buffer) noexcept;

    [[nodiscard]] std::byte* memory(std::uint32_t buffer) const noexcept {
        return memory_ + buffer * buffer_size;
    }
    /// Buffers that claim() hands out.
    [[nodiscard]] std::uint32_t count() const noexcept { return count_; }

    // Of a buffer that is queued on a stream.
    struct slot {
        std::uint32_t next = none;
        std::uint32_t offset = 0; // bytes already taken
        std::uint32_t length = 0; // bytes received
    };
    [[nodiscard]] slot& at(std::uint32_t buffer) noexcept { return slots_[buffer]; }

private:
    receive_pool(std::byte* memory, std::uint32_t count, std::uint32_t total, listener* told);
    ~receive_pool();

    std::uint32_t take() noexcept {
        ++out_;
        const std::uint32_t buffer = free_;
        free_ = slots_[buffer].next;
        return buffer;
    }

    std::byte* memory_;
    std::uint32_t count_;
    std::uint32_t out_;         // buffers that are not free
    std::uint32_t free_ = none; // linked through the slots
    std::size_t leases_ = 0;
    bool abandoned_ = false;
    listener* listener_;
    std::vector<slot> slots_;
};

} // namespace simplenet::inline v0::detail
