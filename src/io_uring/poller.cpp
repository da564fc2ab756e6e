#include "io_uring/poller.hpp"

#include <cerrno>

#include <poll.h>

namespace simplenet::v0::detail {

void poller::submit(operation& op, short events) noexcept {
    socket_record& record = *op.record;
    if (record.uring.edges.armed()) return; // its next report is for us
    if (record.uring.polls_in_error && record.is_open() && !queue_.dying) return watch(record);
    io_uring_sqe& entry = kernel_.make(op);
    io_uring_prep_poll_add(&entry, record.fd, static_cast<unsigned>(events));
    entry.user_data = tagged(&op, subject::operation);
}

void poller::finish(operation& op) noexcept {
    socket_record& record = *op.record;
    const bool reads = is_read(op.kind);
    if (op.outcome > 0 && (op.outcome & (reads ? POLLIN : POLLOUT)) == 0) {
        record.uring.polls_in_error = true;
    }
    const bool canceled = op.outcome == -ECANCELED && op.stopped != stop_reason::deadline;
    if (canceled || !record.is_open()) return queue_.complete(op, ECANCELED);
    (reads ? record.readable : record.writable) = true;
    queue_.attempt_later(op); // the attempt decides, also about a stop that arrived meanwhile
}

void poller::watch(socket_record& record) noexcept {
    io_uring_sqe& entry = kernel_.make(record);
    io_uring_prep_poll_multishot(&entry, record.fd, POLLIN | POLLOUT);
    entry.user_data = tagged(&record, subject::edges);
    record.uring.edges.arm();
}

void poller::watch_completed(socket_record& record, uring::completion seen) noexcept {
    constexpr int error = POLLERR | POLLHUP;
    const bool over = (seen.flags & IORING_CQE_F_MORE) == 0;
    if (over) record.uring.edges.end();
    // When it is over, waiting operations have to arm another one.
    if (over || (seen.res & (POLLIN | error)) != 0) {
        record.readable = true;
        queue_.notify(record.reader);
    }
    if (over || (seen.res & (POLLOUT | error)) != 0) {
        record.writable = true;
        queue_.notify(record.writer);
    }
    if (over) kernel_.release(record);
}

} // namespace simplenet::v0::detail
