#include "io_uring/acceptor.hpp"

#include "io/attempts.hpp"

#include <algorithm>
#include <cerrno>
#include <new>

#include <poll.h>

namespace simplenet::v0::detail {

// A multishot accept takes every connection that arrives, wanted or not, and with it a descriptor:
// in one turn as many as the queue of the listener holds, 4096 by default (net.core.somaxconn). So
// nothing is accepted ahead where these could be the last: files and other connections need them.
constexpr int spare_descriptors = 4096;

void acceptor::submit(operation& op) noexcept {
    socket_record& listener = *op.record;
    accept_state& accepting = *listener.accepting;
    if (listener.uring.inflow.armed() || accepting.pausing()) return;
    if (!listener.is_open() || queue_.dying) return;
    const int limit = sys::descriptor_limit();
    accepting.scarce = limit - std::max(limit / 4, spare_descriptors);
    if (accepting.most_ahead == 0 || accepting.highest >= accepting.scarce) {
        return polls_.submit(op, POLLIN);
    }
    io_uring_sqe& entry = kernel_.make(listener);
    io_uring_prep_multishot_accept(&entry, listener.fd, nullptr, nullptr,
                                   SOCK_CLOEXEC | SOCK_NONBLOCK);
    entry.user_data = tagged(&listener, subject::accept);
    listener.uring.inflow.arm();
    listener.receiving = true;
}

void acceptor::push(socket_record& listener, int connection) noexcept {
    accept_state& accepting = *listener.accepting;
    accepting.note(connection);
    try {
        if (accepting.ahead.full()) accepting.ahead.grow(2 * accepting.ahead.capacity());
    } catch (const std::bad_alloc&) {
        // The kernel has already accepted it, and there is no place for it: close it, so that the
        // client notices.
        close_descriptor(connection);
        return queue_.pause_accepting(listener, ENOMEM);
    }
    accepting.ahead.push_back(auto{connection});
    if (connection >= accepting.scarce || accepting.ahead.size() >= accepting.most_ahead) {
        stop(listener);
    }
}

void acceptor::completed(socket_record& listener, uring::completion seen) noexcept {
    accept_state& accepting = *listener.accepting;
    const bool more = (seen.flags & IORING_CQE_F_MORE) != 0;
    if (!more) {
        listener.uring.inflow.end();
        listener.receiving = false;
    }
    if (seen.res >= 0) {
        accepting.pause = {};
        if (!listener.is_open() || queue_.dying) {
            close_descriptor(seen.res);
        } else {
            push(listener, seen.res);
        }
    } else if (is_shortage(-seen.res)) {
        if (listener.is_open()) queue_.pause_accepting(listener, -seen.res);
    } else if (seen.res != -ECANCELED && seen.res != -EAGAIN && seen.res != -EINTR &&
               !sys::is_error_of_the_connection(seen.res)) {
        listener.end = -seen.res;
    }
    listener.readable = !more || !accepting.ahead.empty(); // over: more may be waiting
    if (listener.readable && listener.is_open()) queue_.notify(listener.reader);
    if (!more) kernel_.release(listener);
}

bool acceptor::attempt(accept_base& op) noexcept {
    socket_record& listener = *op.record;
    accept_state& accepting = *listener.accepting;
    if (!accepting.ahead.empty()) {
        op.accepted.reset(accepting.ahead.front());
        accepting.ahead.drop_front();
        listener.readable = !accepting.ahead.empty() || !listener.uring.inflow.armed();
        return true;
    }
    if (listener.end != 0) return tell_end(op);
    if (!listener.uring.inflow.armed()) return attempt_accept(op);
    listener.readable = false;
    return false;
}

void acceptor::retire(socket_record& listener) noexcept {
    ring<int>& ahead = listener.accepting->ahead;
    for (; !ahead.empty(); ahead.drop_front())
        close_descriptor(ahead.front());
    stop(listener);
}

} // namespace simplenet::v0::detail
