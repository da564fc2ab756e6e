#pragma once
// write_queue: bytes waiting to be sent, in order. Layer stream, private; a part of queued_writer.

#include <simplenet/core/buffer.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// Copied bytes lie in chunks that grow from 128 bytes to 4 KiB, or to 32 KiB for a large copy: an
/// empty queue holds no memory, and a short one little. Adopted bytes stay where they are.
///
/// Bytes that gather() has shown do not move until consume() drops them, so the kernel may read
/// them meanwhile; bytes are appended after them.
class write_queue {
public:
    write_queue() noexcept = default;
    write_queue(const write_queue&) = delete;
    write_queue& operator=(const write_queue&) = delete;
    ~write_queue() { clear(); }

    /// Copies. If it throws std::bad_alloc, nothing was taken.
    void append(const_buffer from);
    /// Moves from `bytes`; if it throws std::bad_alloc, nothing was taken. Copies small ones, and
    /// those whose spare capacity exceeds an eighth of their size.
    void adopt(std::string& bytes);
    void adopt(std::vector<std::byte>& bytes);

    /// Fills `into` with the first bytes; returns the number of buffers used.
    [[nodiscard]] std::size_t gather(std::span<const_buffer> into) const noexcept;
    /// Drops the first `count` bytes. @pre `count <= size()`.
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
