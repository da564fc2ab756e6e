#pragma once
// async_stream: reading, writing and half-close of the streams of the runtime. Layer io.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/core/write_options.hpp>
#include <simplenet/io/async_socket.hpp>
#include <simplenet/io/detail/operation.hpp>
#include <simplenet/io/detail/send_file_operation.hpp>
#include <simplenet/io/detail/splice_operations.hpp>
#include <simplenet/io/detail/stream_access.hpp>
#include <simplenet/io/detail/stream_operations.hpp>
#include <simplenet/socket/stream_socket.hpp>
#include <simplenet/time/sleep.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// Base of tcp_stream and local_stream: a stream whose operations are awaited.
///
/// At most one read and one write may be in flight: a second of either kind stops the program. Loop
/// thread only.
class async_stream : public async_socket {
public:
    /// Reads at least one byte and at most `into.size()`.
    ///
    /// Completes as soon as some bytes have arrived; to fill `into`, use async_read_exact().
    ///
    /// @pre `into` is not empty, and no other read is in flight on this stream.
    /// @param into  Borrowed until the await returns.
    /// @return An awaitable of `result<std::size_t>`: the number of bytes read, at least 1.
    ///
    /// @par Errors
    /// - `errc::end_of_stream`: the peer will send no more.
    /// - `std::errc::connection_reset`: the peer aborted; close the stream.
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop, close() or a deadline
    ///   came first; nothing was read.
    /// - `std::errc::bad_file_descriptor`: the stream was closed, by close() or at the end of its
    ///   loop.
    /// - Any other error of recv(2).
    ///
    /// @par Cancellation
    /// Bytes that arrived before the stop took effect are returned as a success. After a stop the
    /// stream is intact, no byte is lost, and the stream may be read again.
    ///
    /// @par Cost
    /// Usually one system call. On io_uring none while pieces are small: the kernel receives into a
    /// buffer of the loop's pool, and the bytes are copied. Pieces of 8 KiB or more are read into
    /// `into` directly.
    ///
    /// @par Example
    /// @snippet errors.cpp read all
    [[nodiscard]] detail::read_some_operation read_some(mutable_buffer into) noexcept {
        return {record(), into};
    }

    /// Receives into a buffer of the loop's pool: an idle connection holds no memory, and on
    /// io_uring nothing is copied.
    ///
    /// @pre No other read is in flight on this stream.
    /// @return An awaitable of `result<received>`: a lease on at least one byte.
    ///
    /// @par Errors
    /// Those of read_some(), and `std::errc::not_enough_memory`: neither the pool nor the heap had
    /// a buffer; the bytes can still be read.
    /// @par Cancellation
    /// As for read_some().
    /// @par Example
    /// @snippet echo_server.cpp serve
    [[nodiscard]] detail::receive_operation receive() noexcept {
        return detail::receive_operation{record()};
    }

    /// Takes what is there already, without waiting.
    ///
    /// @pre The loop of the stream runs on this thread, and no read is in flight on this stream.
    /// @return A lease on at least one byte.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: nothing is there. On io_uring bytes that arrived after
    ///   the loop last polled may not be there yet.
    /// - Otherwise as for receive(), except for a stop, which does not prevent it.
    /// @par Cost
    /// One recv(2), or none if the bytes were received ahead. Nothing else runs meanwhile, so bound
    /// a series of calls.
    [[nodiscard]] result<received> try_receive() noexcept {
        return detail::receive_operation{record()}.now();
    }

    /// Waits until something is there, bytes, the end of the stream or an error, and takes nothing:
    /// a read that follows does not wait, and try_receive() finds it. An idle stream holds no
    /// memory meanwhile.
    ///
    /// @pre No other read is in flight on this stream.
    /// @return An awaitable of `result<>`: success also if the next read will fail.
    ///
    /// @par Errors
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: as for read_some().
    /// - `std::errc::bad_file_descriptor`: the stream was closed.
    /// @par Cancellation
    /// As for read_some().
    /// @par Cost
    /// Up to two system calls: a wait, and a recv(2) that only looks. None if bytes were received
    /// ahead.
    /// @par Example
    /// @snippet streams.cpp readable
    [[nodiscard]] detail::readable_operation readable() noexcept {
        return detail::readable_operation{record()};
    }

