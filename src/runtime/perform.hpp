#pragma once
// Attempts that are the same on both backends: one try without waiting. Layer runtime, private.

#include "runtime/io_record.hpp"
#include "sys/calls.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

namespace simplenet::detail {

/// Books `count` bytes that a write moved. True: nothing is left to write.
inline bool advance_write(operation& op, std::size_t count) noexcept {
    op.moved += count;
    if (op.buffers == nullptr) return op.moved == op.size;
    op.skip += count;
    while (op.size != 0 && op.skip >= op.buffers->size()) {
        op.skip -= op.buffers->size();
        ++op.buffers;
        --op.size;
    }
    return op.size == 0;
}

/// The first bytes that a write has still to move; empty when there are none.
inline const_buffer next_bytes(operation& op) noexcept {
    if (op.buffers == nullptr) return {op.data + op.moved, op.size - op.moved};
    advance_write(op, 0); // past empty buffers
    return op.size == 0 ? const_buffer{} : op.buffers->subspan(op.skip);
}

inline ssize_t send_vector(operation& op, int fd) noexcept {
    // 64: far below IOV_MAX, and more than one send takes from small buffers in practice.
    std::array<iovec, 64> vector;
    std::size_t count = 0;
    std::size_t skip = op.skip;
    for (std::size_t at = 0; at < op.size && count < vector.size(); ++at) {
        const const_buffer rest = op.buffers[at].subspan(skip);
        skip = 0;
        vector[count++] = {const_cast<std::byte*>(rest.data()), rest.size()};
    }
    return sys::sendv(fd, std::span{vector}.first(count));
}

/// A write, as far as the socket takes it. True: it is over.
// send(2) also where a ring could do it: nearly always there is room, and the entry, the completion
// and the suspension cost more than the call.
inline bool attempt_write(operation& op) noexcept {
    io_record& record = *op.record;
    for (;;) {
        const const_buffer rest = next_bytes(op);
        if (rest.empty()) return true;
        const ssize_t count = op.buffers == nullptr ? sys::send(record.fd, rest.data(), rest.size())
                                                    : send_vector(op, record.fd);
        if (count >= 0) {
            if (advance_write(op, static_cast<std::size_t>(count)) ||
                op.kind == request::write_some) {
                return true;
            }
            continue; // short: the next try says whether there is room again
        }
        if (count == -EAGAIN) {
            record.writable = false;
            return false;
        }
        op.error = static_cast<int>(-count);
        return true;
    }
}

/// Whether accept4(2) failed for want of something that may come back.
inline bool is_shortage(int error) noexcept {
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

} // namespace simplenet::detail
