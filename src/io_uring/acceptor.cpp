// Accepting: a multishot accept for each listener, as long as there are descriptors. Layer
// io_uring.

#include "io/attempts.hpp"
#include "io_uring/backend.hpp"

#include <algorithm>
#include <cerrno>
#include <new>

#include <poll.h>

namespace simplenet::v0::detail {

// An accept in the kernel takes every connection that comes, wanted or not, and nobody else gets a
// descriptor while it does. So nothing is accepted ahead when they are running out: a proxy needs
// them for its own connections.
void uring_backend::submit_accept(operation& op) noexcept {
    socket_record& record = *op.record;
    accept_state& accepting = *record.accepting;
    if (record.uring.inflow.armed() || accepting.pausing || !record.is_open() || queue_.dying)
        return;
    const int limit = sys::descriptor_limit();
    accepting.scarce = limit - std::max(limit / 4, 2 * accept_state::most_ahead);
    if (accepting.newest >= accepting.scarce) return submit_poll(op, POLLIN);
    io_uring_sqe& entry = next_entry();
    io_uring_prep_multishot_accept(&entry, record.fd, nullptr, nullptr,
                                   SOCK_CLOEXEC | SOCK_NONBLOCK);
    entry.user_data = tagged(&record, subject::accept);
    record.uring.inflow.arm();
    record.receiving = true;
    hold(record);
}

void uring_backend::accept_ahead(socket_record& record, int connection) noexcept {
    accept_state& accepting = *record.accepting;
    accepting.newest = connection;
    try {
        if (accepting.ahead.full()) accepting.ahead.grow(2 * accepting.ahead.capacity());
    } catch (const std::bad_alloc&) {
        // Taken off the queue already, and there is no place for it: its client hears of it.
        close_descriptor(connection);
        return queue_.pause_accepting(record);
    }
    accepting.ahead.push_back(int{connection});
    if (connection >= accepting.scarce ||
        accepting.ahead.size() >= std::size_t{accept_state::most_ahead}) {
        disarm(record);
    }
}

void uring_backend::accept_completed(socket_record& record, uring::completion seen) noexcept {
    accept_state& accepting = *record.accepting;
    const bool more = (seen.flags & IORING_CQE_F_MORE) != 0;
    if (!more) {
        record.uring.inflow.end();
        record.receiving = false;
    }
    if (seen.res >= 0) {
        accepting.pause = {};
        if (!record.is_open() || queue_.dying) {
            close_descriptor(seen.res);
        } else {
            accept_ahead(record, seen.res);
        }
    } else if (is_shortage(-seen.res)) {
        if (record.is_open()) queue_.pause_accepting(record);
    } else if (seen.res != -ECANCELED && seen.res != -EAGAIN && seen.res != -EINTR &&
               !sys::is_error_of_the_connection(seen.res)) {
        record.end = -seen.res;
    }
    record.readable = !more || !accepting.ahead.empty(); // over: perhaps others wait
    if (record.readable && record.is_open()) notify(record);
    if (!more) released(record);
}

bool uring_backend::accept_one(accept_base& op) noexcept {
    socket_record& record = *op.record;
    accept_state& accepting = *record.accepting;
    if (!accepting.ahead.empty()) {
        op.accepted.reset(accepting.ahead.front());
        accepting.ahead.drop_front();
        record.readable = !accepting.ahead.empty() || !record.uring.inflow.armed();
        return true;
    }
    if (record.end != 0) return at_end(op);
    if (!record.uring.inflow.armed()) return attempt_accept(op);
    record.readable = false;
    return false;
}

void uring_backend::drop_connections(socket_record& record) noexcept {
    ring<int>& ahead = record.accepting->ahead;
    for (; !ahead.empty(); ahead.drop_front())
        close_descriptor(ahead.front());
}

} // namespace simplenet::v0::detail
