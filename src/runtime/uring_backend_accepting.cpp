// Accepting: a multishot accept for each listener. Layer runtime.

#include "runtime/perform.hpp"
#include "runtime/uring_backend.hpp"

#include <cerrno>
#include <new>

namespace simplenet::inline v0::detail {

void uring_backend::want_accept(io_record& record) noexcept {
    if (record.armed || record.accepting->pausing || record.closing || loop_.dying) return;
    io_uring_sqe& entry = next_entry();
    io_uring_prep_multishot_accept(&entry, record.fd, nullptr, nullptr,
                                   SOCK_CLOEXEC | SOCK_NONBLOCK);
    entry.user_data = tagged(&record, subject::accept);
    record.armed = record.receiving = true;
    hold(record);
}

void uring_backend::accept_ahead(io_record& record, int connection) noexcept {
    accept_state& accepting = *record.accepting;
    try {
        accepting.ahead.push_back(connection);
    } catch (const std::bad_alloc&) {
        // Taken off the queue already, and there is no place for it: its client hears of it.
        close_descriptor(connection);
        return loop_.pause_accepting(record);
    }
    if (accepting.ahead.size() - accepting.next >= accept_state::most_ahead) disarm(record);
}

void uring_backend::accept_completed(io_record& record, uring::completion seen) noexcept {
    accept_state& accepting = *record.accepting;
    const bool more = (seen.flags & IORING_CQE_F_MORE) != 0;
    if (!more) record.armed = record.receiving = record.disarming = false;
    if (seen.res >= 0) {
        accepting.pause = {};
        if (record.closing) {
            close_descriptor(seen.res);
        } else {
            accept_ahead(record, seen.res);
        }
    } else if (is_shortage(-seen.res)) {
        if (!record.closing) loop_.pause_accepting(record);
    } else if (seen.res != -ECANCELED && seen.res != -EAGAIN && seen.res != -EINTR &&
               !sys::is_error_of_the_connection(seen.res)) {
        record.end = -seen.res;
    }
    record.readable = accepting.next != accepting.ahead.size() || record.end != 0;
    if (!record.closing) {
        if (record.readable) {
            notify(record);
        } else if (is_waiting(record.reader)) {
            want_accept(record);
        }
    }
    if (!more) released(record);
}

bool uring_backend::take_connection(operation& op) noexcept {
    io_record& record = *op.record;
    accept_state& accepting = *record.accepting;
    if (accepting.next == accepting.ahead.size()) return at_end(op);
    op.lease = static_cast<std::uint32_t>(accepting.ahead[accepting.next++]);
    op.moved = 1;
    if (accepting.next == accepting.ahead.size()) {
        accepting.ahead.clear();
        accepting.next = 0;
    }
    record.readable = accepting.next != accepting.ahead.size() || record.end != 0;
    return true;
}

bool uring_backend::accept_last(operation& op) noexcept {
    io_record& record = *op.record;
    if (record.accepting->pausing) return false;
    int accepted = 0;
    do {
        accepted = sys::accept(record.fd, sys::mode::nonblocking);
    } while (sys::is_error_of_the_connection(accepted));
    if (accepted < 0) return false; // a shortage too: it is the next one's
    record.accepting->pause = {};
    op.lease = static_cast<std::uint32_t>(accepted);
    op.moved = 1;
    return true;
}

void uring_backend::drop_connections(io_record& record) noexcept {
    accept_state& accepting = *record.accepting;
    while (accepting.next != accepting.ahead.size()) {
        close_descriptor(accepting.ahead[accepting.next++]);
    }
    accepting.ahead.clear();
    accepting.next = 0;
}

} // namespace simplenet::inline v0::detail
