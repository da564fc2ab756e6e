#pragma once
// Compressed texts for tests.

#include <simplenet/core/abi.hpp>

#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include <zlib.h>

namespace simplenet::v0::testing {

/// `window` as of deflateInit2(), which chooses the format.
inline std::string packed_with(int window, std::string_view text) {
    struct ended_stream : z_stream {
        ended_stream() noexcept
            : z_stream{} {}
        ended_stream(const ended_stream&) = delete;
        ended_stream& operator=(const ended_stream&) = delete;
        ~ended_stream() { ::deflateEnd(this); }
    } stream; // what is allocated below may throw
    if (::deflateInit2(&stream, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        throw std::bad_alloc{};
    }
    std::string packed(::deflateBound(&stream, text.size()), '\0');
    std::string from{text};
    stream.next_in = reinterpret_cast<Bytef*>(from.data());
    stream.avail_in = static_cast<uInt>(from.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    if (::deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::logic_error{"deflate()"};
    packed.resize(stream.total_out);
    return packed;
}
inline std::string gzipped(std::string_view text) {
    return packed_with(15 + 16, text);
}
inline std::string zlibbed(std::string_view text) {
    return packed_with(15, text);
}
/// Without a wrapping.
inline std::string deflated(std::string_view text) {
    return packed_with(-15, text);
}

} // namespace simplenet::v0::testing
