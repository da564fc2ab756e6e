// The operations that have an entry of their own. Layer io_uring.

#include "io/attempts.hpp"
#include "io/connect_operation.hpp"
#include "io_uring/backend.hpp"
#include "socket/setup.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>

#include <poll.h>

namespace simplenet::v0::detail {

void uring_backend::submit(operation& op) noexcept {
    switch (op.kind) {
    case request::read_some:
    case request::read_exact:
    case request::receive:
        return receiver_.want(*op.record);
    case request::accept:
        return acceptor_.submit(op);
    case request::write_some:
    case request::write_all:
    case request::write_some_more:
    case request::write_all_more:
        return submit_send(static_cast<write_operation&>(op));
    case request::connect:
        return submit_connect(static_cast<connect_operation&>(op));
    case request::perform_read:
        return poller_.submit(op, POLLIN);
    case request::perform_write:
        return poller_.submit(op, POLLOUT);
    }
}

void uring_backend::cancel(operation& op, stop_reason reason) noexcept {
    if (op.kernel_references != 0) {
        submit_cancel(op);
    } else if (reason == stop_reason::deadline) {
        // Attempted after the next poll: data that has arrived by then counts.
        queue_.attempt_later(op);
    } else {
        queue_.complete(op, ECANCELED);
    }
}

void uring_backend::submit(readiness_operation& op) noexcept {
    io_uring_sqe& entry = entries_.make(op);
    io_uring_prep_poll_add(&entry, op.fd, op.waits_to == direction::read ? POLLIN : POLLOUT);
    entry.user_data = tagged(&op, subject::wait);
}

void uring_backend::cancel(readiness_operation& op) noexcept {
    io_uring_sqe& entry = entries_.make(op);
    io_uring_prep_cancel64(&entry, tagged(&op, subject::wait), 0);
    entry.user_data = tagged(&op, subject::wait);
}

void uring_backend::wait_completed(readiness_operation& op, int outcome) noexcept {
    const bool unheard = outcome == -ENOENT || outcome == -EALREADY; // see cancel_completed()
    if (unheard && op.kernel_references > 1) cancel(op);
    if (outcome != 0 && !unheard) op.outcome = outcome;
    entries_.release(op);
    if (op.kernel_references != 0) return;
    if (op.outcome > 0) return queue_.complete(op, 0);
    if (op.outcome == -ECANCELED) return queue_.give_up(op);
    queue_.complete(op, -op.outcome);
}

void uring_backend::submit_send(write_operation& op) noexcept {
    io_uring_sqe& entry = entries_.make(op);
    // Only one buffer, even of a vectored write: the entry then refers only to the bytes.
    const const_buffer rest = next_bytes(op);
    // Without MSG_WAITALL, with which the kernel would report nothing until all is sent: an idle
    // timeout, even one set later, would take that for silence. An attempt has just found no room:
    // the kernel polls first, until a good part of the buffer is free, so each entry moves much.
    io_uring_prep_send(&entry, op.record->fd, rest.data(),
                       std::min<std::size_t>(rest.size(), INT_MAX), MSG_NOSIGNAL | send_flags(op));
    entry.ioprio |= IORING_RECVSEND_POLL_FIRST;
    entry.user_data = tagged(&op, subject::operation);
}

void uring_backend::submit_connect(connect_operation& op) noexcept {
    io_uring_sqe& entry = entries_.make(op);
    io_uring_prep_connect(&entry, op.record->fd, op.peer.data(), op.peer.size);
    entry.user_data = tagged(&op, subject::operation);
}

void uring_backend::submit_cancel(operation& op) noexcept {
    io_uring_sqe& entry = entries_.make(op);
    io_uring_prep_cancel64(&entry, tagged(&op, subject::operation), 0);
    entry.user_data = tagged(&op, subject::operation_cancel);
}

// The kernel does not find an entry that is between two attempts (ENOENT) or with a worker thread
// (EALREADY), and then ignores the cancel. So the cancel is repeated until the operation's own
// completion is there.
void uring_backend::cancel_completed(operation& op, int outcome) noexcept {
    if (outcome < 0 && op.kernel_references > 1) submit_cancel(op);
    release(op);
}

/// Like cancel_completed().
void uring_backend::record_cancel_completed(socket_record& record, int outcome) noexcept {
    if (outcome < 0) {
        const bool listens = record.kind == record_kind::listener;
        entries_.cancel_again(record, record.uring.inflow,
                              listens ? subject::accept : subject::receive);
        entries_.cancel_again(record, record.uring.edges, subject::edges);
    }
    entries_.release(record);
}

namespace {

bool is_interrupted(int outcome) noexcept {
    return outcome == -EAGAIN || outcome == -EINTR;
}

/// Whether the result of an entry says nothing about its socket.
bool says_nothing(int outcome) noexcept {
    return is_interrupted(outcome) || outcome == -ECANCELED;
}

} // namespace

void uring_backend::completed(operation& op, uring::completion seen) noexcept {
    op.outcome = seen.res;
    if (!is_read(op.kind)) {
        op.record->writable = true;
        // At once, even if a cancel delays the rest: a receive may bring 0 before.
        if (is_send(op.kind) && seen.res < 0 && !says_nothing(seen.res)) {
            note_write_error(*op.record, -seen.res);
        }
    } else {
        receiver_.completed(op, seen);
    }
    release(op);
}

void uring_backend::release(operation& op) noexcept {
    socket_record& record = *op.record;
    if (--op.kernel_references == 0) {
        op.phase = operation::state::waiting;
        finish(op);
    }
    entries_.release(record);
}

void uring_backend::finish(operation& op) noexcept {
    switch (op.kind) {
    case request::read_some:
    case request::read_exact:
    case request::receive:
        return receiver_.finish(op);
    case request::accept:
    case request::perform_read:
    case request::perform_write:
        return poller_.finish(op);
    case request::write_some:
    case request::write_all:
    case request::write_some_more:
    case request::write_all_more:
        return finish_send(static_cast<write_operation&>(op));
    case request::connect:
        return finish_connect(op);
    }
}

void uring_backend::finish_send(write_operation& op) noexcept {
    const int outcome = op.outcome;
    const bool wanted = op.stopped == stop_reason::none && op.record->is_open();
    if (outcome < 0) {
        if (is_interrupted(outcome) && wanted) return submit_send(op);
        if (says_nothing(outcome) && op.stopped == stop_reason::deadline) {
            // A last attempt: there may have been room before the cancel was processed.
            return queue_.attempt_later(op);
        }
        if (says_nothing(outcome)) return queue_.complete(op, ECANCELED);
        return queue_.complete(op, write_error(*op.record, -outcome));
    }
    const bool done = advance_write(op, static_cast<std::size_t>(outcome));
    if (done || is_partial_write(op.kind)) return queue_.complete(op, 0);
    queue_.touch(*op.record);
    // An attempt would find only the little room that is free since then; but of several buffers it
    // can send more than the one that an entry refers to.
    if (wanted && op.buffers == nullptr) return submit_send(op);
    // More is left to send: before a deadline ends the write, send as much as there is room for.
    if (!wanted && op.stopped != stop_reason::deadline) return queue_.complete(op, ECANCELED);
    queue_.attempt_later(op);
}

void uring_backend::finish_connect(operation& op) noexcept {
    const int fd = op.record->fd;
    const bool interrupted = is_interrupted(op.outcome);
    if (interrupted && op.stopped == stop_reason::none && op.record->is_open()) return submit(op);
    if ((interrupted || op.outcome == -ECANCELED) && op.stopped == stop_reason::deadline) {
        // Canceled by a deadline, but the connection may have been established.
        const auto made = detail::finish_connect(fd);
        if (made) return queue_.complete(op, 0);
        const bool goes_on = made.error() == std::errc::operation_would_block;
        return queue_.complete(op, goes_on ? ECANCELED : made.error().value());
    }
    if (interrupted) return queue_.complete(op, ECANCELED);
    if (op.outcome < 0) return queue_.complete(op, -op.outcome);
    const auto outcome = connect_outcome(fd);
    queue_.complete(op, outcome ? 0 : outcome.error().value());
}

} // namespace simplenet::v0::detail
