#pragma once
// gzip_encoder: compresses a body while it is sent. Layer http, private.

#include <simplenet/core/buffer.hpp>

#include <cstddef>
#include <memory>
#include <string_view>

namespace simplenet::v0::http::detail {

/// One gzip stream (RFC 1952), by zlib. Takes about 256 KiB.
class gzip_encoder {
public:
    /// Throws std::bad_alloc. @pre `level` is 1 to 9.
    explicit gzip_encoder(int level);
    gzip_encoder(const gzip_encoder&) = delete;
    gzip_encoder& operator=(const gzip_encoder&) = delete;
    ~gzip_encoder();

    // more    further input follows; output may be held back
    // flush   the receiver can decode all input so far
    // finish  the stream ends
    enum class until { more, flush, finish };

    struct step {
        std::size_t consumed = 0; // of the input
        std::size_t produced = 0; // of the output
        bool done = false;        // all input is consumed, and what `until` asks for is produced
    };
    /// Compresses as much as fits. Call it again with the rest of the input until it is done.
    [[nodiscard]] step encode(const_buffer from, mutable_buffer into, until what) noexcept;

private:
    struct state;
    std::unique_ptr<state> state_;
};

/// Whether `content_type`, with or without parameters, is `pattern`: `a/b` or `a/*`.
[[nodiscard]] bool matches_type(std::string_view content_type, std::string_view pattern) noexcept;

} // namespace simplenet::v0::http::detail
