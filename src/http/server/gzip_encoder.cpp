#include "http/server/gzip_encoder.hpp"

#include "http/codec/list.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <algorithm>
#include <limits>
#include <new>

// Its input is const; before 1.2.5.2 it was not, so zlib asks.
#define ZLIB_CONST
#include <zlib.h>

namespace simplenet::v0::http::detail {

struct gzip_encoder::state {
    z_stream stream{};
};

gzip_encoder::gzip_encoder(int level)
    : state_{std::make_unique<state>()} {
    constexpr int window_for_gzip = 15 + 16; // zlib.h, deflateInit2
    constexpr int memory_level = 8;
    const int made = deflateInit2(&state_->stream, level, Z_DEFLATED, window_for_gzip, memory_level,
                                  Z_DEFAULT_STRATEGY);
    if (made == Z_MEM_ERROR) throw std::bad_alloc{};
    SIMPLENET_EXPECTS(made == Z_OK, "zlib refuses the level of compression");
}

gzip_encoder::~gzip_encoder() {
    static_cast<void>(deflateEnd(&state_->stream));
}

gzip_encoder::step gzip_encoder::encode(const_buffer from, mutable_buffer into,
                                        until what) noexcept {
    constexpr std::size_t most = std::numeric_limits<uInt>::max();
    z_stream& stream = state_->stream;
    const std::size_t given = std::min(from.size(), most);
    stream.next_in = reinterpret_cast<const Bytef*>(from.data());
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = reinterpret_cast<Bytef*>(into.data());
    stream.avail_out = static_cast<uInt>(std::min(into.size(), most));
    const uInt room = stream.avail_out;
    int flush = Z_NO_FLUSH;
    if (given == from.size() && what != until::more) {
        flush = what == until::flush ? Z_SYNC_FLUSH : Z_FINISH;
    }
    const int outcome = deflate(&stream, flush);
    step result{.consumed = given - stream.avail_in, .produced = room - stream.avail_out};
    const bool consumed_all = result.consumed == from.size();
    // With room left, deflate() has produced all that it holds (zlib.h).
    result.done =
        consumed_all && (what == until::finish ? outcome == Z_STREAM_END : stream.avail_out != 0);
    return result;
}

bool matches_type(std::string_view content_type, std::string_view pattern) noexcept {
    const std::string_view type = trim_blanks(content_type.substr(0, content_type.find(';')));
    if (!pattern.ends_with("/*")) return iequals(type, pattern);
    const std::string_view kind = pattern.substr(0, pattern.size() - 1);
    return type.size() > kind.size() && iequals(type.substr(0, kind.size()), kind);
}

} // namespace simplenet::v0::http::detail
