#pragma once
// Attempts that are the same on both backends: one try without waiting. Layer io, private.

#include "io/receive_pool.hpp"
#include "io/socket_record.hpp"
#include "sys/calls.hpp"

#include <simplenet/io/detail/accept_operation.hpp>
#include <simplenet/io/detail/stream_operations.hpp>

#include <cerrno>
#include <cstdint>
#include <utility>

namespace simplenet::v0::detail {

/// System calls in one attempt at a transfer of everything: a fast peer must not hold the loop. An
/// attempt that stops for this leaves the socket marked as ready, and is repeated in the next turn.
inline constexpr int most_tries = 16;

/// Books `count` bytes that a write moved. True: nothing is left to write.
[[nodiscard]] bool advance_write(write_operation& op, std::size_t count) noexcept;

/// The first bytes that a write has still to move; empty when there are none.
[[nodiscard]] const_buffer next_bytes(write_operation& op) noexcept;

/// Whether a write has nothing left to move.
[[nodiscard]] inline bool nothing_left(write_operation& op) noexcept {
    return op.buffers != nullptr ? advance_write(op, 0) : op.moved == op.size;
}

/// What a write that failed with `error` says. A reset is told once, to whoever comes first: this
/// write, and not a later read, though the kernel has told it to what receives ahead.
[[nodiscard]] inline int write_error(socket_record& record, int error) noexcept {
    if (error != EPIPE || record.end <= 0) return error;
    return std::exchange(record.end, end_of_stream_error);
}

/// The error behind everything that was received or accepted ahead. It is told once, as recv(2) and
/// accept(2) do; the end of the stream each time.
inline bool tell_end(operation& op) noexcept {
    socket_record& record = *op.record;
    op.error = record.end;
    record.readable = record.end == end_of_stream_error;
    if (!record.readable) record.end = 0;
    return true;
}

/// Of a negative outcome of a send: whether it ends the operation.
[[nodiscard]] bool send_failed(operation& op, ssize_t outcome) noexcept;

/// A write of one buffer after its first send(2), which took less than all: `count` is its outcome,
/// as of sys::send().
[[nodiscard]] bool go_on_sending(operation& op, ssize_t count) noexcept;

/// A write of one buffer, as far as the socket takes it. True: it is over.
// send(2) also where a ring could do it: nearly always there is room, and the entry, the completion
// and the suspension cost more than the call. Inline is the case that is over with it.
[[nodiscard]] inline bool attempt_send_one(operation& op) noexcept {
    if (op.moved == op.size) return true;
    const ssize_t count = sys::send_once(op.record->fd, op.data + op.moved, op.size - op.moved);
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

/// recv(2) into `size` bytes at `data`, with what its outcome says about the next one.
// A short read means that nothing is left: the edge for the next bytes will come (epoll(7)), which
// saves the read that would only say EAGAIN.
[[nodiscard]] inline ssize_t receive_directly(socket_record& record, std::byte* data,
                                              std::size_t size) noexcept {
    const ssize_t count = sys::recv(record.fd, data, size);
    if (count > 0 && static_cast<std::size_t>(count) != size && !record.reads_to_the_end) {
        record.readable = false;
    }
    return count;
}

/// Of a count that is not positive: whether it ends the operation.
[[nodiscard]] bool receive_failed(operation& op, ssize_t count) noexcept;

/// A receive() by recv(2) into `buffer`, which is free, or memory from the heap if there is none.
/// True: it is over.
[[nodiscard]] bool receive_lease(receive_operation& op, receive_pool& pool,
                                 std::uint32_t buffer) noexcept;

/// The rest of receive_some() after recv(2) brought no bytes but `count`, as it returned it.
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

/// An accept. True: it is over.
[[nodiscard]] bool attempt_accept(accept_base& op) noexcept;

/// Whether accept4(2) failed for want of something that may come back.
[[nodiscard]] inline bool is_shortage(int error) noexcept {
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

} // namespace simplenet::v0::detail
