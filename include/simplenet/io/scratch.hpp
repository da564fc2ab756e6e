#pragma once
// scratch: memory for while something is in progress, such as a request. Layer io.

#include <simplenet/core/abi.hpp>
#include <simplenet/core/buffer.hpp>

#include <cstddef>
#include <span>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

inline namespace runtime {

/// Memory that is borrowed while something is in progress, and given back by the destructor.
///
/// A connection that borrows its buffers when a request arrives and gives them back with the answer
/// holds none while it is idle. The memory comes from a cache of the thread, and so of the loop
/// that runs on it, and returns to the cache of the thread that destroys this. That may happen on
/// any thread, and after the end of the loop.
///
/// @par Cost
/// Usually no allocation. Sizes are rounded up to powers of two, from 1 KiB to 128 KiB; larger ones
/// come from the heap. A cache keeps at most 1 MiB of each size, until its thread ends.
/// @par Example
/// @snippet writing.cpp scratch
class scratch {
public:
    /// Holds nothing.
    scratch() noexcept = default;
    /// Borrows `bytes` bytes, aligned for every fundamental type. They are not initialised: they
    /// hold what an earlier user wrote, so send none that you have not written. Throws
    /// std::bad_alloc.
    [[nodiscard]] static scratch borrow(std::size_t bytes);

    scratch(scratch&& other) noexcept
        : data_{std::exchange(other.data_, nullptr)}
        , size_{std::exchange(other.size_, 0)} {}
    scratch& operator=(scratch&& other) noexcept {
        if (this != &other) {
            release();
            data_ = std::exchange(other.data_, nullptr);
            size_ = std::exchange(other.size_, 0);
        }
        return *this;
    }
    ~scratch() { release(); }

    [[nodiscard]] std::byte* data() const noexcept { return data_; }
    /// Bytes, as many as were borrowed.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_, size_}; }

    // NOLINTNEXTLINE(google-explicit-constructor): it is a buffer to read into.
    [[nodiscard]] operator mutable_buffer() const noexcept { return {data_, size_}; }

    /// Gives the memory back early.
    void release() noexcept {
        if (data_ != nullptr) give_back();
    }

private:
    scratch(std::byte* data, std::size_t size) noexcept
        : data_{data}
        , size_{size} {}
    void give_back() noexcept;

    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace runtime

} // namespace simplenet::v0

#pragma GCC visibility pop
