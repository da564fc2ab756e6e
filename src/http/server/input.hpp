#pragma once
// input: bytes that a connection has received and nobody has consumed. Layer http, private.

#include <simplenet/io/received.hpp>
#include <simplenet/io/scratch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace simplenet::v0::http::detail {

/// Stays in the buffer of the loop as long as possible; a head that arrives in pieces is put
/// together in memory of its own.
class input {
public:
    [[nodiscard]] std::string_view bytes() const noexcept { return {begin_, size_}; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    /// Whether bytes() stay where they are until the next append(), even when they are consumed.
    [[nodiscard]] bool is_own_memory() const noexcept { return lease_.empty(); }

    /// The first `count` bytes are done with. Memory of the loop returns to it with the last one.
    void consume(std::size_t count) noexcept {
        begin_ += count;
        size_ -= count;
        if (size_ == 0) lease_.release();
    }

    /// Takes more bytes, which follow those that are there. Views of bytes() end.
    void append(received more) {
        if (empty()) {
            lease_ = std::move(more);
            begin_ = lease_.text().data();
            size_ = lease_.size();
            return;
        }
        const std::size_t needed = size_ + more.size();
        const char* const held = reinterpret_cast<const char*>(memory_.data());
        if (!lease_.empty() || memory_.size() < needed) {
            scratch larger = scratch::borrow(std::max(2 * size_, needed));
            std::memcpy(larger.data(), begin_, size_);
            memory_ = std::move(larger);
            lease_.release();
        } else if (memory_.size() - static_cast<std::size_t>(begin_ - held) < needed) {
            std::memmove(memory_.data(), begin_, size_);
        } else {
            std::memcpy(memory_.data() + (begin_ - held) + size_, more.data(), more.size());
            size_ = needed;
            return;
        }
        begin_ = reinterpret_cast<const char*>(memory_.data());
        std::memcpy(memory_.data() + size_, more.data(), more.size());
        size_ = needed;
    }
    /// Takes bytes for a body while memory of a head is still needed. @pre empty.
    void adopt(received more) noexcept {
        lease_ = std::move(more);
        begin_ = lease_.text().data();
        size_ = lease_.size();
    }
    /// Somebody is about to wait: the loop gets its buffer back, if memory for a copy can be had.
    void give_lease_back() noexcept {
        if (lease_.empty() || memory_.size() != 0) return;
        try {
            memory_ = scratch::borrow(size_);
        } catch (const std::bad_alloc&) {
            return;
        }
        std::memcpy(memory_.data(), begin_, size_);
        begin_ = reinterpret_cast<const char*>(memory_.data());
        lease_.release();
    }

    /// All bytes, for the next owner of the connection. Throws std::bad_alloc.
    [[nodiscard]] received take() {
        const std::size_t size = std::exchange(size_, 0);
        if (size == 0) return {};
        if (!lease_.empty()) {
            static_cast<void>(lease_.split(lease_.size() - size));
            return std::move(lease_);
        }
        std::byte* const copy = simplenet::detail::allocate_lease(size);
        if (copy == nullptr) throw std::bad_alloc{};
        std::memcpy(copy, begin_, size);
        return {copy, size};
    }

private:
    received lease_;
    scratch memory_; // of a head that arrived in pieces
    const char* begin_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace simplenet::v0::http::detail
