#include <simplenet/io/detail/operation.hpp>

#include "io/attempts.hpp"
#include "io/connect_operation.hpp"
#include "io/io_queue.hpp"
#include "io/receive_pool.hpp"

#include <simplenet/io/detail/stream_operations.hpp>
#include <simplenet/socket/detail/name_calls.hpp>

#include <cerrno>
#include <string>

namespace simplenet::v0::detail {

std::error_code operation::code() const noexcept {
    if (error < 0) return make_error_code(static_cast<errc>(-error));
    // Ours, not the kernel's: the same code as for a stopped sleep.
    if (error == ECANCELED) return error_of(stop_reason::canceled);
    return {error, std::system_category()};
}

/// After an attempt that did not end it: whether it stopped because it moved as much as one turn
/// allows.
inline bool operation::can_go_on(const socket_record& of) const noexcept {
    if (is_read(kind)) return of.readable;
    return of.writable && kind != request::connect && phase != state::sleeping;
}

namespace {

void append_names(std::string& text, int fd) {
    if (const auto ours = names::ip_local(fd)) {
        (text += ", ") += ours->to_string();
        if (const auto theirs = names::ip_remote(fd)) (text += " <-> ") += theirs->to_string();
    } else if (const auto path = names::unix_local(fd)) {
        const auto peer = names::unix_remote(fd);
        for (const auto& each : {path, peer}) {
            if (each && !each->to_string().empty()) (text += ", ") += each->to_string();
        }
    }
}

} // namespace

const char* operation::name() const noexcept {
    switch (kind) {
    case request::read_some:
        return "read_some";
    case request::read_exact:
        return "async_read_exact";
    case request::receive:
    case request::perform_read:
        return "receive";
    case request::accept:
        return "accept";
    case request::write_some:
    case request::write_some_more:
        return "write_some";
    case request::write_all:
    case request::write_all_more:
        return "async_write_all";
    case request::connect:
        return "connect";
    case request::perform_write:
        return "send";
    }
    return "an operation";
}

int operation::native_handle() const noexcept {
    return record->fd;
}

void operation::describe(std::string& text) {
    text += name();
    if (phase == state::finished) {
        text += ", over"; // its record may be gone
        return;
    }
    if (record == nullptr || record->fd < 0) return;
    text += " on fd ";
    text += std::to_string(record->fd);
    append_names(text, record->fd);
}

// Nearly all operations are reads and writes of one buffer. Where their attempt is a system call it
// is the same on both backends, so the backend is not called.

inline bool operation::attempt_read(socket_record& of) noexcept {
    if (kind == request::read_some && of.reads_directly()) [[likely]] {
        return receive_some(*this);
    }
    return kind == request::perform_read ? perform() : of.driver->attempt_read(*this);
}

inline bool operation::attempt_write(socket_record& of) noexcept {
    if (is_send(kind)) [[likely]] {
        return attempt_send(static_cast<write_operation&>(*this));
    }
    return kind == request::perform_write
               ? perform()
               : of.driver->attempt_connect(static_cast<connect_operation&>(*this));
}

// The start functions save no registers for these two: the first has their parameters, the second
// none.

bool operation::moved_from(std::coroutine_handle<> caller, scope& within) noexcept {
    caller_ = caller;
    within_ = &within;
    return misused_at_start();
}

bool operation::misused_at_start() noexcept {
    const char* what = "a second write on a stream that has one in flight";
    if (record == nullptr) {
        what = "an operation on a socket that was moved from";
    } else if (record->home != within_->queue) {
        what = "a socket belongs to the loop that used it first: release() it there";
    } else if (is_read(kind)) {
        what = "a second read on a stream that has one in flight";
    }
    return misused(caller_, *within_, what);
}

// Each start is two functions. The first handles only the usual case, a read that has to wait or a
// write of one buffer that ends with its send(2), so it needs neither branches nor saved registers
// for the rest. The second handles everything.

bool operation::start_read(std::coroutine_handle<> caller, scope& within) noexcept {
    if (record == nullptr) [[unlikely]]
        return moved_from(caller, within);
    socket_record& of = *record;
    if (of.open_on != within.queue || within.stopped() || of.readable || !of.receiving || of.idle ||
        of.reader != nullptr) {
        return start_any_read(caller, within);
    }
    caller_ = caller;
    within_ = &within;
    error = 0;
    moved = 0;
    enter(of.reader, within);
    phase = state::waiting;
    return true;
}

bool operation::start_any_read(std::coroutine_handle<> caller, scope& within) noexcept {
    socket_record& of = *record;
    caller_ = caller;
    within_ = &within;
    error = 0;
    moved = 0;
    if (of.open_on != within.queue || within.stopped()) {
        if (cannot_start(within)) return true;
    }
    if (of.reader != nullptr) [[unlikely]]
        return misused_at_start();
    of.home->touch(of); // bytes move now, or it begins to wait
    if (of.readable) {
        if (!within.queue->take_inline_turn()) {
            queue_up(of.reader, within);
            return true;
        }
        if (attempt_read(of)) return false;
        if (can_go_on(of)) {
            queue_up(of.reader, within);
            return true;
        }
    }
    if (kind == request::read_exact && size == 0) return false; // whatever has arrived
    enter(of.reader, within);
    phase = state::waiting;
    if (!of.receiving) of.driver->submit(*this);
    return true;
}

bool write_operation::start_send(std::coroutine_handle<> caller, scope& within) noexcept {
    if (record == nullptr) [[unlikely]]
        return moved_from(caller, within);
    socket_record& of = *record;
    if (of.open_on != within.queue || within.stopped() || !of.writable || of.writer != nullptr ||
        of.idle || size == 0 || !within.queue->take_inline_turn()) {
        return start_any_write(caller, within);
    }
    caller_ = caller;
    within_ = &within;
    error = 0;
    const ssize_t count = sys::send_once(of.fd, data, size);
    if (static_cast<std::size_t>(count) != size) [[unlikely]]
        return go_on_writing(count);
    moved = static_cast<std::size_t>(count);
    return false;
}

bool write_operation::go_on_writing(ssize_t count) noexcept {
    if (count < 0) count = sys::failure();
    socket_record& of = *record;
    moved = count > 0 ? static_cast<std::size_t>(count) : 0;
    if (!go_on_sending(*this, count)) return wait_for_room(of);
    of.home->touch(of);
    return false;
}

bool operation::start_any_write(std::coroutine_handle<> caller, scope& within) noexcept {
    if (record == nullptr) [[unlikely]]
        return moved_from(caller, within);
    socket_record& of = *record;
    caller_ = caller;
    within_ = &within;
    error = 0;
    moved = 0;
    if (of.open_on != within.queue || within.stopped()) {
        if (cannot_start(within)) return true;
    }
    if (of.writer != nullptr) [[unlikely]]
        return misused_at_start();
    if (of.writable) {
        if (!within.queue->take_inline_turn()) {
            queue_up(of.writer, within);
            return true;
        }
        const bool over = attempt_write(of);
        if (over || moved != 0) of.home->touch(of); // a part counts as movement, too
        if (over) return false;
    }
    return wait_for_room(of);
}

/// After an attempt to write that did not end it.
bool operation::wait_for_room(socket_record& of) noexcept {
    scope& within = *within_;
    of.home->touch(of); // it begins to wait
    if (can_go_on(of)) {
        queue_up(of.writer, within);
        return true;
    }
    if (is_send(kind) && nothing_left(static_cast<write_operation&>(*this))) return false;
    enter(of.writer, within);
    wait(of);
    return true;
}

bool operation::begin_now() noexcept {
    run_queue& queue = run_queue::require_current();
    SIMPLENET_EXPECTS(record != nullptr, "an operation on a socket that was moved from");
    socket_record& of = *record;
    error = 0;
    moved = 0;
    if (!of.is_open() || of.fd < 0) {
        error = EBADF;
        return false;
    }
    if (of.home == nullptr) io_queue::of(queue).bind(of);
    SIMPLENET_EXPECTS(of.home == &queue,
                      "a socket belongs to the loop that used it first: release() it there");
    return true;
}

bool operation::read_now() noexcept {
    if (!begin_now()) return true;
    socket_record& of = *record;
    SIMPLENET_EXPECTS(of.reader == nullptr, "a second read on a stream that has one in flight");
    // Whatever the loop knows: the attempt asks the socket, and clears this if nothing is there.
    of.readable = true;
    if (!attempt_read(of)) return false;
    of.home->touch(of);
    return true;
}

bool write_operation::write_now() noexcept {
    if (!begin_now()) return true;
    socket_record& of = *record;
    SIMPLENET_EXPECTS(of.writer == nullptr, "a second write on a stream that has one in flight");
    const bool over = attempt_send(*this); // clears `writable` if there is no room
    if (error == 0 && moved != 0) {
        of.writable = true;
        of.home->touch(of);
    }
    return over;
}

bool operation::read_ready() noexcept {
    socket_record& of = *record;
    run_queue& queue = run_queue::require_current();
    if (!of.readable || of.open_on != &queue || of.reader != nullptr) return false;
    error = 0;
    moved = 0;
    if (!queue.take_inline_turn() || !attempt_read(of)) return false;
    of.home->touch(of);
    return true;
}

/// Handles an unusual start. True: it ends here. The first use of a socket continues.
bool operation::cannot_start(scope& within) noexcept {
    socket_record& of = *record;
    if (within.stopped()) {
        error = error_number(within.reason);
    } else if (!of.is_open() || of.fd < 0) {
        error = EBADF;
    } else {
        if (of.home != nullptr) [[unlikely]]
            return misused_at_start();
        io_queue::of(*within.queue).bind(of);
        return false;
    }
    // Refused, but never inline: a task that ignores its stop must not spin on this thread.
    phase = state::finished;
    within.current = this;
    within.tell_observer();
    within.queue->refuse(*this, within);
    return true;
}

bool operation::perform() noexcept {
    SIMPLENET_EXPECTS(false, "perform() of an operation that only backends attempt");
    return true;
}

/// It is not over: it becomes the reader or writer of its record.
inline void operation::enter(operation*& slot, scope& within) noexcept {
    slot = this;
    io_queue::of(*within.queue).operation_began();
    within.current = this; // one store, through which a stop finds this operation
    within.tell_observer();
}

/// This coroutine, or this transfer, has used its share of the turn: queues it with the others.
void operation::queue_up(operation*& slot, scope& within) noexcept {
    enter(slot, within);
    phase = state::queued;
    within.queue->push(*this);
}

/// Called after an attempt that found nothing or put the operation to sleep.
inline void operation::wait(socket_record& of) noexcept {
    if (phase == state::sleeping) return;
    phase = state::waiting;
    of.driver->submit(*this);
}

void operation::run() noexcept {
    if (phase != state::queued) return resume();
    attempt_in_turn();
}

void operation::attempt_in_turn() noexcept {
    socket_record& of = *record;
    const std::size_t before = moved;
    if (!is_read(kind) || !of.is_open()) [[unlikely]]
        return attempted(of, !of.is_open() || attempt_write(of), before);
    if (!attempt_read(of)) [[unlikely]]
        return attempted(of, false, before);
    finish_read(of);
}

/// A queued read has its outcome.
inline void operation::finish_read(socket_record& of) noexcept {
    io_queue& home = *of.home;
    home.touch(of);
    home.operation_ended();
    of.reader = nullptr;
    phase = state::finished;
    resume_on(home);
}

// The same as operation::run(), for the most frequent operation.
void read_some_operation::run() noexcept {
    if (phase != state::queued) return resume();
    socket_record& of = *record;
    if (!of.reads_directly()) [[unlikely]] // not after close()
        return attempt_in_turn();
    if (!receive_some(*this)) [[unlikely]]
        return attempted(of, false, moved);
    finish_read(of);
}

/// Continues after an attempt in its turn. `over`: it has its outcome, or its socket was closed.
/// `before`: what had moved before the attempt.
void operation::attempted(socket_record& of, bool over, std::size_t before) noexcept {
    const bool reads = is_read(kind);
    if (over || moved != before) of.home->touch(of); // a slow transfer is not an idle stream
    if (!of.is_open()) [[unlikely]] {
        error = ECANCELED;
    } else if (over) {
        // It has its outcome. What a write has found when it was stopped, as by its deadline, may
        // be room of which no event tells, because it is little (tcp(7)): the next write looks for
        // the rest of it.
        const bool when_stopped = stopped != stop_reason::none && error == 0;
        if (when_stopped && !reads && moved != before) of.writable = true;
    } else if (stopped != stop_reason::none) {
        error = error_number(stopped);
    } else if (can_go_on(of)) {
        within_->queue->push(*this); // it moved as much as one turn allows
        return;
    } else {
        return wait(of);
    }
    (reads ? of.reader : of.writer) = nullptr;
    phase = state::finished;
    of.home->operation_ended();
    of.home->advance_close(of);
    resume();
}

void receive_operation::run() noexcept {
    socket_record& of = *record;
    if (phase != state::queued || !of.reads_directly()) [[unlikely]]
        return operation::run();
    if (!receive_lease(*this, of.home->pool())) [[unlikely]]
        return attempted(of, false, moved);
    finish_read(of);
}

void operation::on_stop(stop_reason reason) noexcept {
    const bool over = phase == state::idle || phase == state::finished;
    if (over) return;                         // success beats a stop; the next operation sees it
    if (stopped != stop_reason::none) return; // the first reason stays
    stopped = reason;
    if (reason == stop_reason::deadline) record->driver->limit_passed();
    const bool queued = phase == state::queued; // then the attempt decides
    if (!queued) record->driver->cancel(*this, reason);
}

} // namespace simplenet::v0::detail
