#pragma once
// buffer_line: the buffers received ahead for one stream. Layer io, private.

#include "io/receive_pool.hpp"

#include <cstddef>
#include <cstdint>

namespace simplenet::v0::detail {

/// Buffers of the pool that hold unread bytes, oldest first. They are linked through the pool, so a
/// line needs no memory of its own. The caller of take() gives emptied buffers back.
class buffer_line {
public:
    [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
    [[nodiscard]] std::uint16_t buffers() const noexcept { return count_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

    void push(receive_pool& pool, std::uint32_t buffer, std::uint32_t length) noexcept {
        pool.at(buffer) = {.next = receive_pool::none, .offset = 0, .length = length};
        if (count_ == 0) {
            first_ = buffer;
        } else {
            pool.at(last_).next = buffer;
        }
        last_ = buffer;
        ++count_;
        bytes_ += length;
    }

    struct piece {
        std::byte* data;
        std::size_t size;
        std::uint32_t emptied; // the number of the buffer, or none if bytes are left in it
    };
    /// Takes the oldest bytes, at most `most` and at most one buffer.
    /// @pre the line is not empty.
    [[nodiscard]] piece take(receive_pool& pool, std::size_t most) noexcept {
        const std::uint32_t buffer = first_;
        receive_pool::slot& slot = pool.at(buffer);
        std::byte* const data = pool.memory(buffer) + slot.offset;
        const std::size_t rest = slot.length - slot.offset;
        if (most < rest) {
            slot.offset += static_cast<std::uint32_t>(most);
            bytes_ -= most;
            return {.data = data, .size = most, .emptied = receive_pool::none};
        }
        first_ = slot.next;
        --count_;
        bytes_ -= rest;
        return {.data = data, .size = rest, .emptied = buffer};
    }
    /// The same for all of the oldest buffer.
    [[nodiscard]] piece take(receive_pool& pool) noexcept {
        return take(pool, receive_pool::buffer_size);
    }

private:
    std::uint32_t first_ = 0; // while the line is not empty
    std::uint32_t last_ = 0;
    std::uint16_t count_ = 0;
    std::size_t bytes_ = 0;
};

} // namespace simplenet::v0::detail
