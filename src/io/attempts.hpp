#pragma once
// Attempts that both backends share: one try without waiting. Layer io, private.

#include "io/receive_pool.hpp"
#include "io/socket_record.hpp"
#include "sys/calls.hpp"

#include <simplenet/io/detail/accept_operation.hpp>
#include <simplenet/io/detail/stream_operations.hpp>

#include <cerrno>
#include <cstdint>
#include <utility>

namespace simplenet::v0::detail {

/// The most system calls in one attempt at a whole transfer: a fast peer must not block the loop.
/// An attempt that stops here leaves the socket marked as ready, and continues in the next turn.
inline constexpr int most_tries = 16;

/// Records that a write moved `count` bytes. True: nothing is left to write.
[[nodiscard]] bool advance_write(write_operation& op, std::size_t count) noexcept;

/// The first bytes that a write still has to move; empty if there are none.
[[nodiscard]] const_buffer next_bytes(write_operation& op) noexcept;

/// Whether a write has nothing left to move.
[[nodiscard]] inline bool nothing_left(write_operation& op) noexcept {
    return op.buffers != nullptr ? advance_write(op, 0) : op.moved == op.size;
}

/// A write has failed with `error`: if that ended the connection, the next read gets it, too.
///
/// The kernel reports such an error once, to the first call that asks. A read that missed it would
/// take the broken connection for the end of the stream.
void note_write_error(socket_record& record, int error) noexcept;

/// note_write_error(), and the error to report for the write. If a read waits, the read gets the
/// error and the write EPIPE, as on epoll, where the read asks first.
[[nodiscard]] int write_error(socket_record& record, int error) noexcept;

/// The error that a recv(2) that returned 0 stands for.
[[nodiscard]] inline int zero_read_error(socket_record& record) noexcept {
    return std::exchange(record.zero_means, std::int16_t{end_of_stream_error});
}

/// The same, for a read that gets it at once.
[[nodiscard]] inline int tell_zero(socket_record& record) noexcept {
    const int error = zero_read_error(record);
    if (error == end_of_stream_error) record.end_told = true;
    return error;
}

/// Reports the error that follows everything received or accepted ahead: once, as recv(2) and
/// accept(2) do, but the end of the stream every time.
inline bool tell_end(operation& op) noexcept {
    socket_record& record = *op.record;
    op.error = record.end;
    record.readable = record.end == end_of_stream_error;
    if (record.readable) {
        record.end_told = true;
    } else {
        record.end = 0;
    }
    return true;
}

/// The flags of a send for `op`, beside MSG_NOSIGNAL.
[[nodiscard]] inline int send_flags(const operation& op) noexcept {
    return has_more(op.kind) ? MSG_MORE : 0;
}

/// A read of a stream takes bytes that another loop received. True: it is over.
[[nodiscard]] bool take_brought(operation& op, receive_pool& pool) noexcept;

/// Whether a send's negative result ends the operation.
[[nodiscard]] bool send_failed(operation& op, ssize_t outcome) noexcept;

/// Continues a write of one buffer after its first send(2), which took less than all; `count` is
/// its result, as for sys::send().
[[nodiscard]] bool go_on_sending(operation& op, ssize_t count) noexcept;

/// A write of one buffer, as far as the socket takes it. True: it is over.
// send(2) even with io_uring: there is nearly always room, and an entry, a completion and a
// suspension cost more than the call. Only the case that ends with the first call is inline.
[[nodiscard]] inline bool attempt_send_one(operation& op) noexcept {
    if (op.moved == op.size) return true;
    const ssize_t count =
        sys::send_once(op.record->fd, op.data + op.moved, op.size - op.moved, send_flags(op));
    if (static_cast<std::size_t>(count) == op.size - op.moved) [[likely]] {
        op.moved = op.size;
        return true;
    }
    if (count < 0) return go_on_sending(op, sys::failure());
    op.moved += static_cast<std::size_t>(count);
    return go_on_sending(op, count);
}

/// A write of several buffers, as far as the socket takes them. True: it is over.
[[nodiscard]] bool attempt_send_several(write_operation& op) noexcept;

/// A write, as far as the socket takes it. True: it is over.
[[nodiscard]] inline bool attempt_send(write_operation& op) noexcept {
    return op.buffers == nullptr ? attempt_send_one(op) : attempt_send_several(op);
}

/// recv(2) into `size` bytes at `data`; clears `readable` if nothing is left.
// A short read means that nothing is left, and that an edge will announce the next bytes
// (epoll(7)). This saves a read that would only return EAGAIN.
[[nodiscard]] inline ssize_t receive_directly(socket_record& record, std::byte* data,
                                              std::size_t size) noexcept {
    const ssize_t count = sys::recv(record.fd, data, size);
    if (count > 0 && static_cast<std::size_t>(count) != size && !record.reads_to_the_end) {
        record.readable = false;
    }
    return count;
}

/// Whether a receive's result that is not positive ends the operation.
[[nodiscard]] bool receive_failed(operation& op, ssize_t count) noexcept;

/// The rest of receive_lease() after recv(2) brought no bytes into `buffer` but `count`, as it
/// returned it.
[[nodiscard]] bool receive_no_lease(receive_operation& op, receive_pool& pool, std::uint32_t buffer,
                                    ssize_t count) noexcept;

/// The same into memory from the heap, as no buffer is free.
[[nodiscard]] bool receive_on_heap(receive_operation& op, receive_pool& pool) noexcept;

/// A receive() by recv(2) into a free buffer of `pool`. True: it is over.
[[nodiscard]] inline bool receive_lease(receive_operation& op, receive_pool& pool) noexcept {
    const std::uint32_t buffer = pool.claim();
    if (buffer == receive_pool::none) [[unlikely]]
        return receive_on_heap(op, pool);
    socket_record& record = *op.record;
    std::byte* const memory = pool.memory(buffer);
    const ssize_t count = sys::recv_once(record.fd, memory, receive_pool::buffer_size);
    if (count <= 0) [[unlikely]]
        return receive_no_lease(op, pool, buffer, count);
    op.hold(buffer, memory, static_cast<std::size_t>(count));
    if (op.moved != receive_pool::buffer_size && !record.reads_to_the_end) record.readable = false;
    return true;
}

/// The rest of receive_some() after recv(2) returned no bytes but `count`.
[[nodiscard]] bool receive_nothing(operation& op, ssize_t count) noexcept;

/// A read_some by recv(2). True: it is over.
[[nodiscard]] inline bool receive_some(operation& op) noexcept {
    socket_record& record = *op.record;
    const ssize_t count = sys::recv_once(record.fd, op.data, op.size);
    if (count <= 0) [[unlikely]]
        return receive_nothing(op, count);
    op.moved = static_cast<std::size_t>(count);
    if (op.moved != op.size && !record.reads_to_the_end) record.readable = false;
    return true;
}

/// A read_exact by recv(2), as far as bytes are there. True: it is over.
[[nodiscard]] bool receive_exactly(operation& op) noexcept;

/// Any read of a stream by recv(2). True: it is over.
[[nodiscard]] inline bool receive_by_call(operation& op, receive_pool& pool) noexcept {
    if (op.kind == request::read_some) return receive_some(op);
    if (op.kind == request::read_exact) return receive_exactly(op);
    return receive_lease(static_cast<receive_operation&>(op), pool);
}

/// An accept. True: it is over.
[[nodiscard]] bool attempt_accept(accept_base& op) noexcept;

/// Whether accept4(2) failed for lack of a resource that may become available.
[[nodiscard]] inline bool is_shortage(int error) noexcept {
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

} // namespace simplenet::v0::detail
