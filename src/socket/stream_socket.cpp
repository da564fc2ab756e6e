#include <simplenet/socket/stream_socket.hpp>

#include "socket/streams.hpp"
#include "sys/calls.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/socket/detail/socket_access.hpp>

#include <algorithm>
#include <array>
#include <climits>

namespace simplenet::v0 {
namespace detail::streams {

namespace {

result<std::size_t> to_read_count(ssize_t outcome) noexcept {
    if (outcome == 0) return fail(errc::end_of_stream);
    return sys::to_count(outcome);
}

/// Moves all of `whole` by calls that each move a part.
template <class Buffer, class Move>
transfer_result move_all(Buffer whole, Move move_some) noexcept {
    for (auto rest = whole; !rest.empty();) {
        const auto count = move_some(rest);
        if (!count) {
            return std::unexpected{
                transfer_error{.code = count.error(), .transferred = whole.size() - rest.size()}};
        }
        rest = rest.subspan(*count);
    }
    return whole.size();
}

/// The rest of several buffers that is still to be written.
class write_cursor {
public:
    explicit write_cursor(std::span<const const_buffer> buffers) noexcept
        : buffers_{buffers} {}

    /// The next parts, without empty ones: a call with only empty parts would move nothing, which
    /// looks like a failure.
    [[nodiscard]] std::span<iovec> next(std::span<iovec> room) const noexcept {
        std::size_t used = 0;
        std::size_t skip = offset_;
        for (const const_buffer& buffer : buffers_) {
            if (used == room.size()) break;
            const const_buffer part = buffer.subspan(std::exchange(skip, 0));
            if (part.empty()) continue;
            // iovec is not const because it also serves reads; sendmsg(2) only reads from it.
            room[used++] = {const_cast<std::byte*>(part.data()), part.size()};
        }
        return room.first(used);
    }

    void advance(std::size_t count) noexcept {
        while (count != 0) {
            const std::size_t left = buffers_.front().size() - offset_;
            if (count < left) {
                offset_ += count;
                return;
            }
            count -= left;
            offset_ = 0;
            buffers_ = buffers_.subspan(1);
        }
    }

private:
    std::span<const const_buffer> buffers_; // the first is not completely written
    std::size_t offset_ = 0;                // bytes of the first that are written
};

int flags_of(write_options options) noexcept {
    return options.more ? MSG_MORE : 0;
}

// Uninitialised: 16 KiB, of which a call usually needs a few entries.
using iovec_room = std::array<iovec, IOV_MAX>;

} // namespace

result<std::size_t> read_some(int fd, mutable_buffer into) noexcept {
    SIMPLENET_EXPECTS(!into.empty(), "reading into an empty buffer cannot tell end of stream");
    return to_read_count(sys::recv(fd, into.data(), into.size()));
}

result<std::size_t> write_some(int fd, const_buffer from, write_options options) noexcept {
    if (from.empty()) return 0;
    return sys::to_count(sys::send(fd, from.data(), from.size(), flags_of(options)));
}

result<std::size_t> write_some(int fd, std::span<const const_buffer> from,
                               write_options options) noexcept {
    iovec_room room;
    const auto parts = write_cursor{from}.next(room);
    if (parts.empty()) return 0;
    return sys::to_count(sys::sendv(fd, parts, flags_of(options)));
}

transfer_result read_exact(int fd, mutable_buffer into) noexcept {
    // MSG_WAITALL: the kernel waits for all bytes, so one call usually suffices. Signals, errors
    // and the end of the stream still cut it short.
    return move_all(into, [fd](mutable_buffer rest) {
        return to_read_count(sys::recv(fd, rest.data(), rest.size(), MSG_WAITALL));
    });
}

transfer_result write_all(int fd, const_buffer from, write_options options) noexcept {
    return move_all(from, [=](const_buffer rest) { return write_some(fd, rest, options); });
}

transfer_result write_all(int fd, std::span<const const_buffer> from,
                          write_options options) noexcept {
    iovec_room room;
    write_cursor rest{from};
    for (std::size_t written = 0;;) {
        const auto parts = rest.next(room);
        if (parts.empty()) return written;
        const auto count = sys::to_count(sys::sendv(fd, parts, flags_of(options)));
        if (!count) {
            return std::unexpected{transfer_error{.code = count.error(), .transferred = written}};
        }
        rest.advance(*count);
        written += *count;
    }
}

result<> shutdown_write(int fd) noexcept {
    return sys::to_result(sys::shutdown(fd, SHUT_WR));
}

} // namespace detail::streams

result<std::size_t> stream_socket::read_some(mutable_buffer into) noexcept {
    const auto count = detail::streams::read_some(native_handle(), into);
    if (!count) return fail(detail::socket_access::read_failure(*this, count.error()));
    return count;
}

result<std::size_t> stream_socket::write_some(const_buffer from, write_options options) noexcept {
    return detail::streams::write_some(native_handle(), from, options);
}

result<std::size_t> stream_socket::write_some(std::span<const const_buffer> from,
                                              write_options options) noexcept {
    return detail::streams::write_some(native_handle(), from, options);
}

result<> stream_socket::shutdown_write() noexcept {
    return detail::streams::shutdown_write(native_handle());
}

} // namespace simplenet::v0
