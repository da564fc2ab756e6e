#include "io_uring/receiver.hpp"

#include <simplenet/socket/detail/option_calls.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>

#include <poll.h>

namespace simplenet::v0::detail {

result<> receiver::open(const loop_options& options) {
    auto pool = receive_pool::create(options.receive_pool, this);
    if (!pool) return fail(pool);
    pool_ = *pool;
    const int outcome = buffers_.open(kernel_.ring(), pool_->count(), receive_group);
    if (outcome != 0) return fail(sys::error_from(outcome));
    read_ahead_ = std::max<std::size_t>(options.read_ahead, 1);
    post_buffers(first_buffers);
    return {};
}

void receiver::take_ahead(socket_record& record, std::vector<std::byte>& unread) {
    try {
        unread.reserve(unread.size() + record.ahead.bytes());
    } catch (...) {
        give_back_ahead(record); // or the next socket with this record would read the bytes
        tell_of_loss(record);
        throw;
    }
    while (!record.ahead.empty()) {
        const auto [data, size, emptied] = record.ahead.take(*pool_);
        unread.insert(unread.end(), data, data + size);
        give_back(emptied);
    }
}

void receiver::want(socket_record& record) noexcept {
    if (!record.is_open() || queue_.dying) return;
    const request kind = record.reader->kind;
    const bool large = (record.reads == reading::large || record.reads == reading::directly) &&
                       kind != request::receive;
    // The kernel needs a buffer of the pool, but for what it receives into the reader's memory.
    const bool pooled = !record.is_unix_stream() || kind == request::receive;
    const bool directly =
        large || (pooled && !record.uring.inflow.armed() && !kernel_has_buffers());
    if (!directly && record.reads != reading::by_driver) [[unlikely]]
        stop_reading_directly(record);
    if (record.uring.inflow.armed()) {
        if (directly) stop(record); // its end leads here again
        return;
    }
    if (record.end != 0 || !record.ahead.empty()) return queue_.notify(record.reader);
    if (!directly) return arm(record);
    read_directly(record, large ? reading::directly : reading::without_buffers);
}

// The buffers of the pool are many and far apart, so a large piece is fetched into the processor's
// caches twice and evicts everything else: at 1000 connections with 16 KiB each that is a quarter
// of a round trip. So, as on epoll, the kernel only reports that data has arrived, and recv(2)
// reads it into the caller's memory. Unlike epoll, a multishot poll reports what woke it, not what
// is there: it cannot distinguish plain bytes from urgent data and from the end, after which a
// short read does not mean that nothing is left. So reads continue until they find nothing.
void receiver::read_directly(socket_record& record, reading how) noexcept {
    const bool begins = !record.reads_directly();
    record.reads = how;
    record.reads_to_the_end = true;
    if (!record.uring.edges.armed()) return polls_.watch(record); // reports what is already there
    // The poll was armed before, and its reports may have been for another operation: make an
    // attempt.
    if (!begins) return;
    record.readable = true;
    queue_.notify(record.reader);
}

void receiver::stop_reading_directly(socket_record& record) noexcept {
    record.reads = reading::by_driver;
    record.receiving = record.uring.inflow.armed();
    polls_.unwatch(record); // a poll that finds an error asks for it again
}

void receiver::arm(socket_record& record) noexcept {
    // Descriptors may be attached; and the kernel may never complete a multishot receive of a Unix
    // domain socket whose peer writes many pieces and closes (seen on Linux 6.18).
    if (record.is_unix_stream()) return submit(*record.reader);
    io_uring_sqe& entry = kernel_.make(record);
    io_uring_prep_recv_multishot(&entry, record.fd, nullptr, 0, 0);
    entry.flags |= IOSQE_BUFFER_SELECT;
    entry.buf_group = receive_group;
    entry.user_data = tagged(&record, subject::receive);
    record.uring.inflow.arm();
    record.receiving = true;
}

void receiver::unusual_completed(socket_record& record, uring::completion seen) noexcept {
    if ((seen.flags & IORING_CQE_F_MORE) == 0) {
        record.uring.inflow.end();
        record.receiving = false;
    }
    if ((seen.flags & IORING_CQE_F_BUFFER) != 0) {
        --posted_;
        const std::uint32_t buffer = seen.flags >> IORING_CQE_BUFFER_SHIFT;
        if (seen.res > 0 && (record.is_open() || record.is_kept())) {
            record.ahead.push(*pool_, buffer, static_cast<std::uint32_t>(seen.res));
        } else {
            give_back(buffer);
            if (seen.res > 0) tell_of_loss(record);
        }
    }
    if (seen.res == 0) {
        record.end = zero_read_error(record);
    } else if (seen.res < 0 && seen.res != -ENOBUFS && seen.res != -ECANCELED &&
               seen.res != -EAGAIN && seen.res != -EINTR) {
        record.end = -seen.res;
        record.zero_means = end_of_stream_error; // once
    }
    record.readable = !record.ahead.empty() || record.end != 0;
    if (record.is_open()) {
        if (record.readable) {
            queue_.notify(record.reader);
        } else if (!record.uring.inflow.armed() && record.reader != nullptr &&
                   record.reader->phase == operation::state::waiting) {
            want(record);
        }
    }
    if ((seen.flags & IORING_CQE_F_MORE) == 0) kernel_.release(record);
}

void receiver::submit(operation& op) noexcept {
    io_uring_sqe& entry = kernel_.make(op);
    if (op.kind == request::receive) {
        io_uring_prep_recv(&entry, op.record->fd, nullptr, 0, 0);
        entry.flags |= IOSQE_BUFFER_SELECT;
        entry.buf_group = receive_group;
    } else {
        io_uring_prep_recv(&entry, op.record->fd, op.data + op.moved,
                           std::min<std::size_t>(op.size - op.moved, INT_MAX), 0);
    }
    entry.user_data = tagged(&op, subject::operation);
}

void receiver::completed(operation& op, uring::completion seen) noexcept {
    if (op.record->is_unix_stream()) {
        op.record->readable = (seen.flags & IORING_CQE_F_SOCK_NONEMPTY) != 0;
    }
    if ((seen.flags & IORING_CQE_F_BUFFER) == 0) return;
    --posted_;
    const std::uint32_t buffer = seen.flags >> IORING_CQE_BUFFER_SHIFT;
    if (seen.res > 0) {
        static_cast<receive_operation&>(op).hold(buffer, pool_->memory(buffer),
                                                 static_cast<std::size_t>(seen.res));
    } else {
        give_back(buffer);
    }
}

void receiver::finish(operation& op) noexcept {
    const int outcome = op.outcome;
    const bool open = op.record->is_open();
    const bool wanted = op.stopped == stop_reason::none && open;
    const bool lacks_buffer = outcome == -ENOBUFS && op.kind == request::receive;
    if (outcome == -EAGAIN || outcome == -EINTR || lacks_buffer || outcome == -ECANCELED) {
        // A last attempt: bytes may have arrived before the cancel was processed.
        if (op.stopped == stop_reason::deadline) return queue_.attempt_later(op);
        if (!wanted || outcome == -ECANCELED) return queue_.complete(op, ECANCELED);
        return want(*op.record);
    }
    if (outcome < 0) return queue_.complete(op, -outcome);
    if (outcome == 0) return queue_.complete(op, open ? tell_zero(*op.record) : ECANCELED);
    if (op.kind != request::receive) op.moved += static_cast<std::size_t>(outcome);
    if (op.moved == op.size || op.kind != request::read_exact) return queue_.complete(op, 0);
    queue_.touch(*op.record);
    // More is left to read: before a deadline ends the read, take what is there now.
    if (!wanted && op.stopped != stop_reason::deadline) return queue_.complete(op, ECANCELED);
    queue_.attempt_later(op);
}

/// A last attempt before a deadline ends `op`: a canceled receive may not have looked into the
/// socket any more. An armed receive has looked, because the kernel was asked for everything it
/// had. Not at the end of the loop, which has dropped bytes received ahead.
bool receiver::attempt_last(operation& op) noexcept {
    if (op.record->uring.inflow.armed() || queue_.dying) return false;
    return attempt_by_call(op);
}

void receiver::retire(socket_record& record) noexcept {
    if (!record.is_kept() && !record.ahead.empty()) {
        give_back_ahead(record);
        tell_of_loss(record);
    }
    stop(record);
}

void receiver::tell_of_loss(socket_record& record) noexcept {
    if (record.is_open()) { // at the end of a loop: makes any later close(2) send a reset
        record.aborts = true;
        static_cast<void>(options::set_linger(record.fd, std::chrono::seconds{0}));
    } else {
        static_cast<void>(sys::disconnect(record.fd));
    }
}

void receiver::give_back_ahead(socket_record& record) noexcept {
    while (!record.ahead.empty())
        give_back(record.ahead.take(*pool_).emptied);
}

bool receiver::at_end(operation& op) noexcept {
    socket_record& record = *op.record;
    if (record.brought && take_brought(op, *pool_)) return true;
    // A poll has found bytes, for readable(): unless the kernel receives ahead, they
    // are still in the socket.
    const bool in_the_socket = record.readable;
    if (record.end != 0) return tell_end(op);
    record.readable = false;
    return (in_the_socket || op.stopped == stop_reason::deadline) && attempt_last(op);
}

bool receiver::take_bytes(operation& op) noexcept {
    socket_record& record = *op.record;
    while (!record.ahead.empty() && op.moved < op.size) {
        const auto [data, size, emptied] = record.ahead.take(*pool_, op.size - op.moved);
        std::memcpy(op.data + op.moved, data, size);
        op.moved += size;
        if (size >= large_piece) note_large(record);
        if (emptied != receive_pool::none) give_back(emptied);
    }
    if (op.moved == op.size || (op.moved != 0 && op.kind == request::read_some)) {
        record.readable = !record.ahead.empty() || record.end != 0;
        return true;
    }
    return at_end(op);
}

void receiver::post_buffers(std::uint32_t count) noexcept {
    for (; count != 0; --count) {
        const std::uint32_t buffer = pool_->claim();
        if (buffer == receive_pool::none) return;
        give_back(buffer);
    }
}

} // namespace simplenet::v0::detail
