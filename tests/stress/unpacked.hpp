#pragma once
// unpacked: what a gzip stream contains.

#include <simplenet/core/abi.hpp>

#include <cstddef>
#include <string>

#include <zlib.h>

namespace simplenet::v0::testing {

/// What a gzip stream, or the beginning of one, contains: up to `most` bytes. `whole`: it is
/// exactly one.
inline std::string unpacked(std::string from, std::size_t most, bool& whole) {
    z_stream stream{};
    ::inflateInit2(&stream, 15 + 16);
    std::string all(most, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(from.data());
    stream.avail_in = static_cast<uInt>(from.size());
    stream.next_out = reinterpret_cast<Bytef*>(all.data());
    stream.avail_out = static_cast<uInt>(all.size());
    whole = ::inflate(&stream, Z_SYNC_FLUSH) == Z_STREAM_END && stream.avail_in == 0;
    all.resize(stream.total_out);
    ::inflateEnd(&stream);
    return all;
}

} // namespace simplenet::v0::testing
