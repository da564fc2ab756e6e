#include <simplenet/io/async_socket.hpp>

#include "io/io_queue.hpp"
#include "sys/calls.hpp"

namespace simplenet::v0 {
inline namespace runtime {

async_socket::async_socket(unique_fd socket)
    : record_{&detail::io_queue::new_record(socket.get())} {
    static_cast<void>(socket.release());
}

void async_socket::close() noexcept {
    if (record_ == nullptr) return;
    if (record_->home != nullptr) return record_->home->close(*record_);
    // Bound to no loop, or closed by a loop that is gone.
    detail::io_queue::drop_brought(*record_);
    record_->state = detail::record_state::closed;
    if (record_->fd >= 0) detail::close_descriptor(std::exchange(record_->fd, -1));
}

int async_socket::native_handle() const noexcept {
    return record_ == nullptr || !record_->is_open() ? -1 : record_->fd;
}

void async_socket::drop() noexcept {
    if (record_ == nullptr) return;
    detail::socket_record& gone = *std::exchange(record_, nullptr);
    if (gone.home != nullptr) return gone.home->drop(gone);
    detail::io_queue::discard(gone);
}

} // namespace runtime

namespace detail {

bool closed_operation::start(std::coroutine_handle<> caller, scope& within) noexcept {
    if (record_ == nullptr) {
        return misused(caller, within, "closed() of a socket that was moved from");
    }
    if (within.stopped()) {
        suspend(caller, within);
        stopped_ = within.reason;
        within.queue->refuse(*this, within);
        return true;
    }
    if (record_->is_over() || record_->fd < 0) {
        // After the operations that the close ended, which are on the ready list.
        suspend(caller, within);
        within.queue->push(*this);
        return true;
    }
    if (record_->home == nullptr) io_queue::current().bind(*record_);
    suspend(caller, within);
    record_->closed_waiters.push_back(*this);
    return true;
}

result<> closed_operation::await_resume() noexcept {
    if (stopped_ != stop_reason::none) return fail(error_of(stopped_));
    return {};
}

void closed_operation::on_stop(stop_reason reason) noexcept {
    if (!linked()) return; // it is on the ready list
    unlink();
    stopped_ = reason;
    if (record_->home != nullptr) record_->home->free_if_unused(*record_);
    within_->queue->push(*this);
}

closed_operation::~closed_operation() {
    if (!linked()) return;
    unlink();
    if (record_->home != nullptr) record_->home->free_if_unused(*record_);
}

void idle_state::expired() noexcept {
    if (!record.waits()) return; // armed again by the next operation that waits
    io_queue& home = *record.home;
    // A peer that reads slowly is not idle: the kernel wakes a writer only when a good part of its
    // buffer is free (tcp(7)), but counts what the peer acknowledges.
    if (!touched() && record.writer != nullptr && last + limit <= home.now()) {
        const int left = sys::unsent_bytes(record.fd);
        if (left != std::exchange(unsent, left)) last = home.now();
    }
    const auto due = last + limit;
    if (touched() || due > home.now()) return home.timers.insert(*this, due);
    for (operation* const op : {record.reader, record.writer}) {
        if (op != nullptr) op->on_stop(stop_reason::deadline);
    }
}

void accept_state::expired() noexcept {
    record.home->resume_accepting(record);
}

} // namespace detail
} // namespace simplenet::v0
