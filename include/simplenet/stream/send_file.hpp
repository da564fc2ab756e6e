#pragma once
// async_send_file: sends the bytes of a file to any stream, if the kernel can do it without passing
// them through user space. Layer stream.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/write_options.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/detail/send_file_operation.hpp>
#include <simplenet/io/detail/stream_access.hpp>
#include <simplenet/io/send_file_options.hpp>
#include <simplenet/stream/transfer.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <system_error>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

/// Reads a block of a file. 0 at its end.
[[nodiscard]] result<std::size_t> read_file(int fd, std::uint64_t offset,
                                            mutable_buffer into) noexcept;

/// The bytes from `offset` to the end of a regular file that is longer than that.
[[nodiscard]] result<std::uint64_t> bytes_behind(int fd, std::uint64_t offset) noexcept;

inline constexpr std::size_t file_block = std::size_t{64} * 1024; // bytes

/// For files that sendfile(2) refuses, and streams that are not sockets. `done` bytes of head and
/// file have been sent already.
template <class Stream>
task<transfer_result> copy_file_to(Stream& stream, int fd, std::uint64_t offset, std::size_t count,
                                   send_file_options around, std::size_t done) {
    const std::size_t before = around.head.size();
    const auto end = bytes_behind(fd, offset);
    if (end) count = static_cast<std::size_t>(std::min<std::uint64_t>(count, *end));
    const std::size_t left = count - std::min(done - std::min(done, before), count);
    const auto block = std::make_unique_for_overwrite<std::byte[]>(std::min(left, file_block));
    for (;;) {
        const std::size_t at = done - std::min(done, before); // in the part of the file
        const std::size_t wanted = std::min(count - std::min(at, count), file_block);
        result<std::size_t> size{0};
        if (wanted != 0) size = read_file(fd, offset + at, {block.get(), wanted});
        if (!size) co_return std::unexpected{transfer_error{size.error(), done}};
        const bool last = *size == 0 || at + *size >= count;
        const std::array<const_buffer, 3> parts{
            around.head.subspan(std::min(done, before)), const_buffer{block.get(), *size},
            last ? around.tail.subspan(at - std::min(at, count)) : const_buffer{}};
        // A file whose end is not known may end here.
        const write_options options{.more = !last && end.has_value()};
        const transfer_result sent =
            co_await async_write_all(stream, std::span<const const_buffer>{parts}, options);
        if (!sent) {
            const transfer_error& why = sent.error();
            co_return std::unexpected{transfer_error{why.code, done + why.transferred}};
        }
        done += *sent;
        if (last) co_return done;
    }
}

template <class Stream>
task<transfer_result> send_file_to(Stream& stream, int fd, std::uint64_t offset,
                                   std::uint64_t count, send_file_options around) {
    const std::size_t size = file_bytes(count, around);
    std::size_t done = 0;
    if constexpr (requires {
                      stream_access::send_file_operation(stream, fd, offset, count, around);
                  }) {
        if (size == 0) {
            const std::array<const_buffer, 2> parts{around.head, around.tail};
            co_return co_await async_write_all(stream, std::span<const const_buffer>{parts});
        }
        const transfer_result sent =
            co_await stream_access::send_file_operation(stream, fd, offset, size, around);
        if (sent) co_return sent;
        if (!is_refusal(sent.error().code)) co_return sent;
        done = sent.error().transferred;
    }
    co_return co_await copy_file_to(stream, fd, offset, size, around, done);
}

} // namespace detail

inline namespace runtime {

/// Sends a head, `count` bytes of the file `fd` from `offset` on, and a tail. If the file ends
/// before, fewer bytes of it.
///
/// If `stream` is one of the runtime's and sendfile(2) accepts the file, the kernel moves the
/// bytes; otherwise they are read and written in blocks. Head, file and tail share segments, as if
/// they were one buffer. The descriptor's own offset is neither used nor moved, so several tasks
/// may send one descriptor at once. Changes to the file may still affect bytes that the peer has
/// not yet received (sendfile(2)).
///
/// @pre No other write is in flight on `stream`. It and `fd` stay open until the await returns.
/// @param fd      Borrowed; open for reading, and seekable: a file, not a pipe.
/// @param count   Bytes; a larger number than the file has sends the rest. 0 sends head and tail.
/// @param around  The head and the tail; borrowed until the await returns.
/// @return The number of bytes that the stream took: of the head, the file and the tail together.
///         If that is less than their sizes, the file was shorter than `count`; the tail was sent
///         nevertheless.
///
/// @par Errors
/// `transferred` is the number of bytes that the stream took before the error, from the first byte
/// of the head on.
/// - Any error of the stream's write_some().
/// - `std::errc::bad_file_descriptor`: `fd` is not open for reading.
/// - `std::errc::invalid_seek`: `fd` is not seekable, for example a pipe or a socket.
/// - Any other error of sendfile(2) and pread(2), except that sendfile(2) is refused.
/// @par Cancellation
/// The stream is usable at the reported offset.
/// @par Cost
/// On streams of the runtime two system calls for up to 16 KiB of a file with its head and tail:
/// these bytes are copied, which costs less than sendfile(2). Otherwise one sendfile(2) for each
/// 2 MiB, after which other tasks run; on other streams a block of 64 KiB. A large file with a
/// tail sets and clears TCP_CORK. The thread blocks while the disk is read: if that matters, read
/// the file into the page cache first (readahead(2)). SIGPIPE is never raised.
/// @par Example
/// @snippet file_send.cpp send
template <async_writer Stream>
[[nodiscard]] task<transfer_result> async_send_file(Stream& stream, int fd, std::uint64_t offset,
                                                    std::uint64_t count,
                                                    send_file_options around = {}) {
    return detail::send_file_to(stream, fd, offset, count, around);
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
