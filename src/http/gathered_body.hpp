#pragma once
// gathered_body: a body that is read into a string. Layer http, private: of requests and answers.

#include <simplenet/core/abi.hpp>
#include <simplenet/core/buffer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace simplenet::v0::http::detail {

/// Memory grows with the bytes that have arrived, not with a size that the peer announces.
class gathered_body {
public:
    /// @param limit  Bytes.
    explicit gathered_body(std::size_t limit) noexcept
        : limit_{limit} {}

    /// Where the next read writes. Not empty.
    ///
    /// @param left  Bytes of the body that have not been read, if that is known.
    [[nodiscard]] mutable_buffer room(std::optional<std::uint64_t> left) {
        constexpr std::size_t least = 4096;
        constexpr std::size_t most = std::size_t{64} * 1024;
        std::size_t wanted = std::max(least, size_);
        // One byte more finds the end in the same read, or tells that the body is too long.
        if (left) wanted = static_cast<std::size_t>(std::min<std::uint64_t>(*left, limit_)) + 1;
        wanted = std::min(wanted, limit_ - size_ + (limit_ == SIZE_MAX ? 0 : 1));
        text_.resize(size_ + std::min(wanted, most));
        return std::span{text_}.subspan(size_);
    }
    /// The read has written `count` bytes.
    void took(std::size_t count) {
        size_ += count;
        text_.resize(size_);
    }
    [[nodiscard]] bool is_too_long() const noexcept { return size_ > limit_; }
    [[nodiscard]] std::string take() noexcept { return std::move(text_); }

private:
    const std::size_t limit_;
    std::size_t size_ = 0; // read; the text has room behind it while a read is in flight
    std::string text_;
};

} // namespace simplenet::v0::http::detail
