#pragma once
// input_buffer: bytes that a client has received and not consumed. Layer http, private.

#include <simplenet/core/buffer.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/io/scratch.hpp>

#include <cstddef>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace simplenet::v0::http::detail {

/// Memory of its own, unlike the server's input: a client reads from streams of unknown type, and
/// has nothing to read when no request is in progress.
class input_buffer {
public:
    [[nodiscard]] std::string_view bytes() const noexcept {
        return {reinterpret_cast<const char*>(memory_.data()) + begin_, end_ - begin_};
    }
    [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }

    /// The first `count` bytes are done with.
    void consume(std::size_t count) noexcept {
        begin_ += count;
        if (begin_ == end_) begin_ = end_ = 0;
    }
    /// Room for more bytes, behind those that are there; views of bytes() end. Grows when it is
    /// full: parsers bound what they leave here. Throws std::bad_alloc.
    [[nodiscard]] mutable_buffer room() {
        if (end_ == memory_.size()) {
            const std::size_t held = end_ - begin_;
            if (begin_ == 0) {
                scratch larger = scratch::borrow(held == 0 ? least : 2 * held);
                if (held != 0) std::memcpy(larger.data(), memory_.data(), held);
                memory_ = std::move(larger);
            } else {
                std::memmove(memory_.data(), memory_.data() + begin_, held);
            }
            begin_ = 0;
            end_ = held;
        }
        return {memory_.data() + end_, memory_.size() - end_};
    }
    void took(std::size_t count) noexcept { end_ += count; }

    /// Drops everything, and gives the memory back.
    void release() noexcept {
        memory_.release();
        memory_ = {};
        begin_ = end_ = 0;
    }
    /// All bytes, for the next owner of the connection. Throws std::bad_alloc.
    [[nodiscard]] received take() const {
        const std::string_view all = bytes();
        if (all.empty()) return {};
        std::byte* const copy = simplenet::detail::allocate_lease(all.size());
        if (copy == nullptr) throw std::bad_alloc{};
        std::memcpy(copy, all.data(), all.size());
        return {copy, all.size()};
    }

private:
    static constexpr std::size_t least = std::size_t{16} * 1024;

    scratch memory_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

} // namespace simplenet::v0::http::detail
