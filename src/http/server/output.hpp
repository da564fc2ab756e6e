#pragma once
// output: bytes that are to leave a connection. Layer http, private.

#include <simplenet/core/buffer.hpp>
#include <simplenet/io/scratch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace simplenet::v0::http::detail {

/// A buffer that is borrowed from the loop while there is something in it.
class output {
public:
    /// Larger answers do not gather.
    static constexpr std::size_t gathers = std::size_t{16} * 1024;
    /// What one block holds: a whole gathered answer with its head behind a part of others.
    static constexpr std::size_t block = 2 * gathers;

    [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
    [[nodiscard]] std::size_t size() const noexcept { return end_ - begin_; }
    [[nodiscard]] const_buffer bytes() const noexcept { return {memory_.data() + begin_, size()}; }

    /// Whether `bytes` more fit behind what is there, without waiting.
    [[nodiscard]] bool has_room(std::size_t bytes) const noexcept {
        return bytes <= std::max(memory_.size(), block) - end_;
    }
    /// Memory for `bytes` more; append them with took(). @pre empty, or has_room().
    [[nodiscard]] char* room(std::size_t bytes) {
        if (memory_.size() < end_ + bytes) {
            // Only an empty one can lack memory.
            memory_ = scratch::borrow(std::max(block, bytes));
        }
        return reinterpret_cast<char*>(memory_.data()) + end_;
    }
    void took(std::size_t bytes) noexcept { end_ += bytes; }
    void append(std::string_view text) {
        std::memcpy(room(text.size()), text.data(), text.size());
        took(text.size());
    }

    /// The first `bytes` have left.
    void left(std::size_t bytes) noexcept {
        begin_ += bytes;
        if (empty()) begin_ = end_ = 0;
    }
    /// Drops everything behind the first `bytes`.
    void cut(std::size_t bytes) noexcept { end_ = begin_ + bytes; }
    /// Gives the memory back, and drops what is in it.
    void release() noexcept {
        memory_.release();
        memory_ = {};
        begin_ = end_ = 0;
    }

private:
    scratch memory_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

} // namespace simplenet::v0::http::detail
