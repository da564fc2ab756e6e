#include "io/attempts.hpp"

#include "io/io_queue.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <span>

#include <poll.h>

namespace simplenet::v0::detail {

bool advance_write(write_operation& op, std::size_t count) noexcept {
    op.moved += count;
    if (op.buffers == nullptr) return op.moved == op.size;
    op.skip += count;
    while (op.buffer_count != 0 && op.skip >= op.buffers->size()) {
        op.skip -= op.buffers->size();
        ++op.buffers;
        --op.buffer_count;
    }
    return op.buffer_count == 0;
}

const_buffer next_bytes(write_operation& op) noexcept {
    if (op.buffers == nullptr) return {op.data + op.moved, op.size - op.moved};
    if (advance_write(op, 0)) return {}; // past empty buffers
    return op.buffers->subspan(op.skip);
}

namespace {

ssize_t send_vector(const write_operation& op) noexcept {
    // 64: far below IOV_MAX, and more than one send takes from small buffers in practice.
    std::array<iovec, 64> vector;
    std::size_t count = 0;
    std::size_t skip = op.skip;
    for (std::size_t at = 0; at < op.buffer_count && count < vector.size(); ++at) {
        const const_buffer rest = op.buffers[at].subspan(skip);
        skip = 0;
        vector[count++] = {const_cast<std::byte*>(rest.data()), rest.size()};
    }
    return sys::sendv(op.record->fd, std::span{vector}.first(count), send_flags(op));
}

/// Whether the connection has ended. An error of a write may also be one of a file, or of the
/// route, after which the connection goes on.
bool is_over(const socket_record& record) noexcept {
    const int now = sys::poll(record.fd, 0, std::chrono::steady_clock::time_point{});
    return now < 0 || (now & POLLHUP) != 0; // tcp_poll() in the kernel
}

} // namespace

void note_write_error(socket_record& record, int error) noexcept {
    if (!record.is_stream() || error == EPIPE || record.write_told) return;
    if (!is_over(record)) return;
    record.write_told = true;
    if (record.end_told) return; // the peer has ended the stream, whatever came then
    if (record.end == 0) {
        record.zero_means = static_cast<std::int16_t>(error);
    } else if (record.end == end_of_stream_error) { // a receive ahead has got 0 already
        record.end = error;
    }
}

int write_error(socket_record& record, int error) noexcept {
    note_write_error(record, error);
    const bool read_waits = record.reader != nullptr;
    if (error != EPIPE) return read_waits && record.write_told ? EPIPE : error;
    // The error may have been taken from the kernel for the next read. A Unix domain socket has
    // none for a write.
    const int kept = record.read_error();
    const bool is_told = record.write_told || record.kind != record_kind::stream;
    if (kept == 0 || read_waits || is_told) return EPIPE;
    record.write_told = true;
    return kept;
}

bool receive_failed(operation& op, ssize_t count) noexcept {
    socket_record& record = *op.record;
    if (count == -EAGAIN) {
        record.readable = false;
        return false;
    }
    op.error = count == 0 ? tell_zero(record) : static_cast<int>(-count);
    record.zero_means = end_of_stream_error; // once
    return true;
}

bool send_failed(operation& op, ssize_t outcome) noexcept {
    if (outcome == -EAGAIN) {
        op.record->writable = false;
        return false;
    }
    op.error = write_error(*op.record, static_cast<int>(-outcome));
    return true;
}

bool receive_nothing(operation& op, ssize_t count) noexcept {
    if (count < 0) count = sys::failure();
    if (count == -EINTR) count = receive_directly(*op.record, op.data, op.size);
    if (count <= 0) return receive_failed(op, count);
    op.moved = static_cast<std::size_t>(count);
    return true;
}

namespace {

/// The least memory that a receive() takes from the heap. SIOCINQ does not count an end, an error,
/// or a byte of urgent data.
constexpr std::size_t least_overflow = 64;

std::size_t size_of_overflow(int fd) noexcept {
    const int unread = sys::unread_bytes(fd);
    if (unread < 0) return receive_pool::buffer_size; // refused by a sandbox
    return std::clamp(static_cast<std::size_t>(unread), least_overflow, receive_pool::buffer_size);
}

} // namespace

bool take_brought(operation& op, receive_pool& pool) noexcept {
    socket_record& record = *op.record;
    brought_bytes& from = *record.brought;
    const const_buffer rest = const_buffer{from.bytes}.subspan(from.taken);
    std::size_t count = 0;
    if (op.kind == request::receive) {
        count = std::min(rest.size(), receive_pool::buffer_size);
        std::uint32_t buffer = pool.claim();
        std::byte* memory = nullptr;
        if (buffer != receive_pool::none) {
            memory = pool.memory(buffer);
        } else {
            buffer = receive_pool::on_heap;
            memory = receive_pool::allocate_overflow(count);
            if (memory == nullptr) {
                op.error = ENOMEM;
                return true;
            }
            pool.count_overflow();
        }
        std::memcpy(memory, rest.data(), count);
        static_cast<receive_operation&>(op).hold(buffer, memory, count);
    } else {
        count = std::min(rest.size(), op.size - op.moved);
        if (count != 0) std::memcpy(op.data + op.moved, rest.data(), count);
        op.moved += count;
    }
    from.taken += count;
    if (from.taken == from.bytes.size()) record.brought.reset();
    record.readable = true; // behind them may be more
    return op.kind != request::read_exact || op.moved == op.size;
}

bool receive_no_lease(receive_operation& op, receive_pool& pool, std::uint32_t buffer,
                      ssize_t count) noexcept {
    if (count < 0) count = sys::failure();
    std::byte* const memory = pool.memory(buffer);
    if (count == -EINTR) count = receive_directly(*op.record, memory, receive_pool::buffer_size);
    if (count <= 0) {
        pool.give_back(buffer);
        return receive_failed(op, count);
    }
    op.hold(buffer, memory, static_cast<std::size_t>(count));
    return true;
}

bool receive_on_heap(receive_operation& op, receive_pool& pool) noexcept {
    const std::size_t size = size_of_overflow(op.record->fd);
    std::byte* const memory = receive_pool::allocate_overflow(size);
    if (memory == nullptr) {
        op.error = ENOMEM; // the bytes are still in the socket
        return true;
    }
    const ssize_t count = receive_directly(*op.record, memory, size);
    if (count <= 0) {
        receive_pool::free_overflow(memory);
        return receive_failed(op, count);
    }
    op.hold(receive_pool::on_heap, memory, static_cast<std::size_t>(count));
    pool.count_overflow();
    return true;
}

bool receive_exactly(operation& op) noexcept {
    socket_record& record = *op.record;
    for (int round = 0; round < most_tries && op.moved != op.size; ++round) {
        const ssize_t count = receive_directly(record, op.data + op.moved, op.size - op.moved);
        if (count <= 0) return receive_failed(op, count);
        op.moved += static_cast<std::size_t>(count);
        if (!record.readable) break;
    }
    return op.moved == op.size;
}

bool go_on_sending(operation& op, ssize_t count) noexcept {
    if (count == -EINTR) {
        count = sys::send(op.record->fd, op.data + op.moved, op.size - op.moved, send_flags(op));
        if (count > 0) op.moved += static_cast<std::size_t>(count);
    }
    for (int round = 1;; ++round) {
        if (count < 0) return send_failed(op, count);
        if (op.moved == op.size || is_partial_write(op.kind)) return true;
        if (round == most_tries) return false;
        // It was short: the next call finds out whether there is room again.
        count = sys::send(op.record->fd, op.data + op.moved, op.size - op.moved, send_flags(op));
        if (count > 0) op.moved += static_cast<std::size_t>(count);
    }
}

namespace {

/// Whether to call accept4(2) again at once after it has returned a connection.
bool should_accept_more(const socket_record& listener) noexcept {
    // accept4(2) allocates a socket and a file before it finds the queue empty: 3.1 µs. poll(2)
    // takes 0.2 µs. Most connections come alone; behind a second one there are probably more.
    if (listener.accepting->accepts_in_a_row) return true;
    return sys::poll(listener.fd, POLLIN, std::chrono::steady_clock::time_point{}) != 0;
}

} // namespace

bool attempt_accept(accept_base& op) noexcept {
    socket_record& record = *op.record;
    if (record.accepting->pausing()) {
        record.readable = false; // the pause ends with an attempt
        return false;
    }
    int accepted = 0;
    do {
        accepted = sys::accept(record.fd, sys::mode::nonblocking);
    } while (sys::is_error_of_the_connection(accepted));
    if (accepted >= 0) {
        record.accepting->pause = {};
        record.accepting->note(accepted);
        op.accepted.reset(accepted);
        record.readable = should_accept_more(record);
        record.accepting->accepts_in_a_row = record.readable;
        return true;
    }
    if (accepted != -EAGAIN && !is_shortage(-accepted)) {
        op.error = -accepted;
        return true;
    }
    record.readable = record.accepting->accepts_in_a_row = false;
    // The connection stays queued, and no edge will announce it.
    if (accepted != -EAGAIN) record.home->pause_accepting(record, -accepted);
    return false;
}

bool attempt_send_several(write_operation& op) noexcept {
    if (advance_write(op, 0)) return true; // nothing but empty buffers
    for (int round = 0; round < most_tries; ++round) {
        const ssize_t count = send_vector(op);
        if (count < 0) return send_failed(op, count);
        if (advance_write(op, static_cast<std::size_t>(count))) return true;
        if (is_partial_write(op.kind)) return true;
    }
    return false;
}

} // namespace simplenet::v0::detail