    /// Writes at least one byte of `from`, and as many as the kernel takes at once. Writes nothing
    /// if `from` is empty. To write all bytes, use async_write_all().
    ///
    /// @pre No other write is in flight on this stream.
    /// @param from  Borrowed until the await returns.
    /// @return An awaitable of `result<std::size_t>`: the number of bytes that the kernel took. The
    ///         peer may not have them yet.
    ///
    /// @par Errors
    /// - `std::errc::broken_pipe`, `std::errc::connection_reset`: the peer is gone. SIGPIPE is
    ///   never raised.
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: as for read_some(); nothing
    ///   was written.
    /// - `std::errc::bad_file_descriptor`: the stream was closed.
    /// - Any other error of send(2).
    ///
    /// @par Cancellation
    /// Bytes that the kernel took before the stop took effect are a success. After a stop the
    /// stream is intact.
    ///
    /// @par Cost
    /// Nearly always one send(2), on both backends.
    [[nodiscard]] detail::write_some_operation write_some(const_buffer from) noexcept {
        return {record(), from, {}};
    }
    /// The same for several buffers, one after the other.
    ///
    /// @param from  Borrowed until the await returns, including the array of buffers.
    [[nodiscard]] detail::write_some_operation
    write_some(std::span<const const_buffer> from) noexcept {
        return {record(), from, {}};
    }
    // Not a default argument, which GCC would store in the caller's frame.
    /// The same with options, which have no effect on a local_stream.
    [[nodiscard]] detail::write_some_operation write_some(const_buffer from,
                                                          write_options options) noexcept {
        return {record(), from, options};
    }
    /// The same for several buffers with options.
    [[nodiscard]] detail::write_some_operation write_some(std::span<const const_buffer> from,
                                                          write_options options) noexcept {
        return {record(), from, options};
    }

    /// Writes what the kernel takes now, without waiting: for a caller that goes on by itself and
    /// keeps the rest. Writes nothing if `from` is empty.
    ///
    /// @pre The loop of the stream runs on this thread, and no write is in flight on this stream.
    /// @return The number of bytes that the kernel took: at least 1, unless `from` is empty.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: there is no room. The kernel has been asked, whatever
    ///   earlier writes found.
    /// - Otherwise as for write_some(), except for a stop, which does not prevent it.
    /// @par Cost
    /// One send(2); nothing else runs meanwhile, so bound a series of calls.
    [[nodiscard]] result<std::size_t> try_write_some(const_buffer from) noexcept {
        return detail::write_some_operation{record(), from, {}}.now();
    }
    /// The same for several buffers, one after the other.
    [[nodiscard]] result<std::size_t> try_write_some(std::span<const const_buffer> from) noexcept {
        return detail::write_some_operation{record(), from, {}}.now();
    }

    /// Tells the peer that nothing more will be sent; reading continues. Never waits, so `co_await`
    /// is allowed but not needed.
    ///
    /// @par Errors
    /// - `std::errc::not_connected`: the connection is gone.
    /// - `std::errc::bad_file_descriptor`: the stream was closed.
    [[nodiscard]] detail::ready_result shutdown_write() noexcept;

    /// Lets a read or write fail with `errc::deadline_exceeded` when it has waited for `limit` and
    /// no byte has moved in either direction meanwhile. Zero or less: no limit.
    ///
    /// A part of a long read or write counts as movement. So do bytes that the peer acknowledges
    /// while a write waits: a slow reader is not idle. But the peer's kernel acknowledges only
    /// after its program has read a few segments: a TCP peer that reads less counts as idle. The
    /// kernel is asked for the first time when the limit has passed, so a write for which nothing
    /// moves fails after twice the limit at the latest.
    ///
    /// @par Errors
    /// Throws std::bad_alloc, only at the first call for a stream; then the stream has no limit.
    /// @par Cost
    /// A store and a list insertion per turn and stream, whatever the number of operations; an
    /// ioctl(2) if a write waits.
    template <class Rep, class Period>
    void set_idle_timeout(std::chrono::duration<Rep, Period> limit) {
        set_idle_limit(detail::saturated(limit));
    }

protected:
    /// Takes a connected socket, and the error that its first read is to report; throws
    /// std::bad_alloc.
    explicit async_stream(stream_socket&& socket);
    /// Takes over the record that another handle gave away.
    explicit async_stream(detail::socket_record& socket) noexcept
        : async_socket{socket} {}

private:
    friend detail::stream_access;
    [[nodiscard]] result<std::size_t> read_ready(mutable_buffer into) noexcept {
        return read_some(into).if_ready();
    }
    [[nodiscard]] bool is_read_directly() const noexcept {
        return record() != nullptr && detail::is_read_directly(*record());
    }
    [[nodiscard]] bool is_silent(detail::silence by) const noexcept {
        return record() != nullptr && detail::is_silent(*record(), by);
    }
    [[nodiscard]] result<std::size_t> splice_ready(int into, std::size_t most) noexcept {
        return detail::splice_ready(*record(), into, most);
    }
    [[nodiscard]] detail::send_pipe_operation send_pipe_operation(int from,
                                                                  std::size_t count) noexcept {
        return {record(), from, count};
    }
    [[nodiscard]] detail::read_exact_operation read_exact_operation(mutable_buffer into) noexcept {
        return {record(), into};
    }
    template <class Buffers>
    [[nodiscard]] detail::write_all_operation write_all_operation(const Buffers& from,
                                                                  write_options options) noexcept {
        return {record(), from, options};
    }
    [[nodiscard]] detail::send_file_operation
    send_file_operation(int file, std::uint64_t offset, std::uint64_t count,
                        const send_file_options& options) noexcept {
        return {record(), file, offset, count, options};
    }

    async_stream(int read_error, unique_fd socket);
    void set_idle_limit(std::chrono::nanoseconds limit);
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
