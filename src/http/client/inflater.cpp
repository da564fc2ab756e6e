#include "http/client/inflater.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <new>

// Its input is const; before 1.2.5.2 it was not, so zlib asks.
#define ZLIB_CONST
#include <zlib.h>

namespace simplenet::v0::http::detail {

namespace {

/// Of inflateInit2(): the largest window, in the formats that differ by their wrapping.
constexpr int gzip_window = 15 + 16;
constexpr int zlib_window = 15;
constexpr int bare_window = -15;

} // namespace

struct inflater::zlib {
    explicit zlib(int window) {
        if (::inflateInit2(&stream, window) != Z_OK) throw std::bad_alloc{};
    }
    zlib(const zlib&) = delete;
    zlib& operator=(const zlib&) = delete;
    ~zlib() { ::inflateEnd(&stream); }

    z_stream stream{};
};

inflater::inflater(format of) noexcept
    : is_gzip_{of == format::gzip}
    , phase_{of == format::gzip ? phase::gzip : phase::deflate} {}

inflater::~inflater() = default;

bool inflater::is_complete() const noexcept {
    return phase_ == phase::gzip || phase_ == phase::between || phase_ == phase::ended ||
           (phase_ == phase::deflate && !has_first_);
}

/// Whether the byte was needed to know the format only, and another one is.
bool inflater::take_beginning(std::byte byte) {
    if (!has_first_) {
        has_first_ = true;
        first_ = byte;
        return true;
    }
    // RFC 1950, section 2.2: method 8, a window of at most 32 KiB, and a multiple of 31. A bare
    // stream with these bits would begin with a stored block whose padding is not zero (RFC 1951,
    // section 3.2.4), which no encoder writes.
    const unsigned first = std::to_integer<unsigned>(first_);
    const bool wrapped = (first & 0x0fU) == 8 && (first >> 4U) <= 7 &&
                         (first * 256 + std::to_integer<unsigned>(byte)) % 31 == 0;
    zlib_ = std::make_unique<zlib>(wrapped ? zlib_window : bare_window);
    phase_ = phase::running;
    return false;
}

inflater::step inflater::next(const_buffer from, mutable_buffer into) {
    step done;
    if (phase_ == phase::deflate) {
        if (from.empty()) return done;
        if (take_beginning(from.data()[0])) {
            done.consumed = 1;
            if (from.size() == 1) return done;
            static_cast<void>(take_beginning(from.data()[1]));
        }
        // The second byte stays in `from`; the first one may have been in an earlier call's.
        std::byte unused{};
        zlib_->stream.next_in = reinterpret_cast<const Bytef*>(&first_);
        zlib_->stream.avail_in = 1;
        zlib_->stream.next_out = reinterpret_cast<Bytef*>(&unused);
        zlib_->stream.avail_out = 0;
        // No output fits, and none is due: a header is two bytes, a block more than one.
        const int outcome = ::inflate(&zlib_->stream, Z_NO_FLUSH);
        done.malformed = outcome != Z_OK && outcome != Z_BUF_ERROR;
        if (outcome == Z_MEM_ERROR) throw std::bad_alloc{};
        if (done.malformed || zlib_->stream.avail_in != 0) {
            done.malformed = true;
            return done;
        }
    }
    while (!into.empty()) {
        const_buffer rest = from.subspan(done.consumed);
        if (phase_ == phase::ended) {
            done.malformed = !rest.empty();
            return done;
        }
        if (phase_ == phase::gzip || phase_ == phase::between) {
            if (rest.empty()) return done;
            if (!zlib_) zlib_ = std::make_unique<zlib>(gzip_window);
            ::inflateReset(&zlib_->stream);
            phase_ = phase::running;
        }
        z_stream& stream = zlib_->stream;
        constexpr std::size_t most = std::numeric_limits<uInt>::max();
        const auto given = static_cast<uInt>(std::min(rest.size(), most));
        const auto room = static_cast<uInt>(std::min(into.size(), most));
        stream.next_in = reinterpret_cast<const Bytef*>(rest.data());
        stream.avail_in = given;
        stream.next_out = reinterpret_cast<Bytef*>(into.data());
        stream.avail_out = room;
        const int outcome = ::inflate(&stream, Z_NO_FLUSH);
        const std::size_t consumed = given - stream.avail_in;
        const std::size_t produced = room - stream.avail_out;
        done.consumed += consumed;
        done.produced += produced;
        into = into.subspan(produced);
        if (outcome == Z_STREAM_END) {
            phase_ = is_gzip_ ? phase::between : phase::ended;
        } else if (outcome == Z_MEM_ERROR) {
            throw std::bad_alloc{};
        } else if (outcome != Z_OK && outcome != Z_BUF_ERROR) {
            done.malformed = true;
            return done;
        } else if (consumed == 0 && produced == 0) {
            return done;
        }
    }
    return done;
}

} // namespace simplenet::v0::http::detail
