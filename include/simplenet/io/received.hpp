#pragma once
// received: bytes in a buffer of the loop's pool, held for as long as they are needed.
// Layer io.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/detail/contract.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace simplenet::v0::detail {
// The library's own: not exported, since it is first named here.
class receive_pool;
} // namespace simplenet::v0::detail

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

/// The numbers of a buffer that two leases hold from now on.
struct shared_buffer {
    std::uint32_t first;
    std::uint32_t rest;
};
/// Splits a lease that begins at `memory`, behind its first `count` bytes.
[[nodiscard]] shared_buffer share_buffer(receive_pool* pool, std::uint32_t buffer,
                                         const std::byte* memory, std::size_t count) noexcept;
/// Gives a buffer back. Safe after the loop is gone.
void release_buffer(receive_pool* pool, std::uint32_t buffer, const std::byte* memory) noexcept;

/// Memory from the heap for a lease without a pool; null if there is none.
[[nodiscard]] std::byte* allocate_lease(std::size_t bytes) noexcept;

/// Bytes that a lease from the heap takes beside its own.
inline constexpr std::size_t lease_overhead = 32;
/// The number of a lease on memory from the heap.
inline constexpr std::uint32_t lease_on_heap = 0xfffffffe;

} // namespace detail

inline namespace runtime {

/// A lease on received bytes; at least one, unless moved from.
///
/// The memory belongs to the pool of the loop and returns to it when this is destroyed. Hold a
/// lease only while you use it, and copy what you keep: when leases and data received ahead have
/// used up the pool (loop_options::receive_pool), further leases take memory from the heap. A lease
/// may outlive stream and loop; after the loop, one lease keeps the whole pool. Leases of streams
/// that are not sockets always have memory from the heap, by way of the thread's cache (scratch).
/// Loop thread only.
class received {
public:
    /// Holds nothing.
    received() noexcept = default;
    received(received&& other) noexcept
        : pool_{std::exchange(other.pool_, nullptr)}
        , data_{std::exchange(other.data_, nullptr)}
        , size_{std::exchange(other.size_, 0)}
        , buffer_{other.buffer_} {}
    received& operator=(received&& other) noexcept {
        if (this != &other) {
            release();
            pool_ = std::exchange(other.pool_, nullptr);
            data_ = std::exchange(other.data_, nullptr);
            size_ = std::exchange(other.size_, 0);
            buffer_ = other.buffer_;
        }
        return *this;
    }
    ~received() { release(); }

    [[nodiscard]] const std::byte* data() const noexcept { return data_; }
    /// Bytes.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
    /// The same bytes as characters.
    [[nodiscard]] std::string_view text() const noexcept {
        return {reinterpret_cast<const char*>(data_), size_};
    }

    // NOLINTNEXTLINE(google-explicit-constructor): it is a buffer to write from.
    [[nodiscard]] operator const_buffer() const noexcept { return {data_, size_}; }

    /// Cuts off the first `count` bytes as a lease of their own; this one keeps the rest. The bytes
    /// do not move. Both share the buffer, which returns to the pool with the last of them, in any
    /// order; both may be split again. A lease that gets no bytes is empty, and holds nothing.
    ///
    /// @pre `count` is not larger than `size()`.
    [[nodiscard]] received split(std::size_t count) noexcept {
        SIMPLENET_EXPECTS(count <= size_, "a lease was split behind its end");
        if (count == 0) return {};
        if (count == size_) return std::move(*this);
        const auto [first, rest] = detail::share_buffer(pool_, buffer_, data_, count);
        received front{pool_, first, data_, count};
        buffer_ = rest;
        data_ += count;
        size_ -= count;
        return front;
    }

    /// Gives the memory back early.
    void release() noexcept {
        if (data_ != nullptr) detail::release_buffer(pool_, buffer_, data_);
        pool_ = nullptr;
        data_ = nullptr;
        size_ = 0;
    }

    /// @private For the library: takes over a held buffer.
    received(detail::receive_pool& pool, std::uint32_t buffer, const std::byte* data,
             std::size_t size) noexcept
        : received{&pool, buffer, data, size} {}
    /// @private For the library: takes over memory of detail::allocate_lease().
    received(std::byte* data, std::size_t size) noexcept
        : received{nullptr, detail::lease_on_heap, data, size} {}

private:
    received(detail::receive_pool* pool, std::uint32_t buffer, const std::byte* data,
             std::size_t size) noexcept
        : pool_{pool}
        , data_{data}
        , size_{size}
        , buffer_{buffer} {}

    detail::receive_pool* pool_ = nullptr; // null: none, or a lease that belongs to no pool
    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    std::uint32_t buffer_ = 0; // its number in the pool, or a mark of receive_pool
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
