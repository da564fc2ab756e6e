#pragma once
// httpd::ring: bytes from one thread to another without a lock. Used by the logs.

#include <atomic>
#include <cstddef>
#include <memory>
#include <string_view>

namespace httpd {

/// A queue of bytes between one producer and one consumer.
///
/// Both ends see contiguous memory, because the same pages are mapped twice, one copy behind the
/// other: no line is ever split at the end of the buffer.
class ring {
public:
    /// @param capacity  Rounded up to a power of two of at least a page.
    /// @return Null if there is no memory for it.
    [[nodiscard]] static std::unique_ptr<ring> create(std::size_t capacity) noexcept;
    ring(const ring&) = delete;
    ring& operator=(const ring&) = delete;
    ~ring();

    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

    /// Producer only. Where `bytes` can be written, or null: there is no room for them.
    [[nodiscard]] char* reserve(std::size_t bytes) noexcept {
        const std::size_t tail = tail_.load(std::memory_order_relaxed);
        if (capacity_ - (tail - known_head_) < bytes) {
            known_head_ = head_.load(std::memory_order_acquire);
            if (capacity_ - (tail - known_head_) < bytes) return nullptr;
        }
        return base_ + (tail & (capacity_ - 1));
    }
    /// Producer only. Gives the consumer what was written at reserve(), at most as much.
    void publish(std::size_t bytes) noexcept {
        tail_.store(tail_.load(std::memory_order_relaxed) + bytes, std::memory_order_release);
    }

    /// Consumer only. Everything that was published and not consumed.
    [[nodiscard]] std::string_view readable() const noexcept {
        const std::size_t head = head_.load(std::memory_order_relaxed);
        const std::size_t tail = tail_.load(std::memory_order_acquire);
        return {base_ + (head & (capacity_ - 1)), tail - head};
    }
    /// Consumer only. Makes room; at most what was readable().
    void consume(std::size_t bytes) noexcept {
        head_.store(head_.load(std::memory_order_relaxed) + bytes, std::memory_order_release);
    }

private:
    ring(char* base, std::size_t capacity) noexcept
        : base_{base}
        , capacity_{capacity} {}

    char* base_;
    std::size_t capacity_; // a power of two
    // Positions only grow; a position modulo the capacity is the place. Each side writes lines of
    // the cache that the other one only reads.
    alignas(64) std::atomic<std::size_t> tail_ = 0;
    std::size_t known_head_ = 0; // the producer's latest look at head_
    alignas(64) std::atomic<std::size_t> head_ = 0;
};

} // namespace httpd
