#include <simplenet/runtime/operation.hpp>

#include "runtime/loop.hpp"
#include "runtime/perform.hpp"

#include <cerrno>

namespace simplenet::detail {

std::error_code operation::code() const noexcept {
    if (error < 0) return make_error_code(static_cast<errc>(-error));
    return {error, std::system_category()};
}

namespace {

int error_number(stop_reason reason) noexcept {
    return reason == stop_reason::deadline ? -static_cast<int>(errc::deadline_exceeded) : ECANCELED;
}

/// An empty exact read or an empty write: a success, whatever the socket has or has room for.
bool moves_nothing(operation& op) noexcept {
    return (op.kind == request::read_exact && op.size == 0) ||
           (is_write(op.kind) && next_bytes(op).empty());
}

} // namespace

// Straight-line for the two cases that matter: done at once, and nothing there yet.
bool operation::start(std::coroutine_handle<> caller, scope& within) noexcept {
    SIMPLENET_EXPECTS(record != nullptr, "an operation on a socket that was moved from");
    caller_ = caller;
    within_ = &within;
    phase = state::idle;
    // Refused, but never inline: a task that ignores its stop must not spin on this thread.
    if (within.stopped()) return refuse(error_number(within.reason), within);

    io_record& of = *record;
    if (of.home == nullptr || of.closing) {
        if (of.closing || of.fd < 0) return refuse(EBADF, within);
        static_cast<loop*>(within.queue)->bind(of);
    }
    loop& home = *of.home;
    SIMPLENET_DEBUG_EXPECTS(within.queue == &home,
                            "a socket belongs to the loop that used it first");

    const bool reads = is_read(kind);
    operation*& slot = reads ? of.reader : of.writer;
    SIMPLENET_EXPECTS(slot == nullptr, reads ? "a second read on a stream that has one in flight"
                                             : "a second write on a stream that has one in flight");
    if (reads ? of.readable : of.writable) {
        if (!home.take_inline_turn()) {
            // This coroutine had its share of the turn: it queues like everybody else.
            slot = this;
            within.current = this;
            phase = state::queued;
            home.push(*this);
            return true;
        }
        if (home.driver().attempt(*this)) {
            home.touch(of);
            return false;
        }
    }
    if (moves_nothing(*this)) return false;
    slot = this;
    within.current = this; // one store: this is how a stop finds us
    phase = state::waiting;
    if (reads) home.touch(of);
    home.driver().submit(*this);
    return true;
}

bool operation::refuse(int why, scope& within) noexcept {
    error = why;
    phase = state::finished;
    within.current = this;
    within.queue->refuse(*this, within);
    return true;
}

void operation::run() noexcept {
    if (phase == state::queued) {
        io_record& of = *record;
        loop& home = *of.home;
        if (of.closing) {
            error = ECANCELED;
        } else if (!home.driver().attempt(*this)) {
            if (stopped == stop_reason::none) {
                phase = state::waiting;
                home.driver().submit(*this);
                return;
            }
            error = error_number(stopped);
        } else {
            home.touch(of);
        }
        of.slot_of(*this) = nullptr;
        phase = state::finished;
        home.settle(of);
    }
    resume();
}

void operation::on_stop(stop_reason reason) noexcept {
    switch (phase) {
    case state::idle:
    case state::finished:
        return; // success beats stop; the next operation sees it
    case state::queued:
        if (stopped == stop_reason::none) stopped = reason; // the attempt decides
        return;
    case state::waiting:
        if (stopped != stop_reason::none) return; // the kernel was asked already
        stopped = reason;
        record->home->driver().cancel(*this, reason);
        return;
    }
}

void loop::complete(operation& op, int error) noexcept {
    io_record& of = *op.record;
    if (error == ECANCELED && op.stopped != stop_reason::none) {
        error = error_number(op.stopped);
    }
    // Whatever ends an operation on a socket that we close, it is our close.
    if (error != 0 && of.closing) error = ECANCELED;
    op.error = error;
    of.slot_of(op) = nullptr;
    op.phase = operation::state::finished;
    if (error == 0) touch(of);
    push(op);
    settle(of);
}

void loop::attempt_later(operation& op) noexcept {
    op.phase = operation::state::queued;
    push(op);
}

} // namespace simplenet::detail
