#pragma once
// async_send_file: sends the bytes of a file to any stream, if the kernel can do it without passing
// them through user space. Layer stream.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/detail/stream_access.hpp>
#include <simplenet/stream/transfer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <system_error>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

/// Reads a block of a file. 0 at its end.
[[nodiscard]] result<std::size_t> read_file(int fd, std::uint64_t offset,
                                            mutable_buffer into) noexcept;

inline constexpr std::size_t file_block = std::size_t{64} * 1024; // bytes

/// For files that sendfile(2) refuses, and streams that are not sockets. `done` bytes have been
/// sent already.
template <class Stream>
task<transfer_result> copy_file_to(Stream& stream, int fd, std::uint64_t offset,
                                   std::uint64_t count, std::size_t done) {
    const auto block = std::make_unique_for_overwrite<std::byte[]>(
        static_cast<std::size_t>(std::min<std::uint64_t>(count - done, file_block)));
    while (done < count) {
        const auto wanted =
            static_cast<std::size_t>(std::min<std::uint64_t>(count - done, file_block));
        const auto size = read_file(fd, offset + done, {block.get(), wanted});
        if (!size) co_return std::unexpected{transfer_error{size.error(), done}};
        if (*size == 0) break;
        const const_buffer bytes{block.get(), *size};
        const transfer_result sent = co_await async_write_all(stream, bytes);
        if (!sent) {
            const transfer_error& why = sent.error();
            co_return std::unexpected{transfer_error{why.code, done + why.transferred}};
        }
        done += *sent;
    }
    co_return done;
}

template <class Stream>
task<transfer_result> send_file_to(Stream& stream, int fd, std::uint64_t offset,
                                   std::uint64_t count) {
    std::size_t done = 0;
    if constexpr (requires { stream_access::send_file_operation(stream, fd, offset, count); }) {
        if (count == 0)
            co_return co_await stream_access::write_all_operation(stream, const_buffer{});
        const transfer_result sent =
            co_await stream_access::send_file_operation(stream, fd, offset, count);
        if (sent) co_return sent;
        if (!is_refusal(sent.error().code)) co_return sent;
        done = sent.error().transferred;
    }
    if (count == 0) co_return co_await transfer_of_nothing();
    co_return co_await copy_file_to(stream, fd, offset, count, done);
}

} // namespace detail

inline namespace runtime {

/// Sends `count` bytes of the file `fd` from `offset` on, or fewer if the file ends before.
///
/// If `stream` is one of the runtime's and sendfile(2) accepts the file, the kernel moves the
/// bytes; otherwise they are read and written in blocks. The descriptor's own offset is neither
/// used nor moved, so several tasks may send one descriptor at once. Changes to the file may still
/// affect bytes that the peer has not yet received (sendfile(2)).
///
/// @pre No other write is in flight on `stream`. It and `fd` stay open until the await returns.
/// @param fd     Borrowed; open for reading, and seekable: a file, not a pipe.
/// @param count  Bytes; a larger number than the file has sends the rest. 0 succeeds with 0.
/// @return `count`, or less if the file ends before.
///
/// @par Errors
/// `transferred` is the number of bytes that the stream took before the error.
/// - Any error of the stream's write_some().
/// - `std::errc::bad_file_descriptor`: `fd` is not open for reading.
/// - `std::errc::invalid_seek`: `fd` is not seekable, for example a pipe or a socket.
/// - Any other error of sendfile(2) and pread(2), except that sendfile(2) is refused.
/// @par Cancellation
/// The stream is usable at the reported offset.
/// @par Cost
/// On streams of the runtime one sendfile(2) for each 256 KiB, after which other tasks run; on
/// other streams a block of 64 KiB. The thread blocks while the disk is read: if that matters, read
/// the file into the page cache first (readahead(2)). SIGPIPE is never raised.
/// @par Example
/// @snippet file_send.cpp send
template <async_writer Stream>
[[nodiscard]] task<transfer_result> async_send_file(Stream& stream, int fd, std::uint64_t offset,
                                                    std::uint64_t count) {
    return detail::send_file_to(stream, fd, offset, count);
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
