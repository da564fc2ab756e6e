#pragma once
// write_queue: bytes on their way out, in order. Layer stream, private; a part of queued_writer.

#include <simplenet/core/buffer.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// Copied bytes lie in chunks that grow from 128 bytes to 4 KiB, or to 32 KiB for a large copy: an
/// idle queue holds nothing, and a short one little. What is adopted stays where it is.
///
/// Bytes that gather() has shown do not move until consume() passes them, so the kernel may read
/// them meanwhile; what is appended lands behind them.
class write_queue {
public:
    write_queue() noexcept = default;
    write_queue(const write_queue&) = delete;
    write_queue& operator=(const write_queue&) = delete;
    ~write_queue() { clear(); }

    /// Copies. Throws std::bad_alloc, and has then taken nothing.
    void append(const_buffer from);
    /// Moves from `bytes`; throws std::bad_alloc, and has then taken nothing. Small ones, and those
    /// with room to spare for more than an eighth of their bytes, are copied.
    void adopt(std::string& bytes);
    void adopt(std::vector<std::byte>& bytes);

    /// Shows the first bytes; returns how many buffers of `into` that took.
    [[nodiscard]] std::size_t gather(std::span<const_buffer> into) const noexcept;
    /// Forgets the first `count` bytes. @pre there are so many.
    void consume(std::size_t count) noexcept;
    void clear() noexcept;

    /// Bytes.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

private:
    struct piece;
    struct chunk;
    template <class Container>
    struct adopted;

    template <class Container>
    void adopt_any(Container& bytes);
    [[nodiscard]] chunk* open_chunk() const noexcept;
    [[nodiscard]] std::size_t next_chunk_bytes(std::size_t needed) const noexcept;
    void push_back(piece& added) noexcept;
    void pop_front() noexcept;

    // Singly linked; owned. Invariant: none is empty.
    piece* first_ = nullptr;
    piece* last_ = nullptr; // valid while first_ is
    std::size_t size_ = 0;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
