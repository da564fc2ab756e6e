#pragma once
// async_send_file: the bytes of a file to any stream, without passing through user space where the
// kernel can do that. Layer stream.

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

/// A block of a file. 0: it ends there.
[[nodiscard]] result<std::size_t> read_file(int fd, std::uint64_t offset,
                                            mutable_buffer into) noexcept;

inline constexpr std::size_t file_block = std::size_t{64} * 1024; // bytes

/// From what sendfile(2) does not take, or to what is no socket. `done` bytes have gone already.
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

/// Sends `count` bytes of the file `fd` from `offset` on, or what it has of them.
///
/// The kernel moves them if `stream` is one of the runtime's and sendfile(2) takes the file, else
/// they are read and written in blocks. The descriptor's own offset is neither used nor moved, so
/// several may send one descriptor at once. What is changed in the file before the peer has the
/// bytes may be sent as changed (sendfile(2)).
///
/// @pre No other write is in flight on `stream`. It and `fd` stay open until the await returns.
/// @param fd     Borrowed; open for reading, and with offsets: a file, not a pipe.
/// @param count  Bytes; as large as you like for the rest of the file. 0 succeeds with 0.
/// @return `count`, or less if the file ends before.
///
/// @par Errors
/// `transferred` says how many bytes the stream took before.
/// - As of the stream's write_some().
/// - `std::errc::bad_file_descriptor`: `fd` is not open for reading.
/// - `std::errc::invalid_seek`: it has no offsets, a pipe or a socket say.
/// - Anything else sendfile(2) and pread(2) report, but for a sendfile(2) that is refused.
/// @par Cancellation
/// The stream is usable at the reported offset.
/// @par Cost
/// On streams of the runtime one sendfile(2) for each 256 KiB, after which others have their turn;
/// elsewhere a block of 64 KiB. The thread waits while the disk is read: bring what is not in the
/// page cache there first if that matters (readahead(2)). SIGPIPE is never raised.
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
