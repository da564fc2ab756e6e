// Receiving ahead: a multishot receive for each stream, over the buffers of the pool. Layer
// runtime.

#include "runtime/perform.hpp"
#include "runtime/uring_backend.hpp"

#include <simplenet/socket/socket_options.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

namespace simplenet::inline v0::detail {

void uring_backend::take_ahead(io_record& record, std::vector<std::byte>& unread) {
    try {
        unread.reserve(unread.size() + record.ahead_bytes);
    } catch (...) {
        give_back_ahead(record); // or the next socket that has this record would read it
        throw;
    }
    while (record.ahead_buffers != 0) {
        const std::uint32_t buffer = record.ahead_first;
        const receive_pool::slot& slot = pool_->at(buffer);
        const std::byte* const memory = pool_->memory(buffer);
        unread.insert(unread.end(), memory + slot.offset, memory + slot.length);
        give_back(pop_ahead(record));
    }
}

void uring_backend::want_receive(io_record& record) noexcept {
    if (record.starved || record.closing || loop_.dying) return;
    bool directly = false;
    if (record.reads != reading::by_driver) [[unlikely]] {
        const request kind = record.reader->kind;
        directly = kind == request::read_some || kind == request::read_exact;
        if (!directly) stop_reading_directly(record);
    }
    if (record.armed) {
        if (directly) disarm(record); // the end of which leads here again
        return;
    }
    if (record.end != 0 || record.ahead_buffers != 0) return notify(record);
    directly ? read_directly(record) : arm_receive(record);
}

// The buffers of the pool are many and far apart, so a large piece is fetched into the processor's
// caches twice and pushes everything else out of them: at 1000 connections with 16 KiB each that is
// a quarter of a round trip. As on epoll the kernel then says when there is something, once for all
// of it, and recv(2) puts it where it belongs. Other than epoll, a multishot poll reports what woke
// it and not what is there: urgent data and an end, behind which a short read says nothing, cannot
// be told from plain bytes. So reads go on until there is nothing.
void uring_backend::read_directly(io_record& record) noexcept {
    const bool begins = std::exchange(record.reads, reading::directly) != reading::directly;
    record.reads_to_the_end = true;
    if (!record.watches_edges) return watch_edges(record); // says what is there already
    // From before, and what it said meanwhile was not for this: an attempt has to tell.
    if (!begins) return;
    record.readable = true;
    notify(record);
}

void uring_backend::stop_reading_directly(io_record& record) noexcept {
    record.reads = reading::by_driver;
    record.receiving = record.armed;
    if (!record.watches_edges || record.edges_canceled || record.polls_in_error) return;
    record.edges_canceled = true;
    submit_record_cancel(record, subject::edges);
}

bool uring_backend::attempt_directly(operation& op) noexcept {
    switch (op.kind) {
    case request::read_some:
        return receive_some(op);
    case request::read_exact:
        return receive_exactly(op);
    case request::perform_read:
        return op.perform();
    default: // a receive
        break;
    }
    const bool over = attempt_receive(op);
    // One that was stopped asks the kernel for nothing: the next read looks for itself, as what is
    // there has had its edge.
    op.record->readable = op.stopped != stop_reason::none;
    return over;
}

void uring_backend::arm_receive(io_record& record) noexcept {
    if (record.never_ahead) return submit_receive(*record.reader);
    io_uring_sqe& entry = next_entry();
    io_uring_prep_recv_multishot(&entry, record.fd, nullptr, 0, 0);
    entry.flags |= IOSQE_BUFFER_SELECT;
    entry.buf_group = receive_group;
    entry.user_data = tagged(&record, subject::receive);
    record.armed = record.receiving = true;
    record.polled_first = false;
    hold(record);
}

void uring_backend::disarm(io_record& record) noexcept {
    if (record.armed && !record.disarming) {
        record.disarming = true;
        submit_record_cancel(record, record.listening ? subject::accept : subject::receive);
    }
    if (record.watches_edges && (record.closing || loop_.dying) && !record.edges_canceled) {
        record.edges_canceled = true;
        submit_record_cancel(record, subject::edges);
    }
}

void uring_backend::submit_record_cancel(io_record& record, subject about) noexcept {
    io_uring_sqe& entry = next_entry();
    io_uring_prep_cancel64(&entry, tagged(&record, about), 0);
    entry.user_data = tagged(&record, subject::record_cancel);
    hold(record);
}

/// As cancel_completed().
void uring_backend::disarm_completed(io_record& record, int outcome) noexcept {
    if (outcome < 0 && (record.disarming || record.edges_canceled)) {
        record.disarming = record.edges_canceled = false;
        disarm(record);
    }
    released(record);
}

void uring_backend::unusual_receive_completed(io_record& record, uring::completion seen) noexcept {
    if ((seen.flags & IORING_CQE_F_MORE) == 0)
        record.armed = record.receiving = record.disarming = false;
    if ((seen.flags & IORING_CQE_F_BUFFER) != 0) {
        --posted_;
        const std::uint32_t buffer = seen.flags >> IORING_CQE_BUFFER_SHIFT;
        if (seen.res > 0 && (!record.closing || record.keep_descriptor)) {
            push_ahead(record, buffer, static_cast<std::uint32_t>(seen.res));
        } else {
            give_back(buffer);
            if (seen.res > 0) tell_of_loss(record);
        }
    }
    bool starves = false;
    if (seen.res == 0) {
        record.end = end_of_stream_error;
    } else if (seen.res == -ENOBUFS) {
        starves = true;
    } else if (seen.res < 0 && seen.res != -ECANCELED && seen.res != -EAGAIN &&
               seen.res != -EINTR) {
        record.end = -seen.res;
    }
    record.readable = record.ahead_buffers != 0 || record.end != 0;
    if (!record.closing) {
        if (record.readable) {
            notify(record);
        } else if (!record.armed && is_waiting(record.reader)) {
            lacked_buffers_ = lacked_buffers_ || starves;
            // Many may be refused at once: a buffer for each of them, beside some to spare.
            if (starves && !post_buffers(posted_ == 0 ? more_buffers : 1) && posted_ == 0) {
                starve(record);
            } else {
                want_receive(record);
            }
        }
        if (is_far_ahead(record)) disarm(record);
    }
    if ((seen.flags & IORING_CQE_F_MORE) == 0) released(record);
}

void uring_backend::starve(io_record& record) noexcept {
    operation& reader = *record.reader;
    if (reader.kind != request::receive) return submit_receive(reader);
    // One came back between the kernel's refusal and now, and there may be no other.
    if (posted_ != 0) return arm_receive(record);
    const bool polled = std::exchange(record.polled_first, false);
    const std::uint32_t buffer = claim_for_lease();
    if (buffer != receive_pool::none && receive_for_lease(reader, buffer)) {
        return loop_.complete(reader, reader.error);
    }
    // The kernel looks for a buffer before it looks for bytes, unless it is asked to wait for them.
    if (!polled) return submit_receive(reader);
    if (buffer == receive_pool::none) {
        record.starved = true;
        starved_.push_back(record);
    } else if (!record.watches_edges) {
        // It was no bytes, and would wake the next one at once: an error queue that nobody reads.
        watch_edges(record);
    }
}

// Not by way of the kernel's ring of buffers, where others would be before them. At a poll, so that
// a lease that is released costs no system call, and a stop that comes meanwhile counts.
std::size_t uring_backend::serve_starved() noexcept {
    std::size_t served = 0;
    while (returned_ != receive_pool::none) {
        const std::uint32_t buffer = returned_;
        if (starved_.empty()) {
            returned_ = pool_->at(buffer).next;
            not_leased() < pool_->count() ? post_buffer(buffer) : pool_->give_back(buffer);
            continue;
        }
        io_record& record = starved_.front();
        unstarve(record);
        operation& reader = *record.reader;
        const ssize_t count = receive_into(reader, *pool_, buffer);
        if (count > 0) {
            returned_ = pool_->at(buffer).next;
            loop_.complete(reader, 0);
        } else if (receive_failed(reader, count)) {
            loop_.complete(reader, reader.error); // which needs no buffer
        } else {
            want_receive(record);
            continue;
        }
        ++served;
    }
    return served;
}

bool uring_backend::attempt_direct(operation& op) noexcept {
    io_record& record = *op.record;
    if (op.kind == request::receive_descriptors) return attempt_receive_descriptors(op);
    if (op.kind == request::receive) return attempt_receive(op);
    if (op.moved == op.size) return true;
    // It may stop short of what is there (unix(7), at descriptors), and no entry finds the rest.
    if (op.kind == request::read_exact && op.stopped == stop_reason::deadline) {
        record.readable = true; // unless recv(2) says otherwise
        return receive_exactly(op);
    }
    const std::size_t size = op.size - op.moved;
    const ssize_t count = sys::recv(record.fd, op.data + op.moved, size);
    // An entry would find what is left, if anything is.
    record.readable = count > 0 && static_cast<std::size_t>(count) == size;
    if (count == -EAGAIN) return false;
    if (count > 0) {
        op.moved += static_cast<std::size_t>(count);
        return op.moved == op.size || op.kind == request::read_some;
    }
    op.error = count == 0 ? end_of_stream_error : static_cast<int>(-count);
    return true;
}

/// A receive(): the kernel has the buffers, and says what is there when it is asked. Before a
/// deadline ends it there is no time for that.
bool uring_backend::attempt_receive(operation& op) noexcept {
    op.record->readable = false;
    if (op.stopped != stop_reason::deadline) return false;
    const std::uint32_t buffer = claim_for_lease();
    return buffer != receive_pool::none && receive_for_lease(op, buffer);
}

bool uring_backend::receive_for_lease(operation& op, std::uint32_t buffer) noexcept {
    const ssize_t count = receive_into(op, *pool_, buffer);
    if (count > 0) return true;
    pool_->give_back(buffer); // nobody waits for it: they wait for one that a lease has
    return receive_failed(op, count);
}

/// Before a deadline ends `op`: a receive that was taken back has perhaps not looked into the
/// socket any more, and an accept may have nothing armed. What is armed has looked: the kernel was
/// asked for all that it had. Not at the end of the loop, which has dropped what was received
/// ahead.
bool uring_backend::attempt_last(operation& op) noexcept {
    if (op.record->armed || loop_.dying) return false;
    return op.kind == request::accept ? accept_last(op) : attempt_direct(op);
}

void uring_backend::drop_ahead(io_record& record) noexcept {
    if (record.listening) return drop_connections(record);
    if (record.keep_descriptor || record.ahead_buffers == 0) return; // release() takes it along
    give_back_ahead(record);
    tell_of_loss(record);
}

void uring_backend::tell_of_loss(io_record& record) noexcept {
    if (record.connectionless) return;
    if (record.closing) {
        static_cast<void>(sys::disconnect(record.fd));
    } else { // a loop that ends: close(2) resets, whoever calls it
        record.aborts = true;
        static_cast<void>(options::set_linger(record.fd, std::chrono::seconds{0}));
    }
}

void uring_backend::give_back_ahead(io_record& record) noexcept {
    while (record.ahead_buffers != 0)
        give_back(pop_ahead(record));
}

bool uring_backend::at_end(operation& op) noexcept {
    io_record& record = *op.record;
    record.readable = false;
    if (record.end == 0) return op.stopped == stop_reason::deadline && attempt_last(op);
    op.error = record.end;
    if (record.end == end_of_stream_error) {
        record.readable = true; // and stays the end
    } else {
        record.end = 0; // an error is reported once, as recv(2) and accept(2) do
    }
    return true;
}

bool uring_backend::take_bytes(operation& op) noexcept {
    io_record& record = *op.record;
    while (record.ahead_buffers != 0 && op.moved < op.size) {
        const std::uint32_t buffer = record.ahead_first;
        receive_pool::slot& slot = pool_->at(buffer);
        const std::size_t count =
            std::min<std::size_t>(op.size - op.moved, slot.length - slot.offset);
        std::memcpy(op.data + op.moved, pool_->memory(buffer) + slot.offset, count);
        op.moved += count;
        if (count >= large_piece) note_large(record);
        if (slot.offset + count == slot.length) {
            give_back(pop_ahead(record));
        } else {
            slot.offset += static_cast<std::uint32_t>(count);
            record.ahead_bytes -= count;
        }
    }
    if (op.moved == op.size || (op.moved != 0 && op.kind == request::read_some)) {
        record.readable = record.ahead_buffers != 0 || record.end != 0;
        return true;
    }
    return at_end(op);
}

bool uring_backend::post_buffers(std::uint32_t count) noexcept {
    for (std::uint32_t done = 0; done < count; ++done) {
        const std::uint32_t buffer = pool_->claim();
        if (buffer == receive_pool::none) return done != 0;
        post_buffer(buffer);
    }
    return true;
}

} // namespace simplenet::inline v0::detail
