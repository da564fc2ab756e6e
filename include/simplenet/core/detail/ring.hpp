#pragma once
// ring: a FIFO queue of fixed capacity, allocated once. Layer core, private.

#include <simplenet/core/detail/contract.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// Owns its elements; destroys those that remain.
template <class T>
class ring {
    static_assert(std::is_nothrow_move_constructible_v<T>,
                  "a queued value is moved where nothing may fail: its move constructor must be "
                  "noexcept (or queue a std::unique_ptr to it)");

public:
    /// A ring of capacity 0 is always both empty and full, and allocates nothing.
    explicit ring(std::size_t capacity)
        : slots_{capacity == 0 ? nullptr : std::make_unique_for_overwrite<slot[]>(capacity)}
        , capacity_{capacity} {}
    ring(const ring&) = delete;
    ring& operator=(const ring&) = delete;
    ~ring() {
        while (!empty())
            drop_front();
    }

    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] bool full() const noexcept { return size_ == capacity_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

    /// @pre not full.
    void push_back(T&& value) noexcept {
        SIMPLENET_DEBUG_EXPECTS(!full(), "push into a full ring");
        // Not a remainder: a division costs more than the rest of the function.
        std::size_t at = first_ + size_;
        if (at >= capacity_) at -= capacity_;
        ::new (static_cast<void*>(slots_[at].bytes)) T(std::move(value));
        ++size_;
    }
    /// @pre not empty.
    [[nodiscard]] T& front() noexcept {
        SIMPLENET_DEBUG_EXPECTS(!empty(), "an empty ring has no first element");
        return *std::launder(reinterpret_cast<T*>(slots_[first_].bytes));
    }
    /// @pre not empty.
    void drop_front() noexcept {
        front().~T();
        --size_;
        if (++first_ == capacity_) first_ = 0;
    }

    /// Makes room for `capacity` elements in total.
    void grow(std::size_t capacity) {
        SIMPLENET_DEBUG_EXPECTS(capacity >= size_, "a ring cannot shrink below its contents");
        ring larger{capacity};
        for (; !empty(); drop_front())
            larger.push_back(std::move(front()));
        slots_ = std::move(larger.slots_);
        capacity_ = capacity;
        first_ = 0;
        size_ = std::exchange(larger.size_, 0);
    }

private:
    struct alignas(T) slot {
        std::byte bytes[sizeof(T)];
    };

    std::unique_ptr<slot[]> slots_;
    std::size_t capacity_;
    std::size_t first_ = 0;
    std::size_t size_ = 0;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
