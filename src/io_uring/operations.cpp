// What operations do that have an entry of their own. Layer io_uring.

#include "io/attempts.hpp"
#include "io/connect_operation.hpp"
#include "io_uring/backend.hpp"
#include "socket/setup.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>

#include <poll.h>

namespace simplenet::v0::detail {

namespace {

/// Whether what came back from the kernel for `op` is a poll.
bool polls(const operation& op) noexcept {
    switch (op.kind) {
    case request::accept:
    case request::perform_read:
    case request::perform_write:
        return true;
    case request::receive:
        return op.data == nullptr; // no buffer came with it
    default:
        return false;
    }
}

} // namespace

void uring_backend::submit(operation& op) noexcept {
    socket_record& record = *op.record;
    switch (op.kind) {
    case request::read_some:
    case request::read_exact:
    case request::receive:
        want_receive(record);
        return;
    case request::accept:
        submit_accept(op);
        return;
    case request::write_some:
    case request::write_all:
        submit_send(static_cast<write_operation&>(op));
        return;
    case request::connect:
        submit_connect(static_cast<connect_operation&>(op));
        return;
    case request::perform_read:
        submit_poll(op, POLLIN);
        return;
    case request::perform_write:
        submit_poll(op, POLLOUT);
        return;
    }
}

void uring_backend::cancel(operation& op, stop_reason reason) noexcept {
    if (op.kernel_references != 0) {
        submit_cancel(op);
    } else if (reason == stop_reason::deadline) {
        // Attempted after the next poll: what has arrived by then counts.
        queue_.attempt_later(op);
    } else {
        queue_.complete(op, ECANCELED);
    }
}

void uring_backend::submit(readiness_operation& op) noexcept {
    io_uring_sqe& entry = entry_for(op);
    io_uring_prep_poll_add(&entry, op.fd, op.waits_to == direction::read ? POLLIN : POLLOUT);
    entry.user_data = tagged(&op, subject::wait);
}

void uring_backend::cancel(readiness_operation& op) noexcept {
    io_uring_sqe& entry = entry_for(op);
    io_uring_prep_cancel64(&entry, tagged(&op, subject::wait), 0);
    entry.user_data = tagged(&op, subject::wait);
}

void uring_backend::wait_completed(readiness_operation& op, int outcome) noexcept {
    const bool unheard = outcome == -ENOENT || outcome == -EALREADY; // see cancel_completed()
    if (unheard && op.kernel_references > 1) cancel(op);
    if (outcome != 0 && !unheard) op.outcome = outcome;
    --references_;
    if (--op.kernel_references != 0) return;
    if (op.outcome > 0) return queue_.complete(op, 0);
    if (op.outcome == -ECANCELED) return queue_.give_up(op);
    queue_.complete(op, -op.outcome);
}

void uring_backend::submit_send(write_operation& op) noexcept {
    io_uring_sqe& entry = entry_for(op);
    // One buffer even of a vectored write: the entry then points to nothing but the bytes.
    const const_buffer rest = next_bytes(op);
    // Not with MSG_WAITALL: until all is sent the kernel would say nothing, which an idle timeout
    // takes for silence, also one that is set later. An attempt has just found no room: the kernel
    // polls first, until a good part of the buffer is free, so that each entry moves much.
    io_uring_prep_send(&entry, op.record->fd, rest.data(),
                       std::min<std::size_t>(rest.size(), INT_MAX), MSG_NOSIGNAL);
    entry.ioprio |= IORING_RECVSEND_POLL_FIRST;
    entry.user_data = tagged(&op, subject::operation);
}

void uring_backend::submit_connect(connect_operation& op) noexcept {
    io_uring_sqe& entry = entry_for(op);
    io_uring_prep_connect(&entry, op.record->fd, op.peer.data(), op.peer.size);
    entry.user_data = tagged(&op, subject::operation);
}

void uring_backend::submit_receive(operation& op) noexcept {
    if (op.kind == request::receive && !kernel_has_buffers()) {
        // A multishot poll reports changes only. Bytes that an earlier read left in the socket have
        // been reported already: look for them first.
        std::byte next{};
        const int fd = op.record->fd;
        if (op.record->uring.edges.armed() &&
            sys::recv(fd, &next, sizeof next, MSG_PEEK) != -EAGAIN) {
            return queue_.attempt_later(op);
        }
        return submit_poll(op, POLLIN);
    }
    io_uring_sqe& entry = entry_for(op);
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

void uring_backend::submit_poll(operation& op, unsigned events) noexcept {
    socket_record& record = *op.record;
    if (record.uring.edges.armed()) return; // the next one is for us
    if (record.uring.polls_in_error && record.is_open() && !queue_.dying)
        return watch_edges(record);
    io_uring_sqe& entry = entry_for(op);
    io_uring_prep_poll_add(&entry, op.record->fd, events);
    entry.user_data = tagged(&op, subject::operation);
}

void uring_backend::watch_edges(socket_record& record) noexcept {
    io_uring_sqe& entry = next_entry();
    io_uring_prep_poll_multishot(&entry, record.fd, POLLIN | POLLOUT);
    entry.user_data = tagged(&record, subject::edges);
    record.uring.edges.arm();
    hold(record);
}

void uring_backend::edge_completed(socket_record& record, uring::completion seen) noexcept {
    constexpr int error = POLLERR | POLLHUP;
    const bool over = (seen.flags & IORING_CQE_F_MORE) == 0;
    if (over) record.uring.edges.end();
    // When it is over, who waits has to ask for another one.
    if (over || (seen.res & (POLLIN | error)) != 0) {
        record.readable = true;
        notify(record);
    }
    if (over || (seen.res & (POLLOUT | error)) != 0) {
        record.writable = true;
        notify_writer(record);
    }
    if (over) released(record);
}

void uring_backend::submit_cancel(operation& op) noexcept {
    io_uring_sqe& entry = entry_for(op);
    io_uring_prep_cancel64(&entry, tagged(&op, subject::operation), 0);
    entry.user_data = tagged(&op, subject::operation_cancel);
}

// The kernel does not find what is on its way from one attempt to the next (ENOENT), or is with a
// worker thread (EALREADY), and then goes on to wait with it as if nobody had asked. So it is asked
// again, until the operation's own completion is there.
void uring_backend::cancel_completed(operation& op, int outcome) noexcept {
    if (outcome < 0 && op.kernel_references > 1) submit_cancel(op);
    released(op);
}

void uring_backend::operation_completed(operation& op, uring::completion seen) noexcept {
    socket_record& record = *op.record;
    op.outcome = seen.res;
    if (!is_read(op.kind)) {
        record.writable = true;
    } else if (record.kind == record_kind::local_stream) {
        record.readable = (seen.flags & IORING_CQE_F_SOCK_NONEMPTY) != 0;
    }
    if ((seen.flags & IORING_CQE_F_BUFFER) != 0) {
        --posted_;
        const std::uint32_t buffer = seen.flags >> IORING_CQE_BUFFER_SHIFT;
        if (seen.res > 0) {
            static_cast<receive_operation&>(op).buffer = buffer;
            op.data = pool_->memory(buffer);
        } else {
            give_back(buffer);
        }
    }
    released(op);
}

void uring_backend::released(operation& op) noexcept {
    socket_record& record = *op.record;
    if (--op.kernel_references == 0) finish(op);
    released(record);
}

void uring_backend::finish(operation& op) noexcept {
    if (polls(op) && op.outcome > 0) {
        const int wanted = is_read(op.kind) ? POLLIN : POLLOUT;
        if ((op.outcome & wanted) == 0) op.record->uring.polls_in_error = true;
    }
    if (op.kind == request::perform_read || op.kind == request::perform_write) {
        return poll_finished(op);
    }
    const int outcome = op.outcome;
    const bool wanted = op.stopped == stop_reason::none && op.record->is_open();
    const bool interrupted = outcome == -EAGAIN || outcome == -EINTR;
    if (interrupted && wanted) return submit_again(op);
    const bool lacks_buffer = outcome == -ENOBUFS && op.kind == request::receive;
    if ((outcome == -ECANCELED || interrupted || lacks_buffer) &&
        op.stopped == stop_reason::deadline) {
        // The last attempt counts: there may have been room, or bytes, or the connection, before
        // the cancel was worked on.
        return op.kind == request::connect ? connect_taken_back(op) : queue_.attempt_later(op);
    }
    if (interrupted) return queue_.complete(op, ECANCELED);
    if (lacks_buffer) {
        if (!wanted) return queue_.complete(op, ECANCELED);
        grow();
        return submit_receive(op);
    }
    if (outcome < 0) {
        return queue_.complete(op, is_read(op.kind) ? -outcome : write_error(*op.record, -outcome));
    }
    switch (op.kind) {
    case request::connect:
        return queue_.complete(op, connected(*op.record));
    case request::write_some:
    case request::write_all: {
        auto& write = static_cast<write_operation&>(op);
        const bool done = advance_write(write, static_cast<std::size_t>(outcome));
        if (done || op.kind == request::write_some) return queue_.complete(op, 0);
        queue_.touch(*op.record);
        // An attempt would find what little room has come since; but of many buffers it can send
        // more than the one that an entry points to.
        if (wanted && write.buffers == nullptr) return submit_send(write);
        break;
    }
    case request::read_some:
    case request::read_exact:
        if (outcome == 0)
            return queue_.complete(op, op.record->is_open() ? end_of_stream_error : ECANCELED);
        op.moved += static_cast<std::size_t>(outcome);
        if (op.moved == op.size || op.kind == request::read_some) return queue_.complete(op, 0);
        queue_.touch(*op.record);
        break;
    case request::receive:
        if (outcome == 0)
            return queue_.complete(op, op.record->is_open() ? end_of_stream_error : ECANCELED);
        if (polls(op)) return queue_.attempt_later(op);
        op.moved = static_cast<std::size_t>(outcome);
        return queue_.complete(op, 0);
    case request::accept:
        return queue_.attempt_later(op); // it is ready
    default:                             // the others never have an entry of their own
        return queue_.complete(op, 0);
    }
    // Some of it moved, and there is more to do: before a limit ends it, what there is now.
    if (!wanted && op.stopped != stop_reason::deadline) return queue_.complete(op, ECANCELED);
    queue_.attempt_later(op);
}

void uring_backend::poll_finished(operation& op) noexcept {
    const bool canceled = op.outcome == -ECANCELED && op.stopped != stop_reason::deadline;
    if (canceled || !op.record->is_open()) return queue_.complete(op, ECANCELED);
    (is_read(op.kind) ? op.record->readable : op.record->writable) = true;
    queue_.attempt_later(op); // which decides: also about a stop that came meanwhile
}

/// Taken back for a limit, where it may have been made.
void uring_backend::connect_taken_back(operation& op) noexcept {
    const auto made = finish_connect(op.record->fd);
    if (made) return queue_.complete(op, 0);
    const bool goes_on = made.error() == std::errc::operation_would_block;
    queue_.complete(op, goes_on ? ECANCELED : made.error().value());
}

void uring_backend::submit_again(operation& op) noexcept {
    if (op.kind <= request::receive) return submit_receive(op);
    submit(op);
}

int uring_backend::connected(socket_record& record) noexcept {
    const auto outcome = connect_outcome(record.fd);
    return outcome ? 0 : outcome.error().value();
}

} // namespace simplenet::v0::detail
